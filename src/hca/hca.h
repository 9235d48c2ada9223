/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The HCA as a process has it: the verbs objects, each with its public struct of
 * libibverbs inside, and the data path between them. Control goes to the manager by
 * requests; packets go from the sender's thread straight into receive rings in
 * shared memory, and out of these in the receiver's ibv_poll_cq().
 *
 *	hca_send.c	check a work request, gather, complete
 *	hca_flow.c	whom does it reach: the list that the manager keeps
 *	hca_deliver.c	one packet to one queue pair
 *	hca_recv.c	posted receives; arrivals taken out, checked, scattered
 *	hca_cq.c	polling, arming, waking
 *
 * Functions return 0 or -errno unless they say otherwise; api/verbs translates.
 *
 * Thread safety: as verbs promise: any thread may call with any object; two threads
 * on one object take turns by the object's own lock. Lock order: a QP's send lock,
 * a CQ's lock, a QP's receive lock.
 */
#ifndef HCA_HCA_H
#define HCA_HCA_H

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

#include "base/fast.h"
#include "base/hash.h"
#include "base/idtable.h"
#include "base/lock.h"
#include "control/client.h"
#include "shm/region.h"
#include "shm/ring.h"

#define HCA_MAX_INLINE 1024
#define HCA_MR_CHUNK   1024
#define HCA_MR_CHUNKS  1024

struct hca_process;
struct hca_qp;
struct hca_wire;
struct hca_wire_batch;

/* ---- the process and its fabric: process.c ---- */

struct hca_mr_table {
	pthread_mutex_t lock;
	struct base_idtable ids;
	uint8_t *key; /* low byte of the next lkey at an index, as far as ids go */
	uint32_t n_keys;
	struct hca_mr *_Atomic *_Atomic chunk[HCA_MR_CHUNKS];
};

/* One connection to one manager, and what it brought. Never freed: devices refer to it. */
struct hca_process {
	pid_t pid;
	struct control_client *control;
	struct shm_region region;
	int host_index; /* -1: all */
	pthread_mutex_t device_lock;
	void *devices; /* api/verbs keeps its list of devices here */
	unsigned n_devices;
	pthread_mutex_t wake_lock;
	bool must_not_block; /* it is the manager: eventfds are as much their process's as ours */
	struct hca_channel_fd {
		uint32_t id;
		int fd;
	} * wake_fd; /* eventfds of channels, by index; under wake_lock */
	struct hca_mr_table mrs;
	struct base_lock flow_lock;
	SLIST_HEAD(, hca_flow) free_flows; /* memory that stays flows' for ever */
	uint64_t flow_uses;                /* the last number that was given to one */
	struct base_lock ah_lock;
	STAILQ_HEAD(, hca_ah)
	free_ahs; /* likewise: a destroyed handle can be told from a live one */
};

/* The process's connection, made now if need be. NULL: no fabric (*@error says why). */
struct hca_process *hca_process_get(int *error);

/*
 * The manager as a process of its own fabric: requests go by @control, the shared memory is
 * @region. It has no devices; it delivers what the wire brings. NULL: no memory.
 */
struct hca_process *hca_process_local(struct control_client *control,
                                      const struct shm_region *region);
void hca_process_local_free(struct hca_process *p);

/* Whether the manager has gone; cheap. */
static inline bool hca_process_gone(struct hca_process *p)
{
	return __builtin_expect(shm_manager_gone(&p->region), 0);
}

/* A request to the manager. -EIO if it has gone. */
int hca_request(struct hca_process *p, enum control_type type, const void *request, uint32_t bytes);

/* Writes the eventfd of completion channel @channel, in whatever process that is. */
void hca_process_wake(struct hca_process *p, uint32_t channel);

/* Asks the manager for that eventfd if need be, which may take a while, so that waking does not. */
void hca_process_find_channel(struct hca_process *p, uint32_t channel);

/* ---- contexts ---- */

