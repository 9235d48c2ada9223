/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Notices on their way to those who have subscribed to them (InfiniBand specification volume 1,
 * section 13.4.11). A notice may have thousands of subscribers, and thousands of notices may come
 * at once, so they wait for their turn and are told in slices. The daemon sends the Reports.
 */
#include <stdlib.h>

#include "fabric/agents/mads.h"
#include "subnet/sa.h"
#include "subnet/sa_groups.h"
#include "subnet/sa_query.h"
#include "subnet/sa_subscribers.h"

/* So many notices may wait: each port of the largest fabric that comes or goes at once is a notice.
 * For each of them all subscriptions are looked at, some seconds of work. */
#define MAX_NOTICES (1u << 16)
#define MAX_LOOKS   (1u << 22)

/* Tenths of a microsecond: the cost of a Report until it has been sent, and of comparing
 * partitions. */
#define TOLD_UNITS      10
#define PARTITION_UNITS 8

bool sa_is_security_trap(unsigned is_generic, unsigned trap_number)
{
	return is_generic && trap_number >= TRAP_BAD_MKEY && trap_number <= TRAP_BAD_SWITCH_PKEY;
}

static bool wants(const struct sa *sa, const struct wire_inform_info *w,
                  const struct wire_notice *n)
{
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

/*
 * The subscribers that may see the notice (o13-17.1.1): notices about ports and groups are for
 * their partitions, notices about key violations for trusted subscribers. A group may be gone when
 * they are told.
 */
static void restrict_to(const struct sa *sa, struct sa_notice *n)
{
	const unsigned trap = n->notice.trap_number;
	struct wire_trap_gid about;
	const struct sa_group *g;

	n->is_security = sa_is_security_trap(n->notice.is_generic, trap);
	if (!n->notice.is_generic || trap < TRAP_GID_IN_SERVICE || trap > TRAP_MGID_DELETED)
		return;
	wire_trap_gid_decode(n->notice.details, &about);
	if (trap <= TRAP_GID_OUT_OF_SERVICE) {
		n->about = sa_end_by_gid(sa, &about.gid);
		return;
	}
	g = sa_group_find(sa, &about.gid);
	n->pkey = g ? g->rec.pkey : 0;
}

bool sa_notice_add(struct sa *sa, const struct wire_notice *notice, uint64_t number)
{
	struct sa_subscribers *all = sa->subscribers;
	struct sa_notice *n = NULL;

	if (all->n_notices < MAX_NOTICES && (uint64_t)all->n_notices * all->n_informs <= MAX_LOOKS)
		n = calloc(1, sizeof(*n));
	if (!n)
		return false;
	n->notice = *notice;
	n->number = all->last_notice = number;
	restrict_to(sa, n);
	STAILQ_INSERT_TAIL(&all->notices, n, entry);
	all->n_notices++;
	return true;
}

static void drop_first(struct sa_subscribers *all)
{
	struct sa_notice *n = STAILQ_FIRST(&all->notices);

	STAILQ_REMOVE_HEAD(&all->notices, entry);
	free(n);
	all->n_notices--;
	all->telling = false;
	all->next = NULL;
}

void sa_notices_free(struct sa *sa)
{
	while (!STAILQ_EMPTY(&sa->subscribers->notices))
		drop_first(sa->subscribers);
}

static void spend(uint32_t *budget, uint32_t units)
{
	*budget -= units < *budget ? units : *budget;
}

static bool may_see(const struct sa_subscriber *s, const struct sa_notice *n)
{
	const struct fabric_port *p = s->port->port;

	return (!n->about || sa_share_pkey(p, n->about)) && (!n->pkey || sa_has_pkey(p, n->pkey));
}

/* Whether it has subscribed to the notice and may see it. A later subscription of its is about
 * later notices. */
static bool is_for(const struct sa *sa, const struct sa_subscriber *s, const struct sa_notice *n,
                   uint32_t *budget)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct sa_inform *inform = &s->inform[i];

		spend(budget, 1);
		if (inform->since >= n->number || (n->is_security && !inform->trusted) ||
		    !wants(sa, &inform->info, &n->notice))
			continue;
		spend(budget, n->about || n->pkey ? PARTITION_UNITS : 0);
		return may_see(s, n);
	}
	return false;
}

bool sa_notices_step(struct sa *sa, uint32_t *budget,
                     void (*tell)(void *arg, const struct sa_told *told), void *arg)
{
	struct sa_subscribers *all = sa->subscribers;
	struct sa_notice *n;

	while ((n = STAILQ_FIRST(&all->notices))) {
		if (!all->telling)
			all->next = TAILQ_FIRST(&all->all);
		all->telling = true;
		for (struct sa_subscriber *s; (s = all->next);) {
			if (!*budget)
				return false;
			if (is_for(sa, s, n, budget)) {
				tell(arg,
				     &(struct sa_told){ &n->notice, n->number, s->lid, s->qpn });
				spend(budget, TOLD_UNITS);
			}
			all->next = TAILQ_NEXT(s, entry);
		}
		drop_first(all);
		spend(budget, 1);
	}
	return true;
}
