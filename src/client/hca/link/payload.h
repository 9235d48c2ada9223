/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Payload memory of a sender: slots of one message each. The sender writes a message once, and each
 * receiver copies it out. The slot is free again when all receivers have done so. Under the
 * sender's lock.
 */
#ifndef HCA_PAYLOAD_H
#define HCA_PAYLOAD_H

#include "hca/queue/sender.h"

struct shm_ring;

/* A position of a receive ring whose arrival refers to the slot until the receiver consumes it. */
struct hca_payload_hold {
	struct shm_ring *ring;
	uint32_t gen, pos;
};

struct hca_payload {
	uint64_t off; /* in the data part */
	struct hca_payload_hold *hold;
	uint32_t n, room;
	bool pinned;         /* a link is sending it */
	uint64_t handed_out; /* hca_payloads.looks at that time */
};

/*
 * A slot that nobody reads any more, or NULL: all are in use and there is no memory for more. The
 * first one begins a lease: until hca_payload_end() the daemon lets the sender have its memory.
 */
struct hca_payload *hca_payload_get(struct hca_sender *s);

/*
 * The same for a message of @bytes, up to SHM_PAYLOAD_MOST: the first of a row of slots, each of
 * which has room for one hold; hca_payload_hold_row() must follow. NULL also if receivers lag so
 * far behind that rows would take much memory.
 */
struct hca_payload *hca_payload_get_row(struct hca_sender *s, uint32_t bytes);

/* All of the row are held by @hold. */
void hca_payload_hold_row(struct hca_payload *p, uint32_t bytes,
                          const struct hca_payload_hold *hold);

/* Ends the lease, if there is one: no slot is pinned, and none will be written. */
void hca_payload_end(struct hca_sender *s);

/* Makes room in the slot for @holders holds. 0 or -ENOMEM. */
int hca_payload_reserve(struct hca_payload *p, uint32_t holders);
void hca_payload_fini(struct hca_payloads *p);

/* Ends a post: sends the packets that a link kept back, and ends the lease of payload memory. */
void hca_sender_finish(struct hca_sender *s);

#endif
