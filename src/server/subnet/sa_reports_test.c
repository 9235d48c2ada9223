/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reports of end ports that come into service and go out of it: after random failures on random
 * fabrics, a subscriber that has counted them knows of each port whether the subnet manager reaches
 * it, and hears of no port twice.
 */
#include <harness.h>

#include "subnet/sa_query.h"
#include "subnet/testing_passes.h"
#include "subnet/testing_routes.h"

#define STEPS 40

struct heard {
	struct env *e;
	struct sa *sa;
	bool in_service[2 * MAX_SWITCH];
};

static unsigned number_of(const struct heard *h, uint64_t guid)
{
	const struct fabric_port *p;
	unsigned i = 0;

	while ((p = sa_end(h->sa, i)) && p->guid != guid)
		i++;
	assert_non_null(p);
	assert_in_range(i, 0, ARRAY_SIZE(h->in_service) - 1);
	return i;
}

static void hear(void *arg, const struct wire_notice *n)
{
	struct heard *h = arg;
	struct wire_trap_gid about;
	uint64_t guid;
	bool *was;

	wire_trap_gid_decode(n->details, &about);
	memcpy(&guid, about.gid.raw + 8, sizeof(guid));
	was = &h->in_service[number_of(h, be64toh(guid))];
	assert_int_equal(n->trap_number, *was ? TRAP_GID_OUT_OF_SERVICE : TRAP_GID_IN_SERVICE);
	*was = !*was;
}

static const struct fabric_node *switch_at(const struct fabric_port *p)
{
	if (!p->peer || p->state == IB_PORT_DOWN || p->peer->state == IB_PORT_DOWN)
		return NULL;
	return p->peer->node->type == FABRIC_SWITCH ? p->peer->node : NULL;
}

/* By the links themselves. */
static void assert_right(const struct heard *h)
{
	const struct fabric_port *home = sm_port(h->e->sm), *p;
	const struct fabric_node *first = switch_at(home);
	unsigned hops[MAX_SWITCH];

	if (first)
		distances(h->e, first, hops);
	for (unsigned i = 0; (p = sa_end(h->sa, i)); i++) {
		const struct fabric_node *sw = p->num ? switch_at(p) : p->node;

		assert_int_equal(h->in_service[i],
		                 p == home || (first && sw && hops[sw->index] != FAR));
	}
}

static void change(struct env *e, unsigned *chance)
{
	unsigned what = next_random(chance) % 8;
	struct fabric_port *p = what < 3 ? e->f->hca_port[next_random(chance) % e->f->n_hca_ports]
	                                 : nth_link(e, next_random(chance));

	if (what == 7)
		fabric_switch_set(e->f, p->node, p->node->dead);
	else
		fabric_link_set(e->f, p, p->state == IB_PORT_DOWN);
	if (next_random(chance) % 16 == 0)
		sm_move(e->sm);
}

static void run(unsigned seed)
{
	struct env *e = start_random(seed, seed % 2 ? "updn" : "minhop");
	struct heard h = { .e = e };
	unsigned chance = seed;

	assert_int_equal(sa_new(&h.sa, e->f, e->sm), 0);
	h.sa->reports = (struct sa_reports){ hear, &h };
	memset(h.in_service, true, sizeof(h.in_service));
	for (unsigned i = 0; i < STEPS; i++) {
		for (unsigned n = 1 + next_random(&chance) % 3; n; n--)
			change(e, &chance);
		assert_int_equal(sm_sweep(e->sm), 0);
		sa_swept(h.sa);
		assert_right(&h);
	}
	sa_free(h.sa);
	stop(e);
}

CASE(reports_tell_who_is_reached)
{
	for (unsigned seed = 1; seed <= 30; seed++)
		run(seed);
}
