/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * InformInfo and InformInfoRecord (InfiniBand specification volume 1, sections 13.4.8.3 and
 * 15.2.5.12): the subscriptions to notices. sa_notices.c chooses the subscribers that are told of a
 * notice.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/util.h"
#include "fabric/agents/mads.h"
#include "subnet/sa.h"
#include "subnet/sa_query.h"
#include "subnet/sa_subscribers.h"

#define MAX_SUBSCRIPTIONS (1u << 16)
#define MAX_OF_PORT       1024 /* programs have a handful */

int sa_informs_init(struct sa *sa)
{
	struct sa_subscribers *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	base_idtable_init(&all->by_id, MAX_SUBSCRIPTIONS);
	TAILQ_INIT(&all->all);
	STAILQ_INIT(&all->notices);
	sa->subscribers = all;
	return 0;
}

/* ---- subscribers ---- */

static uint64_t address_hash(const struct fabric_port *port, uint16_t lid, uint32_t qpn)
{
	const uint64_t address = (uint64_t)lid << 32 | qpn;

	return base_hash_of(&address, sizeof(address), port->guid);
}

static struct sa_subscriber *subscriber_find(const struct sa *sa, const struct fabric_port *port,
                                             uint16_t lid, uint32_t qpn)
{
	struct base_hash_node *n =
	        base_hash_first(&sa->subscribers->by_address, address_hash(port, lid, qpn));

	for (; n; n = base_hash_next(n)) {
		struct sa_subscriber *s = container_of(n, struct sa_subscriber, node);

		if (s->port->port == port && s->lid == lid && s->qpn == qpn)
			return s;
	}
	return NULL;
}

static struct sa_subscriber_port *port_find(const struct sa *sa, const struct fabric_port *port)
{
	struct base_hash_node *n = base_hash_first(&sa->subscribers->by_port, port->guid);

	for (; n; n = base_hash_next(n)) {
		struct sa_subscriber_port *p = container_of(n, struct sa_subscriber_port, node);

		if (p->port == port)
			return p;
	}
	return NULL;
}

static struct sa_subscriber_port *port_get(struct sa *sa, struct fabric_port *port)
{
	struct sa_subscriber_port *p = port_find(sa, port);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->port = port;
	LIST_INIT(&p->subscribers);
	if (base_hash_add(&sa->subscribers->by_port, &p->node, port->guid)) {
		free(p);
		return NULL;
	}
	return p;
}

static void port_put(struct sa *sa, struct sa_subscriber_port *p)
{
	if (!LIST_EMPTY(&p->subscribers))
		return;
	base_hash_remove(&sa->subscribers->by_port, &p->node);
	free(p);
}

/* Without subscriptions. NULL: there is no memory. */
static struct sa_subscriber *subscriber_new(struct sa *sa, struct sa_subscriber_port *p,
                                            uint16_t lid, uint32_t qpn)
{
	struct sa_subscribers *all = sa->subscribers;
	struct sa_subscriber *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->port = p;
	s->lid = lid;
	s->qpn = qpn;
	if (base_idtable_add(&all->by_id, s, &s->id))
		goto err_free;
	if (base_hash_add(&all->by_address, &s->node, address_hash(p->port, lid, qpn)))
		goto err_remove;
	LIST_INSERT_HEAD(&p->subscribers, s, of_port);
	TAILQ_INSERT_TAIL(&all->all, s, entry);
	return s;

err_remove:
	base_idtable_remove(&all->by_id, s->id);
err_free:
	free(s);
	return NULL;
}

static void subscriber_free(struct sa *sa, struct sa_subscriber *s)
{
	struct sa_subscribers *all = sa->subscribers;
	struct sa_subscriber_port *p = s->port;

	if (all->next == s)
		all->next = TAILQ_NEXT(s, entry);
	all->n_informs -= s->n;
	p->n_informs -= s->n;
	TAILQ_REMOVE(&all->all, s, entry);
	LIST_REMOVE(s, of_port);
	base_hash_remove(&all->by_address, &s->node);
	base_idtable_remove(&all->by_id, s->id);
	free(s->inform);
	free(s);
	port_put(sa, p);
}

void sa_informs_fini(struct sa *sa)
{
	struct sa_subscribers *all = sa->subscribers;

	if (!all)
		return;
	sa_notices_free(sa);
	while (!TAILQ_EMPTY(&all->all))
		subscriber_free(sa, TAILQ_FIRST(&all->all));
	base_hash_fini(&all->by_address);
	base_hash_fini(&all->by_port);
	base_idtable_fini(&all->by_id);
	free(all);
	sa->subscribers = NULL;
}

void sa_informs_forget(struct sa *sa, const struct fabric_port *port)
{
	struct sa_subscriber_port *p = port_find(sa, port);

	for (unsigned left = p ? p->n_informs : 0; left;) {
		struct sa_subscriber *s = LIST_FIRST(&p->subscribers);

		left -= s->n;
		subscriber_free(sa, s); /* and the port with the last one */
	}
}

bool sa_has_subscribers(const struct sa *sa)
{
	return sa->subscribers->n_informs;
}

/* ---- subscriptions ---- */

