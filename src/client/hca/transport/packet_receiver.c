/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wires of a port, for the thread that receives there: the queue pair of a packet, when the
 * packet is worked on, and the work that is due afterwards. See hca/link/packet_receiver.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "hca/link/packet_receiver.h"
#include "hca/transport/packet_connection.h"

/* So many packets of a queue pair are put off, as its lock was not to be had; more get lost. */
#define MOST_DEFERRED 64
/* So long the queue pairs that have something to send are seen to at once, ns: a thousand of them
 * may have a READ each, of which one turn sends a quarter of a MiB. */
#define FINISH_NS 500000
/* A port's receiver forgets queue pairs that are closed when it knows twice as many as were left
 * the last time, and so many more. */
#define SWEEP 16
/* A peer whose packets come marked by congestion is told so once in so many ns. */
#define CNP_NS    50000
#define CNP_BYTES 16 /* reserved */

/* ---- a thread's turn at a queue pair ---- */

/* Says which peer this thread deals with, before it looks at anything of the peer's. */
static void begin(struct hca_wire *w)
{
	w->turn += IB_QPN_MASK + 1;
	/* seq_cst: before the look at keys; pairs with hca_connections_wait() */
	atomic_store_explicit(&w->sender->shm->target_qpn, w->qpn | w->turn, memory_order_seq_cst);
	base_fence_behind_seq_cst();
}

/* So many times what another worker is to answer is sent in one turn, besides requests: the bit
 * that says so may be nonsense. The daemon goes on in its next tick. */
#define ANSWERS_MOST 2

/* The packets that were made leave; then all that may be sent, if there are @more requests, or
 * another worker wanted to send something. Nobody stops UC, whose messages may be long: the daemon
 * sends the rest of them, a part in each tick. */
static void go_on(struct hca_wire *w, bool more)
{
	bool wanted = hca_wire_leave(w), has_lock = true;

	more |= wanted;
	for (unsigned n = 0; more && has_lock && n < HCA_WIRE_BATCHES_MOST; n++) {
		if (wanted && n < ANSWERS_MOST)
			hca_wire_try_respond(w);
		has_lock = hca_wire_acquire(w, &w->connection->lock);
		if (has_lock) {
			more = hca_wire_may_work(w, SHM_WIRE_SENDS) && hca_wire_send(w);
			hca_wire_release_requests(w);
		}
		wanted = hca_wire_leave(w);
		more |= wanted;
	}
	if (more)
		hca_wire_watch(w);
}

/* @more: requests may be sent, after something has come. */
static void end(struct hca_wire *w, bool more)
{
	go_on(w, more);
	/* release: all that was done comes before "deals with nobody" */
	atomic_store_explicit(&w->sender->shm->target_qpn, 0, memory_order_release);
}

/* Says so and acquires the lock. That order: if this process dies, the daemon looks for the lock at
 * whom it dealt with. False: the lock is not to be had. */
static bool enter(struct hca_wire *w, _Atomic uint32_t *lock)
{
	begin(w);
	if (hca_wire_acquire(w, lock))
		return true;
	w->wires->barred++;
	end(w, false);
	return false;
}

static void forget(struct hca_wires *wires, struct hca_wire *w)
{
	if (w->is_due)
		TAILQ_REMOVE(&wires->due, w, entry);
	TAILQ_REMOVE(&wires->known, w, known);
	base_hash_remove(&wires->all, &w->node);
	hca_wire_fini(w);
	free(w);
}

/* Forgets those that are closed, and with them the memory of processes that may be gone. */
static void sweep(struct hca_wires *wires)
{
	struct base_hash_node *node = base_hash_walk(&wires->all, NULL), *next;

	for (; node; node = next) {
		struct hca_wire *w = container_of(node, struct hca_wire, node);

		next = base_hash_walk(&wires->all, node);
		if (!(hca_wire_opened(w) & SHM_WIRE_RECEIVES) || !hca_wire_renew(w))
			forget(wires, w);
	}
	wires->sweep_at = SWEEP + 2 * wires->all.n;
}

