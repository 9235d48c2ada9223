/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port's queue pairs: two that may be attached to groups, and messages between them that say
 * which they are. A call that fails ends the program.
 */
#ifndef TESTS_PROPERTY_UD_H
#define TESTS_PROPERTY_UD_H

#include <stdint.h>

#include <infiniband/verbs.h>

#define UD_QPS   2
#define UD_SLOTS 128 /* messages that a queue pair can take until ud_take() */
#define UD_BYTES 16  /* of a message */

struct ud {
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *cq;
	struct ibv_qp *qp[UD_QPS];
	struct ibv_mr *mr;
	uint8_t *memory;
	uint8_t port;
};

void ud_open(struct ud *ud, struct ibv_context *context, int port);

void ud_attach(struct ud *ud, unsigned qp, const uint8_t mgid[16], uint16_t mlid);
void ud_detach(struct ud *ud, unsigned qp, const uint8_t mgid[16], uint16_t mlid);

/* Message @number to the group. */
void ud_send(struct ud *ud, const uint8_t mgid[16], uint16_t mlid, uint32_t number);

/* Calls @take for each message that has come. */
void ud_take(struct ud *ud, void (*take)(void *arg, unsigned qp, uint32_t number), void *arg);

#endif
