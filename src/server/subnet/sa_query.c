/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions for all kinds of queries: see sa_query.h.
 */
#include <string.h>

#include "base/array.h"
#include "base/util.h"
#include "fabric/agents/mads.h"
#include "subnet/sa_query.h"

#define MAX_BYTES (256u << 20)

/* ---- collecting ---- */

static bool make_room(struct sa_query *q, size_t bytes)
{
	size_t need = q->out->bytes + bytes;

	if (need > MAX_BYTES || base_array_reserve(&q->out->records, &q->room, need))
		q->too_much = true;
	return !q->too_much;
}

void sa_query_add(struct sa_query *q, const void *record)
{
	size_t bytes = base_align_up(q->kind->layout->bytes, 8);

	if (q->too_much || !make_room(q, bytes))
		return;
	sa_query_spend(q, 3);
	memset(q->out->records + q->out->bytes, 0, bytes);
	wire_encode(q->kind->layout, record, q->out->records + q->out->bytes);
	q->out->record_bytes = (uint16_t)bytes;
	q->out->bytes += bytes;
	q->out->n++;
}

void sa_query_offer(struct sa_query *q, const void *record)
{
	sa_query_spend(q, 1);
	if (wire_match(q->kind->layout, q->mask, q->wanted, record))
		sa_query_add(q, record);
}

bool sa_query_has_enough(const struct sa_query *q)
{
	return q->in->mad->mad.method == MAD_GET && q->out->n >= (q->kind->any ? 1 : 2);
}

bool sa_query_stops(struct sa_query *q)
{
	q->stopped = q->too_much || !q->budget || sa_query_has_enough(q);
	sa_query_spend(q, 1);
	return q->stopped;
}

bool sa_selects(uint64_t mask, uint64_t both, uint8_t selector, unsigned want, unsigned have)
{
	if ((mask & both) != both)
		return true;
	switch (selector) {
	case SA_GREATER:
		return have > want;
	case SA_LESS:
		return have < want;
	case SA_EXACTLY:
		return have == want;
	default:
		return true; /* the largest available */
	}
}

/* ---- ports ---- */

struct fabric_port *sa_end(const struct sa *sa, unsigned i)
{
	const struct fabric *f = sa->f;
	struct fabric_node *sw;

	if (i < f->n_ib_ports)
		return f->hca_port[i];
	sw = sm_switch(sa->sm, i - f->n_ib_ports);
	return sw ? &sw->port[0] : NULL;
}

/* Fills the cache of end ports by LID. */
static void note_lids(const struct sa *sa)
{
	struct fabric_port *p;

	for (unsigned i = 0; (p = sa_end(sa, i)); i++)
		for (unsigned lid = p->lid; lid < p->lid + (1u << p->lmc); lid++)
			if (lid < IB_LID_MCAST_FIRST)
				sa->end_of_lid[lid] = (uint16_t)i;
}

/* LIDs change rarely: the cache is tried first, and filled again if it is wrong. */
struct fabric_port *sa_end_by_lid(const struct sa *sa, uint16_t lid)
{
	for (int noted = 0; lid && lid < IB_LID_MCAST_FIRST && noted < 2; noted++) {
		struct fabric_port *p = sa_end(sa, sa->end_of_lid[lid]);

		if (p && fabric_port_has_lid(p, lid))
			return p;
		if (!noted)
			note_lids(sa);
	}
	return NULL;
}

struct fabric_port *sa_port_by_lid(const struct sa *sa, uint16_t lid)
{
	struct fabric_port *p = sa_end_by_lid(sa, lid);

	return p && p->node->type == FABRIC_HCA ? p : NULL;
}

struct fabric_port *sa_end_by_gid(const struct sa *sa, const struct ib_gid *gid)
{
	struct fabric_port *p = fabric_port_by_gid(sa->f, gid);
	struct ib_gid own;

	for (unsigned i = sa->f->n_ib_ports; !p; i++) {
		struct fabric_port *port = sa_end(sa, i);

		if (!port)
			return NULL;
		fabric_gid_make(sa->f, port->guid, &own);
		if (ib_gid_equal(&own, gid))
			p = port;
	}
	return p;
}

struct fabric_port *sa_port_by_guid(struct fabric *f, const struct ib_gid *gid)
{
	struct ib_gid g;

	fabric_gid_make(f, 0, &g);
	memcpy(g.raw + 8, gid->raw + 8, 8);
	return fabric_port_by_gid(f, &g);
}

bool sa_has_pkey(const struct fabric_port *p, uint16_t pkey)
{
	for (unsigned i = 0; i < SHM_PKEYS; i++)
		if (p->pkey[i] && !((p->pkey[i] ^ pkey) & IB_PKEY_BASE_MASK))
			return true;
	return false;
}

bool sa_share_pkey(const struct fabric_port *a, const struct fabric_port *b)
{
	for (unsigned i = 0; i < SHM_PKEYS; i++)
		if ((a->pkey[i] & IB_PKEY_BASE_MASK) && sa_has_pkey(b, a->pkey[i]))
			return true;
	return false;
}
