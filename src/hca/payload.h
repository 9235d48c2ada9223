/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Payload memory of a sender: slots of one message each. The sender writes a message once, and each
 * receiver copies it out. The slot is free again when all receivers have done so. Under the
 * sender's lock.
 */
#ifndef HCA_PAYLOAD_H
#define HCA_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>

struct hca_sender;
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

struct hca_payloads {
	struct hca_payload *slot;
	uint32_t n;
	uint32_t window; /* slots [0, window) are used in turn */
	uint32_t cursor;
	uint32_t max_pinned; /* slots that a link may be sending at one time */
	bool leased;         /* shm_sender.payload_lease is IN_USE */
	bool crowded;        /* in this round a slot was still in use when its turn came */
	uint64_t looks;      /* how often we have looked at a receiver's ring */
	struct hca_payload_seen *seen;
};

/*
 * A slot that nobody reads any more, or NULL: all are in use and there is no memory for more. The
 * first one begins a lease: until hca_payload_end() the daemon lets the sender have its memory.
 */
struct hca_payload *hca_payload_get(struct hca_sender *s);

/* Ends the lease, if there is one: no slot is pinned, and none will be written. */
void hca_payload_end(struct hca_sender *s);

/* Makes room in the slot for @holders holds. 0 or -ENOMEM. */
int hca_payload_reserve(struct hca_payload *p, uint32_t holders);
void hca_payload_fini(struct hca_payloads *p);

#endif
