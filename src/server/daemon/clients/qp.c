/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs: see qp.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon/clients/qp.h"
#include "fabric/forwarding/attach.h"
#include "fabric/model/event.h"
#include "shm/connection.h"
#include "shm/events.h"
#include "shm/ring.h"
#include "shm/packets.h"

/* Payload memory of a QP. */
struct daemon_payload {
	LIST_ENTRY(daemon_payload) entry;
	uint64_t off;
};

/* Units of work (chores.h). */
#define ATTACH_COST 4
#define FLOW_COST   16
#define QP_COST     8

/* The queue pairs that the holder has, and XRC targets of others that it has open. */
static bool free_of_holder(void *arg, struct daemon_holder *holder, uint32_t *budget)
{
	struct daemon_qp_user *used;
	struct daemon_qp *qp;

	while ((used = LIST_FIRST(&holder->used_qps)) && daemon_chore_spend(budget, QP_COST))
		daemon_qp_close(used);
	while ((qp = TAILQ_FIRST(&holder->qps)) && daemon_chore_spend(budget, QP_COST))
		daemon_qp_free(arg, qp);
	return !used && !qp;
}

void daemon_qps_register(struct daemon_qps *all, struct daemon_endings *endings)
{
	daemon_ending_register(endings, &all->ending, free_of_holder, all);
}

int daemon_qps_init(struct daemon_qps *all, struct fabric *f, struct daemon_memory *memory,
                    struct daemon_cqs *cqs, struct daemon_srqs *srqs)
{
	uint32_t id;

	all->f = f;
	all->memory = memory;
	all->chores = memory->chores;
	all->cqs = cqs;
	all->srqs = srqs;
	TAILQ_INIT(&all->reserved);
	base_idtable_init(&all->ids, SHM_MAX_QPS - 1); /* never number 0xFFFFFF, multicast */
	/* QP 0 and QP 1 are the subnet manager's and the general services' */
	for (uint32_t special = 0; special <= IB_QPN_GSI; special++)
		if (base_idtable_add(&all->ids, all, &id))
			return -ENOMEM;
	return 0;
}

void daemon_qp_step(struct daemon_qp *qp, enum daemon_qp_event event)
{
	const enum daemon_qp_state next = daemon_qp_next(qp->state, event);

	if (next == DAEMON_QP_N_STATES) { /* a mistake of ours: the state stays */
		base_log_error(daemon, "QP 0x%06x in state %d has no event %d", qp->qpn, qp->state,
		               event);
		return;
	}
	qp->all->n_in[qp->state]--;
	qp->all->n_in[next]++;
	qp->state = next;
}

/* The record of the QP in shared memory. */
static struct shm_qp *record_of(const struct daemon_qps *all, uint32_t qpn)
{
	return shm_qp_at(all->f->region, SHM_QP_INDEX(qpn));
}

/* ---- making ---- */

/* There is no memory: as daemon_qp_prepare() says. */
static int none(struct daemon_qps *all, bool is_ring, struct daemon_memory_want *want)
{
	return want ? daemon_memory_none(all->memory, is_ring, want) : -ENOMEM;
}

/* A number for the QP. 0, -EAGAIN or -ENOMEM. */
static int number(struct daemon_qps *all, struct daemon_qp *qp,
                  const struct daemon_memory_want *want)
{
	const struct daemon_memory_users *users = &all->memory->users;
	uint32_t index;
	int ret = base_idtable_add(&all->ids, qp, &index);

	if (ret && want && users->take_back(users->arg))
		ret = base_idtable_add(&all->ids, qp, &index);
	if (ret) /* QPs that come to their end have numbers */
		return all->n_in[DAEMON_QP_ENDING] ? -EAGAIN : -ENOMEM;
	qp->qpn = (uint32_t)all->round[index]++ << 16 | index;
	return 0;
}

static uint64_t requests_bytes(const struct control_qp_shape *shape)
{
	return (uint64_t)shape->request_bytes << base_log2_up(shape->max_send_wr);
}

/* Of memory for the requests that wait, and for the entries of receives that have several. */
static uint64_t queue_bytes(const struct control_qp_shape *shape)
{
	uint64_t entries = (uint64_t)shape->max_recv_sge * sizeof(struct shm_entry);

	return requests_bytes(shape) + (entries << base_log2_up(shape->max_recv_wr));
}