/* The wire of queue pair @qpn, as this port's receiver knows it. NULL: it has none, or there is no
 * memory. */
static struct hca_wire *wire_of(struct hca_wires *wires, uint32_t qpn)
{
	struct base_hash_node *node = base_hash_first(&wires->all, qpn);
	struct hca_wire *w;

	for (; node; node = base_hash_next(node)) {
		w = container_of(node, struct hca_wire, node);
		if (w->qpn == qpn)
			return w;
	}
	if (!(atomic_load_explicit(&shm_wire_at(&wires->process->region, SHM_QP_INDEX(qpn))->open,
	                           memory_order_relaxed) &
	      SHM_WIRE_RECEIVES))
		return NULL;
	if (wires->all.n >= wires->sweep_at)
		sweep(wires);
	w = calloc(1, sizeof(*w));
	if (!w || base_hash_add(&wires->all, &w->node, qpn)) {
		free(w);
		return NULL;
	}
	hca_wire_init(w, wires->process, qpn, wires->sender->qpn, wires->sender);
	w->wires = wires;
	TAILQ_INSERT_TAIL(&wires->known, w, known);
	return w;
}

/* Whether the packet was sent where its peer is, to the address that it is connected with. */
static bool comes_from_peer(const struct hca_wire *w, const struct hca_wires *wires,
                            const struct wire_roce_packet *p)
{
	if (w->path.detours == SHM_WIRE_HERE)
		return w->path.flow < SHM_MAX_FLOWS &&
		       shm_flow_at(&wires->process->region, w->path.flow)->dest_port == wires->from;
	return ib_gid_equal(&p->ip.sgid, &w->path.dgid) && ib_gid_equal(&p->ip.dgid, &w->path.sgid);
}

/* Whether the packet is its peer's. */
static bool is_peers(const struct hca_wire *w, const struct hca_wires *wires,
                     const struct wire_roce_packet *p)
{
	unsigned transport = w->end.qp.type == IBV_QPT_UC ? WIRE_TRANSPORT_UC : WIRE_TRANSPORT_RC;

	return w->end.qp.port == wires->port &&
	       (wire_opcode_transport(p->h.bth.opcode) == transport ||
	        p->h.bth.opcode == WIRE_OPCODE_CNP) &&
	       comes_from_peer(w, wires, p) && ib_pkey_match(w->end.qp.pkey, p->h.bth.pkey);
}

static void set_due(struct hca_wires *wires, struct hca_wire *w)
{
	if (w->is_due)
		return;
	w->is_due = true;
	TAILQ_INSERT_TAIL(&wires->due, w, entry);
}

/* Sends responses and acknowledgements that are due. Whether some are left. */
static bool respond(struct hca_wire *w)
{
	bool more = false;

	if (!enter(w, &w->shm->lock))
		return true;
	if (hca_wire_may_work(w, SHM_WIRE_RECEIVES))
		more = hca_wire_respond(w);
	hca_wire_release(&w->shm->lock, w->worker);
	end(w, false);
	return more;
}

bool hca_wires_continue(const struct wire_roce_packet *before,
                        const struct wire_roce_packet *packet)
{
	const struct wire_bth *a = &before->h.bth, *b = &packet->h.bth;

	return wire_opcode_continues(a->opcode, b->opcode) && a->dest_qpn == b->dest_qpn &&
	       wire_psn_add(a->psn, 1) == b->psn && a->pkey == b->pkey &&
	       before->ip.traffic_class == packet->ip.traffic_class &&
	       ib_gid_equal(&before->ip.sgid, &packet->ip.sgid) &&
	       ib_gid_equal(&before->ip.dgid, &packet->ip.dgid);
}

/*
 * Doubt. The process that receives may die, or be stopped, with packets in its hands. An
 * acknowledgement that is lost in this way comes again. But the peer's answer to the acknowledged
 * send may have come before it, and programs rely on the completion of their send before the
 * answer. So if requests are under way then, the peer is asked at once for what it has received.
 * Until the peer acknowledges, the peer's requests count as lost, too.
 */