struct hca_context {
	struct hca_process *process;
	uint32_t hca;    /* index */
	uint32_t handle; /* the manager's */
	pthread_mutex_t lock;
	struct hca_qp **qp_by_index; /* whom asynchronous events are for */
	struct hca_cq **cq_by_id;
	unsigned n_objects; /* PDs, channels, CQs: close refuses while there are any */
	bool fatal_told;
	struct hca_wire *wire;     /* of an Ethernet port, once there is a CQ; or NULL */
	struct verbs_context vctx; /* last: ends with the public struct */
};

static inline struct hca_context *hca_context(struct ibv_context *context)
{
	return (struct hca_context *)((char *)context - offsetof(struct hca_context, vctx.context));
}

struct hca_pd {
	struct ibv_pd pd;
	_Atomic uint32_t users;
};

/* The shared record of @context's port @num (from 1), copied. -EINVAL: no such port. */
int hca_port(struct hca_context *ctx, unsigned num, struct shm_port *port);

/* ---- memory regions: mr.c ---- */

struct hca_mr {
	struct ibv_mr mr;
	uint64_t iova; /* what work requests call the first byte */
	unsigned access;
};

/* Registers memory; *@error is positive. -EFAULT: not this process's memory. */
struct hca_mr *hca_mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                               unsigned access, int *error);
int hca_mr_reregister(struct hca_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                      unsigned access);
void hca_mr_deregister(struct hca_mr *mr);

/* The address of what @sge names, if a region of @pd allows @access there; else NULL. */
static inline void *hca_mr_resolve(struct hca_process *p, const struct ibv_pd *pd,
                                   const struct ibv_sge *sge, unsigned access)
{
	uint32_t index = sge->lkey >> 8;
	struct hca_mr *_Atomic *chunk;
	struct hca_mr *mr;

	if (index >= HCA_MR_CHUNK * HCA_MR_CHUNKS)
		return NULL;
	/* acquire: pairs with the releases in mr.c */
	chunk = atomic_load_explicit(&p->mrs.chunk[index / HCA_MR_CHUNK], memory_order_acquire);
	if (!chunk)
		return NULL;
	mr = atomic_load_explicit(&chunk[index % HCA_MR_CHUNK], memory_order_acquire);
	if (!mr || mr->mr.lkey != sge->lkey || mr->mr.pd != pd || (mr->access & access) != access)
		return NULL;
	if (sge->addr < mr->iova || sge->addr - mr->iova > mr->mr.length ||
	    mr->mr.length - (sge->addr - mr->iova) < sge->length)
		return NULL;
	return (char *)mr->mr.addr + (sge->addr - mr->iova);
}

/* ---- completion channels and queues: cq.c ---- */

struct hca_channel {
	struct ibv_comp_channel channel;
	uint32_t id;
	pthread_mutex_t lock;
	TAILQ_HEAD(, hca_cq) cqs;
};

/* A completion that waits in the process: of a send, or of a flushed request. */
struct hca_cqe {
	uint64_t wr_id;
	struct hca_qp *qp;
	uint32_t sq_after; /* sends: the work requests below this are done with */
	uint8_t status;    /* enum ibv_wc_status */
	bool is_send;
};

#define HCA_CQ_WATCHED 8

/*
 * Receive queues that a CQ looks at only when their bit in the shared ready map is set. A bit
 * that has shown itself is watched for a while: it stays set, its queues are looked at as
 * the direct one is, and their senders need not set it for every message.
 */
struct hca_ready {
	struct hca_qp *by_bit[SHM_CQ_READY_BITS]; /* chains */
	unsigned n, next_bit, polls;
	unsigned n_watched, next_victim;
	struct {
		uint16_t bit;
		uint16_t idle; /* polls that found nothing, one after the other */
	} watched[HCA_CQ_WATCHED];
	uint64_t is_watched[SHM_CQ_READY_BITS / 64];
};

