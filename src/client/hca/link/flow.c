/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sender's copies of flows: see flow.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/reason.h"
#include "base/util.h"
#include "hca/link/flow.h"
#include "hca/process/link.h"
#include "wire/text.h"

static uint64_t hash_of(const struct hca_dest *dest)
{
	return base_hash_of(dest, sizeof(*dest), 0);
}

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

/* Prepares the receivers that are new on the list: their records have not been copied yet. */
static void follow_list(struct hca_process *p, struct hca_flow *f)
{
	for (uint32_t i = 0; i < f->count; i++)
		if (f->to[i].qpn != f->list[i])
			hca_receiver_init(p, &f->to[i], f->list[i]);
}

/* Unicast: which LID of the destination port the flow goes to. */
static uint8_t path_bits(const struct shm_region *r, const struct hca_flow *f)
{
	return f->count ? (uint8_t)(f->dest.lid & ((1u << shm_port_at(r, f->dest_port)->lmc) - 1))
	                : 0;
}

/* Where its sender counts packets. Connected queue pairs know by themselves which the daemon
 * counts.
 */
static struct shm_flow_count *count_of(const struct hca_sender *s, struct hca_flow *f)
{
	const struct shm_region *r = &s->process->region;

	if (f->detours && shm_qp_at(r, SHM_QP_INDEX(s->qpn))->type == IBV_QPT_UD)
		return &f->uncounted;
	return shm_flow_count_at(r, f->id);
}

static const uint8_t *gid_of(const struct hca_flow *f)
{
	return (const uint8_t *)f->dest.gid;
}

/* Whether it leads to a group's GID by the LID of a port. On Ethernet LIDs come from GIDs. */
static bool is_astray(const struct hca_flow *f)
{
	return f->dest.is_global && gid_of(f)[0] == 0xFF && !f->is_mcast;
}

/* Nobody gets the datagrams that a program sends by it now. */
static BASE_COLD void tell_vain(const struct hca_sender *s, const struct hca_flow *f)
{
	const struct base_failure b = { .part = BASE_LOG_PART_verbs,
		                        .error = EHOSTUNREACH,
		                        .again = hash_of(&f->dest) };
	struct ib_gid gid;

	memcpy(gid.raw, gid_of(f), sizeof(gid.raw));
	if (f->is_mcast)
		base_because(b.error,
		             "no other queue pair is attached where MLID 0x%04x leads: is it the "
		             "group's, has the receiver joined and attached?",
		             f->dest.lid);
	else
		base_because(b.error, "no way leads to LID %u: umbel show routes", f->dest.lid);
	if (f->dest.is_global)
		base_failure_log(&b, "QP 0x%06x: nobody gets what is sent to %s", s->qpn,
		                 wire_gid_text(&gid));
	else
		base_failure_log(&b, "QP 0x%06x: nobody gets what is sent to LID %u", s->qpn,
		                 f->dest.lid);
}

static bool is_vain_datagram(const struct hca_sender *s, const struct hca_flow *f)
{
	return !f->count && !f->leaves && !s->process->must_not_block && !is_astray(f) &&
	       shm_qp_at(&s->process->region, SHM_QP_INDEX(s->qpn))->type == IBV_QPT_UD;
}

/* How its packets leave: to receivers here, by the network, or both. */
static const struct hca_link_ops *link_of(const struct hca_sender *s, const struct hca_flow *f)
{
	if (is_astray(f))
		return &hca_link_astray;
	if (base_log_on(packet, BASE_LOG_TRACE))
		return &hca_link_trace;
	if (f->detours)
		return &hca_link_detour;
	if (!f->leaves)
		return &hca_link_shm;
	return f->count ? s->network->ops->and_here : s->network->ops;
}