/* Gives the QP its memory. 0, -EAGAIN or -ENOMEM. */
static int allocate(struct daemon_qps *all, struct daemon_qp *qp,
                    const struct control_qp_shape *shape, struct daemon_memory_want *want)
{
	int ret;

	qp->ring_shift = (uint8_t)base_log2_up(shape->max_recv_wr);
	qp->ring_off = daemon_memory_ring(all->memory, qp->ring_shift);
	if (!qp->ring_off)
		return none(all, true, want);
	if (!shape->request_bytes)
		return 0;
	qp->queue_off = daemon_memory_payload(all->memory, queue_bytes(shape));
	if (qp->queue_off)
		return 0;
	/* before a chore has to close the ring: it would be waited for, again and again */
	ret = none(all, false, want);
	daemon_memory_retire_ring(all->memory, qp->ring_off, qp->ring_shift, qp->qpn);
	return ret;
}

/* Writes what the record says before there is a QP: where its memory is. */
static void describe(struct daemon_qps *all, const struct daemon_qp *qp,
                     const struct daemon_holder *holder, const struct control_qp_shape *shape)
{
	struct shm_qp *s = record_of(all, qp->qpn);

	shm_write_begin(&s->seq);
	s->qpn = qp->qpn;
	s->qkey = 0;
	s->pkey = 0;
	s->pkey_index = 0;
	s->flags = 0;
	s->port_num = 0;
	s->port = 0;
	s->cq = 0;
	s->ring_off = qp->ring_off;
	s->ring_gen = (uint16_t)daemon_qp_ring(all, qp)->gen;
	s->ring_shift = qp->ring_shift;
	s->ready_bit = SHM_NO_READY_BIT;
	s->client = holder->client;
	s->type = 0;
	s->state = IBV_QPS_RESET;
	s->connection = (struct shm_qp_connection){
		.keys_off = qp->queue_off ? holder->keys_off : 0,
		.requests_off = qp->queue_off,
		.entries_off = qp->queue_off + requests_bytes(shape),
		.pid = holder->pid,
		.request_bytes = (uint16_t)shape->request_bytes,
		.max_recv_sge = (uint16_t)shape->max_recv_sge,
		.request_shift = (uint8_t)base_log2_up(shape->max_send_wr),
	};
	shm_write_end(&s->seq);
}

/* Nothing of a queue pair that had the number before stays; but a worker that still works on that
 * one finds that it is closed. */
static void clear_wire(const struct daemon_qps *all, uint32_t qpn)
{
	struct shm_wire *w = shm_wire_at(all->f->region, SHM_QP_INDEX(qpn));
	uint32_t open;

	if (!daemon_qps_have_wires(all))
		return;
	open = atomic_load_explicit(&w->open, memory_order_relaxed) / SHM_WIRE_OPENED + 1;
	memset((void *)w, 0, sizeof(*w));
	/* release: pairs with the acquire in hca_wire_opened() */
	atomic_store_explicit(&w->open, open * SHM_WIRE_OPENED, memory_order_release);
}

/* Initializes what others see of the QP: ring, sender's record, record. Its process may write there
 * from now on. */
static void publish(struct daemon_qps *all, const struct daemon_qp *qp,
                    const struct daemon_holder *holder, const struct control_qp_shape *shape)
{
	struct shm_sender *sender = shm_sender_at(all->f->region, SHM_QP_INDEX(qp->qpn));

	memset((void *)shm_connection_at(all->f->region, SHM_QP_INDEX(qp->qpn)), 0,
	       sizeof(struct shm_connection));
	clear_wire(all, qp->qpn);
	shm_ring_init(daemon_qp_ring(all, qp), daemon_memory_generation(all->memory), qp->qpn,
	              shape->has_one_sender);
	atomic_store_explicit(&sender->target_qpn, 0, memory_order_relaxed);
	atomic_store_explicit(&sender->payload_lease, SHM_LEASE_FREE, memory_order_relaxed);
	atomic_store_explicit(&sender->ticket, 0, memory_order_relaxed);
	atomic_store_explicit(&sender->taking, SHM_TAKING_NONE, memory_order_relaxed);
	describe(all, qp, holder, shape);
}

int daemon_qp_prepare(struct daemon_qps *all, const struct daemon_holder *holder,
                      const struct control_qp_shape *shape, struct daemon_memory_want *want,
                      struct daemon_qp **out)
{
	struct daemon_qp *qp = calloc(1, sizeof(*qp));
	int ret;