struct hca_cq {
	struct ibv_cq_ex cq; /* the public struct ibv_cq is its beginning */
	struct hca_context *ctx;
	struct hca_channel *ch;
	uint32_t id;
	struct shm_cq *shm;
	struct base_lock lock;
	/* completions made in this process */
	struct hca_cqe *ring;
	uint32_t ring_size, head, tail;
	/* receive queues that complete here */
	struct hca_qp *direct;   /* one that is looked at without being told; or NULL */
	struct hca_ready *ready; /* the others, allocated at need */
	uint32_t capacity_used;  /* completions that its queues may have outstanding */
	uint32_t arrivals_polled;
	uint8_t announced;    /* so many more were to come at once behind the last arrival */
	bool counts_arrivals; /* more than cqe: arrivals are counted against it */
	bool gone_seen;       /* its QPs flush since the manager has gone */
	bool failed;          /* a QP's receive has: the QP is to go to ERR */
	TAILQ_ENTRY(hca_cq) channel_entry;
	TAILQ_HEAD(, hca_qp) users; /* QPs that receive here */
	unsigned n_users;           /* QPs that send or receive here */
	uint32_t comp_events_got, async_events_got;
	/* ibv_start_poll() and on */
	struct ibv_wc wc;
};

int hca_channel_create(struct hca_context *ctx, struct hca_channel **ch);
int hca_channel_destroy(struct hca_channel *ch);
int hca_channel_get_event(struct hca_channel *ch, struct hca_cq **cq);

int hca_cq_create(struct hca_context *ctx, uint32_t cqe, struct hca_channel *ch, int vector,
                  void *cq_context, struct hca_cq **cq);
int hca_cq_resize(struct hca_cq *cq, uint32_t cqe);
int hca_cq_destroy(struct hca_cq *cq);

/* ibv_poll_cq(): how many, or negative: the CQ is in error. */
int hca_cq_poll(struct hca_cq *cq, int n, struct ibv_wc *wc);
void hca_cq_arm(struct hca_cq *cq, bool solicited_only);

/* Adds a completion of this process, and fires the event if it is armed. */
void hca_cq_push(struct hca_cq *cq, const struct hca_cqe *cqe);

/* hca_cq_notify() of a CQ that is armed, as @arm says. */
void hca_cq_wake(struct hca_process *p, struct shm_cq *shm, uint32_t arm, bool solicited);

/* Fires the CQ's event if it is armed for that. @solicited: solicited, or failed. */
static inline void hca_cq_notify(struct hca_process *p, struct shm_cq *shm, bool solicited)
{
	/* seq_cst: after the completion could be seen; pairs with hca_cq_arm() */
	uint32_t arm = atomic_load_explicit(&shm->arm, memory_order_seq_cst);

	if (base_unlikely(arm != SHM_CQ_IDLE))
		hca_cq_wake(p, shm, arm, solicited);
}

/* Tells the CQ that @qp has flushed requests to complete. */
void hca_cq_kick(struct hca_cq *cq, struct hca_qp *qp);

/* A QP begins or ends to complete here. */
int hca_cq_add_qp(struct hca_cq *cq, struct hca_qp *qp, bool receives, uint32_t capacity);
void hca_cq_remove_qp(struct hca_cq *cq, struct hca_qp *qp, bool receives, uint32_t capacity);

/* Forgets completions of @qp that wait, and the arrivals that its receive queue has dropped. */
void hca_cq_purge(struct hca_cq *cq, const struct hca_qp *qp);

/* The CQ in error: says so to the program, once. */
void hca_cq_overrun(struct hca_process *p, uint32_t id, struct shm_cq *shm);

/* ---- address handles: ah.c ---- */

/* What a flow goes to: equal keys, one flow. */
struct hca_dest {
	uint64_t gid[2]; /* zero without GRH */
	uint32_t lid;
	uint8_t port_num, path_bits, is_global, reserved;
};

