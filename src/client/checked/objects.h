/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The objects of verbs that the program has, by their addresses, and memory regions by their keys.
 * With the lock of the checker held.
 */
#ifndef CHECKED_OBJECTS_H
#define CHECKED_OBJECTS_H

#include <pthread.h>
#include <stdbool.h>

#include "base/hash.h"
#include "checked/ranges.h"
#include "checked/watcher.h"

/* Memory of a region that has other pages than when it was registered. */
struct checked_moved {
	uint64_t from, to;
	const char *how; /* "unmapped" */
	uint32_t place;
};

struct checked_object {
	struct base_hash_node node; /* by address */
	enum checked_kind kind;
	const void *object;
	uint32_t place;   /* where it was made */
	const void *in;   /* as in struct checked_made */
	uint32_t uses;    /* by requests */
	const void *ends; /* where the program is about to destroy it */
	bool is_gone;     /* it is destroyed, and kept while requests name it */
	bool is_ending;   /* a call that destroys it has begun */
	struct base_hash_node
	        by_key;   /* of a region by its local key, of a queue pair by its number */
	bool is_numbered; /* a queue pair is in that table */
	/* a region */
	uint32_t lkey;
	uint64_t start, length, iova;
	bool is_on_demand, is_remote; /* is_remote: peers may write to it */
	struct checked_range range;   /* ->to of 0: it is not known where its memory is */
	struct checked_moved *moved;  /* what of it has other pages now */
	uint32_t n_moved;
	/* a completion queue */
	uint32_t entries, due; /* due: completions that requests may still bring */
	bool is_single_threaded;
	uint32_t polls; /* that go on; of a queue pair, calls that post */
	pthread_t poller;
	bool is_in_thread_domain; /* also of a queue pair, and its domain */
	/* an address handle */
	struct ibv_ah_attr ah;
	uint32_t mbps; /* as in struct checked_made */
	bool is_group;
	/* a queue pair */
	struct ibv_srq *srq;
	struct ibv_cq *send_cq, *recv_cq;
	uint32_t qpn;
	uint8_t port; /* as it was last set; 0: it was not */
	uint16_t pkey_index;
	uint32_t qkey, remote_qpn;
	enum { PEER_UNKNOWN, PEER_HERE, PEER_ELSEWHERE } peer; /* whether it is of this process */
	uint32_t receives, max_recv_wr;                        /* receives: that are posted */
	bool has_posted;                                       /* receives, since it was reset */
	uint64_t lost;     /* messages that its port had lost when the last receive was posted */
	uint32_t signaled; /* sends that have a completion due */
	bool is_failed;    /* a completion has failed since it was reset */
	uint8_t max_rd_atomic;
	/* a shared receive queue */
	uint32_t users;
};

/* NULL: there is no memory, and it is not known. */
struct checked_object *checked_object_add(enum checked_kind kind, void *object,
                                          const struct checked_made *how);
struct checked_object *checked_object_find(enum checked_kind kind, const void *object);
void checked_object_remove(struct checked_object *o);

/* A request names it, and no longer; NULL is none. */
struct checked_object *checked_object_use(struct checked_object *o);
void checked_object_leave(struct checked_object *o);

/* A region has other memory or another key now. */
void checked_region_change(struct checked_object *o, const struct ibv_mr *mr,
                           const struct checked_made *how);

/* The region of this local key; NULL: it is none that is known. */
struct checked_object *checked_region_find(uint32_t lkey);

/* Where the bytes of a range that a request names are in the program. False: they are not all in
 * the region. */
bool checked_region_place(const struct checked_object *region, const struct ibv_sge *sge,
                          uint64_t *from);

/* How many of this kind depend on that object, and the place of one of them. It walks all objects.
 */
uint32_t checked_objects_on(enum checked_kind kind, const void *object, uint32_t *place);

/* The queue pair with this number; NULL: it is none of the program's. */
struct checked_object *checked_object_of_qpn(uint32_t qpn);

/* The regions that have memory of this range. NULL: no more. */
struct checked_object *checked_region_first(uint64_t from, uint64_t to);
struct checked_object *checked_region_next(const struct checked_object *o, uint64_t from,
                                           uint64_t to);

/* Whether a region may have memory of this range: a quick look, in any thread, without the lock. */
bool checked_regions_near(uint64_t from, uint64_t to);

/* The queue pair of these numbers. NULL: there is none. */
struct checked_object *checked_queue_pair_find(uint32_t qpn, uint32_t remote_qpn);

/* How many of this kind there are; and the place of one of them. */
uint32_t checked_objects_count(enum checked_kind kind);
uint32_t checked_objects_left(enum checked_kind kind, uint32_t *place);

/* The process is a child of fork(): none is its own. */
void checked_objects_forget(void);

const char *checked_kind_name(enum checked_kind kind);

#endif
