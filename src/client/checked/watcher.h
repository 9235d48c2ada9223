/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that a watcher of a program gets: one for each request, completion, object and
 * registration of the watched contexts. libibverbs makes them, in the thread of the program's call.
 * The watcher is in libumbel-checked.so, which is loaded when UMBEL_CHECKED is set; it checks what
 * the program does. Objects are known by their addresses.
 *
 * The functions for requests are called with the lock of the context's layer held, the others
 * without a lock. None may call verbs. Those that say so may ask the daemon (checked_ask).
 * `caller`: a return address in the program, or NULL.
 */
#ifndef CHECKED_WATCHER_H
#define CHECKED_WATCHER_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "hca/process/hearer.h"
#include "hca/queue/record.h"

/* Both libraries are of one build. */
#define CHECKED_WATCHER "umbel_checked_watcher"
#define CHECKED_VERSION 1
#define CHECKED_KINDS(X)                 \
	X(CONTEXT, "context")            \
	X(PD, "protection domain")       \
	X(MR, "memory region")           \
	X(AH, "address handle")          \
	X(CHANNEL, "completion channel") \
	X(CQ, "completion queue")        \
	X(SRQ, "shared receive queue")   \
	X(QP, "queue pair")

#define CHECKED_KIND(name, text) CHECKED_##name,
enum checked_kind { CHECKED_KINDS(CHECKED_KIND) CHECKED_N_KINDS };
#undef CHECKED_KIND

/* The arguments by which an object was made. Members that its kind does not have are 0. */
struct checked_made {
	struct ibv_context *context;
	const void *caller;
	const void *in;    /* its protection domain, or the channel of a completion queue */
	uint64_t iova;     /* of a region: ->addr and ->length are public */
	unsigned access;   /* of a region */
	uint32_t entries;  /* that a completion queue was asked to have; max_wr of an SRQ */
	uint32_t sges;     /* that receives of an SRQ were asked to have */
	bool is_extended;  /* a completion queue is; a queue pair is for ibv_wr_start() */
	uint64_t wc_flags; /* of an extended completion queue */
	/* of an address handle, and its rate; 0: that of its port */
	const struct ibv_ah_attr *ah;
	uint32_t mbps;
	bool is_group; /* its destination is one */
	bool is_single_threaded;
	bool ignores_overrun;     /* a completion queue */
	bool is_in_thread_domain; /* of a completion queue or a parent domain */
	const struct ibv_qp_init_attr
	        *qp;                    /* with what it was given: the capabilities that it has */
	const struct ibv_qp_cap *asked; /* of a queue pair: what it was asked to have */
};

/* Things that not every card has, and that no object of ours tells of. */
enum checked_need { CHECKED_NEEDS_DEVICE_MEMORY, CHECKED_NEEDS_WINDOWS };

/* A group as a port sees it. */
struct checked_group_key {
	struct ibv_context *context; /* one of those that have the HCA open */
	union ibv_gid mgid;
	uint8_t port;
};

/* The daemon's knowledge of a membership. */
struct checked_membership {
	bool is_known;      /* whether the port is a member: */
	uint8_t join_state; /* enum ib_join_state, ORed; 0: it is none */
	/* since the port lost all memberships: it went down, got another LID, or was to register
	 * again; UINT64_MAX: that has not been */
	uint64_t reset_age_ns;
	bool is_ethernet, has_record;
	/* the record of the subnet administrator */
	uint32_t qkey, mbps, mtu; /* mtu: bytes */
	uint16_t mlid, pkey;
	uint8_t sl;
	/* of the port */
	uint32_t port_mbps;
	uint16_t port_pkey; /* at the index that was asked for; 0: there is none */
};

/* Asks the daemon, and waits. False: it has gone, or there is no such port. */
typedef bool checked_ask(const struct checked_group_key *of, uint16_t mlid, uint16_t pkey_index,
                         struct checked_membership *m);

/* How many messages for the port were lost as no receive was posted. Asks nobody. */
typedef uint64_t checked_lost(struct ibv_context *context, uint8_t port);

struct checked_watcher {
	unsigned version;
	struct hca_hearer hearer; /* of what libibverbs finds by itself */
	/* The first call. */
	void (*begin)(checked_ask *ask, checked_lost *lost);

	/* A send by a UD queue pair is about to be posted, without a lock: may ask. */
	void (*sending)(const struct hca_record *r);
	/* A call that posts to a queue pair, or polls a completion queue, begins and ends. Only of
	 * objects for which the program has said which threads use them. */
	void (*entering)(enum checked_kind kind, const void *object);
	void (*leaving)(enum checked_kind kind, const void *object);

	/* A request is about to be carried out. */
	void (*posting)(struct hca_record *r);
	/* It has ended: by its own completion @wc, or, NULL, by that of a later one. */
	void (*ended)(struct hca_record *r, const struct ibv_wc *wc);
	/* It was refused, or its queue was emptied: reset, or destroyed. */
	void (*dropped)(struct hca_record *r);

	/* libibverbs begins to carry out requests of any queue in this thread, or has ended. */
	void (*carrying)(bool begins);

	/* The queue has room for so many completions now. */
	void (*resized)(struct ibv_cq *cq, uint32_t entries);

	void (*made)(enum checked_kind kind, void *object, const struct checked_made *how);
	/* It is about to be destroyed, and then: whether it was (0 or an errno). */
	void (*destroying)(enum checked_kind kind, void *object, const void *caller);
	void (*destroyed)(enum checked_kind kind, void *object, int error);
	/* It is used, and was destroyed before. */
	void (*used_ended)(enum checked_kind kind, void *object, const void *caller);
	/* A region is about to get other memory: as destroying(). */
	void (*registering_anew)(struct ibv_mr *mr, const void *caller);
	void (*registered_anew)(struct ibv_mr *mr, const struct checked_made *how);

	void (*modified)(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask);
	/* These may ask. */
	void (*attached)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid, int error);
	void (*detached)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid, int error);
	/* The program has been told that it is a member, by rdma_cm; and has left. */
	void (*joined)(const struct checked_group_key *of, bool sends_only);
	void (*left)(const struct checked_group_key *of);

	/* The program uses @n of it: bytes, or windows. */
	void (*needs)(enum checked_need need, uint64_t n);
	/* The program has looked at a table of GIDs; it has asked for the number of ports, or the
	 * state of a port. */
	void (*looked_at_gids)(void);
	void (*looked_at_ports)(void);

	/* The program has got an asynchronous event. */
	void (*async_event)(void);

	/* ibv_fork_init() was called. */
	void (*fork_is_safe)(void);
};

#endif