	if (!qp)
		return -ENOMEM;
	qp->all = all;
	LIST_INIT(&qp->flows);
	LIST_INIT(&qp->payloads);
	LIST_INIT(&qp->users);
	ret = number(all, qp, want);
	if (ret)
		goto err_free;
	ret = allocate(all, qp, shape, want);
	if (ret)
		goto err_number;
	publish(all, qp, holder, shape);
	all->n_in[qp->state]++;
	*out = qp;
	return 0;
err_number:
	base_idtable_remove(&all->ids, SHM_QP_INDEX(qp->qpn));
err_free:
	free(qp);
	return ret;
}

void daemon_qp_tell(const struct daemon_qps *all, const struct daemon_qp *qp,
                    struct control_create_qp_reply *out)
{
	const struct shm_qp *s = record_of(all, qp->qpn);

	*out = (struct control_create_qp_reply){
		.ring_off = qp->ring_off,
		.requests_off = qp->queue_off,
		.entries_off = s->connection.entries_off,
		.qpn = qp->qpn,
		.ring_gen = s->ring_gen,
		.ring_shift = qp->ring_shift,
	};
}

uint64_t daemon_qp_bytes(const struct control_qp_shape *shape)
{
	uint64_t ring = shm_ring_bytes((uint8_t)base_log2_up(shape->max_recv_wr));
	uint64_t queue = shape->request_bytes ? queue_bytes(shape) : 0;

	return base_align_up(ring, DAEMON_PAGE) + base_align_up(queue, DAEMON_PAGE);
}

/* Nobody finds it by its record any more. */
static void clear_record(struct daemon_qps *all, uint32_t qpn)
{
	struct shm_qp *s = record_of(all, qpn);

	shm_write_begin(&s->seq);
	s->flags = 0;
	s->qpn = 0;
	shm_write_end(&s->seq);
}

void daemon_qp_give_up(struct daemon_qps *all, struct daemon_qp *qp)
{
	clear_record(all, qp->qpn);
	daemon_qp_step(qp, DAEMON_QP_IS_FREED);
	base_idtable_remove(&all->ids, SHM_QP_INDEX(qp->qpn));
	daemon_memory_retire_ring(all->memory, qp->ring_off, qp->ring_shift, qp->qpn);
	if (qp->queue_off)
		daemon_memory_free_payload(all->memory, qp->queue_off);
	free(qp);
}

/* Whether senders count what arrives for it: not for UD with a shared queue, as what they send
 * there may find no receive, and not complete (is_counted() of the HCA). */
static uint8_t counting_of(const struct daemon_cq *cq, const struct shm_qp *s)
{
	bool takes_later = s->type == IBV_QPT_UD && s->connection.srq;

	return cq && cq->counts_arrivals && !takes_later ? SHM_QP_COUNT_ARRIVALS : 0;
}

/* It is of this HCA from now on; NULL: of none. */
static void use_hca(struct daemon_qp *qp, struct daemon_hca *h)
{
	if (qp->hca)
		qp->hca->n_users--;
	if (h)
		h->n_users++;
	qp->hca = h;
}

/* It is a QP from now on. @cq: NULL for a hidden one. */
static void enter(struct daemon_qps *all, struct daemon_qp *qp, struct daemon_hca *h,
                  struct daemon_cq *cq, const struct control_create_qp *want)
{
	struct shm_qp *s = record_of(all, qp->qpn);

	shm_write_begin(&s->seq);
	s->flags = SHM_QP_LIVE | (want->flags & (SHM_QP_BLOCK_LOOPBACK | SHM_QP_STAMPS));
	s->cq = cq ? cq->id : 0;
	s->ready_bit = (uint16_t)want->ready_bit;
	s->type = (uint8_t)want->type;
	s->connection.domain = want->domain;
	s->connection.send_cq = want->send_cq;
	s->connection.srq = want->srq;
	s->connection.xrcd = want->xrcd;
	s->flags |= counting_of(cq, s);
	shm_write_end(&s->seq);
	daemon_qp_step(qp, DAEMON_QP_IS_CREATED);
	qp->holder = h->holder;
	use_hca(qp, h);
	qp->hca_index = h->hca;
	qp->cq = cq;
	if (cq) {
		LIST_INSERT_HEAD(&cq->qps, qp, of_cq);
		cq->n_qps++;
	}
	if (want->srq) {
		qp->srq = daemon_srq_find(all->srqs, want->srq - 1);
		LIST_INSERT_HEAD(&qp->srq->qps, qp, of_srq);
	}
	TAILQ_INSERT_HEAD(&qp->holder->qps, qp, entry);
}