struct hca_ah {
	struct ibv_ah ah;
	STAILQ_ENTRY(hca_ah) free;
	struct hca_context *ctx;
	struct hca_dest dest;
	struct hca_flow *_Atomic flow; /* a hint: of the QP that used it last */
	_Atomic uint64_t flow_use;     /* what the flow was used for when that was written */
	uint32_t class_flow;
	uint8_t sl, hop_limit, sgid_index;
	uint8_t arrival_flags; /* enum shm_arrival_flags, of all messages by it */
	bool is_mcast;
	uint32_t alive; /* HCA_AH_ALIVE */
};

#define HCA_AH_ALIVE 0x414c4956

struct hca_ah *hca_ah_create(struct hca_context *ctx, struct ibv_pd *pd,
                             const struct ibv_ah_attr *attr, int *error);
int hca_ah_destroy(struct hca_ah *ah);
/* Makes @to lead where @from leads; it is not registered anywhere. */
void hca_ah_copy(struct hca_ah *to, const struct hca_ah *from);
int hca_ah_init_from_wc(struct hca_context *ctx, unsigned port_num, const struct ibv_wc *wc,
                        const struct ibv_grh *grh, struct ibv_ah_attr *attr);

/* ---- flows: flow.c ---- */

/* A queue pair that receives, as its record told when it had this seq: mostly it has it still. */
struct hca_receiver {
	uint32_t qpn;
	uint32_t seq;
	const struct shm_qp *record;
	struct shm_ring *ring;
	struct shm_cq *cq;
	uint32_t port, qkey;
	uint16_t pkey, ring_gen, ready_bit;
	uint8_t ring_shift;
	uint8_t flags; /* enum shm_qp_flags; none: it is not there */
};

/* Makes @r QP @qpn, of whom nothing is known yet. */
static inline void hca_receiver_init(struct hca_process *p, struct hca_receiver *r, uint32_t qpn)
{
	/* an odd seq: of no record that can be read */
	*r = (struct hca_receiver){ .qpn = qpn,
		                    .seq = 1,
		                    .record = &p->region.qps[SHM_QP_INDEX(qpn)] };
}

struct hca_flow {
	SLIST_ENTRY(hca_flow) free;
	struct base_hash_node node; /* in its QP's flows, by destination */
	struct hca_qp *_Atomic qp;
	uint64_t use; /* this QP and this destination: no two have the same number */
	struct hca_dest dest;
	uint32_t id;
	uint32_t seq;   /* of the copy below */
	uint32_t count; /* unicast: 1 if the port is reached */
	uint32_t mtu;
	uint32_t dest_port;
	uint32_t flags;    /* enum shm_flow_flags */
	uint8_t path_bits; /* unicast: which of the port's LIDs it goes to */
	uint32_t room;
	uint32_t *list;          /* QP numbers as the record lists them */
	struct hca_receiver *to; /* the same, and what we know of them; unicast: one */
	const struct shm_flow *shm;
	struct shm_flow_count *sent;
};

/* Whether the copy is what the record says. */
static inline bool hca_flow_is_current(const struct hca_flow *f)
{
	/* acquire: a list that is newer than seq is read after this only under the retry loop */
	return base_likely(atomic_load_explicit((_Atomic uint32_t *)&f->shm->seq,
	                                        memory_order_acquire) == f->seq);
}

/* hca_flow_get() when there is something to do. */
struct hca_flow *hca_flow_renew(struct hca_qp *qp, struct hca_ah *ah);

/* The flow of @qp to where @ah points, its copy current. NULL: the manager refused. */
static inline struct hca_flow *hca_flow_get(struct hca_qp *qp, struct hca_ah *ah)
{
	struct hca_flow *f = atomic_load_explicit(&ah->flow, memory_order_relaxed);

	if (base_likely(f && atomic_load_explicit(&f->qp, memory_order_relaxed) == qp &&
	                f->use == atomic_load_explicit(&ah->flow_use, memory_order_relaxed) &&
	                hca_flow_is_current(f)))
		return f;
	return hca_flow_renew(qp, ah);
}

