/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire: what both halves share, its owner's part, and whose packet it is. See wire.h.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "hca/link/flow.h"
#include "hca/link/payload.h"
#include "hca/link/wires.h"
#include "hca/registration/mw.h"
#include "hca/transport/wire.h"

#define FIRST_WINDOW 64
/* So long a lock is waited for, ns; then it is as if the packet had got lost. Who has it may have
 * been stopped by the scheduler, in favour of the one who waits: so that one yields. */
#define LOCK_NS        10000000
#define DAEMON_LOCK_NS 2000000
#define LOCK_SPINS     50

/* ---- locks ---- */

static bool try_lock(_Atomic uint32_t *lock, uint32_t worker)
{
	uint32_t nobody = 0;

	/* acquire: pairs with the release in hca_wire_unlock() */
	return atomic_compare_exchange_strong_explicit(lock, &nobody, worker, memory_order_acquire,
	                                               memory_order_relaxed);
}

bool hca_wire_lock(const struct hca_wire *w, _Atomic uint32_t *lock)
{
	uint64_t began = 0, most = w->end.process->must_not_block ? DAEMON_LOCK_NS : LOCK_NS;

	for (unsigned spins = 0; !try_lock(lock, w->worker); spins++) {
		if (spins < LOCK_SPINS) {
			base_relax();
			continue;
		}
		if (!began)
			began = base_now_ns();
		else if (base_now_ns() - began > most)
			return false;
		sched_yield();
	}
	return true;
}

void hca_wire_unlock(_Atomic uint32_t *lock, uint32_t worker)
{
	/* it may have been taken from a thread that was stopped */
	atomic_compare_exchange_strong_explicit(lock, &worker, 0, memory_order_release,
	                                        memory_order_relaxed);
}

/* ---- what a thread needs to know ---- */

static bool is_open(const struct hca_wire *w, uint32_t what)
{
	/* acquire: pairs with the release in hca_wire_open(): the path came before */
	return atomic_load_explicit(&w->shm->open, memory_order_acquire) & what;
}

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
	w->path = w->shm->path;
	w->path.mtu_shift = w->path.mtu_shift < 8    ? 8
	                    : w->path.mtu_shift > 12 ? 12
	                                             : w->path.mtu_shift;
	w->route = (struct hca_roce_route){ .dgid = w->path.dgid,
		                            .class_flow = w->path.class_flow,
		                            .qpn = w->qpn,
		                            .hop_limit = w->path.hop_limit,
		                            .sgid_index = w->path.sgid_index };
}

bool hca_wire_renew(struct hca_wire *w)
{
	struct hca_process *p = w->end.process;
	struct hca_memory *old = w->end.memory;

	/* acquire: pairs with the release in shm_write_end() */
	if (old && atomic_load_explicit(w->end.seq, memory_order_acquire) == w->end.qp.seq)
		return true;
	shm_qp_read(&p->region, w->qpn, &w->end.qp);
	w->end.memory = NULL;
	if (w->end.qp.qpn == w->qpn && w->end.qp.connection.keys_off)
		w->end.memory = hca_memory_get(p, &w->end.qp);
	if (old)
		hca_memory_put(p, old);
	if (!w->end.memory)
		return false;
	prepare(w);
	return true;
}

static void init(struct hca_wire *w, struct hca_process *p, uint32_t qpn, uint32_t worker,
                 struct hca_sender *sender)
{
	w->qpn = qpn;
	w->worker = worker;
	w->sender = sender;
	w->shm = &p->region.wires[SHM_QP_INDEX(qpn)];
	w->connection = &p->region.connections[SHM_QP_INDEX(qpn)];
	w->end.process = p;
	w->end.seq = &p->region.qps[SHM_QP_INDEX(qpn)].seq;
}

static void fini(struct hca_wire *w)
{
	if (w->end.memory)
		hca_memory_put(w->end.process, w->end.memory);
}

struct wire_bth hca_wire_bth(const struct hca_wire *w, enum wire_operation operation, uint32_t psn)
{
	unsigned transport = w->end.qp.type == IBV_QPT_UC ? WIRE_TRANSPORT_UC : WIRE_TRANSPORT_RC;