void daemon_qp_enter(struct daemon_qps *all, struct daemon_qp *qp, struct daemon_cq *cq,
                     const struct control_create_qp *want)
{
	enter(all, qp, cq->hca, cq, want);
}

/* @cq is NULL for a hidden one. */
static int qp_new(struct daemon_qps *all, struct daemon_hca *h, struct daemon_cq *cq,
                  const struct control_create_qp *want, struct daemon_qp **out)
{
	const struct control_qp_shape shape = control_qp_shape(want);
	int ret = daemon_qp_prepare(all, h->holder, &shape, &h->holder->want, out);

	if (!ret)
		enter(all, *out, h, cq, want);
	return ret;
}

int daemon_qp_new(struct daemon_qps *all, struct daemon_cq *cq,
                  const struct control_create_qp *want, struct daemon_qp **out)
{
	return qp_new(all, cq->hca, cq, want, out);
}

/* The port that a hidden QP stands for. */
static uint32_t roce_port(const struct daemon_qps *all, const struct daemon_qp *qp)
{
	return shm_hca_at(all->f->region, qp->hca_index)->first_port;
}

int daemon_qp_new_roce(struct daemon_qps *all, struct daemon_hca *h, struct daemon_qp **out)
{
	/* it receives nothing by its ring, but has one as every QP has */
	const struct control_create_qp want = { .max_recv_wr = 1,
		                                .ready_bit = SHM_NO_READY_BIT,
		                                .type = IBV_QPT_UD };
	struct daemon_qp *qp;
	struct shm_qp *s;
	int ret = qp_new(all, h, NULL, &want, &qp);

	if (ret)
		return ret;
	qp->is_roce_sender = true;
	h->roce_sender = qp;
	s = record_of(all, qp->qpn);
	shm_write_begin(&s->seq);
	s->flags |= SHM_QP_ROCE;
	s->port_num = 1;
	s->port = roce_port(all, qp);
	shm_write_end(&s->seq);
	all->n_roce++;
	*out = qp;
	return 0;
}

/* ---- the end ---- */

/*
 * Flow records are shared by all. SHM_QP_FLOWS of them are reserved for each QP that there may be.
 * Of the others a process may have as many as it leaves for the next one: half of them if it is
 * alone, a third if there are two such processes, and so on. So nobody can use them up.
 */
static bool may_have_flow(const struct daemon_qps *all, const struct daemon_qp *qp)
{
	const uint32_t shared = SHM_MAX_FLOWS - SHM_QP_FLOWS * SHM_MAX_QPS;

	if (qp->n_flows < SHM_QP_FLOWS)
		return true;
	return qp->n_flows < SHM_QP_MAX_FLOWS &&
	       qp->holder->extra_flows < shared - all->extra_flows;
}

static uint32_t extra_flows(const struct daemon_qp *qp)
{
	return qp->n_flows > SHM_QP_FLOWS ? qp->n_flows - SHM_QP_FLOWS : 0;
}

static void take_sent(struct daemon_qps *all, const struct daemon_qp *qp)
{
	if (all->take_sent)
		all->take_sent(all->take_arg, record_of(all, qp->qpn)->client);
}

static void add_flow(struct daemon_qps *all, struct daemon_qp *qp, struct fabric_flow *flow)
{
	LIST_INSERT_HEAD(&qp->flows, flow, of_sender);
	if (++qp->n_flows <= SHM_QP_FLOWS)
		return;
	qp->holder->extra_flows++;
	all->extra_flows++;
}

static void drop_flow(struct daemon_qps *all, struct daemon_qp *qp, struct fabric_flow *flow)
{
	LIST_REMOVE(flow, of_sender);
	if (qp->n_flows-- > SHM_QP_FLOWS) {
		all->extra_flows--;
		if (qp->holder)
			qp->holder->extra_flows--;
	}
	fabric_flow_remove(all->f, flow);
}

static void drop_flows(struct daemon_qps *all, struct daemon_qp *qp)
{
	while (!LIST_EMPTY(&qp->flows))
		drop_flow(all, qp, LIST_FIRST(&qp->flows));
}

