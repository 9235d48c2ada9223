/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The responder's half of the wire, in two files: packet_responder.c carries out what packets ask
 * for, packet_responder_acks.c answers. All with the half's lock held. See packet_connection.h.
 */
#ifndef HCA_PACKET_RESPONDER_H
#define HCA_PACKET_RESPONDER_H

#include "hca/transport/packet_connection.h"

static inline bool hca_wire_is_uc(const struct hca_wire *w)
{
	return w->end.qp.type == IBV_QPT_UC;
}

/* ---- receives: packet_responder.c ---- */

/* The receive that the message under way uses. False: it is not ours any more. */
bool hca_wire_find_receive(struct hca_wire *w, struct hca_receive *rcv);
/* It fails. As hca_responder_fail_receive(). */
int hca_wire_fail_receive(struct hca_wire *w, struct hca_receive *rcv, enum ibv_wc_status status);

/* ---- answers: packet_responder_acks.c ---- */

/* The packets that have come are to be acknowledged, or not any more. */
void hca_wire_set_ack_due(struct hca_wire *w, bool due);
/* Packets are to be acknowledged, if one asks for that. Before their message is published: what the
 * program sends when it has seen that comes behind (hca_wire_acknowledges_first()). */
void hca_wire_acknowledge_later(struct hca_wire *w, const struct hca_wire_run *run);

/*
 * These tell the peer why the packet that was expected is not carried out. False, as the functions
 * that carry out a packet say of one that is not.
 *
 * as(): the responder says what becomes of the request: @outcome, not IBV_WC_SUCCESS.
 * receive(): the receive fails with @status.
 * sequence(): the packet that has come is behind a gap.
 */
bool hca_wire_refuse_as(struct hca_wire *w, int outcome);
bool hca_wire_refuse_invalid(struct hca_wire *w, const char *why);
bool hca_wire_refuse_receive(struct hca_wire *w, enum hca_nak nak, enum ibv_wc_status status);
bool hca_wire_refuse_sequence(struct hca_wire *w);

/* A place for one more response. NULL: the peer asks for more than there is room for. */
struct shm_wire_response *hca_wire_new_response(struct hca_wire *w, enum shm_wire_answer answer,
                                                uint32_t psn, uint32_t packets);
/* It is filled in, and waits to be sent. */
void hca_wire_add_response(struct hca_wire *w, struct shm_wire_response *r);

#endif
