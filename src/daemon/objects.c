/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The objects that processes hold: open HCAs, completion channels, completion
 * queues, queue pairs with their rings, flows and payload memory. And what happens
 * to them when their process dies at any instruction:
 *
 *  - what it had claimed in somebody's ring is voided: its shm_sender record says
 *    whose ring that is;
 *  - its own rings are closed; a slot that a live sender is just filling keeps the
 *    ring's memory until it is done;
 *  - its payload memory stays while a ring holds an arrival that lies in it.
 *
 * What must stay is on the list of the retired, looked at again as long as it is
 * not empty.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon/state.h"
#include "hca/wire.h"
#include "shm/ring.h"

#define RETIRE_LOOK_US    50000 /* at first; seldomer while it is in vain */
#define RETIRE_LOOK_MAX   2000000
#define CHANNEL_INDEX(id) ((id)&0xFFFF)

int daemon_objects_init(struct daemon *d)
{
	const struct shm_control *control = d->f->region->control;
	uint32_t id;

	base_idtable_init(&d->hcas, 1u << 20);
	base_idtable_init(&d->channels, SHM_MAX_CHANNELS);
	base_idtable_init(&d->cqs, SHM_MAX_CQS);
	base_idtable_init(&d->qps, SHM_MAX_QPS - 1); /* never number 0xFFFFFF, multicast */
	shm_extents_init(&d->rings, d->f->region->data_fd, 4096, control->rings_off,
	                 control->rings_size);
	shm_extents_init(&d->payloads, d->f->region->data_fd, 4096, control->payloads_off,
	                 control->payloads_size);
	d->next_gen = 1;
	/* QP 0 and QP 1 are the subnet manager's and the general services' */
	for (uint32_t special = 0; special <= IB_QPN_GSI; special++)
		if (base_idtable_add(&d->qps, d, &id))
			return -ENOMEM;
	return 0;
}

void daemon_objects_fini(struct daemon *d)
{
	struct daemon_retired *r;

	while ((r = LIST_FIRST(&d->retired))) {
		LIST_REMOVE(r, entry);
		free(r);
	}
	d->retire_timer = sd_event_source_disable_unref(d->retire_timer);
	base_idtable_fini(&d->hcas);
	base_idtable_fini(&d->channels);
	base_idtable_fini(&d->cqs);
	base_idtable_fini(&d->qps);
	shm_extents_fini(&d->rings);
	shm_extents_fini(&d->payloads);
}

struct daemon_qp *daemon_qp_find(struct daemon *d, uint32_t qpn)
{
	uint32_t index = SHM_QP_INDEX(qpn);
	struct daemon_qp *qp = index > IB_QPN_GSI ? base_idtable_get(&d->qps, index) : NULL;

	return qp && qp->qpn == qpn ? qp : NULL;
}

static struct shm_ring *ring_of(struct daemon *d, uint64_t off)
{
	return shm_data_at(d->f->region, off);
}

/* ---- the retired ---- */

static bool writer_alive(void *arg, uint16_t writer)
{
	struct daemon *d = arg;
	struct daemon_qp *qp = writer > IB_QPN_GSI ? base_idtable_get(&d->qps, writer) : NULL;

	return qp && !qp->client->dead;
}

static bool payload_in_use(struct daemon *d, uint64_t off, uint64_t bytes)
{
	for (uint32_t i = IB_QPN_GSI + 1; i < d->qps.size; i++) {
		struct daemon_qp *qp = base_idtable_get(&d->qps, i);

		if (qp && !qp->client->dead &&
		    shm_ring_refers(ring_of(d, qp->ring_off), qp->ring_shift, off, bytes))
			return true;
	}
	return false;
}

/* Frees the memory if nobody uses it any more. */
static bool retire_now(struct daemon *d, const struct daemon_retired *r)
{
	if (r->is_ring) {
		if (shm_ring_close(ring_of(d, r->off), r->ring_shift, writer_alive, d))
			return false;
		shm_extent_put(&d->rings, r->off, r->bytes);
	} else {
		if (payload_in_use(d, r->off, r->bytes))
			return false;
		shm_extent_put(&d->payloads, r->off, r->bytes);
	}
	return true;
}