/* So long nothing is taken from a peer that does not say it. */
#define DOUBT_NS (10 * (uint64_t)HCA_WIRE_PATIENCE_NS)

static uint32_t turns_lost(const struct hca_wire *w)
{
	const struct shm_region *r = &w->end.process->region;

	return (uint32_t)atomic_load_explicit(&shm_roce_port_at(r, w->end.qp.port)->overtakes,
	                                      memory_order_relaxed);
}

static bool may_doubt(const struct hca_wire *w)
{
	return base_unlikely(w->shm->doubt_since_ns || w->shm->turns_lost != turns_lost(w)) &&
	       w->end.qp.type == IBV_QPT_RC;
}

/* Something may have got lost just now. */
static void begin_doubt(struct hca_wire *w, uint64_t now)
{
	struct shm_wire *s = w->shm;

	s->turns_lost = turns_lost(w);
	s->doubt_since_ns = s->acked != s->beyond ? now : 0;
	if (!s->doubt_since_ns || !atomic_load_explicit(&s->deadline_ns, memory_order_relaxed))
		return;
	base_log_debug(packet, "QP 0x%06x: acknowledgements may have got lost", w->qpn);
	atomic_store_explicit(&s->deadline_ns, 1, memory_order_relaxed); /* it is over */
	hca_wire_watch(w);
}

/* The peer has answered. */
static void end_doubt(struct hca_wire *w)
{
	if (!may_doubt(w))
		return;
	w->shm->turns_lost = turns_lost(w);
	w->shm->doubt_since_ns = 0;
}

/* With the responder's lock held: whether these packets count as lost. The peer may be in doubt as
 * well, so it hears what has come before. */
static bool is_doubtful(struct hca_wire *w, const struct wire_roce_packet *last)
{
	struct shm_wire *s = w->shm;
	uint64_t now;

	if (!may_doubt(w))
		return false;
	now = base_now_ns();
	if (s->turns_lost != turns_lost(w))
		begin_doubt(w, now);
	if (hca_connected_load(&w->connection->failed) || now - s->doubt_since_ns > DOUBT_NS)
		s->doubt_since_ns = 0;
	if (!s->doubt_since_ns || wire_psn_diff(last->h.bth.psn, s->in.expected) < 0)
		return false;
	atomic_store_explicit(&s->ack_due, true, memory_order_relaxed);
	return true;
}

/* Works on one half, with its lock held, for @n packets. False: the lock is not to be had. */
static bool work(struct hca_wire *w, const struct wire_roce_packet *p, unsigned n)
{
	const struct hca_wire_run run = hca_wire_run_of(p, n);
	const unsigned flags = run.flags;
	/* what is reserved the responder refuses */
	bool is_request = (flags & WIRE_OPCODE_REQUEST) || wire_opcode_is_reserved(p->h.bth.opcode);
	_Atomic uint32_t *lock = is_request ? &w->shm->lock : &w->connection->lock;
	uint32_t what = is_request ? SHM_WIRE_RECEIVES : SHM_WIRE_SENDS;
	bool more = false;

	/* a program that sees a message may send one: it must not overtake responses that were
	 * asked for before */
	if ((flags & WIRE_OPCODE_RECEIVES) && w->shm->in.n_responses)
		respond(w);
	if (!enter(w, lock))
		return false;
	/* it has moved to RTS just now: UC's peer would not send it again */
	if (hca_wire_opened(w) != w->open && !hca_wire_renew(w))
		what = 0;
	if (hca_wire_may_work(w, what)) {
		if (is_request && !is_doubtful(w, &p[n - 1]))
			hca_wire_request(w, &run);
		if (!is_request && p->h.bth.opcode != WIRE_OPCODE_CNP)
			end_doubt(w);
		if (!is_request)
			more = hca_wire_response(w, &run);
	}
	if (is_request)
		hca_wire_release(lock, w->worker);
	else
		hca_wire_release_requests(w);
	end(w, more);
	return true;
}

