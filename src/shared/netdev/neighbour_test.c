/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Neighbours of one end of a link, as the kernel tells of them.
 */
#include <harness.h>

#include "netdev/testing.h"

#include "netdev/neighbour.h"

/* A network, and the neighbour that its watch has told of last. */
struct lab {
	struct netdev_watch *watch;
	struct netdev_neighbours neighbours;
	int ifindex;
	struct netdev_hop came;
	unsigned n_came;
};

static void changed(void *arg, const struct netdev *dev, unsigned changes)
{
	(void)arg;
	(void)dev;
	(void)changes;
}

static void came(void *arg, int ifindex, const struct ib_gid *gid)
{
	struct lab *l = arg;

	l->came = (struct netdev_hop){ .ifindex = ifindex, .gid = *gid };
	l->n_came++;
}

static int set_up(void **state)
{
	struct lab *l = test_calloc(1, sizeof(*l));

	assert_int_equal(netdev_watch_open(&l->watch, NULL, changed, l), 0);
	l->ifindex = netdev_watch_find(l->watch, "va")->index;
	testing_run("ip neigh flush dev va; ip -6 neigh flush dev va; "
	            "ip route replace 203.0.113.0/24 via 10.0.0.2; "
	            "ip route replace 198.51.100.0/24 via inet6 2001:db8::2; "
	            "ip -6 route replace 2001:db8:1::/64 via fe80::2 dev va");
	*state = l;
	return 0;
}

static int tear_down(void **state)
{
	struct lab *l = *state;

	netdev_neighbours_close(&l->neighbours);
	netdev_watch_close(l->watch);
	test_free(l);
	return 0;
}

static struct ib_gid gid(const char *text)
{
	struct ib_gid g = { { [10] = 0xFF, [11] = 0xFF } };

	assert_true(inet_pton(AF_INET6, text, &g) == 1 ||
	            inet_pton(AF_INET, text, g.raw + 12) == 1);
	return g;
}

static int route(struct lab *l, const char *to, struct netdev_hop *hop)
{
	struct ib_gid dgid = gid(to), sgid = gid(strchr(to, ':') ? "2001:db8::1" : "10.0.0.1");

	return netdev_neighbour_route(&l->neighbours, l->ifindex, &sgid, &dgid, hop);
}

static void assert_hop(struct lab *l, const char *to, const char *by)
{
	struct netdev_hop hop;
	struct ib_gid want = gid(by);

	assert_int_equal(route(l, to, &hop), 1);
	assert_int_equal(hop.ifindex, l->ifindex);
	assert_memory_equal(&hop.gid, &want, sizeof(want));
}

CASE_WITH(the_first_hop_is_the_address_or_a_gateway, set_up, tear_down)
{
	assert_hop(*state, "10.0.0.2", "10.0.0.2");
	assert_hop(*state, "10.0.0.77", "10.0.0.77");
	assert_hop(*state, "203.0.113.5", "10.0.0.2");
	assert_hop(*state, "198.51.100.5", "2001:db8::2");
	assert_hop(*state, "2001:db8::2", "2001:db8::2");
	assert_hop(*state, "fe80::2", "fe80::2");
	assert_hop(*state, "2001:db8:1::5", "fe80::2");
}

CASE_WITH(what_stays_here_and_groups_have_none, set_up, tear_down)
{
	static const char *const to[] = { "10.0.0.1", "10.0.0.255", "2001:db8::1", "fe80::1" };
	struct netdev_hop hop;

	for (unsigned i = 0; i < ARRAY_SIZE(to); i++)
		if (route(*state, to[i], &hop))
			fail_msg("%s has a first hop", to[i]);
}

CASE_WITH(without_a_route_the_kernel_says_so, set_up, tear_down)
{
	struct netdev_hop hop;

	assert_int_equal(route(*state, "2001:db8:2::1", &hop), -ENETUNREACH);
	assert_int_equal(route(*state, "10.0.0.2", &hop), 1); /* and the next one is answered */
}

/* Until the watch has told of that one. */
static void wait_for(struct lab *l, const char *text)
{
	uint64_t deadline = testing_deadline();
	struct ib_gid want = gid(text);

	while (l->came.ifindex != l->ifindex || !ib_gid_equal(&l->came.gid, &want)) {
		testing_wait_input(netdev_watch_fd(l->watch), deadline);
		assert_int_equal(netdev_watch_dispatch(l->watch), 0);
	}
}

CASE_WITH(who_is_there_is_found_by_a_probe, set_up, tear_down)
{
	static const char *const there[] = { "10.0.0.2", "2001:db8::2", "fe80::2" };
	struct lab *l = *state;
	struct netdev_hop hop;

	assert_int_equal(netdev_watch_neighbours(l->watch, came), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(there); i++) {
		assert_int_equal(route(l, there[i], &hop), 1);
		assert_int_equal(netdev_neighbour_find(&l->neighbours, &hop), -EINPROGRESS);
		assert_false(hop.is_asked_for);
		assert_int_equal(netdev_neighbour_probe(&l->neighbours, &hop), 0);
		wait_for(l, there[i]);
		assert_int_equal(netdev_neighbour_find(&l->neighbours, &hop), 0);
	}
}

CASE_WITH(who_is_not_there_is_asked_for_until_the_kernel_gives_up, set_up, tear_down)
{
	struct lab *l = *state;
	struct netdev_hop hop;

	assert_int_equal(route(l, "10.0.0.77", &hop), 1);
	assert_int_equal(netdev_neighbour_find(&l->neighbours, &hop), -EINPROGRESS);
	assert_int_equal(netdev_neighbour_probe(&l->neighbours, &hop), 0);
	assert_int_equal(netdev_neighbour_find(&l->neighbours, &hop), -EINPROGRESS);
	assert_true(hop.is_asked_for);
	testing_run("ip neigh replace 10.0.0.77 dev va nud failed");
	assert_int_equal(netdev_neighbour_find(&l->neighbours, &hop), -EINPROGRESS);
	assert_false(hop.is_asked_for);
}

CASE_WITH(nothing_is_told_to_who_does_not_watch, set_up, tear_down)
{
	struct lab *l = *state;

	assert_int_equal(netdev_watch_neighbours(l->watch, came), 0);
	testing_run("ip neigh replace 10.0.0.78 lladdr 02:00:00:00:00:78 dev va");
	wait_for(l, "10.0.0.78");
	assert_int_equal(netdev_watch_neighbours(l->watch, NULL), 0);
	l->n_came = 0;
	testing_run("ip neigh replace 10.0.0.79 lladdr 02:00:00:00:00:79 dev va");
	assert_int_equal(netdev_watch_dispatch(l->watch), 0);
	assert_int_equal(l->n_came, 0);
}

int main(void)
{
	return harness_run(testing_enter_two_namespaces, NULL);
}
