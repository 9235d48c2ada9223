/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The order of the switches: whatever it was and whichever links are down, when it has been mended
 * the ways from one switch lead down to all switches with hosts that links connect; and what need
 * not be moved is not.
 */
#include <harness.h>

#include "subnet/sm_state.h"
#include "subnet/testing_routes.h"

struct order_env {
	struct env *e;
	struct sm_net net;
	struct sm_order *order;
};

static void begin(struct order_env *o, struct env *e)
{
	o->e = e;
	memset(&o->net, 0, sizeof(o->net));
	assert_int_equal(sm_net_init(&o->net, e->f), 0);
	sm_net_look(&o->net);
	assert_int_equal(sm_order_new(&o->order, &o->net), 0);
}

static void end(struct order_env *o)
{
	sm_order_free(o->order);
	sm_net_fini(&o->net);
	stop(o->e);
}

static void set_link(struct order_env *o, unsigned sw, unsigned port, bool up)
{
	assert_int_equal(fabric_link_set(o->e->f, &o->net.sw[sw]->port[port], up), 0);
}

/* Marks what links lead to from @at, only down in the order if @down. */
static void mark(const struct order_env *o, unsigned at, bool down, bool *seen)
{
	seen[at] = true;
	for (unsigned k = o->net.first[at]; k < o->net.first[at + 1]; k++) {
		const struct sm_link *l = &o->net.link[k];

		if (l->up && !seen[l->to] &&
		    (!down || o->order->place[l->to] > o->order->place[at]))
			mark(o, l->to, down, seen);
	}
}

/* Whether ways lead down from @top to all switches with hosts that links connect with it. */
static bool is_above_all(const struct order_env *o, unsigned top)
{
	bool below[MAX_SWITCH] = { false }, connected[MAX_SWITCH] = { false };

	mark(o, top, true, below);
	mark(o, top, false, connected);
	for (unsigned i = 0; i < o->net.n; i++)
		if (connected[i] && !below[i] && o->net.has_hosts[i])
			return false;
	return true;
}

static void assert_mended(const struct order_env *o)
{
	bool placed[MAX_SWITCH] = { false };

	for (unsigned i = 0; i < o->net.n; i++) {
		bool connected[MAX_SWITCH] = { false }, found = false;

		assert_in_range(o->order->place[i], 0, o->net.n - 1);
		assert_int_equal(o->order->sorted[o->order->place[i]], i);
		assert_false(placed[o->order->place[i]]);
		placed[o->order->place[i]] = true;
		mark(o, i, false, connected);
		for (unsigned k = 0; k < o->net.n && !found; k++)
			found = connected[k] && is_above_all(o, k);
		assert_true(found);
	}
}

/* ---- the tests ---- */

CASE(one_switch_is_above_all_in_any_order_that_is_mended)
{
	unsigned n_moved = 0;

	for (unsigned seed = 1; seed <= 300; seed++) {
		unsigned chance = seed;
		uint16_t rank[MAX_SWITCH];
		struct order_env o;

		begin(&o, seed % 2 ? start_random(seed, "minhop") : start_fat_tree(3, 4, "minhop"));
		for (unsigned i = 0; i < seed % 12; i++)
			fabric_link_set(o.e->f, nth_link(o.e, next_random(&chance)), false);
		sm_net_look(&o.net);
		for (unsigned i = 0; i < o.net.n; i++)
			rank[i] = (uint16_t)(next_random(&chance) % (1 + seed % 7));
		sm_order_by_rank(o.order, rank);
		n_moved += sm_order_mend(o.order);
		assert_mended(&o);
		assert_int_equal(sm_order_mend(o.order), 0);
		sm_order_by_level(o.order);
		n_moved += sm_order_mend(o.order);
		assert_mended(&o);
		end(&o);
	}
	assert_true(n_moved > 300);
}

/* Links of leaves to each plane but the last have failed: that plane's spines are above all. When
 * the last one has lost a link too, one link leads the other way: a switch gets its place behind a
 * leaf, and the leaf that has lost its link behind that. */
CASE(what_need_not_be_moved_is_not)
{
	unsigned before[MAX_SWITCH], changed = 0;
	struct order_env o;

	begin(&o, start_fat_tree(3, 8, "minhop"));
	sm_order_by_level(o.order);
	memcpy(before, o.order->place, o.net.n * sizeof(*before));
	assert_int_equal(sm_order_mend(o.order), 0);
	for (unsigned i = 0, port = 5, leaf = 0; i < o.net.n && port <= 8; i++) {
		if (!o.net.has_hosts[i] || leaf++ % 5)
			continue;
		set_link(&o, i, port++, false);
		sm_net_look(&o.net);
		sm_order_by_level(o.order);
		assert_int_equal(sm_order_mend(o.order), port == 9 ? 2 : 0);
		assert_mended(&o);
	}
	for (unsigned k = 0; k < o.net.first[o.net.n]; k++) {
		const struct sm_link *l = &o.net.link[k];
		unsigned at = 0;

		while (o.net.first[at + 1] <= k)
			at++;
		changed += (before[at] < before[l->to]) !=
		           (o.order->place[at] < o.order->place[l->to]);
	}
	assert_int_equal(changed, 2); /* one link, seen from both ends */
	end(&o);
}
