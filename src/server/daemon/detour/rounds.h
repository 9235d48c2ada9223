/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rounds of messages, for rules with round=: a message is sent in round 1, and each time that its
 * sender goes back in the PSNs, the next round begins. The first packet of a message that was not
 * sent before begins round 1 again. Requests of a queue pair, and its responses to READs, are
 * counted by themselves; acknowledgements are in no round. A packet that is dropped later counts,
 * as it was sent.
 */
#ifndef DAEMON_ROUNDS_H
#define DAEMON_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

/* Of requests, or of responses, of a queue pair. */
struct daemon_round {
	uint32_t qpn; /* whose it is; 0: nobody's yet */
	uint32_t next_psn, number;
	uint32_t end; /* no PSN from here on was sent */
};

struct daemon_rounds {
	struct daemon_round *of; /* two by queue pair index; NULL: no rule asks for rounds */
};

/* Has rounds counted from now on. 0 or -ENOMEM. */
int daemon_rounds_begin(struct daemon_rounds *r);
void daemon_rounds_end(struct daemon_rounds *r);

/* The queue pair begins anew. */
void daemon_rounds_forget(struct daemon_rounds *r, uint32_t qpn);

/* The round that the packet is of, from 1; 0: of none. @begins: it is the first one of a message,
 * or of all that a READ asks for. Counts it: to be called once for each packet that is sent. */
uint32_t daemon_rounds_count(struct daemon_rounds *r, uint32_t src_qpn, uint8_t opcode,
                             uint32_t psn, bool begins);

#endif