static void retire_all(struct daemon *d)
{
	struct daemon_retired *r, *next;

	for (r = LIST_FIRST(&d->retired); r; r = next) {
		next = LIST_NEXT(r, entry);
		if (retire_now(d, r)) {
			LIST_REMOVE(r, entry);
			free(r);
		}
	}
}

static int on_retire_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon *d = arg;

	(void)usec;
	retire_all(d);
	if (!LIST_EMPTY(&d->retired)) {
		/* a receiver that never polls must not keep us busy */
		if (d->retire_look_us < RETIRE_LOOK_MAX)
			d->retire_look_us *= 2;
		sd_event_source_set_time_relative(s, d->retire_look_us);
		sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	}
	return 0;
}

static void retire(struct daemon *d, struct daemon_retired what)
{
	struct daemon_retired *r;

	/* a process that lives on completes its receives from its rings */
	if (d->stopping || retire_now(d, &what))
		return;
	r = malloc(sizeof(*r));
	if (!r) {
		base_log("out of memory: %llu bytes of shared memory are lost",
		         (unsigned long long)what.bytes);
		return;
	}
	*r = what;
	LIST_INSERT_HEAD(&d->retired, r, entry);
	d->retire_look_us = RETIRE_LOOK_US;
	if (!d->retire_timer) {
		sd_event_add_time_relative(d->loop, &d->retire_timer, CLOCK_MONOTONIC,
		                           RETIRE_LOOK_US, 0, on_retire_timer, d);
	} else {
		sd_event_source_set_time_relative(d->retire_timer, RETIRE_LOOK_US);
		sd_event_source_set_enabled(d->retire_timer, SD_EVENT_ONESHOT);
	}
}

/* ---- open HCAs ---- */

int daemon_hca_open(struct daemon_client *c, uint32_t hca, struct daemon_hca **out, int *fd)
{
	struct daemon_hca *h = calloc(1, sizeof(*h));
	int ret;

	if (!h)
		return -ENOMEM;
	h->client = c;
	h->hca = hca;
	ret = daemon_outbox_open(c->d, &h->events, fd);
	if (ret)
		goto err_free;
	ret = base_idtable_add(&c->d->hcas, h, &h->handle);
	if (ret)
		goto err_close;
	LIST_INSERT_HEAD(&c->hcas, h, entry);
	*out = h;
	return 0;
err_close:
	daemon_outbox_close(h->events);
	close(*fd);
err_free:
	free(h);
	return ret;
}

void daemon_hca_free(struct daemon_client *c, struct daemon_hca *h)
{
	base_idtable_remove(&c->d->hcas, h->handle);
	LIST_REMOVE(h, entry);
	daemon_outbox_close(h->events);
	free(h);
}

void daemon_hca_event(struct daemon_hca *h, uint32_t type, uint32_t element)
{
	struct control_event e = { .type = type, .element = element };

	daemon_outbox_send(h->events, &e, sizeof(e));
}

/* ---- completion channels and queues ---- */

int daemon_channel_new(struct daemon_client *c, struct daemon_channel **out)
{
	struct daemon_channel *ch = calloc(1, sizeof(*ch));
	uint32_t index;
	int ret;

	if (!ch)
		return -ENOMEM;
	ch->client = c;
	ch->eventfd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (ch->eventfd < 0) {
		ret = -errno;
		goto err_free;
	}
	ret = base_idtable_add(&c->d->channels, ch, &index);
	if (ret)
		goto err_close;
	ch->id = (uint32_t)c->d->channel_round[index]++ << 16 | index;
	LIST_INSERT_HEAD(&c->channels, ch, entry);
	*out = ch;
	return 0;
err_close:
	close(ch->eventfd);
err_free:
	free(ch);
	return ret;
}

void daemon_channel_free(struct daemon_client *c, struct daemon_channel *ch)
{
	base_idtable_remove(&c->d->channels, CHANNEL_INDEX(ch->id));
	LIST_REMOVE(ch, entry);
	close(ch->eventfd);
	free(ch);
}

struct daemon_channel *daemon_channel_find(struct daemon *d, uint32_t id)
{
	struct daemon_channel *ch = base_idtable_get(&d->channels, CHANNEL_INDEX(id));

	return ch && ch->id == id ? ch : NULL;
}

