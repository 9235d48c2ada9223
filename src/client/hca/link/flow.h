/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flow is all packets of one sender to one destination, with the list of receivers that these
 * packets reach. The daemon keeps each flow's record in shared memory current; the sender keeps a
 * copy and compares sequence numbers. A flow belongs to one sender, so its counters have one
 * writer.
 *
 * Complication: an AH keeps a hint, the flow that it was last used with, and may outlive that flow.
 * So a struct hca_flow is never freed, but reused for another flow with another `use` number. A
 * sender that follows a hint compares that number and the flow's sender first.
 *
 * A sender keeps a bounded number of flows: the daemon says when the sender has enough. Then the
 * sender looks through the list of its flows in turn, and gives back those by which it has sent
 * nothing since the last look.
 *
 * The callers hold the sender's lock. The hint in the AH is atomic, because other senders use the
 * AH, too.
 */
#ifndef HCA_FLOW_H
#define HCA_FLOW_H

#include "hca/link/receiver.h"
#include "hca/process/link.h"
#include "hca/queue/ah.h"
#include "hca/queue/sender.h"

struct hca_flow {
	SLIST_ENTRY(hca_flow) free;
	TAILQ_ENTRY(hca_flow) eviction; /* in its sender's list */
	uint64_t seen_packets;          /* sent by the time of eviction's last look */
	struct base_hash_node node;     /* in its sender's flows, by destination */
	struct hca_sender *_Atomic sender;
	uint64_t use; /* a number of its own for each sender and destination that the struct had */
	const struct hca_link_ops *link;
	struct hca_dest dest;
	uint32_t id;
	uint32_t seq;   /* of the copy below */
	uint32_t count; /* unicast: 1 if the port is reached */
	uint32_t mtu;
	uint32_t dest_port;
	uint8_t path_bits; /* unicast: which of the port's LIDs it goes to */
	bool is_mcast;
	bool leaves;  /* packets leave the machine, too */
	bool detours; /* packets that stay on the machine go by the daemon */
	uint32_t room;
	uint32_t *list;          /* QP numbers as the record lists them */
	struct hca_receiver *to; /* the same queue pairs; unicast: one */
	const struct shm_flow *shm;
	struct shm_flow_count *sent; /* where the sender counts: in shared memory, or here below */
	struct shm_flow_count uncounted; /* of datagrams that go by the daemon, which counts them */
};

/* Whether the copy equals the record. */
static inline bool hca_flow_is_current(const struct hca_flow *f)
{
	/* acquire: a list that is newer than seq is read only after this, under the retry loop */
	return base_likely(atomic_load_explicit((_Atomic uint32_t *)&f->shm->seq,
	                                        memory_order_acquire) == f->seq);
}

/* hca_flow_get() if the hint is missing or out of date. */
struct hca_flow *hca_flow_renew(struct hca_sender *s, struct hca_ah *ah);

/* The flow of @s to the destination of @ah, with a current copy. NULL: the daemon refused. */
static inline struct hca_flow *hca_flow_get(struct hca_sender *s, struct hca_ah *ah)
{
	/* acquire: pairs with the release in hca_flow_renew(): another sender may have made the
	 * flow */
	struct hca_flow *f = atomic_load_explicit(&ah->flow, memory_order_acquire);

	if (base_likely(f && atomic_load_explicit(&f->sender, memory_order_relaxed) == s &&
	                f->use == atomic_load_explicit(&ah->flow_use, memory_order_relaxed) &&
	                hca_flow_is_current(f)))
		return f;
	return hca_flow_renew(s, ah);
}

/* Counts packets with @bytes of payload that leave by the flow. The counters have one writer: the
 * sender. */
static inline void hca_flow_count_packets(struct hca_flow *f, uint32_t packets, uint32_t bytes)
{
	struct shm_flow_count *c = f->sent;

	atomic_store_explicit(&c->packets,
	                      atomic_load_explicit(&c->packets, memory_order_relaxed) + packets,
	                      memory_order_relaxed);
	atomic_store_explicit(&c->bytes,
	                      atomic_load_explicit(&c->bytes, memory_order_relaxed) + bytes,
	                      memory_order_relaxed);
}

/* Counts packets of responses, which come back from where the flow leads. */
static inline void hca_flow_count_back(struct hca_flow *f, uint32_t packets, uint32_t bytes)
{
	struct shm_flow_count *c = f->sent;

	atomic_store_explicit(&c->back_packets,
	                      atomic_load_explicit(&c->back_packets, memory_order_relaxed) +
	                              packets,
	                      memory_order_relaxed);
	atomic_store_explicit(&c->back_bytes,
	                      atomic_load_explicit(&c->back_bytes, memory_order_relaxed) + bytes,
	                      memory_order_relaxed);
}

/* One packet. */
static inline void hca_flow_count(struct hca_flow *f, uint32_t bytes)
{
	hca_flow_count_packets(f, 1, bytes);
}

void hca_flow_drop_all(struct hca_sender *s);

/* Frees the flows of @p that no sender has: before hca_process_local_free(). */
void hca_flows_free(struct hca_process *p);

#endif
