/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The packets that a connection's queue pairs have sent each other, and their picture. Filled in by
 * ladder.c, drawn by ladder_svg.c. Single-threaded.
 */
#ifndef CLI_LADDER_H
#define CLI_LADDER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum cli_ladder_kind {
	CLI_LADDER_REQUEST,
	CLI_LADDER_RESPONSE,
	CLI_LADDER_AGAIN, /* a request that has been there before */
	CLI_LADDER_GAP,   /* one that arrives while an earlier one is missing */
	CLI_LADDER_NAK,
	CLI_LADDER_LOST,
};

struct cli_ladder_packet {
	uint64_t time_ns;
	uint32_t psn;
	uint8_t side; /* the sender: 0 or 1 */
	uint8_t opcode, syndrome;
	enum cli_ladder_kind kind;
	uint32_t missing; /* of a gap: the first PSN */
	char comment[64];
};

struct cli_ladder {
	struct cli_ladder_packet *packet;
	uint32_t n, room;
	char port[2][64];
	uint32_t qpn[2];
};

/* Draws it as SVG. Packets in order fold if there are many. */
void cli_ladder_draw(const struct cli_ladder *l, FILE *to);

#endif