int daemon_cq_new(struct daemon_client *c, struct daemon_hca *h, struct daemon_cq **out)
{
	struct daemon_cq *cq = calloc(1, sizeof(*cq));
	struct shm_cq *s;
	int ret;

	if (!cq)
		return -ENOMEM;
	ret = base_idtable_add(&c->d->cqs, cq, &cq->id);
	if (ret) {
		free(cq);
		return ret;
	}
	cq->client = c;
	cq->hca = h;
	s = &c->d->f->region->cqs[cq->id];
	memset((void *)s, 0, sizeof(*s));
	s->channel = SHM_NO_CHANNEL;
	/* out of reach until its owner counts: a sender that slept may count an arrival of a
	 * predecessor under this number */
	atomic_store_explicit(&s->limit, INT32_MAX, memory_order_relaxed);
	LIST_INSERT_HEAD(&c->cqs, cq, entry);
	*out = cq;
	return 0;
}

void daemon_cq_free(struct daemon_client *c, struct daemon_cq *cq)
{
	base_idtable_remove(&c->d->cqs, cq->id);
	LIST_REMOVE(cq, entry);
	free(cq);
}

/* Wakes whoever sleeps on the CQ, for no completion perhaps: one may be missing its wake-up. */
static void cq_wake(struct daemon *d, uint32_t cq)
{
	struct shm_cq *s = &d->f->region->cqs[cq];
	struct daemon_channel *ch = daemon_channel_find(d, s->channel);
	struct pollfd room = { .fd = ch ? ch->eventfd : -1, .events = POLLOUT };
	uint64_t one = 1;

	/* it is its process's as much as ours: one that is full would block us */
	if (!ch || poll(&room, 1, 0) != 1)
		return;
	atomic_store_explicit(&s->arm, SHM_CQ_IDLE, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->notified, 1, memory_order_release);
	if (write(ch->eventfd, &one, sizeof(one)) < 0)
		base_log("cannot wake a completion channel: %s", strerror(errno));
}

/* ---- queue pairs ---- */

static uint32_t number_for(struct daemon *d, uint32_t index)
{
	return (uint32_t)d->qp_round[index]++ << 16 | index;
}

int daemon_qp_new(struct daemon_client *c, struct daemon_hca *h, struct daemon_cq *cq,
                  const struct control_create_qp *want, struct daemon_qp **out)
{
	struct daemon *d = c->d;
	struct daemon_qp *qp = calloc(1, sizeof(*qp));
	struct shm_qp *s;
	uint32_t index;
	int ret;

	if (!qp)
		return -ENOMEM;
	qp->client = c;
	qp->hca = h;
	qp->cq = cq;
	ret = base_idtable_add(&d->qps, qp, &index);
	if (ret) {
		ret = -ENOMEM;
		goto err_free;
	}
	qp->ring_shift = (uint8_t)base_log2_up(want->max_recv_wr);
	qp->ring_off = shm_extent_get(&d->rings, shm_ring_bytes(qp->ring_shift));
	if (!qp->ring_off) {
		ret = -ENOMEM;
		goto err_number;
	}
	qp->qpn = number_for(d, index);
	if (!d->next_gen)
		d->next_gen = 1; /* 0 is what memory has that was never a ring */
	shm_ring_init(ring_of(d, qp->ring_off), d->next_gen, qp->qpn);
	atomic_store_explicit(&d->f->region->senders[index].target_qpn, 0, memory_order_relaxed);
	s = &d->f->region->qps[index];
	shm_write_begin(&s->seq);
	s->qpn = qp->qpn;
	s->qkey = 0;
	s->pkey = 0;
	s->pkey_index = 0;
	s->flags = SHM_QP_LIVE | (want->flags & (SHM_QP_BLOCK_LOOPBACK | SHM_QP_COUNT_ARRIVALS));
	s->port_num = 0;
	s->port = 0;
	s->cq = cq ? cq->id : 0;
	s->ring_off = qp->ring_off;
	s->ring_gen = d->next_gen++;
	s->ring_shift = qp->ring_shift;
	s->ready_bit = (uint16_t)want->ready_bit;
	s->client = c->id;
	shm_write_end(&s->seq);
	if (cq)
		cq->n_qps++;
	LIST_INIT(&qp->payloads);
	LIST_INSERT_HEAD(&c->qps, qp, entry);
	*out = qp;
	return 0;
err_number:
	base_idtable_remove(&d->qps, index);
err_free:
	free(qp);
	return ret;
}

