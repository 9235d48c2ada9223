/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sender's copies of flows. The manager keeps each flow's record current; we keep
 * a copy and compare sequence numbers. A flow belongs to one queue pair, so its
 * counters have one writer.
 *
 * Complication: an AH remembers the flow that it led to last, and outlives it. So
 * the structs are never freed, only reused for other flows, and whoever comes by
 * such a hint checks whose flow it is now.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "hca/hca.h"

/* Room for @count receivers. */
static int reserve(struct hca_process *p, struct hca_flow *f, uint32_t count)
{
	struct hca_receiver *to;
	uint32_t *list;

	if (count <= f->room)
		return 0;
	list = realloc(f->list, count * sizeof(*list));
	if (!list)
		return -ENOMEM;
	f->list = list;
	to = realloc(f->to, count * sizeof(*to));
	if (!to)
		return -ENOMEM;
	f->to = to;
	for (; f->room < count; f->room++)
		hca_receiver_init(p, &to[f->room], 0);
	return 0;
}

/* Whoever is new on the list is not known yet. */
static void follow_list(struct hca_process *p, struct hca_flow *f)
{
	for (uint32_t i = 0; i < f->count; i++)
		if (f->to[i].qpn != f->list[i])
			hca_receiver_init(p, &f->to[i], f->list[i]);
}

/* Which of the LIDs of the port that it reaches it goes to. */
static uint8_t path_bits(const struct shm_region *r, const struct hca_flow *f)
{
	return f->count ? (uint8_t)(f->dest.lid & ((1u << r->ports[f->dest_port].lmc) - 1)) : 0;
}

/* Copies the record under its sequence number. 0, -ENOMEM, or -EIO: the manager has died. */
static int refresh(struct hca_qp *qp, struct hca_flow *f)
{
	const struct shm_region *r = &qp->process->region;
	bool is_mcast = ib_lid_is_mcast((uint16_t)f->dest.lid);
	uint32_t seq, count;
	uint64_t off;

	do {
		if (!shm_read_begin(r, &f->shm->seq, &seq))
			return -EIO;
		count = f->shm->count;
		off = f->shm->list_off;
		f->mtu = f->shm->mtu;
		f->dest_port = f->shm->dest_port;
		f->flags = f->shm->flags;
		if (is_mcast && count) {
			/* while the record is being rewritten these may be anything */
			if (off > r->control_size ||
			    count > (r->control_size - off) / sizeof(*f->list))
				continue;
			if (reserve(qp->process, f, count))
				return -ENOMEM;
			memcpy(f->list, (const char *)r->control + off, count * sizeof(*f->list));
		}
	} while (shm_read_retry(&f->shm->seq, seq));
	f->count = count;
	f->seq = seq;
	f->path_bits = 0;
	if (is_mcast)
		follow_list(qp->process, f);
	else
		f->path_bits = path_bits(r, f);
	return 0;
}

static struct hca_flow *flow_alloc(struct hca_process *p)
{
	struct hca_flow *f;

	base_lock(&p->flow_lock);
	f = SLIST_FIRST(&p->free_flows);
	if (f)
		SLIST_REMOVE_HEAD(&p->free_flows, free);
	base_unlock(&p->flow_lock);
	return f ? f : calloc(1, sizeof(*f));
}

static uint64_t take_use(struct hca_process *p)
{
	uint64_t use;

	base_lock(&p->flow_lock);
	use = ++p->flow_uses;
	base_unlock(&p->flow_lock);
	return use;
}

static void flow_release(struct hca_process *p, struct hca_flow *f)
{
	atomic_store_explicit(&f->qp, NULL, memory_order_relaxed);
	base_lock(&p->flow_lock);
	SLIST_INSERT_HEAD(&p->free_flows, f, free);
	base_unlock(&p->flow_lock);
}

static uint64_t hash_of(const struct hca_dest *dest)
{
	return base_hash_of(dest, sizeof(*dest), 0);
}

static struct hca_flow *flow_new(struct hca_qp *qp, const struct hca_ah *ah)
{
	struct hca_process *p = qp->process;
	struct control_get_flow req = { .qpn = qp->ex.qp_base.qp_num,
		                        .dlid = (uint16_t)ah->dest.lid,
		                        .path_bits = ah->dest.path_bits,
		                        .is_global = ah->dest.is_global };
	struct control_get_flow_reply rep;
	struct hca_flow *f;

	memcpy(req.dgid.raw, ah->dest.gid, sizeof(req.dgid.raw));
	if (control_call(p->control, &(struct control_call){ .type = CONTROL_GET_FLOW,
	                                                     .request = &req,
	                                                     .request_bytes = sizeof(req),
	                                                     .reply = &rep,
	                                                     .reply_bytes = sizeof(rep) }))
		return NULL;
	f = flow_alloc(p);
	if (!f)
		return NULL;
	f->use = take_use(p);
	f->dest = ah->dest;
	f->id = rep.flow;
	f->shm = &p->region.flows[rep.flow];
	f->sent = &p->region.flow_counts[rep.flow];
	if (reserve(p, f, 1) || refresh(qp, f) ||
	    base_hash_add(&qp->flows, &f->node, hash_of(&f->dest))) {
		flow_release(p, f);
		return NULL;
	}
	atomic_store_explicit(&f->qp, qp, memory_order_relaxed);
	return f;
}

static bool same_dest(const struct hca_dest *a, const struct hca_dest *b)
{
	return a->gid[0] == b->gid[0] && a->gid[1] == b->gid[1] && a->lid == b->lid &&
	       a->port_num == b->port_num && a->path_bits == b->path_bits &&
	       a->is_global == b->is_global;
}

static struct hca_flow *flow_find(struct hca_qp *qp, struct hca_ah *ah)
{
	struct base_hash_node *n = base_hash_first(&qp->flows, hash_of(&ah->dest));

	for (; n; n = base_hash_next(n)) {
		struct hca_flow *f = container_of(n, struct hca_flow, node);

		if (same_dest(&f->dest, &ah->dest))
			return f;
	}
	return flow_new(qp, ah);
}

struct hca_flow *hca_flow_renew(struct hca_qp *qp, struct hca_ah *ah)
{
	struct hca_flow *f = flow_find(qp, ah);

	if (!f)
		return NULL;
	if (!hca_flow_is_current(f) && refresh(qp, f))
		return NULL;
	/* Others may write their hint between these two: no flow fits the halves of two hints. */
	atomic_store_explicit(&ah->flow, f, memory_order_relaxed);
	atomic_store_explicit(&ah->flow_use, f->use, memory_order_relaxed);
	return f;
}

void hca_flow_drop_all(struct hca_qp *qp)
{
	struct base_hash_node *n, *next;

	for (n = base_hash_walk(&qp->flows, NULL); n; n = next) {
		next = base_hash_walk(&qp->flows, n);
		flow_release(qp->process, container_of(n, struct hca_flow, node));
	}
	base_hash_fini(&qp->flows);
}
