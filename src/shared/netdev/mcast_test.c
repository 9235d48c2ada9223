/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memberships as the kernel lists them, and what their limits make of them.
 */
#include <harness.h>

#include "netdev/testing.h"

#include <net/if.h>

#include "netdev/mcast.h"

struct lab {
	struct netdev_mcast *mcast;
	char why[256];
};

static int set_up(void **state)
{
	struct lab *l = test_calloc(1, sizeof(*l));

	testing_run("echo 20 > /proc/sys/net/ipv4/igmp_max_memberships");
	assert_int_equal(netdev_mcast_new(&l->mcast, NULL, (int)if_nametoindex("va")), 0);
	*state = l;
	return 0;
}

static int tear_down(void **state)
{
	struct lab *l = *state;

	netdev_mcast_free(l->mcast);
	test_free(l);
	return 0;
}

static struct ib_gid gid(const char *text)
{
	struct ib_gid g;

	assert_int_equal(inet_pton(AF_INET6, text, &g), 1);
	return g;
}

static int join(struct lab *l, const char *text)
{
	struct ib_gid g = gid(text);

	return netdev_mcast_join(l->mcast, &g, l->why, sizeof(l->why));
}

static int leave(struct lab *l, const char *text)
{
	struct ib_gid g = gid(text);

	return netdev_mcast_leave(l->mcast, &g);
}

/* The @i'th of many. */
static const char *numbered(bool ipv6, unsigned i)
{
	static char text[64];

	if (ipv6)
		snprintf(text, sizeof(text), "ff0e::1:%x", i);
	else
		snprintf(text, sizeof(text), "::ffff:239.9.%u.%u", i / 256, i % 256);
	return text;
}

/* Is @device a member, according to the kernel? @text: as `ip` writes it. */
static bool is_member(const char *device, const char *text)
{
	char command[128];

	snprintf(command, sizeof(command), "ip maddr show dev %s | grep -qw 'inet6* *%s'", device,
	         text);
	return system(command) == 0;
}

static unsigned count_members(const char *pattern)
{
	char command[128], line[32] = "";
	FILE *pipe;

	snprintf(command, sizeof(command), "ip maddr show dev va | grep -cw '%s'", pattern);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_non_null(fgets(line, sizeof(line), pipe));
	pclose(pipe);
	return (unsigned)atoi(line);
}

CASE_WITH(a_group_is_joined_and_left, set_up, tear_down)
{
	struct lab *l = *state;

	assert_int_equal(join(l, "::ffff:239.1.1.1"), 0);
	assert_int_equal(join(l, "ff0e::1:2"), 0);
	assert_true(is_member("va", "239.1.1.1"));
	assert_true(is_member("va", "ff0e::1:2"));
	assert_int_equal(leave(l, "::ffff:239.1.1.1"), 0);
	assert_int_equal(leave(l, "ff0e::1:2"), 0);
	assert_false(is_member("va", "239.1.1.1"));
	assert_false(is_member("va", "ff0e::1:2"));
	assert_int_equal(netdev_mcast_sockets(l->mcast), 0);
}

CASE_WITH(it_is_left_with_the_last_leave, set_up, tear_down)
{
	struct lab *l = *state;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(join(l, "::ffff:239.1.1.1"), 0);
	assert_int_equal(netdev_mcast_groups(l->mcast), 1);
	assert_int_equal(leave(l, "::ffff:239.1.1.1"), 0);
	assert_int_equal(leave(l, "::ffff:239.1.1.1"), 0);
	assert_true(is_member("va", "239.1.1.1"));
	assert_int_equal(leave(l, "::ffff:239.1.1.1"), 0);
	assert_false(is_member("va", "239.1.1.1"));
	assert_int_equal(leave(l, "::ffff:239.1.1.1"), -ENOENT);
}

CASE_WITH(all_are_left_in_the_end, set_up, tear_down)
{
	struct lab *l = *state;

	assert_int_equal(join(l, "::ffff:239.1.1.1"), 0);
	assert_int_equal(join(l, "ff0e::1:2"), 0);
	netdev_mcast_free(l->mcast);
	assert_false(is_member("va", "239.1.1.1"));
	assert_false(is_member("va", "ff0e::1:2"));
	assert_int_equal(netdev_mcast_new(&l->mcast, NULL, (int)if_nametoindex("va")), 0);
}

CASE_WITH(only_multicast_addresses_are_groups, set_up, tear_down)
{
	struct lab *l = *state;

	assert_int_equal(join(l, "::ffff:10.0.0.1"), -EINVAL);
	assert_string_equal(l->why, "not a multicast address");
	assert_int_equal(join(l, "2001:db8::1"), -EINVAL);
	assert_int_equal(leave(l, "::ffff:239.1.1.1"), -ENOENT);
}