/* Copies the record under its sequence number. 0, -ENOMEM, or -EIO: the daemon has died. */
static int refresh(struct hca_sender *s, struct hca_flow *f)
{
	const struct shm_region *r = &s->process->region;
	uint32_t seq, count, flags;
	uint64_t off;

	do {
		if (!shm_read_begin(r, &f->shm->seq, &seq))
			return -EIO;
		count = f->shm->count;
		off = f->shm->list_off;
		f->mtu = f->shm->mtu;
		f->dest_port = f->shm->dest_port;
		flags = f->shm->flags;
		if (f->is_mcast && count) {
			/* while the record is being rewritten these may be anything */
			if (off > r->part.control.size ||
			    count > (r->part.control.size - off) / sizeof(*f->list))
				continue;
			if (reserve(s->process, f, count) ||
			    shm_part_map(&r->part.control, off, count * sizeof(*f->list)))
				return -ENOMEM;
			memcpy(f->list, (const char *)r->control + off, count * sizeof(*f->list));
		}
	} while (shm_read_retry(&f->shm->seq, seq));
	f->count = count;
	f->seq = seq;
	f->leaves = s->network && (flags & SHM_FLOW_ROCE);
	f->detours = flags & SHM_FLOW_DETOUR;
	f->link = link_of(s, f);
	f->sent = count_of(s, f);
	f->path_bits = 0;
	if (f->is_mcast)
		follow_list(s->process, f);
	else
		f->path_bits = path_bits(r, f);
	if (base_log_on(verbs, BASE_LOG_WARNING) && is_vain_datagram(s, f))
		tell_vain(s, f);
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

static uint64_t next_use(struct hca_process *p)
{
	uint64_t use;

	base_lock(&p->flow_lock);
	use = ++p->flow_uses;
	base_unlock(&p->flow_lock);
	return use;
}

static void flow_release(struct hca_process *p, struct hca_flow *f)
{
	atomic_store_explicit(&f->sender, NULL, memory_order_relaxed);
	base_lock(&p->flow_lock);
	SLIST_INSERT_HEAD(&p->free_flows, f, free);
	base_unlock(&p->flow_lock);
}

/* ---- eviction ---- */

#define EVERY 32 /* so many new flows have so many old ones looked at */

/* Whether nobody receives by it. */
static bool is_vain(const struct hca_flow *f)
{
	return !f->shm->count && !(f->shm->flags & SHM_FLOW_ROCE);
}

/* Whether something was sent by it since the last look. */
static bool was_used(struct hca_flow *f)
{
	uint64_t packets = atomic_load_explicit(&f->sent->packets, memory_order_relaxed);
	bool used = packets != f->seen_packets;

	f->seen_packets = packets;
	return used;
}

/*
 * Looks at @looks flows, and gives up to @most of them back that were not used since the last look,
 * or only those (@vain) that reach nobody. Two looks at a flow find it unused in any case. Returns
 * how many.
 */
static uint32_t evict(struct hca_sender *s, uint32_t looks, uint32_t most, bool vain)
{
	struct control_put_flow req = { .qpn = s->qpn };
	struct hca_flow *f;

	for (; looks && req.n < most && (f = TAILQ_FIRST(&s->eviction)); looks--) {
		TAILQ_REMOVE(&s->eviction, f, eviction);
		if (was_used(f) || (vain && !is_vain(f))) {
			TAILQ_INSERT_TAIL(&s->eviction, f, eviction);
			continue;
		}
		base_hash_remove(&s->flows, &f->node);
		req.flow[req.n++] = f->id;
		flow_release(s->process, f);
	}
	if (req.n)
		hca_request(s->process, CONTROL_PUT_FLOW, &req, sizeof(req));
	return req.n;
}

/* Asks the daemon for a flow. If the daemon says that this sender has enough flows, gives old ones
 * back first. 0 or -errno. */
static int ask(struct hca_sender *s, const struct hca_ah *ah, uint32_t *id)
{
	struct control_get_flow req = { .qpn = s->qpn,
		                        .dlid = (uint16_t)ah->dest.lid,
		                        .path_bits = ah->dest.path_bits,
		                        .is_global = ah->dest.is_global,
		                        .sl = ah->dest.sl };
	struct control_get_flow_reply rep;
	int ret;

	memcpy(req.dgid.raw, ah->dest.gid, sizeof(req.dgid.raw));
	if (!s->flows.n)
		TAILQ_INIT(&s->eviction);
	if (++s->new_flows % EVERY == 0)
		evict(s, 2 * EVERY, CONTROL_MAX_PUT_FLOWS, true);
	do {
		ret = control_ask(s->process->control, CONTROL_GET_FLOW, &req, &rep);
		if (!ret)
			*id = rep.flow;
	} while (ret == -ENOSPC &&
	         evict(s, UINT32_MAX, base_min(1 + (int)s->flows.n / 8, CONTROL_MAX_PUT_FLOWS),
	               false));
	return ret;
}

static struct hca_flow *flow_new(struct hca_sender *s, const struct hca_ah *ah)
{
	struct hca_process *p = s->process;
	struct control_put_flow put = { .qpn = s->qpn, .n = 1 };
	struct hca_flow *f;

	if (ask(s, ah, &put.flow[0]))
		return NULL;
	f = flow_alloc(p);
	if (!f)
		goto err_put;
	f->use = next_use(p);
	f->dest = ah->dest;
	f->is_mcast = ib_lid_is_mcast((uint16_t)f->dest.lid);
	f->id = put.flow[0];
	f->shm = shm_flow_at(&p->region, f->id);
	f->seen_packets = 0;
	for (uint32_t i = 0; i < f->room; i++) /* copies were another sender's */
		hca_receiver_init(p, &f->to[i], 0);
	if (reserve(p, f, 1) || refresh(s, f) ||
	    base_hash_add(&s->flows, &f->node, hash_of(&f->dest)))
		goto err_release;
	TAILQ_INSERT_TAIL(&s->eviction, f, eviction);
	atomic_store_explicit(&f->sender, s, memory_order_relaxed);
	return f;
err_release:
	flow_release(p, f);
err_put:
	hca_request(p, CONTROL_PUT_FLOW, &put, sizeof(put));
	return NULL;
}

static bool same_dest(const struct hca_dest *a, const struct hca_dest *b)
{
	return a->gid[0] == b->gid[0] && a->gid[1] == b->gid[1] && a->lid == b->lid &&
	       a->port_num == b->port_num && a->path_bits == b->path_bits &&
	       a->is_global == b->is_global && a->sl == b->sl;
}

static struct hca_flow *flow_find(struct hca_sender *s, struct hca_ah *ah)
{
	struct hca_flow *f;

	BASE_HASH_FOREACH(f, &s->flows, hash_of(&ah->dest), node)
		if (same_dest(&f->dest, &ah->dest))
			return f;
	return flow_new(s, ah);
}

struct hca_flow *hca_flow_renew(struct hca_sender *s, struct hca_ah *ah)
{
	struct hca_flow *f = flow_find(s, ah);

	if (!f)
		return NULL;
	if (!hca_flow_is_current(f) && refresh(s, f))
		return NULL;
	/* Another sender may write its hint between these two. No flow fits halves of two. */
	/* release: pairs with the acquire in hca_flow_get() */
	atomic_store_explicit(&ah->flow, f, memory_order_release);
	atomic_store_explicit(&ah->flow_use, f->use, memory_order_relaxed);
	return f;
}

void hca_flow_drop_all(struct hca_sender *s)
{
	struct base_hash_node *n, *next;

	for (n = base_hash_walk(&s->flows, NULL); n; n = next) {
		next = base_hash_walk(&s->flows, n);
		flow_release(s->process, container_of(n, struct hca_flow, node));
	}
	base_hash_fini(&s->flows);
}

void hca_flows_free(struct hca_process *p)
{
	struct hca_flow *f;

	while ((f = SLIST_FIRST(&p->free_flows))) {
		SLIST_REMOVE_HEAD(&p->free_flows, free);
		free(f->list);
		free(f->to);
		free(f);
	}
}
