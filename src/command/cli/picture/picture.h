/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of a fabric that is up, to be drawn: hosts, switches, the links between them, and which
 * of these are lit, as they belong to the subject of the picture. picture_boxes.h folds equal ones,
 * picture_dot.c writes it down. Single-threaded. A function that fails has printed its one line.
 */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/hash.h"

struct control_client;
struct json_object;

#define CLI_PICTURE_NONE UINT32_MAX

/* A host, with all its HCAs, or a switch. */
struct cli_picture_node {
	const char *name;
	bool is_switch, dead, lit;
	bool end;       /* where a path ends */
	bool stuck;     /* its links wait for each other in a circle */
	unsigned level; /* hosts are at 0, switches so many links above a host */
	unsigned lid;   /* of a switch, or of the port by which a host is reached; 0: none */
	const char *hca;
	unsigned port; /* of a host, that port: the first active one, or else the first; 0: none */
	bool active;
	/* how many links are ... */
	unsigned to_hosts, up, down, beside; /* by what they lead to */
	unsigned failed, lit_links;
};

enum cli_picture_state { CLI_PICTURE_ACTIVE, CLI_PICTURE_IDLE, CLI_PICTURE_FAILED };

/* A link; its ends are in no order. */
struct cli_picture_link {
	uint32_t node[2];
	unsigned port[2];
	enum cli_picture_state state; /* idle: no subnet manager has made it active */
	bool lit;
	uint64_t load;  /* of that direction which has more */
	uint8_t circle; /* bit i: packets that leave node[i] by it wait in a circle of links */
};

/* A name, with the number of a port or 0, and what is meant: an index. */
struct cli_picture_name {
	struct base_hash_node hash;
	const char *name;
	unsigned port;
	uint32_t index;
};

struct cli_picture {
	struct cli_picture_node *node;
	struct cli_picture_link *link;
	uint32_t n, n_links, n_hosts;
	struct cli_picture_name *name; /* all that there are */
	uint32_t n_names, names_room;
	/* nodes by host, nodes by switch or HCA, links by these and port */
	struct base_hash hosts, nodes, ends;
	struct json_object *kept[2]; /* the daemon's replies: names point there */
	const char *fabric;          /* NULL: it is a simulation */
	FILE *way;         /* the links of a path are written there, one a line; or NULL */
	char about[256];   /* what is lit, in words; "" : nothing */
	const char *loads; /* what loads count; NULL: there are none */
	bool scaled;       /* they have colours, too, and a legend; nothing is lit */
};

/* picture_read.c: reads the topology. 0 or CLI_FAILED; cli_picture_fini() is due in any case. */
int cli_picture_read(struct cli_picture *p, struct control_client *client, const char *fabric);
void cli_picture_fini(struct cli_picture *p);

/* The index of a host, or else of a switch or of the host of an HCA; CLI_PICTURE_NONE: no such. */
uint32_t cli_picture_find(const struct cli_picture *p, const char *name);

/* The index of a switch, or of the host of an HCA. */
uint32_t cli_picture_find_node(const struct cli_picture *p, const char *name);

/* The link at a port of a switch or an HCA; NULL: there is none. */
struct cli_picture_link *cli_picture_link_at(const struct cli_picture *p, const char *name,
                                             unsigned port);

/* The end of @l, 0 or 1, that is at this node; 1 if it is not there. */
static inline unsigned cli_picture_end(const struct cli_picture_link *l, uint32_t node)
{
	return l->node[0] != node;
}

/* ---- filling in ---- */

/* Names are not copied. All return 0 or CLI_FAILED. First room for so many nodes and ports, and for
 * the names of hosts, switches and HCAs; then the nodes, then their ports, then
 * cli_picture_finish(). */
int cli_picture_make_room(struct cli_picture *p, size_t nodes, size_t names, size_t ports);
int cli_picture_add_host(struct cli_picture *p, const char *name);
int cli_picture_add_hca(struct cli_picture *p, uint32_t host, const char *name);
int cli_picture_add_switch(struct cli_picture *p, const char *name, bool dead, unsigned lid);

/* A port with its link; the worse state of both ends is the link's. */
struct cli_picture_port {
	const char *node, *peer;
	unsigned port, peer_port;
	enum cli_picture_state state;
};
int cli_picture_add_port(struct cli_picture *p, const struct cli_picture_port *port);
void cli_picture_finish(struct cli_picture *p);

/* ---- picture_marks.c ---- */

/* Gives links what their ports have counted, or how many routes cross them. 0 or CLI_FAILED. */
int cli_picture_count_bytes(struct cli_picture *p, struct control_client *client);
int cli_picture_count_routes(struct cli_picture *p, struct control_client *client);

/* Lights a group's tree and members, or the path of packets from one node to another one. 0 or
 * CLI_FAILED. */
int cli_picture_light_group(struct cli_picture *p, struct control_client *client, const char *mgid);
int cli_picture_light_path(struct cli_picture *p, struct control_client *client, const char *from,
                           const char *to);

/* ---- picture_dot.c ---- */

/* The picture in Graphviz's language, of about @most lines at most, to be freed; NULL: there is
 * no memory. */
#define CLI_PICTURE_MOST 48 /* boxes and lines that a person looks at */
char *cli_picture_dot(struct cli_picture *p, unsigned most);

/* ---- picture_write.c ---- */

/* Writes that text, or with @format, "svg" or "png", the picture that Graphviz makes of it, to the
 * file @name or to standard output, NULL. 0 or CLI_FAILED. */
int cli_picture_write(const char *dot, const char *format, const char *name);

#endif