void hca_flow_drop_all(struct hca_qp *qp);

/* ---- payload memory of a sender: payload.c ---- */

/* A message that lies in an arrival's ring position until the receiver has copied it. */
struct hca_payload_hold {
	struct shm_ring *ring;
	uint32_t gen, pos;
};

struct hca_payload {
	uint64_t off;
	struct hca_payload_hold *hold;
	uint32_t n, room;
	bool pinned; /* the wire has it: on its way out */
};

struct hca_payloads {
	struct hca_payload *slot;
	uint32_t n;
	uint32_t window; /* slots [0, window) are in turn */
	uint32_t cursor;
	uint32_t max_pinned; /* slots that the wire may have at one time */
	bool crowded;        /* a slot was still in use when its turn came, this time round */
	struct hca_payload_seen *seen;
};

/* A slot that nobody reads any more, or NULL: all are in use and there is no memory for more. */
struct hca_payload *hca_payload_get(struct hca_qp *qp);
/* The arrival at @pos holds the slot. 0 or -ENOMEM; room for one more is made before delivery. */
int hca_payload_reserve(struct hca_payload *p, uint32_t holders);
void hca_payload_fini(struct hca_payloads *p);

/* ---- one packet to one queue pair: deliver.c ---- */

struct hca_packet {
	struct shm_arrival a; /* as it will lie in a ring, but for the state */
	uint32_t qkey;
	bool fetched;                /* its slots are being fetched: one of its list came before */
	struct hca_payload *payload; /* with SHM_ARRIVAL_PAYLOAD */
	struct shm_sender *sender;   /* where its sender says whom it delivers to */
	uint16_t writer;             /* the sender's QP index: in whose name slots are claimed */
};

/* Counts what went wrong at port @port (index). */
void hca_count(struct hca_process *p, uint32_t port, size_t field);

#define HCA_COUNT(p, port, what) hca_count(p, port, offsetof(struct shm_port_count, what))

#define HCA_ANY_PORT UINT32_MAX

/* Gives the packet to QP @qpn, which must be on port @port (index) unless that is HCA_ANY_PORT;
 * or counts why not. */
void hca_deliver(struct hca_process *p, const struct hca_packet *pkt, uint32_t qpn, uint32_t port);

/* The same with @n receivers of whom something may be known already. */
void hca_deliver_to(struct hca_process *p, const struct hca_packet *pkt, uint32_t port,
                    struct hca_receiver *to, uint32_t n);

/* ---- queue pairs: qp.c, send.c, recv.c ---- */

struct hca_rwqe {
	uint64_t wr_id;
	uint32_t n_sge;
};

/* A work request posted in SQD, kept until the queue goes on; the program may meanwhile destroy the
 * address handle. */
struct hca_deferred {
	STAILQ_ENTRY(hca_deferred) entry;
	struct ibv_send_wr wr;
	struct hca_ah ah;
	struct ibv_sge sge[];
};

