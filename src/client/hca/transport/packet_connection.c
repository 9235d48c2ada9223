/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire: code that its owner (packet_states.c) and the receiving threads (packet_receiver.c)
 * share. A thread's knowledge of a queue pair, and acknowledgements that wait for replies. See
 * packet_connection.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "hca/link/detour.h"
#include "hca/transport/packet_connection.h"

/* A program that has answered so many times in a row will do so again. */
#define REPLIES_ENOUGH 4

/* ---- what a thread needs to know ---- */

static void prepare(struct hca_wire *w)
{
	struct hca_process *p = w->end.process;
	uint32_t peer = w->end.qp.connection.dest_qpn;

	w->responder.process = p;
	w->responder.worker = w->worker;
	w->responder.held = &w->shm->lock;
	w->responder.end.qp = w->end.qp;
	w->responder.end.memory = w->end.memory;
	hca_responder_prepare(&w->responder, peer, w->qpn);
	hca_end_prepare(&w->end, p, w->qpn, w->worker);
	hca_end_prepare(&w->responder.end, p, w->qpn, w->worker);
	w->open = hca_wire_opened(w); /* before the path: what changes meanwhile is copied again */
	w->path = w->shm->path;
	w->path.mtu_shift = w->path.mtu_shift < 8    ? 8
	                    : w->path.mtu_shift > 12 ? 12
	                                             : w->path.mtu_shift;
	if (w->path.detours > SHM_WIRE_AWAY)
		w->path.detours = SHM_WIRE_NO_DETOUR;
	if (!w->sender->network && !w->path.detours) /* it knows no other way */
		w->path.detours = SHM_WIRE_HERE;
	w->route = (struct hca_roce_route){ .dgid = w->path.dgid,
		                            .class_flow = w->path.class_flow,
		                            .qpn = w->qpn,
		                            .hop_limit = w->path.hop_limit };
	hca_wire_find_source(w);
	if (p->region.control->settings.roce_ecn && !(w->path.class_flow >> 20 & HCA_WIRE_ECN_MASK))
		w->route.class_flow |= HCA_WIRE_ECN_CAPABLE << 20;
}

bool hca_wire_renew(struct hca_wire *w)
{
	struct hca_process *p = w->end.process;
	struct hca_memory *old = w->end.memory;

	/* acquire: pairs with the release in shm_write_end() */
	if (old && atomic_load_explicit(w->end.seq, memory_order_acquire) == w->end.qp.seq &&
	    hca_wire_opened(w) == w->open)
		return true;
	shm_qp_read(&p->region, w->qpn, &w->end.qp);
	w->end.memory = NULL;
	if (w->end.qp.qpn == w->qpn && w->end.qp.connection.keys_off)
		w->end.memory = hca_memory_get_from_outside(p, &w->end.qp);
	if (old)
		hca_memory_put(p, old);
	if (!w->end.memory)
		return false;
	prepare(w);
	return true;
}

/* Workers that have lost a queue pair write here. Its contents mean as little as the bytes that
 * other programs write to shared memory. */
static struct nowhere {
	struct shm_wire wire;
	struct shm_connection connection;
} nowhere;

bool hca_wire_is_lost(const struct hca_wire *w)
{
	return w->shm == &nowhere.wire;
}

void hca_wire_find(struct hca_wire *w)
{
	const struct shm_region *r = &w->end.process->region;

	w->shm = shm_wire_at(r, SHM_QP_INDEX(w->qpn));
	w->connection = shm_connection_at(r, SHM_QP_INDEX(w->qpn));
}

BASE_COLD bool hca_wire_lose(struct hca_wire *w)
{
	base_log_debug(packet, "QP 0x%06x: was taken from this process, which was stopped", w->qpn);
	hca_wire_find(w);
	hca_wire_release(&w->shm->lock, w->worker);
	hca_wire_release(&w->connection->lock, w->worker);
	if (w->egress)
		shm_wire_release_egress(w->shm, w->worker, w->egress);
	w->egress = 0;
	memset((void *)&nowhere, 0, sizeof(nowhere));
	atomic_store_explicit(&nowhere.wire.egress, 1,
	                      memory_order_relaxed); /* it makes no packets */
	w->shm = &nowhere.wire;
	w->connection = &nowhere.connection;
	return false;
}

void hca_wire_init(struct hca_wire *w, struct hca_process *p, uint32_t qpn, uint32_t worker,
                   struct hca_sender *sender)
{
	w->qpn = qpn;
	w->worker = worker;
	w->sender = sender;
	TAILQ_INIT(&w->deferred);
	for (unsigned half = 0; half < HCA_WIRE_HALVES; half++)
		TAILQ_INIT(&w->ahead[half]);
	w->end.process = p;
	hca_wire_find(w);
	w->end.seq = &shm_qp_at(&p->region, SHM_QP_INDEX(qpn))->seq;
}

void hca_wire_fini(struct hca_wire *w)
{
	struct hca_wire_copy *d;

	while ((d = TAILQ_FIRST(&w->deferred)) != NULL) {
		TAILQ_REMOVE(&w->deferred, d, entry);
		free(d);
	}
	hca_wire_forget_ahead(w);
	if (w->end.memory)
		hca_memory_put(w->end.process, w->end.memory);
	free(w->payload);
}

