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
	bool looked;     /* ->reached is what the last call has found */
	unsigned *queue; /* scratch, of switches */
	bool *reached;   /* by switch */
	bool *before;    /* the same before the last sweep */
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
	s->queue = calloc(f->n_switches + 1, sizeof(*s->queue));
	s->reached = calloc(f->n_switches + 1, sizeof(*s->reached));
	s->before = calloc(f->n_switches + 1, sizeof(*s->before));
	if (!s->in_service || !s->queue || !s->reached || !s->before)
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
	free(s->before);
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

/* Before the first sweep: the switches that links connect with @first. */
static void reach_by_ports(const struct sa *sa, struct fabric_node *first)
{
	struct sa_service_state *s = sa->service_state;
	unsigned n = 0;

	memset(s->reached, 0, sa->f->n_switches * sizeof(*s->reached));
	if (first) {
		s->reached[first->index] = true;
		s->queue[n++] = first->index;
	}
	for (unsigned i = 0; i < n; i++) {
		struct fabric_node *sw = sm_switch(sa->sm, s->queue[i]);

		for (unsigned k = 1; k <= sw->n_ports; k++) {
			const struct fabric_node *to = next_switch(&sw->port[k]);

			if (!to || s->reached[to->index])
				continue;
			s->reached[to->index] = true;
			s->queue[n++] = to->index;
		}
	}
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

/* Finds the switches that the subnet manager reaches. Whether they are the same as before, by a
 * look of its own. */
static bool reach_the_same(const struct sa *sa)
{
	struct sa_service_state *s = sa->service_state;
	struct fabric_node *first = next_switch(sm_port(sa->sm));
	bool *before = s->before;

	s->before = s->reached;
	s->reached = before;
	if (sm_reach(sa->sm, first, s->reached, s->queue))
		return s->looked &&
		       !memcmp(s->before, s->reached, sa->f->n_switches * sizeof(*s->reached));
	reach_by_ports(sa, first);
	return false;
}

void sa_reports_swept(struct sa *sa)
{
	struct sa_service_state *s = sa->service_state;
	const bool same = reach_the_same(sa);
	struct fabric_port *p;

	/* if the same switches are reached, so are hosts but for their own links */
	for (unsigned i = 0; i < (same ? sa->f->n_ib_ports : s->n); i++)
		if ((!same || sm_has_link(sa->sm, i) != s->in_service[i]) && (p = sa_end(sa, i)))
			follow(sa, i, p);
	s->looked = true;
}
