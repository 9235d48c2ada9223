/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subnet that `umbel check` judges: read from the daemon of a fabric that is up, or from what
 * ibnetdiscover, dump_lfts and dump_mfts have printed. Single-threaded. A function that fails has
 * printed its one line.
 */
#ifndef CLI_SUBNET_H
#define CLI_SUBNET_H

#include "base/hash.h"
#include "check/net.h"
#include "cli/base/file.h"

struct control_client;
struct fabric_plan;
struct json_object;

struct cli_subnet {
	struct check_net net;
	char routing[32]; /* by which engine, "" if nobody knows */
	bool foreign;     /* another subnet manager than the embedded one is master, or none */
	bool levels;      /* service levels of paths are known */
	struct base_hash guids; /* of nodes and ports: struct cli_subnet_guid */
	struct base_hash names; /* of nodes: struct cli_subnet_name */
	char **text;            /* names that are not in ->kept or ->plan */
	uint32_t n_texts, texts_room;
	struct json_object *kept[2]; /* the daemon's topology and groups: names point there */
	struct fabric_plan *plan;
};

/* Where a subnet is that no daemon knows. */
struct cli_subnet_files {
	struct cli_file topology;
	const char *lfts, *mfts; /* NULL: there are no groups */
};

/* Waits until the subnet manager does not sweep, and reads. 0 or CLI_FAILED; cli_subnet_fini() is
 * due in any case. */
int cli_subnet_read(struct cli_subnet *s, struct control_client *client);
int cli_subnet_read_files(struct cli_subnet *s, struct cli_subnet_files *files);
void cli_subnet_fini(struct cli_subnet *s);

/* Reads which service levels paths have, as `saquery -p` prints them. 0 or CLI_FAILED. */
int cli_subnet_read_paths(struct cli_subnet *s, const char *name);

/* ---- for those that read ---- */

/* The holder of a GUID, or of a name: a switch, or a port of a host; of a name, the first port. */
struct cli_subnet_end {
	bool is_switch;
	uint32_t index;
};

/* 0 or CLI_FAILED: there is no memory. The name is not copied. */
int cli_subnet_add_guid(struct cli_subnet *s, uint64_t guid, struct cli_subnet_end end);
int cli_subnet_add_name(struct cli_subnet *s, const char *name, struct cli_subnet_end end);

/* NULL: there is none. */
const struct cli_subnet_end *cli_subnet_by_guid(const struct cli_subnet *s, uint64_t guid);
const struct cli_subnet_end *cli_subnet_by_name(const struct cli_subnet *s, const char *name);

/* A name of a port, which lives as long as @s; NULL: there is no memory. */
const char *cli_subnet_port_name(struct cli_subnet *s, const char *node, unsigned port);

#endif