/* The port whose wire the hidden QP stands for. */
static uint32_t wire_port(const struct daemon *d, const struct daemon_qp *qp)
{
	return d->f->region->hcas[qp->hca->hca].first_port;
}

int daemon_wire_qp_new(struct daemon_client *c, struct daemon_hca *h, struct daemon_qp **out)
{
	/* it receives nothing by its ring, but has one as every QP has */
	const struct control_create_qp want = { .max_recv_wr = 1, .ready_bit = SHM_NO_READY_BIT };
	struct daemon_qp *qp;
	struct shm_qp *s;
	int ret = daemon_qp_new(c, h, NULL, &want, &qp);

	if (ret)
		return ret;
	qp->is_wire = true;
	s = &c->d->f->region->qps[SHM_QP_INDEX(qp->qpn)];
	shm_write_begin(&s->seq);
	s->flags |= SHM_QP_WIRE;
	s->port_num = 1;
	s->port = wire_port(c->d, qp);
	shm_write_end(&s->seq);
	c->d->n_wire_qps++;
	*out = qp;
	return 0;
}

/* What the QP was doing to another's ring when its process died. */
static void undo_sending(struct daemon *d, struct daemon_qp *qp)
{
	uint16_t index = (uint16_t)SHM_QP_INDEX(qp->qpn);
	struct shm_sender *sender = &d->f->region->senders[index];
	uint32_t target_qpn = atomic_load_explicit(&sender->target_qpn, memory_order_acquire);
	struct daemon_qp *target = target_qpn ? daemon_qp_find(d, target_qpn) : NULL;
	const struct shm_qp *s;

	atomic_store_explicit(&sender->target_qpn, 0, memory_order_relaxed);
	if (qp->is_wire)
		hca_wire_release(&d->f->region->wires[wire_port(d, qp)], index);
	if (!target || target->client->dead)
		return;
	shm_ring_void_writer(ring_of(d, target->ring_off), target->ring_shift, index);
	s = &d->f->region->qps[SHM_QP_INDEX(target_qpn)];
	if (s->ready_bit < SHM_CQ_READY_BITS)
		atomic_fetch_or_explicit(&d->f->region->cqs[s->cq].ready[s->ready_bit / 64],
		                         1ull << (s->ready_bit % 64), memory_order_release);
	cq_wake(d, s->cq);
}

void daemon_objects_undo(struct daemon_client *c)
{
	struct daemon_qp *qp;

	LIST_FOREACH(qp, &c->qps, entry)
	undo_sending(c->d, qp);
}

static void drop_flows(struct daemon *d, struct daemon_qp *qp)
{
	while (qp->n_flows)
		fabric_flow_remove(d->f, qp->flow[--qp->n_flows]);
}

void daemon_qp_free(struct daemon_client *c, struct daemon_qp *qp)
{
	struct daemon *d = c->d;
	uint32_t index = SHM_QP_INDEX(qp->qpn);
	struct shm_qp *s = &d->f->region->qps[index];
	struct daemon_payload *p;

	undo_sending(d, qp);
	d->n_wire_qps -= qp->is_wire;
	fabric_attach_remove_all(d->f, qp->hca->hca, qp->qpn);
	shm_write_begin(&s->seq);
	s->flags = 0;
	s->qpn = 0;
	shm_write_end(&s->seq);
	drop_flows(d, qp);
	free(qp->flow);
	if (qp->cq)
		qp->cq->n_qps--;
	/* before the index serves another QP: its claims in retired rings are nobody's now */
	base_idtable_remove(&d->qps, index);
	if (!LIST_EMPTY(&d->retired) && !d->stopping)
		retire_all(d);
	retire(d, (struct daemon_retired){ .is_ring = true,
	                                   .ring_shift = qp->ring_shift,
	                                   .off = qp->ring_off,
	                                   .bytes = shm_ring_bytes(qp->ring_shift) });
	while ((p = LIST_FIRST(&qp->payloads))) {
		LIST_REMOVE(p, entry);
		retire(d, (struct daemon_retired){ .off = p->off, .bytes = p->bytes });
		free(p);
	}
	LIST_REMOVE(qp, entry);
	free(qp);
}