	return (struct wire_bth){ .opcode = (uint8_t)WIRE_OPCODE(transport, operation),
		                  .migrated = true,
		                  .pkey = w->end.qp.pkey,
		                  .dest_qpn = w->end.qp.connection.dest_qpn,
		                  .psn = psn };
}

void hca_wire_watch(struct hca_wire *w)
{
	struct hca_process *p = w->end.process;
	uint32_t index = SHM_QP_INDEX(w->qpn);
	struct shm_wire_busy *busy = &p->region.wire_busy[index / 64];
	struct shm_roce_port *port = &p->region.roce_ports[w->end.qp.port];

	if (!(atomic_load_explicit(&busy->bits, memory_order_relaxed) >> index % 64 & 1))
		atomic_fetch_or_explicit(&busy->bits, 1ull << index % 64, memory_order_seq_cst);
	/* seq_cst: first the bit, then the look; the daemon says that it does not look any more,
	 * and then looks for bits */
	if (w->sender->network && !atomic_load_explicit(&port->ticking, memory_order_seq_cst))
		hca_roce_call_daemon(hca_roce(w->sender->network));
}

/* ---- memory ---- */

/* The pieces of @parts from @offset on. @iov: HCA_MAX_SGE. */
static unsigned pieces(const struct hca_parts *parts, uint64_t offset, struct iovec *iov)
{
	unsigned n = 0;

	for (unsigned i = 0; i < parts->n; i++) {
		struct iovec v = parts->iov[i];
		size_t part = offset < v.iov_len ? offset : v.iov_len;

		offset -= part;
		if (v.iov_base != HCA_MEMORY_NULL)
			v.iov_base = (char *)v.iov_base + part;
		v.iov_len -= part;
		if (v.iov_len)
			iov[n++] = v;
	}
	return n;
}

/* As hca_parts_span(), of these pieces. */
static struct hca_span span_of(const struct hca_end *end, const struct hca_parts *parts,
                               struct iovec *iov, unsigned n)
{
	return (struct hca_span){ .memory = parts->here ? NULL : end->memory, .iov = iov, .n = n };
}

const void *hca_wire_gather(const struct hca_end *end, struct hca_parts *parts, uint64_t offset,
                            uint32_t bytes, uint8_t *room)
{
	struct iovec iov[HCA_MAX_SGE], here = { room, bytes };
	struct hca_span to = { .iov = &here, .n = 1 }, from;
	unsigned n;

	if (!bytes)
		return room;
	n = pieces(parts, offset, iov);
	if (!n)
		return NULL;
	if (parts->here && iov[0].iov_len >= bytes && iov[0].iov_base != HCA_MEMORY_NULL &&
	    bytes > SHM_INLINE)
		return iov[0].iov_base;
	from = span_of(end, parts, iov, n);
	return hca_memory_copy(&to, &from, bytes) ? NULL : room;
}

int hca_wire_scatter(const struct hca_end *end, struct hca_parts *parts, uint64_t offset,
                     const void *from, uint32_t bytes)
{
	struct iovec iov[HCA_MAX_SGE], here = { (void *)from, bytes };
	struct hca_span to, source = { .iov = &here, .n = 1 };
	unsigned n;

	if (!bytes)
		return 0;
	n = pieces(parts, offset, iov);
	if (n && parts->here && iov[0].iov_len >= bytes && iov[0].iov_base != HCA_MEMORY_NULL) {
		hca_memory_copy_here(iov[0].iov_base, from, bytes);
		return 0;
	}
	to = span_of(end, parts, iov, n);
	return hca_memory_copy(&to, &source, bytes);
}

/* ---- its owner ---- */

/* Whether what it sends leaves the fabric. */
static bool leads_out(struct hca_connected_qp *c)
{
	struct hca_flow *f = c->qp.sender.network ? hca_flow_get(&c->qp.sender, &c->path) : NULL;

	return f && f->leaves && !f->count;
}

