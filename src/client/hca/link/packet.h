/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A packet that a sender sends, until it is in the rings of its receivers or in a datagram.
 */
#ifndef HCA_PACKET_H
#define HCA_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/layout.h"

struct hca_payload;

/* A sender's knowledge of the messages behind one, so that their slots are fetched meanwhile. */
struct hca_ahead {
	uint8_t n;    /* so many to the same receivers follow, or are likely to */
	bool fetched; /* it was ahead of another one itself: its slots are being fetched */
};

struct hca_packet {
	struct shm_arrival a; /* what receivers find in their rings, except for the state */
	uint32_t qkey;
	struct hca_ahead ahead;
	struct hca_payload *payload; /* with SHM_ARRIVAL_PAYLOAD */
	struct shm_sender *sender;   /* the sender's record, which says to whom it delivers */
	uint16_t writer;             /* the sender's QP index: in whose name slots are claimed */
};

/* Whether the message itself lies in the arrival. */
static inline bool hca_packet_is_small(const struct hca_packet *pkt)
{
	return !(pkt->a.flags & SHM_ARRIVAL_PAYLOAD);
}

#endif
