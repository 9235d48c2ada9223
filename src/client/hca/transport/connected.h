/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The transports RC, UC and XRC: connected queue pairs (InfiniBand specification volume 1,
 * sections 9.7 and 9.8.2). connected_life.c has the tables; connected_send.c posts requests,
 * connected_wait.c keeps those that cannot be carried out now, connected_help.c is what the
 * responder does for them, connected_receive.c polls what arrives. The effects of a request at both
 * ends are in exchange.c and responder.c. Where the peer is outside of the fabric, or packets make
 * the detour by the daemon, requests become packets: packet_connection.h.
 */
#ifndef HCA_CONNECTED_H
#define HCA_CONNECTED_H

#include "hca/queue/ah.h"
#include "hca/queue/qp.h"
#include "hca/transport/exchange.h"

/* Bytes of a request after which others are told at once that it is done. */
#define HCA_CONNECTED_SHORT 4096

struct hca_connected_qp {
	struct hca_qp qp;                   /* first */
	LIST_ENTRY(hca_connected_qp) entry; /* of the process */
	struct hca_ah path;
	struct hca_exchange x;
	struct shm_connection *shm;
	struct hca_wire *wire;       /* NULL: it exchanges no packets (packet_connection.h) */
	struct hca_weak_queue *weak; /* NULL: its requests are not late (weak_requests.h) */
	/* requests that wait: positions count up, as those of a ring */
	uint32_t completed; /* requests below have their completions */
	/* what the first of them waits for: since when, or 0 */
	uint64_t waits_since_ns;
	uint64_t told_since_ns; /* the same of the wait that the program was told of */
	uint32_t waits_position;
	int waits_for; /* HCA_WAITS_FOR_RECEIVE, _PATH or _LOCK */
	/* to which it was connected, until nobody of that one's process uses our memory any more */
	_Atomic uint32_t last_peer;
	_Atomic uint32_t helpers; /* threads that went on with the peer's requests */
	_Atomic uint8_t words;    /* that they have said (shm_connection.helps) */
};

static inline struct hca_connected_qp *hca_connected(struct hca_qp *qp)
{
	return (struct hca_connected_qp *)qp;
}

/* ---- sending: with the send lock held ---- */