static void write_path(const struct hca_connected_qp *c, struct shm_wire_path *path)
{
	const struct hca_connection *a = &c->qp.connection;

	*path = (struct shm_wire_path){ .class_flow = c->path.class_flow,
		                        .hop_limit = c->path.hop_limit,
		                        .sgid_index = c->path.sgid_index,
		                        .timeout = a->timeout,
		                        .retry_cnt = a->retry_cnt,
		                        .rnr_retry = a->rnr_retry,
		                        .min_rnr_timer = a->min_rnr_timer,
		                        .max_rd_atomic = a->max_rd_atomic,
		                        .mtu_shift = (uint8_t)(7 + a->path_mtu) };
	memcpy(&path->dgid, c->path.dest.gid, sizeof(path->dgid));
}

static void open_responder(struct hca_connected_qp *c, struct shm_wire *s)
{
	s->expected = c->qp.connection.rq_psn;
	s->msn = 0;
	s->nak_sent = s->operation = s->ack_due = 0;
	s->n_responses = s->next_response = s->next_saved = 0;
	memset(s->saved, 0, sizeof(s->saved));
}

static void open_requester(struct hca_connected_qp *c, struct shm_wire *s)
{
	s->psn = s->acked = s->head_psn = s->beyond = c->qp.sender.psn & WIRE_PSN_MASK;
	s->next = hca_connected_load(&c->shm->head);
	s->offset = s->answered = s->grown = 0;
	s->window = FIRST_WINDOW;
	s->retries = s->rnr_retries = s->recovers = 0;
	atomic_store_explicit(&s->deadline_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&s->resume_ns, 0, memory_order_relaxed);
}

void hca_wire_open(struct hca_connected_qp *c)
{
	struct hca_process *p = c->qp.ctx->process;
	struct shm_wire *s = &p->region.wires[SHM_QP_INDEX(c->qp.sender.qpn)];
	uint32_t open = atomic_load_explicit(&s->open, memory_order_relaxed);
	bool sends = hca_qp_state(&c->qp) == IBV_QPS_RTS;

	if (!c->wire &&
	    (c->qp.transport->type == IBV_QPT_RC || c->qp.transport->type == IBV_QPT_UC) &&
	    leads_out(c)) {
		c->wire = calloc(1, sizeof(*c->wire));
		if (!c->wire)
			return; /* as if all that it sends got lost */
		init(c->wire, p, c->qp.sender.qpn, c->qp.sender.qpn, &c->qp.sender);
		open = 0;
	}
	if (!c->wire)
		return;
	write_path(c, &s->path);
	if (!(open & SHM_WIRE_RECEIVES))
		open_responder(c, s);
	if (sends && !(open & SHM_WIRE_SENDS))
		open_requester(c, s);
	open |= SHM_WIRE_RECEIVES | (sends ? SHM_WIRE_SENDS : 0);
	atomic_store_explicit(&s->open, open, memory_order_release);
	c->wire->end.qp.seq = 1; /* no record's: it is read anew */
}

/* Acquires a lock from whoever has it for longer than a living thread may. */
static void lock_for_good(_Atomic uint32_t *lock, uint32_t worker)
{
	uint64_t began = base_now_ns();

	while (!try_lock(lock, worker)) {
		if (base_now_ns() - began > HCA_STOPPED_WAIT_NS)
			atomic_store_explicit(lock, 0, memory_order_relaxed);
		sched_yield();
	}
}

/* Its program has seen what has arrived, perhaps before that was acknowledged. */
static void acknowledge_all(struct hca_connected_qp *c)
{
	struct hca_wire *w = c->wire;

	if (!is_open(w, SHM_WIRE_RECEIVES) || !w->shm->ack_due || !hca_wire_renew(w))
		return;
	hca_exchange_begin(&c->x, w->qpn);
	hca_wire_respond(w);
	hca_sender_finish(w->sender);
	hca_connected_leave(c);
}

void hca_wire_close(struct hca_connected_qp *c)
{
	struct hca_wire *w = c->wire;

	if (!w)
		return;
	lock_for_good(&w->shm->lock, w->worker);
	acknowledge_all(c);
	atomic_store_explicit(&w->shm->open, 0, memory_order_release);
	hca_wire_unlock(&w->shm->lock, w->worker);
	atomic_store_explicit(&w->shm->deadline_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&w->shm->resume_ns, 0, memory_order_relaxed);
}