struct hca_qp {
	struct ibv_qp_ex ex; /* begins with the public struct ibv_qp */
	struct hca_context *ctx;
	struct hca_process *process;
	_Atomic uint8_t state; /* enum ibv_qp_state */
	struct ibv_qp_cap cap;
	bool signal_all;
	uint32_t create_flags;
	uint64_t send_ops_flags;
	/* attributes */
	uint32_t qkey, sq_psn;
	uint16_t pkey_index;
	uint8_t port_num, en_sqd_async_notify;
	uint32_t port; /* index in the shared port table */
	/* send queue */
	struct base_lock send_lock;
	uint32_t sq_posted;
	_Atomic uint32_t sq_done;
	struct shm_sender *sender;
	struct base_hash flows; /* struct hca_flow */
	struct hca_payloads payloads;
	STAILQ_HEAD(, hca_deferred) deferred;
	uint32_t n_deferred;
	struct hca_wr_batch *batch; /* ibv_wr_start() and on */
	struct hca_wire_batch *out; /* messages for the wire; NULL until there was one */
	/* receive queue */
	struct base_lock recv_lock;
	struct shm_ring *ring;
	uint8_t ring_shift;
	uint16_t ring_gen;
	uint16_t ready_bit;
	bool flushing;             /* in ERR: what is posted completes in error */
	bool failed;               /* a receive has failed: ERR is next, when the locks are free */
	uint32_t posted, consumed; /* ring positions */
	uint32_t void_below;       /* void positions below were withdrawn by us */
	uint32_t discard_below;    /* arrivals below came before a reset */
	struct hca_rwqe *rwqe;     /* FIFO of posted receives */
	struct ibv_sge *rsge;      /* max_recv_sge for each */
	uint32_t rwqe_mask, rwqe_head, rwqe_tail;
	struct hca_qp *bit_next; /* chain in the CQ's by_bit */
	TAILQ_ENTRY(hca_qp) cq_entry;
	uint32_t async_events_got;
};

static inline struct hca_qp *hca_qp(struct ibv_qp *qp)
{
	return (struct hca_qp *)qp;
}

static inline struct hca_cq *hca_cq(struct ibv_cq *cq)
{
	return (struct hca_cq *)cq;
}

static inline enum ibv_qp_state hca_qp_state(struct hca_qp *qp)
{
	return (enum ibv_qp_state)atomic_load_explicit(&qp->state, memory_order_relaxed);
}

int hca_qp_create(struct hca_context *ctx, const struct ibv_qp_init_attr_ex *attr,
                  struct hca_qp **qp);
int hca_qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask);
void hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);
int hca_qp_destroy(struct hca_qp *qp);

/* Tells the manager what senders must know of @qp. */
int hca_qp_publish(struct hca_qp *qp);

/* Moves to ERR: both queues flush. @tell: the manager as well, if it is there. */
void hca_qp_enter_error(struct hca_qp *qp, bool tell);

int hca_post_send(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int hca_post_recv(struct hca_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* The send queue leaves SQD: what was posted meanwhile is worked on, or flushed if the new state
 * says so. With send_lock held. */
void hca_send_resume(struct hca_qp *qp);
/* Forgets what was posted meanwhile. With send_lock held. */
void hca_send_discard(struct hca_qp *qp);

/* Takes up to @n completions out of the receive queue; adds to @arrivals how many arrivals it took.
 * With the CQ's lock held. */
int hca_recv_poll(struct hca_qp *qp, int n, struct ibv_wc *wc, uint32_t *arrivals);
/* Whether something is there that hca_recv_poll() would take out; cheap. */
static inline bool hca_recv_pending(struct hca_qp *qp)
{
	if (qp->consumed != qp->posted)
		return shm_ring_peek(qp->ring, qp->ring_shift, qp->consumed) != SHM_SLOT_CLOSED ||
		       qp->flushing;
	return qp->flushing && qp->rwqe_head != qp->rwqe_tail;
}
/* How many completions wait in it; how many of them are of messages that have arrived. */
uint32_t hca_recv_waiting(struct hca_qp *qp);
uint32_t hca_recv_arrived(struct hca_qp *qp);
/* ERR: nothing more is accepted, and what is posted completes in error. */
void hca_recv_flush(struct hca_qp *qp);
/* RESET: nothing more is accepted, and what is posted is forgotten. */
void hca_recv_reset(struct hca_qp *qp);

/* The ibv_wr_ functions of @qp: send_wr_api.c */
void hca_wr_api_init(struct hca_qp *qp);
void hca_wr_api_fini(struct hca_qp *qp);

/* ibv_start_poll() and on, of @cq. */
void hca_cq_ex_init(struct hca_cq *cq, uint64_t wc_flags);

#endif