/*
 * Packets that are put off. A queue pair's packets are worked on in the order in which they came,
 * also when others receive meanwhile: programs rely on it that what a peer sends does not overtake
 * what it has answered before. So a packet that comes while any is put off is put off as well. Each
 * has a number, and is worked on when its turn comes, by the process that has it.
 */

/* Whether it is the turn of the packet with this number. The process that has the packets before it
 * may have gone: after a while they are passed over. */
static bool is_turn(struct hca_wire *w, uint32_t number)
{
	/* acquire: pairs with the release in took_up() */
	uint32_t next = atomic_load_explicit(&w->shm->taken_up, memory_order_acquire);
	uint64_t now;

	if (next == number) {
		w->awaited_since_ns = 0;
		return true;
	}
	now = base_now_ns();
	if (!w->awaited_since_ns || w->awaited != next) {
		w->awaited = next;
		w->awaited_since_ns = now;
	}
	if (now - w->awaited_since_ns < HCA_WIRE_PATIENCE_NS)
		return false;
	base_log_debug(packet, "QP 0x%06x: %u packets that were put off get lost", w->qpn,
	               number - next);
	w->awaited_since_ns = 0;
	w->shm->turns_lost--; /* acknowledgements may be among them: see is_doubtful() */
	return atomic_compare_exchange_strong_explicit(&w->shm->taken_up, &next, number,
	                                               memory_order_acquire, memory_order_relaxed);
}

static bool was_passed_over(const struct hca_wire *w, uint32_t number)
{
	uint32_t next = atomic_load_explicit(&w->shm->taken_up, memory_order_relaxed);

	return (int32_t)(number - next) < 0;
}

/* The packet with this number was worked on: it is the next one's turn. */
static void took_up(struct hca_wire *w, uint32_t number)
{
	/* it may have been passed over meanwhile */
	atomic_compare_exchange_strong_explicit(&w->shm->taken_up, &number, number + 1,
	                                        memory_order_release, memory_order_relaxed);
}

/* Keeps a copy of the packet until its turn comes, and the lock is to be had. */
static void defer(struct hca_wire *w, const struct wire_roce_packet *p)
{
	struct hca_wire_copy *d = NULL;

	if (w->n_deferred < MOST_DEFERRED)
		d = hca_wire_copy(p);
	if (!d) {
		base_log_debug(packet, "QP 0x%06x: is not to be had: PSN %u gets lost", w->qpn,
		               p->h.bth.psn);
		return;
	}
	d->number = atomic_fetch_add_explicit(&w->shm->put_off, 1, memory_order_relaxed);
	TAILQ_INSERT_TAIL(&w->deferred, d, entry);
	w->n_deferred++;
	hca_wire_watch(w);
}

/* Works on what was put off. Whether some still is. */
static bool work_deferred(struct hca_wire *w)
{
	struct hca_wire_copy *d;

	while ((d = TAILQ_FIRST(&w->deferred)) != NULL) {
		if (!was_passed_over(w, d->number)) {
			if (!is_turn(w, d->number) || !work(w, &d->packet, 1))
				return true;
			took_up(w, d->number);
		}
		TAILQ_REMOVE(&w->deferred, d, entry);
		w->n_deferred--;
		free(d);
	}
	return false;
}

/* Whether other processes have put off packets that came before. */
static bool is_behind(struct hca_wire *w)
{
	return !is_turn(w, atomic_load_explicit(&w->shm->put_off, memory_order_relaxed));
}

/* How many of the packets are marked by congestion. */
static unsigned marked_of(const struct wire_roce_packet *p, unsigned n)
{
	unsigned marked = 0;

	for (unsigned i = 0; i < n; i++)
		marked += (p[i].ip.traffic_class & HCA_WIRE_ECN_MASK) == HCA_WIRE_ECN_MARKED;
	return marked;
}

