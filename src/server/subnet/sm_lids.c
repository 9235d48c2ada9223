/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * LIDs: each HCA port has 2^LMC consecutive LIDs (the setting "lmc"), the first a multiple of that;
 * each switch has one. Ports keep the LIDs that they have, also from another subnet manager. A
 * freed LID is used again as late as possible.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "subnet/sm_state.h"

/* Whether @n LIDs from @lid on are free. */
static bool is_free(const struct sm *sm, unsigned lid, unsigned n)
{
	if (!lid || lid % n || lid + n > IB_LID_MCAST_FIRST)
		return false;
	for (unsigned i = lid; i < lid + n; i++)
		if (sm->lids[i / 64] >> (i % 64) & 1)
			return false;
	return true;
}

static void mark(struct sm *sm, const struct fabric_port *p)
{
	for (unsigned i = p->lid; i < p->lid + (1u << p->lmc); i++)
		sm->lids[i / 64] |= 1ull << (i % 64);
}

/* The first of @n consecutive free LIDs; 0: there are none. */
static uint16_t find_free(struct sm *sm, unsigned n)
{
	unsigned lid = (sm->next_lid + n - 1) / n * n;

	for (unsigned tried = 0; tried <= IB_LID_MCAST_FIRST / n; tried++, lid += n) {
		if (lid + n > IB_LID_MCAST_FIRST)
			lid = n;
		if (is_free(sm, lid, n)) {
			sm->next_lid = (uint16_t)(lid + n < IB_LID_MCAST_FIRST ? lid + n : 1);
			return (uint16_t)lid;
		}
	}
	return 0;
}

static uint8_t lmc_of(const struct sm *sm, const struct fabric_port *p)
{
	return p->node->type == FABRIC_HCA ? (uint8_t)sm->f->settings.lmc : 0;
}

/* End port number @i: those of HCAs, then those of switches. NULL: there are no more. */
static struct fabric_port *end_port(const struct sm *sm, unsigned i)
{
	if (i < sm->f->n_ib_ports)
		return sm->f->hca_port[i];
	i -= sm->f->n_ib_ports;
	return i < sm->net.n ? &sm->net.sw[i]->port[0] : NULL;
}

/* Whether a subnet manager sees the port: it has a cable. */
static bool is_seen(const struct fabric_port *p)
{
	return p->peer || p->node->type == FABRIC_SWITCH;
}

static void note_changed(struct sm *sm, const struct fabric_port *p)
{
	for (unsigned i = p->lid; p->lid && i < p->lid + (1u << p->lmc); i++)
		if (i < IB_LID_MCAST_FIRST)
			sm->changed[i / 64] |= 1ull << (i % 64);
}

/* Flows to the LIDs that the port had, and to those that it gets, have to follow. */
static void set(struct sm *sm, struct fabric_port *p, uint16_t lid, uint8_t lmc)
{
	if (p->lid == lid && p->lmc == lmc)
		return;
	note_changed(sm, p);
	p->lid = lid;
	p->lmc = lmc;
	note_changed(sm, p);
}

/* Reserves the port's LIDs; if another port has these LIDs, this port loses them and gets lid 0. */
static void keep(struct sm *sm, struct fabric_port *p)
{
	uint8_t lmc = lmc_of(sm, p);

	if (!is_free(sm, p->lid, 1u << lmc)) {
		set(sm, p, 0, lmc);
		return;
	}
	set(sm, p, p->lid, lmc);
	mark(sm, p);
}

static int give(struct sm *sm, struct fabric_port *p)
{
	uint8_t lmc = lmc_of(sm, p);

	set(sm, p, find_free(sm, 1u << lmc), lmc);
	if (!p->lid) {
		base_log_warning(sm, "there are no %u LIDs left for port %u of '%s'", 1u << lmc,
		                 p->num, p->node->name);
		return -ENOSPC;
	}
	mark(sm, p);
	return 0;
}

int sm_lids_give(struct sm *sm)
{
	struct fabric_port *p;
	int ret = 0;

	memset(sm->lids, 0, sizeof(sm->lids));
	for (unsigned i = 0; (p = end_port(sm, i)); i++)
		if (is_seen(p))
			keep(sm, p);
	for (unsigned i = 0; !ret && (p = end_port(sm, i)); i++)
		if (is_seen(p) && !p->lid)
			ret = give(sm, p);
	return ret;
}

int sm_lids_change(struct sm *sm, struct fabric_port *p)
{
	uint16_t lid = find_free(sm, 1u << p->lmc);

	if (!lid)
		return -ENOSPC;
	for (unsigned i = p->lid; i < p->lid + (1u << p->lmc); i++)
		sm->lids[i / 64] &= ~(1ull << (i % 64));
	p->lid = lid;
	mark(sm, p);
	return 0;
}

uint16_t sm_lids_top(const struct sm *sm)
{
	uint16_t top = IB_LID_MCAST_FIRST - 1;

	while (top >= 64 && !sm->lids[top / 64])
		top -= 64;
	while (top && !(sm->lids[top / 64] >> (top % 64) & 1))
		top--;
	return top;
}
