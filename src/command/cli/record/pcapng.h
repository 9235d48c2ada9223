/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A capture file in the format pcapng (IETF draft-ietf-opsawg-pcapng), of InfiniBand packets from
 * the LRH on (in ERF records), and of Ethernet frames. Interface 0 is the fabric and carries
 * nothing: its statistics are those of all. Each port that has sent a packet is an interface with
 * its name. Single-threaded.
 */
#ifndef CLI_PCAPNG_H
#define CLI_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cli_pcapng {
	FILE *file;
	void *interfaces; /* by name, of tsearch(3) */
	uint32_t n_interfaces;
};

struct cli_pcapng_packet {
	uint64_t time_ns;     /* since 1970 */
	const char *port;     /* which has sent it */
	const char *comment;  /* empty: none */
	uint32_t lost_before; /* packets that are not in the file */
	bool is_ethernet;     /* a frame; else from the LRH on. A port sends either */
	const uint8_t *at;
	uint32_t bytes;
};

/* Begins a file. An error shows when @file is flushed, or in the result of what follows. */
void cli_pcapng_begin(struct cli_pcapng *p, FILE *file, const char *fabric);

/* 0 or -ENOMEM. */
int cli_pcapng_packet(struct cli_pcapng *p, const struct cli_pcapng_packet *packet);

/* Ends it: so many packets were captured, and so many lost. */
void cli_pcapng_end(struct cli_pcapng *p, uint64_t captured, uint64_t lost);

/* Frees what it has. The file is the caller's. */
void cli_pcapng_fini(struct cli_pcapng *p);

#endif
