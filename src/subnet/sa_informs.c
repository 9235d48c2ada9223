/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * InformInfo and InformInfoRecord (InfiniBand specification volume 1, sections 13.4.8.3 and
 * 15.2.5.12): the subscriptions to notices. The daemon sends the Reports: see sa_each_subscriber().
 */
#include <stdlib.h>
#include <string.h>

#include "fabric/agents/mads.h"
#include "subnet/sa.h"
#include "subnet/sa_groups.h"
#include "subnet/sa_query.h"

#define MAX_SUBSCRIPTIONS (1u << 16)

struct sa_inform {
	LIST_ENTRY(sa_inform) entry;
	struct fabric_port *port;
	uint16_t lid; /* the LID that subscribed */
	bool trusted;
	struct wire_inform_info info;
};

static void inform_free(struct sa *sa, struct sa_inform *i)
{
	LIST_REMOVE(i, entry);
	sa->n_informs--;
	free(i);
}

void sa_informs_free(struct sa *sa)
{
	while (!LIST_EMPTY(&sa->informs))
		inform_free(sa, LIST_FIRST(&sa->informs));
}

void sa_informs_forget(struct sa *sa, const struct fabric_port *port)
{
	struct sa_inform *i, *next;

	for (i = LIST_FIRST(&sa->informs); i; i = next) {
		next = LIST_NEXT(i, entry);
		if (i->port == port)
			inform_free(sa, i);
	}
}

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

static struct sa_inform *find(const struct sa_query *q, const struct wire_inform_info *info)
{
	struct sa_inform *i;

	LIST_FOREACH(i, &q->sa->informs, entry)
	if (i->port == q->asker && i->lid == q->in->slid && same(&i->info, info))
		return i;
	return NULL;
}

static bool is_security_trap(unsigned is_generic, unsigned trap_number)
{
	return is_generic && trap_number >= TRAP_BAD_MKEY && trap_number <= TRAP_BAD_SWITCH_PKEY;
}

static uint16_t subscribe(struct sa_query *q, const struct wire_inform_info *info)
{
	struct sa_inform *i;

	if (!ib_gid_is_zero(&info->gid) && !fabric_port_by_gid(q->sa->f, &info->gid))
		return SA_REQ_INVALID;
	if (ib_gid_is_zero(&info->gid) && info->lid_range_begin != INFORM_ALL &&
	    info->lid_range_begin >= IB_LID_MCAST_FIRST)
		return SA_REQ_INVALID;
	i = find(q, info);
	if (i) {
		i->trusted |= q->trusted;
		return SA_OK;
	}
	i = q->sa->n_informs < MAX_SUBSCRIPTIONS ? calloc(1, sizeof(*i)) : NULL;
	if (!i)
		return SA_NO_RESOURCES;
	i->port = q->asker;
	i->lid = q->in->slid;
	i->trusted = q->trusted;
	i->info = *info;
	LIST_INSERT_HEAD(&q->sa->informs, i, entry);
	q->sa->n_informs++;
	return SA_OK;
}

/* A subscription has the QPN that its request came from; a request to end it names that QPN. */
static uint16_t set_inform(struct sa_query *q)
{
	const struct wire_inform_info *w = q->wanted;
	struct wire_inform_info info = *w;
	struct sa_inform *i;
	uint16_t status = SA_OK;

	if (!q->asker || w->subscribe > 1 ||
	    (is_security_trap(w->is_generic, w->trap_number) && !q->trusted))
		return SA_REQ_INVALID;
	if (w->subscribe) {
		info.qpn = q->in->qpn;
		status = subscribe(q, &info);
	} else {
		i = find(q, &info);
		if (!i)
			return SA_REQ_INVALID;
		inform_free(q->sa, i);
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
static void list_informs(struct sa_query *q)
{
	struct sa_inform *i;

	LIST_FOREACH(i, &q->sa->informs, entry)
	{
		struct wire_inform_info_record r = { .info = i->info };

		fabric_gid_make(q->sa->f, i->port->guid, &r.subscriber_gid);
		if (!q->trusted)
			r.info.qpn = 0;
		sa_query_offer(q, &r);
	}
}

const struct sa_kind sa_inform_record_kind = {
	.attribute = SA_ATTR_INFORM_INFO_RECORD,
	.layout = &wire_inform_info_record_layout,
	.list = list_informs,
};

static bool wants(const struct sa *sa, const struct sa_inform *i, const struct wire_notice *n)
{
	const struct wire_inform_info *w = &i->info;
	struct fabric_port *about;
	uint16_t last = w->lid_range_end ? w->lid_range_end : w->lid_range_begin;

	if (w->is_generic != n->is_generic || (w->type != INFORM_ALL && w->type != n->type) ||
	    (w->trap_number != TRAP_ANY && w->trap_number != n->trap_number) ||
	    (w->producer_type != NOTICE_FROM_ANYBODY && w->producer_type != n->producer_type))
		return false;
	if (ib_gid_is_zero(&w->gid))
		return w->lid_range_begin == INFORM_ALL ||
		       (n->issuer_lid >= w->lid_range_begin && n->issuer_lid <= last);
	about = fabric_port_by_gid(sa->f, &w->gid);
	return about && fabric_port_has_lid(about, n->issuer_lid);
}

static bool share_pkey(const struct fabric_port *a, const struct fabric_port *b)
{
	for (unsigned i = 0; i < SHM_PKEYS; i++)
		if ((a->pkey[i] & IB_PKEY_BASE_MASK) && sa_has_pkey(b, a->pkey[i]))
			return true;
	return false;
}

/*
 * Whether a subscriber may see a notice (o13-17.1.1): about ports and groups in its partitions;
 * about key violations if it is trusted.
 */
static bool may_know(const struct sa *sa, const struct sa_inform *i, const struct wire_notice *n)
{
	const struct fabric_port *port;
	const struct sa_group *g;
	struct wire_trap_gid about;

	if (is_security_trap(n->is_generic, n->trap_number))
		return i->trusted;
	if (!n->is_generic || n->trap_number < TRAP_GID_IN_SERVICE ||
	    n->trap_number > TRAP_MGID_DELETED)
		return true;
	wire_trap_gid_decode(n->details, &about);
	if (n->trap_number <= TRAP_GID_OUT_OF_SERVICE) {
		port = sa_end_by_gid(sa, &about.gid);
		return !port || share_pkey(i->port, port);
	}
	g = sa_group_find(sa, &about.gid);
	return !g || sa_has_pkey(i->port, g->rec.pkey);
}

bool sa_has_subscribers(const struct sa *sa)
{
	return !LIST_EMPTY(&sa->informs);
}

void sa_each_subscriber(struct sa *sa, const struct wire_notice *notice,
                        void (*tell)(void *arg, uint16_t lid, uint32_t qpn), void *arg)
{
	struct sa_inform *i, *next;

	for (i = LIST_FIRST(&sa->informs); i; i = next) {
		next = LIST_NEXT(i, entry);
		if (wants(sa, i, notice) && may_know(sa, i, notice))
			tell(arg, i->lid, i->info.qpn);
	}
}
