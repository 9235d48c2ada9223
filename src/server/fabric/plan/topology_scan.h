/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first pass over a topology file: it parses the lines into nodes and ends of links.
 * topology_file.c, which alone includes this, connects them. Names and descriptions point into the
 * text, which must stay valid.
 */
#ifndef FABRIC_TOPOLOGY_SCAN_H
#define FABRIC_TOPOLOGY_SCAN_H

#include <stdbool.h>

#include "base/hash.h"
#include "fabric/plan/plan.h"
#include "fabric/plan/topology_text.h"

/* A piece of the text; at NULL: none. */
struct topology_word {
	const char *at;
	size_t len;
};

/* "[3](guid) "remote"[4](guid) ...": the line about one end of a link. */
struct topology_end {
	uint32_t line;
	uint8_t port, remote_port;
	struct fabric_link_rate rate; /* 0: the file does not say */
	struct topology_word remote;
	uint64_t guid, remote_guid; /* 0: the file does not say */
};

struct topology_node {
	struct base_hash_node by_id;
	enum fabric_node_type type;
	uint32_t line;
	unsigned n_ports;
	struct topology_word id, desc;
	uint64_t guid, port_guid, system_guid; /* 0: the file does not say */
	uint32_t vendor_id, device_id;
	struct topology_word type_name, fw_ver, board_id; /* at NULL: the file does not say */
	bool enhanced_port0, is_router;
	unsigned first_end, n_ends;
	/* topology_file.c: */
	unsigned next_hca; /* of the same host, or 0 */
};

struct topology_scan {
	const struct fabric_topology_file *file;
	char *why;
	size_t why_len;
	struct topology_node *node;
	struct topology_end *end;
	unsigned n_nodes, node_room, n_ends, end_room;
	unsigned n_ports; /* of all nodes */
	/* the present line, and what the lines before a node said about it */
	uint32_t line;
	struct topology_node coming;
	uint64_t port_seen[4]; /* of the last node: a bit a port */
};

/*
 * Parses the file. Returns 0; -EINVAL: the reason is in @s->why; -ENOMEM. The caller calls
 * topology_scan_fini() in any case.
 */
int topology_scan(struct topology_scan *s);
void topology_scan_fini(struct topology_scan *s);

/* Writes "NAME:LINE: " and the message to @s->why. Returns -EINVAL. */
int topology_complain(struct topology_scan *s, uint32_t line, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* For "%.*s": a word that is not too long for a message. */
#define TOPOLOGY_WORD_ARG(w) (int)((w).len < 64 ? (w).len : 64), (w).at

#endif