/* Whether two subscriptions are to the same notices. */
static bool same(const struct wire_inform_info *a, const struct wire_inform_info *b)
{
	if (!ib_gid_equal(&a->gid, &b->gid))
		return false;
	if (ib_gid_is_zero(&a->gid) &&
	    (a->lid_range_begin != b->lid_range_begin || a->lid_range_end != b->lid_range_end))
		return false;
	return a->type == b->type && a->is_generic == b->is_generic &&
	       a->trap_number == b->trap_number && a->producer_type == b->producer_type &&
	       a->qpn == b->qpn;
}

static struct sa_inform *find(const struct sa_subscriber *s, const struct wire_inform_info *info)
{
	for (uint32_t i = 0; s && i < s->n; i++)
		if (same(&s->inform[i].info, info))
			return &s->inform[i];
	return NULL;
}

/* A subscription that there is not yet. */
static uint16_t add(struct sa_query *q, const struct wire_inform_info *info)
{
	struct sa_subscribers *all = q->sa->subscribers;
	struct sa_subscriber_port *p = port_get(q->sa, q->asker);
	struct sa_subscriber *s;

	if (!p)
		return SA_NO_RESOURCES;
	if (p->n_informs >= MAX_OF_PORT || all->n_informs >= MAX_SUBSCRIPTIONS)
		goto err_port;
	s = subscriber_find(q->sa, q->asker, q->in->slid, info->qpn);
	if (!s)
		s = subscriber_new(q->sa, p, q->in->slid, info->qpn);
	if (!s)
		goto err_port;
	if (base_array_reserve(&s->inform, &s->room, (size_t)s->n + 1)) {
		if (!s->n)
			subscriber_free(q->sa, s);
		return SA_NO_RESOURCES;
	}
	s->inform[s->n++] = (struct sa_inform){ .trusted = q->trusted,
		                                .since = all->last_notice,
		                                .info = *info };
	p->n_informs++;
	all->n_informs++;
	return SA_OK;

err_port:
	port_put(q->sa, p);
	return SA_NO_RESOURCES;
}

static uint16_t subscribe(struct sa_query *q, const struct wire_inform_info *info)
{
	struct sa_inform *i;

	if (!ib_gid_is_zero(&info->gid) && !fabric_port_by_gid(q->sa->f, &info->gid))
		return SA_REQ_INVALID;
	if (ib_gid_is_zero(&info->gid) && info->lid_range_begin != INFORM_ALL &&
	    info->lid_range_begin >= IB_LID_MCAST_FIRST)
		return SA_REQ_INVALID;
	i = find(subscriber_find(q->sa, q->asker, q->in->slid, info->qpn), info);
	if (!i)
		return add(q, info);
	i->trusted |= q->trusted;
	return SA_OK;
}

static void unsubscribe(struct sa *sa, struct sa_subscriber *s, struct sa_inform *i)
{
	if (s->n == 1) {
		subscriber_free(sa, s);
		return;
	}
	*i = s->inform[--s->n];
	s->port->n_informs--;
	sa->subscribers->n_informs--;
}

/* A subscription has the QPN that its request came from; a request to end it names that QPN. */
static uint16_t set_inform(struct sa_query *q)
{
	const struct wire_inform_info *w = q->wanted;
	struct wire_inform_info info = *w;
	struct sa_subscriber *s;
	struct sa_inform *i;
	uint16_t status = SA_OK;

	if (!q->asker || w->subscribe > 1 ||
	    (sa_is_security_trap(w->is_generic, w->trap_number) && !q->trusted))
		return SA_REQ_INVALID;
	if (w->subscribe) {
		info.qpn = q->in->qpn;
		status = subscribe(q, &info);
	} else {
		s = subscriber_find(q->sa, q->asker, q->in->slid, info.qpn);
		i = find(s, &info);
		if (!i)
			return SA_REQ_INVALID;
		unsubscribe(q->sa, s, i);
	}
	if (status == SA_OK)
		sa_query_add(q, w); /* o13-12.1.1: a copy confirms it */
	return status;
}

const struct sa_kind sa_inform_kind = {
	.attribute = SA_ATTR_INFORM_INFO,
	.layout = &wire_inform_info_layout,
	.set = set_inform,
};

/* Only trusted requests see QPNs (C15-0.2-1.16). */
static void list_inform(struct sa_query *q, const struct sa_subscriber *s, uint32_t i)
{
	struct wire_inform_info_record r = { .info = s->inform[i].info };

	fabric_gid_make(q->sa->f, s->port->port->guid, &r.subscriber_gid);
	if (!q->trusted)
		r.info.qpn = 0;
	sa_query_offer(q, &r);
}

static void list_informs(struct sa_query *q)
{
	const struct base_idtable *all = &q->sa->subscribers->by_id;

	for (; q->at.outer < all->size; q->at.outer++, q->at.inner = 0) {
		const struct sa_subscriber *s = base_idtable_get(all, q->at.outer);

		/* an entry without a subscriber is a step, too */
		do {
			if (sa_query_stops(q))
				return;
			if (s && q->at.inner < s->n)
				list_inform(q, s, q->at.inner);
		} while (s && ++q->at.inner < s->n);
	}
}

const struct sa_kind sa_inform_record_kind = {
	.attribute = SA_ATTR_INFORM_INFO_RECORD,
	.layout = &wire_inform_info_record_layout,
	.list = list_informs,
};
