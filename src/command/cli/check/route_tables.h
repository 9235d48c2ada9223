/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The switches' tables in the daemon's compact form, read one switch at a time. Single-threaded.
 */
#ifndef CLI_ROUTE_TABLES_H
#define CLI_ROUTE_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control_client;
struct json_object;
struct json_tokener;

#define CLI_NO_PORT 255

/* A switch, valid during the call that gets it. */
struct cli_switch {
	const char *name;
	const uint8_t *port; /* by LID; CLI_NO_PORT: no route */
	unsigned n_lids;     /* of those that the switch forwards: up to LinearFDBTop */
	unsigned n_stored;   /* entries in @port */
	unsigned lft_top;
	unsigned mft_top;        /* 0: nobody has set it */
	bool mft_default;        /* it has a default multicast port */
	struct json_object *mft; /* an array */
};

struct cli_tables {
	char *text, *end; /* JSON */
	uint8_t *port;
	size_t port_room;
	struct json_tokener *tokener;
};

/* Asks for the tables of the switch @of, or of all (NULL). 0; CLI_FAILED: there is nothing to
 * free. */
int cli_tables_read(struct cli_tables *t, struct control_client *client, const char *of);
void cli_tables_free(struct cli_tables *t);

/* Calls @each for every switch, until it returns nonzero. That, 0, or CLI_FAILED. */
int cli_tables_each(struct cli_tables *t, int (*each)(void *arg, const struct cli_switch *sw),
                    void *arg);

#endif