/* Tells the peer that its packets come marked by congestion (annex A17.9): @marked of them now. */
static void notify(struct hca_wire *w, unsigned marked)
{
	const struct wire_headers h = { .bth = { .opcode = WIRE_OPCODE_CNP,
		                                 .migrated = true,
		                                 .becn = true,
		                                 .pkey = w->end.qp.pkey,
		                                 .dest_qpn = w->end.qp.connection.dest_qpn } };
	uint64_t now = base_now_ns();
	uint8_t *room;

	while (marked--)
		HCA_WIRE_COUNT(w, np_ecn_marked_roce_packets);
	if (now - w->notified_ns < CNP_NS)
		return;
	room = hca_wire_begin(w, CNP_BYTES);
	if (!room)
		return;
	memset(room, 0, CNP_BYTES);
	hca_wire_end(w, &h);
	w->notified_ns = now;
	HCA_WIRE_COUNT(w, np_cnp_sent);
}

bool hca_wires_receive(struct hca_wires *wires, const struct wire_roce_packet *p, unsigned n)
{
	struct hca_wire *w = wire_of(wires, p->h.bth.dest_qpn);
	const bool is_cnp = p->h.bth.opcode == WIRE_OPCODE_CNP;
	unsigned marked;

	if (!w || !hca_wire_renew(w) || !is_peers(w, wires, p) ||
	    (is_cnp && !hca_wire_is_open(w, SHM_WIRE_SENDS))) {
		if (is_cnp)
			atomic_fetch_add_explicit(
			        &shm_roce_port_at(&wires->process->region, wires->port)
			                 ->rp_cnp_ignored,
			        1, memory_order_relaxed);
		else
			HCA_COUNT(wires->process, wires->port, no_qp);
		if (w && w->end.qp.qpn != w->qpn)
			forget(wires, w);
		return false;
	}
	marked = marked_of(p, n);
	if (base_unlikely(marked))
		notify(w, marked);
	if (work_deferred(w) || is_behind(w) || !work(w, p, n))
		for (unsigned i = 0; i < n; i++)
			defer(w, &p[i]);
	if (hca_wire_owes(w) || w->shm->in.n_responses || w->n_deferred)
		set_due(wires, w);
	return true;
}

/* Does what is due of one queue pair. @later: its acknowledgement may wait for a reply. Whether
 * some is left. */
static bool do_due(struct hca_wire *w, bool later)
{
	bool more = work_deferred(w), waited = w->waits_for_reply;

	w->waits_for_reply = false;
	if (!hca_wire_is_open(w, SHM_WIRE_RECEIVES) ||
	    (!hca_wire_owes(w) && !w->shm->in.n_responses))
		return more;
	if (!waited && hca_wire_ack_is_due(w) && hca_wire_reply_is_likely(w) && later &&
	    !w->shm->in.n_responses && !hca_wire_egress_is_wanted(w)) {
		w->waits_for_reply = true;
		atomic_store_explicit(&w->shm->ack_waits, true, memory_order_relaxed);
		return true;
	}
	return respond(w) || more;
}

/* Whether the time for one turn is over; the first look begins it. */
static bool is_over(uint64_t *until)
{
	uint64_t now = base_now_ns();

	if (!*until)
		*until = now + FINISH_NS;
	return now >= *until;
}

/* The wires whose turn has not come are the first the next time. */
static void leave_due(struct hca_wires *wires, struct hca_wire_list *left)
{
	struct hca_wire *w;

	TAILQ_FOREACH(w, left, entry)
	hca_wire_watch(w);
	TAILQ_CONCAT(left, &wires->due, entry);
	TAILQ_CONCAT(&wires->due, left, entry);
}

/* Looks at one, another one each time, and forgets it if its queue pair is gone: the memory of its
 * process, which may be large, stays as long as anybody has it mapped. */
static void look_at_one(struct hca_wires *wires)
{
	struct hca_wire *w = TAILQ_FIRST(&wires->known);
	const struct shm_region *r = &wires->process->region;

	if (!w)
		return;
	if (base_unlikely(shm_qp_at(r, SHM_QP_INDEX(w->qpn))->qpn != w->qpn)) {
		forget(wires, w);
		return;
	}
	TAILQ_REMOVE(&wires->known, w, known);
	TAILQ_INSERT_TAIL(&wires->known, w, known);
}