/* Returns its bytes. */
static uint64_t retire_payloads(struct daemon_qps *all, struct daemon_qp *qp)
{
	struct daemon_payload *p;
	uint64_t bytes = 0;

	while ((p = LIST_FIRST(&qp->payloads))) {
		bytes += shm_extent_bytes(&all->memory->payloads, p->off);
		LIST_REMOVE(p, entry);
		daemon_memory_retire_payload(all->memory, p->off);
		free(p);
	}
	return bytes;
}

uint64_t daemon_qp_revoke(void *qps, uint32_t *index)
{
	struct daemon_qps *all = qps;

	while (*index < all->ids.size) {
		uint32_t i = (*index)++, lease = SHM_LEASE_FREE;
		struct daemon_qp *qp = daemon_qp_live_at(all, i);

		if (!qp || LIST_EMPTY(&qp->payloads))
			continue;
		/* acquire: pairs with the release in hca_payload_end() */
		if (atomic_compare_exchange_strong_explicit(
		            &shm_sender_at(all->f->region, i)->payload_lease, &lease,
		            SHM_LEASE_REVOKED, memory_order_acquire, memory_order_relaxed))
			return retire_payloads(all, qp);
	}
	return 0;
}

/* Flows list no queue pairs any more that are gone. */
static bool prune(struct daemon_chore *c, uint32_t *budget)
{
	return fabric_flow_prune(container_of(c, struct daemon_qps, prune)->f, budget);
}

/* From all groups. True: it is done. */
static bool detach(struct daemon_qps *all, struct daemon_qp *qp, uint32_t *budget)
{
	while (fabric_attach_count(all->f, qp->qpn)) {
		uint64_t before = all->f->flows->work;

		if (!daemon_chore_spend(budget, ATTACH_COST))
			return false;
		fabric_attach_drop(all->f, qp->qpn);
		daemon_chore_spend(budget, (uint32_t)(all->f->flows->work - before));
		/* behind all that are coming to their end already */
		daemon_chore_add(all->chores, &all->prune, prune);
	}
	return true;
}

static bool end_qp(struct daemon_chore *c, uint32_t *budget)
{
	struct daemon_qp *qp = container_of(c, struct daemon_qp, end);
	struct daemon_qps *all = qp->all;

	if (!daemon_qp_undo_sending(all, qp, budget))
		return false;
	if (!detach(all, qp, budget))
		return false;
	while (!LIST_EMPTY(&qp->flows)) {
		uint64_t before = all->f->flows->work;

		if (!daemon_chore_spend(budget, FLOW_COST))
			return false;
		drop_flow(all, qp, LIST_FIRST(&qp->flows));
		daemon_chore_spend(budget, (uint32_t)(all->f->flows->work - before));
	}
	daemon_chore_spend(budget, QP_COST);
	/* before the index serves another QP: its claims in retired rings are nobody's now */
	base_idtable_remove(&all->ids, SHM_QP_INDEX(qp->qpn));
	daemon_qp_step(qp, DAEMON_QP_IS_FREED);
	daemon_memory_retire_ring(all->memory, qp->ring_off, qp->ring_shift, qp->qpn);
	if (qp->queue_off)
		daemon_memory_free_payload(all->memory, qp->queue_off);
	retire_payloads(all, qp);
	free(qp);
	return true;
}

/* The QP is gone: wakes its peer, whose requests may wait for it. */
static void wake_peer(struct daemon_qps *all, const struct daemon_qp *qp)
{
	uint32_t peer = record_of(all, qp->qpn)->connection.dest_qpn;
	const struct daemon_qp *other = daemon_qp_live_at(all, SHM_QP_INDEX(peer));
	const struct shm_connection *c = shm_connection_at(all->f->region, SHM_QP_INDEX(peer));

	if (qp->queue_off && other && other->qpn == peer && other->queue_off &&
	    atomic_load_explicit(&c->head, memory_order_relaxed) !=
	            atomic_load_explicit(&c->tail, memory_order_relaxed))
		daemon_cq_wake_bereaved(all->cqs, record_of(all, peer)->connection.send_cq);
}

/* ---- XRC targets ---- */

static void leave_cq(struct daemon_qp *qp)
{
	if (!qp->cq)
		return;
	LIST_REMOVE(qp, of_cq);
	qp->cq->n_qps--;
	qp->cq = NULL;
}