void hca_wire_free(struct hca_connected_qp *c)
{
	if (!c->wire)
		return;
	fini(c->wire);
	free(c->wire);
	c->wire = NULL;
}

/* Carries out requests at the head of the queue that are the owner's own business. */
static void carry_out_local(struct hca_connected_qp *c)
{
	struct shm_wire *s = c->wire->shm;
	struct shm_entry entries[HCA_MAX_SGE];
	struct shm_request r;
	int status;

	while (hca_connected_load(&c->shm->head) == s->next &&
	       s->next != hca_connected_load(&c->shm->tail) &&
	       !hca_connected_load(&c->shm->failed) &&
	       hca_connected_take(&c->wire->end, s->next, &r, entries) &&
	       (hca_operation(r.opcode) & HCA_OP_LOCAL)) {
		status = hca_mw_carry_out(&c->qp, &r);
		if (!hca_connected_settle(c->shm, s->next, status))
			return;
		s->next++;
	}
}

void hca_wire_go_on(struct hca_connected_qp *c)
{
	struct hca_wire *w = c->wire;

	if (!hca_wire_renew(w) || !is_open(w, SHM_WIRE_SENDS) || !hca_wire_lock(w, &c->shm->lock))
		return;
	hca_exchange_begin(&c->x, w->qpn);
	hca_wire_look_at_time(w, base_now_ns());
	carry_out_local(c);
	hca_wire_send(w);
	carry_out_local(c);
	hca_connected_leave(c);
	hca_wire_unlock(&c->shm->lock, w->worker);
}

/* ---- whoever receives ---- */

/* Says whom this thread deals with, before it looks at anything of theirs. */
static void begin(struct hca_wire *w)
{
	w->turn += IB_QPN_MASK + 1;
	/* seq_cst: before the look at keys; pairs with hca_connections_wait() */
	atomic_store_explicit(&w->sender->shm->target_qpn, w->qpn | w->turn, memory_order_seq_cst);
	base_fence_behind_seq_cst();
}

static void end(struct hca_wire *w)
{
	if (w->sender->unfinished) /* what it sends may lie in memory of the queue pair's process */
		hca_sender_finish(w->sender);
	/* release: all that was done comes before "deals with nobody" */
	atomic_store_explicit(&w->sender->shm->target_qpn, 0, memory_order_release);
}

/* What this port's receiver knows of queue pair @qpn. NULL: it has no wire, or there is no memory.
 */
static struct hca_wire *wire_of(struct hca_roce *port, uint32_t qpn)
{
	struct base_hash_node *node = base_hash_first(&port->wires, qpn);
	struct hca_wire *w;

	for (; node; node = base_hash_next(node)) {
		w = container_of(node, struct hca_wire, node);
		if (w->qpn == qpn)
			return w;
	}
	if (!atomic_load_explicit(&port->process->region.wires[SHM_QP_INDEX(qpn)].open,
	                          memory_order_relaxed))
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w || base_hash_add(&port->wires, &w->node, qpn)) {
		free(w);
		return NULL;
	}
	init(w, port->process, qpn, port->sender.qpn, &port->sender);
	return w;
}

static void forget(struct hca_roce *port, struct hca_wire *w)
{
	if (w->is_due)
		TAILQ_REMOVE(&port->due, w, entry);
	base_hash_remove(&port->wires, &w->node);
	fini(w);
	free(w);
}

/* Whether the packet is its peer's. */
static bool is_peers(const struct hca_wire *w, const struct hca_roce *port,
                     const struct wire_roce_packet *p)
{
	unsigned transport = w->end.qp.type == IBV_QPT_UC ? WIRE_TRANSPORT_UC : WIRE_TRANSPORT_RC;

	return w->end.qp.port == port->port &&
	       wire_opcode_transport(p->h.bth.opcode) == transport &&
	       ib_gid_equal(&p->ip.sgid, &w->path.dgid) &&
	       ib_pkey_match(w->end.qp.pkey, p->h.bth.pkey);
}

static void set_due(struct hca_roce *port, struct hca_wire *w)
{
	if (w->is_due)
		return;
	w->is_due = true;
	TAILQ_INSERT_TAIL(&port->due, w, entry);
}

