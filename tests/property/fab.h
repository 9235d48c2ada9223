/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric as `umbel show` tells it: cables and the states of their ends, forwarding tables,
 * port counters; and the path of a packet by those tables, walked here once more, hop by
 * hop, as the specification has it. A call of `umbel` that fails ends the program.
 */
#ifndef TESTS_PROPERTY_FAB_H
#define TESTS_PROPERTY_FAB_H

#include "posix.h"

#define FAB_NODES  32
#define FAB_ENDS   256
#define FAB_PORTS  256 /* of a node, with port 0 */
#define FAB_ROWS   1024
#define FAB_LIDS   256
#define FAB_NO_END (-1)

/* A port with a cable. */
struct fab_end {
	unsigned node, port;
	int peer;
	bool active, down;
	uint16_t lid;
};

struct fab_node {
	char name[64];
	bool is_switch;
	int end[FAB_PORTS]; /* by port, or FAB_NO_END */
};

struct fab {
	unsigned n_nodes, n_ends;
	struct fab_node node[FAB_NODES];
	struct fab_end end[FAB_ENDS];
};

/* Those of all switches: of multicast tables the rows that are not empty. */
struct fab_tables {
	uint8_t out[FAB_NODES][FAB_LIDS]; /* by LID; 0: nowhere, or the switch itself */
	unsigned n;
	struct fab_row {
		unsigned node;
		uint16_t mlid;
		bool port[FAB_PORTS];
	} row[FAB_ROWS];
};

struct fab_count {
	uint64_t xmit, recv; /* packets */
	uint64_t xmit_bytes, recv_bytes;
};

struct fab_counts {
	struct fab_count end[FAB_ENDS];
};

/* Where a packet has been. */
struct fab_trip {
	bool looped;               /* it came to a switch twice */
	unsigned copies[FAB_ENDS]; /* that came out at an HCA */
	unsigned xmit[FAB_ENDS], recv[FAB_ENDS];
};

void fab_read(struct fab *f);
void fab_read_tables(const struct fab *f, struct fab_tables *t);
void fab_read_counts(const struct fab *f, struct fab_counts *c);

/* The IPv4 address of an HCA's port. To be freed. */
char *fab_read_address(const char *hca, unsigned port);

/* The way of a packet that the HCA end @from sends to @mlid. */
void fab_walk(const struct fab *f, const struct fab_tables *t, int from, uint16_t mlid,
              struct fab_trip *trip);

/* The HCA end where what the HCA end @from sends to @lid comes out, or FAB_NO_END. */
int fab_walk_unicast(const struct fab *f, const struct fab_tables *t, int from, uint16_t lid);

/* By switch and HCA end: equal where links that are up lead. @island: by end. */
void fab_find_islands(const struct fab *f, unsigned island[FAB_ENDS]);

/* Whether `umbel check` finds nothing wrong but links that could wait for each other; if not, @why
 * is its first finding. */
bool fab_is_right(char *why, size_t len);

/* `umbel WORDS`. */
void fab_umbel(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