/* The XRC target gets another owner. False: nobody has it open. */
static bool hand_over(struct daemon_qp *qp)
{
	struct daemon_qp_user *user;

	LIST_FOREACH(user, &qp->users, of_qp)
	if (!user->hca->holder->dead)
		break;
	if (!user)
		return false;
	/* its requesters' actions on others are not undone in its name: it sends nothing */
	daemon_qp_step(qp, DAEMON_QP_IS_HANDED_OVER);
	TAILQ_REMOVE(&qp->holder->qps, qp, entry);
	leave_cq(qp); /* it may have been handed over before */
	use_hca(qp, user->hca);
	qp->holder->extra_flows -= extra_flows(qp);
	qp->holder = user->hca->holder;
	qp->holder->extra_flows += extra_flows(qp);
	qp->events = user->events;
	qp->undone = 0;
	TAILQ_INSERT_HEAD(&qp->holder->qps, qp, entry);
	daemon_qp_close(user);
	return true;
}

/* ---- the end of one ---- */

void daemon_qp_free(struct daemon_qps *all, struct daemon_qp *qp)
{
	if (hand_over(qp))
		return;
	while (!LIST_EMPTY(&qp->users)) /* of processes that are dead, too */
		daemon_qp_close(LIST_FIRST(&qp->users));
	take_sent(all, qp);
	if (!qp->is_roce_sender)
		fabric_tell_qp(all->f, qp->hca_index, qp->qpn, "ended", NULL);
	clear_record(all, qp->qpn);
	shm_events_clear(&shm_connection_at(all->f->region, SHM_QP_INDEX(qp->qpn))->events);
	wake_peer(all, qp);
	base_timer_stop(&qp->wait);
	all->n_roce -= qp->is_roce_sender;
	daemon_qp_step(qp, DAEMON_QP_IS_DESTROYED);
	leave_cq(qp);
	if (qp->srq) {
		all->received[SHM_QP_INDEX(qp->qpn)] =
		        (struct daemon_received){ qp->qpn, qp->srq->index };
		LIST_REMOVE(qp, of_srq);
	}
	qp->srq = NULL;
	TAILQ_REMOVE(&qp->holder->qps, qp, entry);
	qp->holder->extra_flows -= extra_flows(qp);
	qp->holder = NULL;
	if (qp->is_roce_sender)
		qp->hca->roce_sender = NULL;
	use_hca(qp, NULL);
	daemon_chore_add(all->chores, &qp->end, end_qp);
}

/* ---- its life ---- */

/* Switches may let its packets pass now, or no more. */
static void walk_again(struct daemon_qps *all, struct daemon_qp *qp)
{
	struct fabric_flow *flow;

	LIST_FOREACH(flow, &qp->flows, of_sender)
	fabric_flow_pkey_changed(all->f, flow);
}

int daemon_qp_modify(struct daemon_qps *all, struct daemon_qp *qp,
                     const struct control_modify_qp *m)
{
	const struct shm_region *region = all->f->region;
	const struct shm_hca *h = shm_hca_at(region, qp->hca->hca);
	struct shm_qp *s = record_of(all, qp->qpn);
	const bool begins = m->receives && !(s->flags & SHM_QP_RECEIVES);
	uint8_t old_port = s->port_num;
	uint16_t old_pkey = s->pkey;

	if (m->port_num > h->n_ports || (m->receives && !m->port_num) || m->pkey_index >= SHM_PKEYS)
		return -EINVAL;
	shm_write_begin(&s->seq);
	s->qkey = m->qkey;
	s->port_num = m->port_num;
	s->port = m->port_num ? h->first_port + m->port_num - 1 : 0;
	s->pkey_index = m->pkey_index;
	s->pkey = m->port_num ? shm_port_at(region, s->port)->pkey[m->pkey_index] : 0;
	s->flags &= (uint8_t) ~(SHM_QP_RECEIVES | SHM_QP_COUNTS_REMOTE);
	if (m->receives)
		s->flags |= SHM_QP_RECEIVES;
	if (m->counts_remote)
		s->flags |= SHM_QP_COUNTS_REMOTE;
	if (m->state == IBV_QPS_RESET)
		qp->told_error = qp->told_established = false;
	if (m->state == IBV_QPS_ERR && s->state != IBV_QPS_ERR)
		fabric_tell_qp(all->f, qp->hca_index, qp->qpn, "error", NULL);
	s->state = m->state;
	qp->target = m->target;
	s->connection.dest_qpn = m->dest_qpn;
	s->connection.dlid = m->dlid;
	s->connection.access = m->access;
	s->connection.min_rnr_timer = m->min_rnr_timer;
	s->connection.max_dest_rd_atomic = m->max_dest_rd_atomic;
	shm_write_end(&s->seq);
	if (m->port_num != old_port) {
		take_sent(all, qp);
		drop_flows(all, qp); /* they left by another port */
		fabric_attach_qp_moved(all->f, qp->qpn);
	}
	if (s->pkey != old_pkey)
		walk_again(all, qp);
	if (begins && all->begins)
		all->begins(all->begins_arg, qp->hca->hca, qp->qpn);
	return 0;
}