/* Switches may let its packets pass now, or no more. */
static void walk_again(struct daemon *d, struct daemon_qp *qp)
{
	for (unsigned i = 0; i < qp->n_flows; i++)
		fabric_flow_pkey_changed(d->f, qp->flow[i]);
}

int daemon_qp_modify(struct daemon *d, struct daemon_qp *qp, const struct control_modify_qp *m)
{
	struct shm_qp *s = &d->f->region->qps[SHM_QP_INDEX(qp->qpn)];
	const struct shm_hca *h = &d->f->region->hcas[qp->hca->hca];
	uint8_t old_port = s->port_num;
	uint16_t old_pkey = s->pkey;

	if (m->port_num > h->n_ports || (m->receives && !m->port_num) || m->pkey_index >= SHM_PKEYS)
		return -EINVAL;
	shm_write_begin(&s->seq);
	s->qkey = m->qkey;
	s->port_num = m->port_num;
	s->port = m->port_num ? h->first_port + m->port_num - 1 : 0;
	s->pkey_index = m->pkey_index;
	s->pkey = m->port_num ? d->f->region->ports[s->port].pkey[m->pkey_index] : 0;
	s->flags &= (uint8_t) ~(SHM_QP_RECEIVES | SHM_QP_COUNT_ARRIVALS);
	if (m->receives)
		s->flags |= SHM_QP_RECEIVES;
	if (m->count_arrivals)
		s->flags |= SHM_QP_COUNT_ARRIVALS;
	shm_write_end(&s->seq);
	if (m->port_num != old_port) {
		drop_flows(d, qp); /* they left by another port */
		fabric_attach_qp_moved(d->f, qp->hca->hca, qp->qpn);
	}
	if (s->pkey != old_pkey)
		walk_again(d, qp);
	return 0;
}

void daemon_qps_follow_pkeys(struct daemon *d, const struct fabric_port *p)
{
	const uint16_t *table = d->f->region->ports[p->index].pkey;

	for (uint32_t i = 0; i < d->qps.size; i++) {
		struct shm_qp *s = &d->f->region->qps[i];

		if (!base_idtable_get(&d->qps, i) || !s->port_num || s->port != p->index ||
		    s->pkey == table[s->pkey_index])
			continue;
		shm_write_begin(&s->seq);
		s->pkey = table[s->pkey_index];
		shm_write_end(&s->seq);
		walk_again(d, base_idtable_get(&d->qps, i));
	}
}

int daemon_qp_flow(struct daemon *d, struct daemon_qp *qp, const struct fabric_flow_key *key,
                   uint32_t *id)
{
	const struct shm_qp *s = &d->f->region->qps[SHM_QP_INDEX(qp->qpn)];
	struct fabric_flow *flow;
	int ret;

	if (!s->port_num)
		return -EINVAL;
	if (qp->n_flows == qp->flow_room) {
		unsigned room = qp->flow_room ? qp->flow_room * 2 : 2;
		struct fabric_flow **p = realloc(qp->flow, room * sizeof(*p));

		if (!p)
			return -ENOMEM;
		qp->flow = p;
		qp->flow_room = room;
	}
	ret = fabric_flow_add(d->f, d->f->hca_port[s->port], key, &flow);
	if (ret)
		return ret;
	qp->flow[qp->n_flows++] = flow;
	*id = flow->id;
	return 0;
}

int daemon_qp_payload(struct daemon *d, struct daemon_qp *qp, uint32_t bytes, uint64_t *off)
{
	struct daemon_payload *p = malloc(sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->bytes = bytes;
	p->off = shm_extent_get(&d->payloads, bytes);
	if (!p->off) {
		free(p);
		return -ENOMEM;
	}
	LIST_INSERT_HEAD(&qp->payloads, p, entry);
	*off = p->off;
	return 0;
}

void daemon_objects_release(struct daemon_client *c)
{
	c->dead = true;
	while (!LIST_EMPTY(&c->qps))
		daemon_qp_free(c, LIST_FIRST(&c->qps));
	while (!LIST_EMPTY(&c->cqs))
		daemon_cq_free(c, LIST_FIRST(&c->cqs));
	while (!LIST_EMPTY(&c->channels))
		daemon_channel_free(c, LIST_FIRST(&c->channels));
	while (!LIST_EMPTY(&c->hcas))
		daemon_hca_free(c, LIST_FIRST(&c->hcas));
}