bool hca_wires_finish(struct hca_wires *wires, bool later)
{
	struct hca_wire_list now = TAILQ_HEAD_INITIALIZER(now);
	uint64_t until = 0; /* one is seen to without a look at the clock */
	struct hca_wire *w;

	TAILQ_CONCAT(&now, &wires->due, entry);
	for (unsigned n = 0; (w = TAILQ_FIRST(&now)) != NULL; n++) {
		if (n && is_over(&until)) {
			leave_due(wires, &now);
			break;
		}
		TAILQ_REMOVE(&now, w, entry);
		w->is_due = false;
		if (!hca_wire_renew(w) || !do_due(w, later))
			continue;
		set_due(wires, w);
		hca_wire_watch(w); /* if this process does not come back for it */
	}
	look_at_one(wires);
	return !TAILQ_EMPTY(&wires->due);
}

/* Whether it is time to look at what it sends: a time is over, or nobody has sent what was posted,
 * or what was held up. *@waits: there is a time to wait for. */
static bool is_time(const struct hca_wire *w, uint64_t now, bool *waits)
{
	const struct shm_wire *s = w->shm;
	uint64_t resume = atomic_load_explicit(&s->resume_ns, memory_order_relaxed);
	uint64_t deadline = atomic_load_explicit(&s->deadline_ns, memory_order_relaxed);
	bool idle = s->psn == s->acked && !resume && !hca_connected_load(&w->connection->failed) &&
	            s->next != hca_connected_load(&w->connection->tail);
	bool held_up = atomic_load_explicit(&s->held_up, memory_order_relaxed);

	*waits = resume || deadline;
	return hca_wire_is_broken(w, SHM_WIRE_SENDS) || idle || held_up ||
	       (resume && resume <= now) || (deadline && deadline <= now);
}

/* Whether it can only wait for its turn to READ. */
static bool must_wait(const struct hca_wire *w, uint64_t now)
{
	const struct shm_wire *s = w->shm;

	return !hca_wire_is_broken(w, SHM_WIRE_SENDS) &&
	       atomic_load_explicit(&s->awaits_turn, memory_order_relaxed) &&
	       !atomic_load_explicit(&s->deadline_ns, memory_order_relaxed) &&
	       !atomic_load_explicit(&s->resume_ns, memory_order_relaxed) &&
	       !shm_readers_have_room(hca_wire_readers(w), hca_wire_ms(now));
}

/* Sees to the times of what it sends. Whether it has to wait for one. */
static bool look_at_time(struct hca_wire *w, uint64_t now)
{
	bool waits;

	if (!hca_wire_is_open(w, SHM_WIRE_SENDS))
		return false;
	if (must_wait(w, now))
		return true;
	if (!is_time(w, now, &waits))
		return waits;
	if (!enter(w, &w->connection->lock))
		return true;
	if (hca_wire_may_work(w, SHM_WIRE_SENDS)) {
		hca_wire_look_at_time(w, now);
		hca_wire_look_for_owner(w); /* it may not have had the lock when it was told */
	}
	hca_wire_release_requests(w);
	end(w, true);
	is_time(w, now, &waits);
	return waits;
}

bool hca_wires_tick(struct hca_wires *wires, uint32_t index, uint64_t now)
{
	struct hca_wire *w = wire_of(wires, shm_qp_at(&wires->process->region, index)->qpn);
	bool more;

	if (!w || !hca_wire_renew(w))
		return false;
	more = do_due(w, false);
	return look_at_time(w, now) || more;
}

void hca_wires_init(struct hca_wires *wires, struct hca_process *p, struct hca_sender *sender,
                    uint32_t port)
{
	*wires = (struct hca_wires){
		.process = p, .sender = sender, .port = port, .from = UINT32_MAX
	};
	TAILQ_INIT(&wires->known);
	TAILQ_INIT(&wires->due);
	TAILQ_INIT(&wires->ahead);
}

void hca_wires_fini(struct hca_wires *wires)
{
	struct base_hash_node *node;

	while ((node = base_hash_walk(&wires->all, NULL)) != NULL)
		forget(wires, container_of(node, struct hca_wire, node));
	base_hash_fini(&wires->all);
}
