/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The requester's half of the wire, in three files: packet_requester.c sends requests,
 * packet_requester_responses.c reads what comes back, packet_requester_recovery.c sees to what gets
 * lost. All with the lock of the send queue held. See packet_connection.h.
 */
#ifndef HCA_PACKET_REQUESTER_H
#define HCA_PACKET_REQUESTER_H

#include "hca/process/operation.h"
#include "hca/transport/packet_connection.h"

/* Packets that may be under way; a quarter of it is one batch: see is_worth() in
 * packet_requester.c.
 */
#define HCA_WIRE_WINDOW_MOST 256
/* So many packets of an RDMA READ are asked for at one time: its responses must not overwhelm us.
 */
#define HCA_WIRE_READ_MOST 64

/* The position of the first request under way. */
static inline uint32_t hca_wire_head(const struct hca_wire *w)
{
	return hca_connected_load(&w->connection->head);
}

/* The numbers before that request. */
static inline struct shm_wire_head *hca_wire_first(const struct hca_wire *w)
{
	return shm_wire_head(w->shm, hca_wire_head(w));
}

static inline uint32_t hca_wire_under_way(const struct hca_wire *w)
{
	return wire_psn_add(w->shm->psn, -w->shm->acked);
}

/* How many packets may be under way. Others can write to the record. */
static inline uint32_t hca_wire_window(const struct hca_wire *w)
{
	return w->shm->window < HCA_WIRE_WINDOW_MOST ? w->shm->window : HCA_WIRE_WINDOW_MOST;
}

static inline uint32_t hca_wire_packets_of(const struct hca_wire *w, const struct shm_request *r)
{
	const unsigned op = hca_operation(r->opcode);

	/* a request with a response is one packet, and so is its response, but for a READ's */
	return (op & (HCA_OP_ANSWERED | HCA_OP_READ)) == HCA_OP_ANSWERED
	               ? 1
	               : hca_wire_packets(w, r->length);
}

/* Whether the request takes a receive of the peer's. */
static inline bool hca_wire_takes_receive(const struct shm_request *r)
{
	return hca_operation(r->opcode) & (HCA_OP_SEND | HCA_OP_IMM);
}

static inline bool hca_wire_has_failed(const struct hca_wire *w)
{
	return hca_connected_load(&w->connection->failed);
}

/* Copies the first request. False: no part of it was ever sent. */
static inline bool hca_wire_first_request(const struct hca_wire *w, struct shm_request *r,
                                          struct shm_entry *e)
{
	uint32_t head = hca_wire_head(w);

	/* not by their order: the longest message has half of all PSNs */
	if (head == hca_connected_load(&w->connection->tail) ||
	    w->shm->beyond == hca_wire_first(w)->psn)
		return false;
	return hca_connected_take(&w->end, head, r, e);
}

/* ---- what becomes of requests: packet_requester.c ---- */

/* The first request fails: those behind it are not sent any more. */
void hca_wire_fail(struct hca_wire *w, enum ibv_wc_status status);
/* Wakes the program that waits for its completion, or for those of the queue pair's receives. */
void hca_wire_tell_of_failure(struct hca_wire *w);
/* The first request, of @n packets, is done. */
void hca_wire_complete(struct hca_wire *w, const struct shm_request *r, uint32_t n);

/* ---- what gets lost: packet_requester_recovery.c ---- */

/* Something was sent, or acknowledged. */
void hca_wire_set_deadline(struct hca_wire *w);
/* PSNs before @psn are acknowledged. */
void hca_wire_move_acked(struct hca_wire *w, uint32_t psn);
/* Has all that is not acknowledged sent again, as some of it got lost. */
void hca_wire_go_back(struct hca_wire *w);
/* Has the first packet that is not acknowledged sent again, by itself: it asks for an
 * acknowledgement, of all that has come. */
void hca_wire_ask_again(struct hca_wire *w);
/* Halves the number of packets that may be under way. */
void hca_wire_shrink(struct hca_wire *w);
/* Something was acknowledged, or answered, up to @acked before. */
void hca_wire_end_probe(struct hca_wire *w, uint32_t acked);
/* The peer's packets show that something got lost. */
void hca_wire_take_loss(struct hca_wire *w, const char *why);
/* A response got lost: goes back, unless it does already. */
void hca_wire_miss_response(struct hca_wire *w);

#endif