int hca_connected_check(const struct hca_qp *qp, const struct ibv_send_wr *wr);
int hca_connected_post(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int hca_connected_post_checked(struct hca_qp *qp, const struct ibv_send_wr **wr);

/* Carries a request out: hca_exchange() by this queue pair. UC's requests never wait. The packets
 * of those that waited are counted when they complete: the responder may have carried them out.
 * After the last one in a row, hca_connected_leave(). */
int hca_connected_carry_out(struct hca_connected_qp *c, const struct shm_request *r,
                            const struct shm_entry *entries);
/* Counts them. */
void hca_connected_count(struct hca_connected_qp *c, const struct shm_request *r);

static BASE_HOT void hca_connected_leave(struct hca_connected_qp *c)
{
	if (base_likely(c->x.target))
		hca_exchange_end(&c->x);
}

/* Copies its own record. The members that never change are there from the first time on. The daemon
 * writes them when it hears of the queue pair, which may not be so yet. */
void hca_connected_read_own(struct hca_connected_qp *c);
/* Copies the records of both ends again. */
void hca_connected_renew(struct hca_connected_qp *c);

/* ---- requests that wait: likewise ---- */

/* Whether any do. */
static inline bool hca_connected_waits(const struct hca_connected_qp *c)
{
	return c->qp.sq_kept;
}

/* Puts the request into the queue of those that wait. */
void hca_connected_keep(struct hca_connected_qp *c, const struct shm_request *r,
                        const struct ibv_sge *sge);

/* Goes on with them, as far as they can be carried out, and completes those that are done. */
void hca_connected_go_on(struct hca_connected_qp *c);

/* The completion queue that the program sleeps on: that of the queue pair's sends, if it is armed,
 * else the queue that was armed last. UINT32_MAX: no queue is armed. */
uint32_t hca_connected_sleeps_on(const struct hca_connected_qp *c);

/* The request at @position, of those that wait. */
struct shm_request *hca_connected_request_at(const struct hca_connected_qp *c, uint32_t position);
/* Notes that the request at @position, the first that is not carried out, waits for @what. */
void hca_connected_note_wait(struct hca_connected_qp *c, uint32_t position, int what);

/* Completes those that are done, by whichever thread. */
void hca_connected_harvest(struct hca_connected_qp *c);

/* Requests of a queue pair are done: fires the event of its sends' completions, queue @cq, unless
 * its owner knows, and has fired it. @needs_owner: there is something for that to do. */
void hca_connected_tell_owner(struct hca_process *p, const struct shm_connection *shm, uint32_t cq,
                              bool needs_owner);

/* Completes all in error. */
void hca_connected_flush(struct hca_connected_qp *c);

/* A request has failed: the queue pair moves to ERR, or UC's to SQE, and what waits is flushed. */
void hca_connected_fail(struct hca_connected_qp *c);

/* Acquires the lock of the queue in shared memory. If the peer's process is stopped while it holds
 * it, it loses it after HCA_STOPPED_WAIT_NS, and does not finish its work when it goes on. */
void hca_connected_lock(struct hca_connected_qp *c);

/* How long an RNR NAK with @timer (5 bits) has its requester wait, ns. */
uint64_t hca_rnr_ns(unsigned timer);

/* Copies request @position of the requester @end, and its entries, of which there may be
 * HCA_MAX_SGE. False: it is wrong. All programs can write there, so a copy is checked. */
bool hca_connected_take(const struct hca_end *end, uint32_t position, struct shm_request *r,
                        struct shm_entry *entries);

/* The request is done: @outcome, no HCA_WAITS_FOR_. Whether the next one is to be carried out. */
bool hca_connected_settle(struct shm_connection *shm, uint32_t position, int outcome);

/* The flow, so that the responder can see whether a way leads to it. */
void hca_connected_publish_flow(struct hca_connected_qp *c);

/* The peer has found an error (shm_connection.error): moves to ERR. */
void hca_connected_notice_error(struct hca_connected_qp *c);

/* Nobody carries out what the owner has completed, nor tells it of that. */
static inline void hca_connected_publish_completed(struct hca_connected_qp *c)
{
	atomic_store_explicit(&c->shm->head, c->completed, memory_order_release);
	atomic_store_explicit(&c->shm->harvested, c->completed, memory_order_release);
}

static inline void hca_connected_unlock(struct shm_connection *shm, uint32_t qpn)
{
	atomic_compare_exchange_strong_explicit(&shm->lock, &qpn, 0, memory_order_release,
	                                        memory_order_relaxed);
}

/* No receive is posted: says that a request waits for one. False: that was not said yet, so one may
 * have been posted meanwhile, and there is to be one more try. */
static inline bool hca_connected_park(struct hca_exchange *x)
{
	/* seq_cst, and a barrier: before the next try; pairs with post_connected() in rq.c and
	 * hca_srq_post() */
	bool was_said = atomic_exchange_explicit(&x->responder.credits->waited_for, 1,
	                                         memory_order_seq_cst);

	base_fence_behind_seq_cst();
	return was_said;
}

static inline uint32_t hca_connected_load(const _Atomic uint32_t *v)
{
	/* acquire: work that was done before the counter moved is seen */
	return atomic_load_explicit(v, memory_order_acquire);
}

/* Whether its requests go to the peer as packets by the daemon (packet_connection.h): nobody
 * carries them out in memory. */
static inline bool hca_connected_detours(const struct shm_connection *shm)
{
	return (hca_connected_load(&shm->chosen) & SHM_BY_MASK) == SHM_BY_DETOUR;
}

/* Whether its own process alone works on its queue, since the fabric is weak. */
static inline bool hca_connected_is_weak(const struct shm_connection *shm)
{
	return hca_connected_load(&shm->chosen) & SHM_BY_ITSELF;
}

/* ---- receiving ---- */

/* Receives were posted to @qp: its peer's requests that waited for them are carried out. */
void hca_connected_help(struct hca_qp *qp);

/* hca_transport.receive: connected_receive.c. */
int hca_connected_receive(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals);
int hca_connected_receive_shared(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals);
int hca_connected_receive_xrc(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals);

/*
 * A key of this process is gone, of which hca_keys_remove() has told the @users: waits until nobody
 * uses it any more, other threads of this process included, but for those that poll
 * (hca_cqs_wait()). At most HCA_STOPPED_WAIT_NS, if a process of a peer is stopped while it
 * copies.
 *
 * With the lock of the table of regions held, which is released meanwhile: a thread that is waited
 * for may poll, or wait for one that does, which wants it (hca_mw_invalidated()).
 */
void hca_connections_wait(struct hca_process *p, const uint32_t users[SHM_KEY_USERS]);

/* Likewise, when @qp does not receive any more, for @peer, to which it was connected. */
void hca_connected_wait_for(const struct hca_qp *qp, uint32_t peer);

#endif
