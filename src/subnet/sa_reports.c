/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The notices of the subnet administrator itself for subscribers (InfiniBand specification volume
 * 1, section 13.4.8.2): traps 64 and 65 when an end port comes into service or goes out of it, 66
 * and 67 when a multicast group is created or ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/model/event.h"
#include "subnet/sa.h"
#include "subnet/sa_query.h"

/* The end ports that were in service after the last sweep, by their numbers of sa_end(). */
struct sa_service_state {
	unsigned n;
	bool *in_service;
	struct fabric_node **queue; /* scratch, of switches */
	bool *reached;              /* scratch, by switch */
};

static void tell(struct sa *sa, uint16_t trap, const struct ib_gid *gid)
{
	const struct wire_trap_gid details = { .gid = *gid };
	struct wire_notice notice = { .is_generic = 1,
		                      .type = NOTICE_SUBNET_MANAGEMENT,
		                      .producer_type = NOTICE_FROM_CLASS_MANAGER,
		                      .trap_number = trap,
		                      .issuer_lid = sm_port(sa->sm)->lid };

	if (!sa->reports.tell)
		return;
	wire_trap_gid_encode(&details, notice.details);
	sa->reports.tell(sa->reports.arg, &notice);
}

void sa_report_group(struct sa *sa, const struct sa_group *g, bool created)
{
	fabric_tell(sa->f, &(struct fabric_event){ .kind = "group",
	                                           .what = created ? "made" : "ended",
	                                           .mgid = &g->rec.mgid,
	                                           .mlid = g->rec.mlid });
	tell(sa, created ? TRAP_MGID_CREATED : TRAP_MGID_DELETED, &g->rec.mgid);
}

uint64_t sa_m_key(const struct sa *sa, uint16_t lid)
{
	const struct fabric_port *p = sa_end_by_lid(sa, lid);

	return p ? p->m_key : 0;
}

/* ---- end ports ---- */

int sa_reports_init(struct sa *sa)
{
	const struct fabric *f = sa->f;
	struct sa_service_state *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	sa->service_state = s;
	s->n = f->n_ib_ports + f->n_switches;
	s->in_service = calloc(s->n + 1, sizeof(*s->in_service));
	s->queue = calloc(f->n_switches + 1, sizeof(struct fabric_node *));
	s->reached = calloc(f->n_switches + 1, sizeof(*s->reached));
	if (!s->in_service || !s->queue || !s->reached)
		return -ENOMEM;
	sa_reports_swept(sa);
	return 0;
}

void sa_reports_fini(struct sa *sa)
{
	struct sa_service_state *s = sa->service_state;

	if (!s)
		return;
	free(s->in_service);
	free(s->queue);
	free(s->reached);
	free(s);
	sa->service_state = NULL;
}

/* The switch at the far end of a link that is not down, or NULL. */
static struct fabric_node *next_switch(const struct fabric_port *p)
{
	if (!p->peer || p->state <= IB_PORT_DOWN || p->peer->state <= IB_PORT_DOWN)
		return NULL;
	return p->peer->node->type == FABRIC_SWITCH ? p->peer->node : NULL;
}

static void reach(struct sa_service_state *s, struct fabric_node *sw, unsigned *n)
{
	if (!sw || s->reached[sw->index])
		return;
	s->reached[sw->index] = true;
	s->queue[(*n)++] = sw;
}

/* Finds the switches that the subnet manager reaches. */
static void reach_all(struct sa *sa)
{
	struct sa_service_state *s = sa->service_state;
	unsigned n = 0;

	memset(s->reached, 0, sa->f->n_switches * sizeof(*s->reached));
	reach(s, next_switch(sm_port(sa->sm)), &n);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 1; k <= s->queue[i]->n_ports; k++)
			reach(s, next_switch(&s->queue[i]->port[k]), &n);
}

static bool is_reached(const struct sa *sa, const struct fabric_port *p)
{
	const struct fabric_port *home = sm_port(sa->sm);
	const struct fabric_node *sw;

	if (p->node->type == FABRIC_SWITCH)
		return sa->service_state->reached[p->node->index];
	if (p == home)
		return true;
	sw = next_switch(p);
	return sw ? sa->service_state->reached[sw->index]
	          : p->peer == home && home->state > IB_PORT_DOWN;
}

static void follow(struct sa *sa, unsigned i, struct fabric_port *p)
{
	bool *was = &sa->service_state->in_service[i], is = is_reached(sa, p);
	struct ib_gid gid;

	if (is == *was)
		return;
	*was = is;
	if (!is)
		sa_informs_forget(sa, p);
	fabric_gid_make(sa->f, p->guid, &gid);
	tell(sa, is ? TRAP_GID_IN_SERVICE : TRAP_GID_OUT_OF_SERVICE, &gid);
}

void sa_reports_swept(struct sa *sa)
{
	struct fabric_port *p;

	reach_all(sa);
	for (unsigned i = 0; i < sa->service_state->n && (p = sa_end(sa, i)); i++)
		follow(sa, i, p);
}