void daemon_qps_count_arrivals(struct daemon_qps *all, struct daemon_cq *cq)
{
	const struct daemon_qp *qp;

	if (cq->counts_arrivals)
		return;
	cq->counts_arrivals = true;
	LIST_FOREACH(qp, &cq->qps, of_cq)
	{
		struct shm_qp *s = record_of(all, qp->qpn);

		shm_write_begin(&s->seq);
		s->flags |= counting_of(cq, s);
		shm_write_end(&s->seq);
	}
}

void daemon_qps_renew(struct daemon_qps *all, const struct daemon_srq *srq)
{
	const struct daemon_qp *qp;

	LIST_FOREACH(qp, &srq->qps, of_srq)
	{
		struct shm_qp *s = record_of(all, qp->qpn);

		shm_write_begin(&s->seq);
		shm_write_end(&s->seq);
	}
}

void daemon_qps_follow_pkeys(struct daemon_qps *all, const struct fabric_port *p)
{
	const uint16_t *table = shm_port_at(all->f->region, p->index)->pkey;

	for (uint32_t i = 0; i < all->ids.size; i++) {
		struct daemon_qp *qp = daemon_qp_at(all, i);
		struct shm_qp *s = shm_qp_at(all->f->region, i);

		if (!qp || !s->port_num || s->port != p->index || s->pkey == table[s->pkey_index])
			continue;
		shm_write_begin(&s->seq);
		s->pkey = table[s->pkey_index];
		shm_write_end(&s->seq);
		walk_again(all, qp);
	}
	all->f->flows->work += all->ids.size / FABRIC_FLOW_LOOKS;
}

int daemon_qp_flow(struct daemon_qps *all, struct daemon_qp *qp, const struct fabric_flow_key *key,
                   uint32_t *id)
{
	const struct shm_qp *s = record_of(all, qp->qpn);
	struct fabric_flow *flow;
	int ret;

	if (!s->port_num)
		return -EINVAL;
	if (!may_have_flow(all, qp))
		return -ENOSPC;
	ret = fabric_flow_add(all->f, all->f->hca_port[s->port], key, &flow);
	if (ret)
		return ret;
	add_flow(all, qp, flow);
	*id = flow->id;
	return 0;
}

int daemon_qp_put_flow(struct daemon_qps *all, struct daemon_qp *qp, uint32_t id)
{
	struct fabric_flow *flow = fabric_flow_find(all->f, id);

	if (!flow || flow->key.qpn != qp->qpn)
		return -EINVAL;
	take_sent(all, qp);
	drop_flow(all, qp, flow);
	return 0;
}

int daemon_qp_payload(struct daemon_qps *all, struct daemon_qp *qp, uint32_t bytes, uint64_t *off)
{
	struct daemon_payload *p = malloc(sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->off = daemon_memory_payload(all->memory, bytes);
	if (!p->off) {
		free(p);
		return daemon_memory_none(all->memory, false, &qp->want);
	}
	qp->want.looks = 0;
	LIST_INSERT_HEAD(&qp->payloads, p, entry);
	*off = p->off;
	return 0;
}

static void on_wait(struct base_timer *t)
{
	struct daemon_qp *qp = container_of(t, struct daemon_qp, wait);

	if (daemon_cq_of(qp->all->cqs, qp->holder, qp->wait_cq))
		daemon_cq_wake(qp->all->cqs, qp->wait_cq);
}

int daemon_qp_wait(struct daemon_qps *all, struct daemon_qp *qp, uint32_t cq, uint64_t ns)
{
	if (!qp->queue_off)
		return -EINVAL;
	base_timer_stop(&qp->wait);
	qp->wait_cq = cq;
	if (ns)
		base_timer_set_in(all->chores->timers, &qp->wait, ns, on_wait);
	return 0;
}