void hca_wire_watch_queue(struct hca_process *p, uint32_t qpn, const struct hca_sender *sender,
                          bool detours)
{
	uint32_t index = SHM_QP_INDEX(qpn);
	struct shm_wire_busy *busy = shm_wire_busy_at(&p->region, index / 64);

	/* seq_cst: what it waits for is written before the look, and read after the bit is taken */
	atomic_thread_fence(memory_order_seq_cst);
	if (!(atomic_load_explicit(&busy->bits, memory_order_relaxed) >> index % 64 & 1))
		atomic_fetch_or_explicit(&busy->bits, 1ull << index % 64, memory_order_seq_cst);
	/* seq_cst: first the bit, then the look; the daemon says that it does not look any more,
	 * and then looks for bits */
	if (atomic_load_explicit(&p->region.data->ticking, memory_order_seq_cst))
		return;
	if (detours)
		hca_detour_call(p);
	else if (sender->network)
		hca_roce_call_daemon(hca_roce(sender->network));
}

void hca_wire_watch(struct hca_wire *w)
{
	hca_wire_watch_queue(w->end.process, w->qpn, w->sender, w->path.detours);
}

/* ---- acknowledgements that wait ---- */

/*
 * Acknowledgements wait for replies. An acknowledgement by itself costs as much as a message: a
 * system call here, and one at the peer. A program that answers what comes sends it along, in one
 * piece with the answer. So if the owner has posted a request after each of the last messages, the
 * thread that polls puts it off until it comes back, or the owner posts; and the daemon sends it if
 * neither happens for a tick.
 */
bool hca_wire_reply_is_likely(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;
	bool answered = !atomic_load_explicit(&s->unanswered, memory_order_relaxed);

	if (answered)
		atomic_store_explicit(&s->unanswered, true, memory_order_relaxed);
	else
		atomic_store_explicit(&s->replies, 0, memory_order_relaxed);
	return answered &&
	       atomic_load_explicit(&s->replies, memory_order_relaxed) >= REPLIES_ENOUGH;
}

/* Does nothing while another thread works on the connection: that thread may acknowledge. */
void hca_wire_try_acknowledge(struct hca_wire *w)
{
	if (!hca_wire_acquire(w, &w->shm->lock))
		return;
	if (hca_wire_may_work(w, SHM_WIRE_RECEIVES))
		hca_wire_acknowledge(w);
	hca_wire_release(&w->shm->lock, w->worker);
}

void hca_wire_try_respond(struct hca_wire *w)
{
	bool more = true;

	if (!hca_wire_owes(w) && !w->shm->in.n_responses)
		return;
	if (hca_wire_acquire(w, &w->shm->lock)) {
		more = hca_wire_may_work(w, SHM_WIRE_RECEIVES) && hca_wire_respond(w);
		hca_wire_release(&w->shm->lock, w->worker);
	}
	if (more)
		hca_wire_watch(w);
}

/* The owner has sent something: perhaps the reply. */
void hca_wire_replied(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;
	uint8_t replies = atomic_load_explicit(&s->replies, memory_order_relaxed);

	if (!atomic_load_explicit(&s->unanswered, memory_order_relaxed))
		return;
	atomic_store_explicit(&s->unanswered, false, memory_order_relaxed);
	if (replies < REPLIES_ENOUGH)
		atomic_store_explicit(&s->replies, replies + 1, memory_order_relaxed);
}

/* ---- acknowledgements before replies ---- */

/* The turn of the worker that has the responder's lock: it names its peer anew at each turn. */
static uint32_t turn_of_holder(const struct hca_wire *w)
{
	const uint32_t holder = atomic_load_explicit(&w->shm->lock, memory_order_relaxed);

	return atomic_load_explicit(
	        &shm_sender_at(&w->end.process->region, SHM_QP_INDEX(holder))->target_qpn,
	        memory_order_relaxed);
}

/*
 * An HCA acknowledges a message before the program can see it, so that its peer hears of that
 * before it hears of anything that the program sends then: programs rely on it that their send is
 * complete when the reply comes. Here the receiving thread places the message first, so the program
 * may be faster. Then the requests that it posts leave behind the acknowledgement.
 */
bool hca_wire_acknowledges_first(struct hca_wire *w, bool *has_lock)
{
	*has_lock = hca_wire_acquire(w, &w->shm->lock);
	if (base_unlikely(!*has_lock)) {
		hca_wire_want_egress(w);
		/* the holder may have been done before the egress was wanted */
		*has_lock = hca_wire_acquire(w, &w->shm->lock);
	}
	if (base_unlikely(!*has_lock))
		return hca_wire_has_waited(&w->ack_wait, turn_of_holder(w));
	w->ack_wait.seen_ns = 0;
	*has_lock = hca_wire_may_work(w, SHM_WIRE_RECEIVES);
	if (base_unlikely(!*has_lock))
		hca_wire_release(&w->shm->lock, w->worker);
	return true;
}