static void take_request(struct hca_roce *port, struct hca_wire *w,
                         const struct wire_roce_packet *p)
{
	if (!is_open(w, SHM_WIRE_RECEIVES) || !hca_wire_lock(w, &w->shm->lock))
		return;
	if (is_open(w, SHM_WIRE_RECEIVES)) {
		begin(w);
		hca_wire_request(w, p);
		if (w->shm->ack_due || w->shm->n_responses)
			set_due(port, w);
		end(w);
	}
	hca_wire_unlock(&w->shm->lock, w->worker);
}

static void take_response(struct hca_wire *w, const struct wire_roce_packet *p)
{
	_Atomic uint32_t *lock = &w->connection->lock;

	if (!is_open(w, SHM_WIRE_SENDS) || !hca_wire_lock(w, lock))
		return;
	if (is_open(w, SHM_WIRE_SENDS)) {
		begin(w);
		hca_wire_response(w, p);
		end(w);
	}
	hca_wire_unlock(lock, w->worker);
}

void hca_wires_receive(struct hca_roce *port, const struct wire_roce_packet *p)
{
	struct hca_wire *w = wire_of(port, p->h.bth.dest_qpn);

	if (!w || !hca_wire_renew(w) || !is_peers(w, port, p)) {
		HCA_COUNT(port->process, port->port, no_qp);
		if (w && w->end.qp.qpn != w->qpn)
			forget(port, w);
		return;
	}
	if (wire_opcodes[p->h.bth.opcode].flags & WIRE_OPCODE_REQUEST)
		take_request(port, w, p);
	else
		take_response(w, p);
	port->now.delivered++;
}

/* Sends what is due of one queue pair. Whether some is left. */
static bool respond(struct hca_wire *w)
{
	bool more = true;

	if (!is_open(w, SHM_WIRE_RECEIVES) || !hca_wire_renew(w))
		return false;
	if (!try_lock(&w->shm->lock, w->worker))
		return true;
	if (is_open(w, SHM_WIRE_RECEIVES)) {
		begin(w);
		more = hca_wire_respond(w);
		end(w);
	}
	hca_wire_unlock(&w->shm->lock, w->worker);
	return more;
}

bool hca_wires_finish(struct hca_roce *port)
{
	struct hca_wire_list now = TAILQ_HEAD_INITIALIZER(now);
	struct hca_wire *w;

	TAILQ_CONCAT(&now, &port->due, entry);
	while ((w = TAILQ_FIRST(&now)) != NULL) {
		TAILQ_REMOVE(&now, w, entry);
		w->is_due = false;
		if (respond(w))
			set_due(port, w);
	}
	return !TAILQ_EMPTY(&port->due);
}

bool hca_wires_tick(struct hca_roce *port, uint32_t index, uint64_t now)
{
	uint32_t qpn = port->process->region.qps[index].qpn;
	struct hca_wire *w = wire_of(port, qpn);
	uint64_t resume, deadline;

	if (!w || !hca_wire_renew(w))
		return false;
	if (w->end.qp.port != port->port)
		return false;
	if (w->shm->n_responses)
		respond(w);
	if (is_open(w, SHM_WIRE_SENDS) && try_lock(&w->connection->lock, w->worker)) {
		begin(w);
		hca_wire_look_at_time(w, now);
		resume = atomic_load_explicit(&w->shm->resume_ns, memory_order_relaxed);
		if (!resume || resume <= now)
			hca_wire_send(w);
		end(w);
		hca_wire_unlock(&w->connection->lock, w->worker);
	}
	resume = atomic_load_explicit(&w->shm->resume_ns, memory_order_relaxed);
	deadline = atomic_load_explicit(&w->shm->deadline_ns, memory_order_relaxed);
	return is_open(w, SHM_WIRE_RECEIVES) && (resume || deadline || w->shm->n_responses);
}

void hca_wires_free(struct hca_roce *port)
{
	struct base_hash_node *node;

	while ((node = base_hash_walk(&port->wires, NULL)) != NULL)
		forget(port, container_of(node, struct hca_wire, node));
	base_hash_fini(&port->wires);
}