/* 20 a socket, which is Linux's default. */
CASE_WITH(a_thousand_ipv4_groups_need_fifty_sockets, set_up, tear_down)
{
	struct lab *l = *state;

	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(join(l, numbered(false, i)), 0);
	assert_int_equal(count_members("inet *239[.]9[.].*"), 1000);
	assert_int_equal(netdev_mcast_sockets(l->mcast), 50);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(leave(l, numbered(false, i)), 0);
	assert_int_equal(count_members("inet *239[.]9[.].*"), 0);
	assert_int_equal(netdev_mcast_sockets(l->mcast), 0);
}

CASE_WITH(ipv6_can_have_thousands_of_groups, set_up, tear_down)
{
	struct lab *l = *state;

	for (unsigned i = 1; i <= 5000; i++)
		assert_int_equal(join(l, numbered(true, i)), 0);
	assert_int_equal(count_members("inet6 ff0e::1:.*"), 5000);
	assert_in_range(netdev_mcast_sockets(l->mcast), 1, 100);
}

CASE_WITH(room_that_was_left_is_used_again, set_up, tear_down)
{
	struct lab *l = *state;

	for (unsigned i = 0; i < 60; i++)
		assert_int_equal(join(l, numbered(false, i)), 0);
	assert_int_equal(netdev_mcast_sockets(l->mcast), 3);
	for (unsigned i = 10; i < 50; i += 2)
		assert_int_equal(leave(l, numbered(false, i)), 0);
	for (unsigned i = 100; i < 120; i++)
		assert_int_equal(join(l, numbered(false, i)), 0);
	assert_int_equal(netdev_mcast_sockets(l->mcast), 3);
}

CASE_WITH(a_limit_of_the_kernel_is_named, set_up, tear_down)
{
	struct lab *l = *state;

	testing_run("echo 0 > /proc/sys/net/ipv4/igmp_max_memberships");
	assert_int_equal(join(l, "::ffff:239.1.1.1"), -ENOBUFS);
	assert_non_null(strstr(l->why, "net.ipv4.igmp_max_memberships"));
	assert_int_equal(netdev_mcast_groups(l->mcast), 0);
	assert_int_equal(netdev_mcast_sockets(l->mcast), 0);
	assert_int_equal(join(l, "ff0e::1:2"), 0);
}

CASE_WITH(without_descriptors_the_error_says_how_to_save_some, set_up, tear_down)
{
	struct rlimit before, few;
	struct lab *l = *state;
	unsigned n = 0;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 30;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (n < 1000 && join(l, numbered(false, n)) == 0)
		n++;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_in_range(n, 20, 600);
	assert_non_null(strstr(l->why, "net.ipv4.igmp_max_memberships"));
	assert_non_null(strstr(l->why, "ulimit -n"));
	assert_int_equal(join(l, numbered(false, n)), 0);
}

CASE_WITH(a_device_that_is_gone_is_an_error, set_up, tear_down)
{
	struct lab *l = *state;

	netdev_mcast_free(l->mcast);
	assert_int_equal(netdev_mcast_new(&l->mcast, NULL, 12345), 0);
	assert_int_equal(join(l, "::ffff:239.1.1.1"), -ENODEV);
	assert_non_null(strstr(l->why, "gone"));
	assert_int_equal(join(l, "ff0e::1:2"), -ENODEV);
}

CASE_WITH(a_device_that_came_back_gets_its_groups_again, set_up, tear_down)
{
	struct lab *l = *state;

	testing_run("ip link add vc type veth peer name vd; ip link set vc up");
	netdev_mcast_free(l->mcast);
	assert_int_equal(netdev_mcast_new(&l->mcast, NULL, (int)if_nametoindex("vc")), 0);
	assert_int_equal(join(l, "::ffff:239.1.1.1"), 0);
	assert_int_equal(join(l, "ff0e::1:2"), 0);
	testing_run("ip link del vc");
	assert_int_equal(netdev_mcast_renew(l->mcast, 12345, l->why, sizeof(l->why)), -ENODEV);
	assert_int_equal(netdev_mcast_groups(l->mcast), 2);
	assert_int_equal(netdev_mcast_sockets(l->mcast), 0);

	assert_int_equal(netdev_mcast_renew(l->mcast, 0, l->why, sizeof(l->why)), 0);
	assert_int_equal(join(l, "::ffff:239.1.1.2"), -ENODEV);
	assert_int_equal(netdev_mcast_groups(l->mcast), 2);

	testing_run("ip link add vc type veth peer name vd; ip link set vc up");
	assert_int_equal(
	        netdev_mcast_renew(l->mcast, (int)if_nametoindex("vc"), l->why, sizeof(l->why)), 0);
	assert_true(is_member("vc", "239.1.1.1"));
	assert_true(is_member("vc", "ff0e::1:2"));
	assert_int_equal(leave(l, "::ffff:239.1.1.1"), 0);
	assert_false(is_member("vc", "239.1.1.1"));
	testing_run("ip link del vc");
}

int main(void)
{
	return harness_run(testing_enter_two_namespaces, NULL);
}
