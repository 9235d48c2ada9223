/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Devices that are made, changed and removed, as a watch sees them.
 */
#include <harness.h>

#include "netdev/testing.h"

#include "netdev/netdev.h"

/* A watch, and the changes of one device that it has reported. */
struct lab {
	struct netdev_watch *watch;
	char name[IFNAMSIZ];
	unsigned changes;
};

static void changed(void *arg, const struct netdev *dev, unsigned changes)
{
	struct lab *l = arg;

	if (!strcmp(dev->name, l->name))
		l->changes |= changes;
}

static int set_up(void **state)
{
	struct lab *l = test_calloc(1, sizeof(*l));

	testing_run("ip link add va address 02:11:22:33:44:55 type veth peer name vb;"
	            "ip link set va addrgenmode none; ip link set vb addrgenmode none");
	assert_int_equal(netdev_watch_open(&l->watch, NULL, changed, l), 0);
	strcpy(l->name, "va");
	*state = l;
	return 0;
}

static int tear_down(void **state)
{
	struct lab *l = *state;

	netdev_watch_close(l->watch);
	testing_run("for d in $(ip -o link | sed -n 's/^[0-9]*: \\([^:@]*\\).*/\\1/p'); do "
	            "[ $d = lo ] || ip link del $d 2>/dev/null; done; true");
	test_free(l);
	return 0;
}

static const struct netdev *va(const struct lab *l)
{
	return netdev_watch_find(l->watch, "va");
}

/* Dispatches until the watch has reported all of @changes. */
static void wait_for(struct lab *l, unsigned changes)
{
	uint64_t deadline = testing_deadline();

	while ((l->changes & changes) != changes) {
		testing_wait_input(netdev_watch_fd(l->watch), deadline);
		assert_int_equal(netdev_watch_dispatch(l->watch), 0);
	}
	l->changes = 0;
}

static bool has(const struct netdev *dev, const char *text)
{
	struct ib_gid gid;

	assert_int_equal(inet_pton(AF_INET6, text, &gid), 1);
	for (unsigned i = 0; i < dev->n_addresses; i++)
		if (ib_gid_equal(&dev->address[i].gid, &gid))
			return true;
	return false;
}

CASE_WITH(existing_devices_are_known_at_once, set_up, tear_down)
{
	static const uint8_t mac[] = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 };
	struct lab *l = *state;
	const struct netdev *lo = netdev_watch_find(l->watch, "lo");

	assert_non_null(va(l));
	assert_int_equal(va(l)->mtu, 1500);
	assert_memory_equal(va(l)->mac, mac, sizeof(mac));
	assert_false(va(l)->up);
	assert_false(va(l)->loopback);
	assert_ptr_equal(netdev_watch_at(l->watch, va(l)->index), va(l));
	assert_int_equal(l->changes, 0);
	assert_true(lo->loopback && lo->up && lo->carrier);
	assert_true(has(lo, "::ffff:127.0.0.1"));
	assert_true(has(lo, "::1"));
}

CASE_WITH(a_device_that_does_not_exist_is_not_found, set_up, tear_down)
{
	struct lab *l = *state;

	assert_null(netdev_watch_find(l->watch, "vc"));
	assert_null(netdev_watch_at(l->watch, 12345));
}

CASE_WITH(a_new_device_is_reported, set_up, tear_down)
{
	struct lab *l = *state;

	strcpy(l->name, "vc");
	testing_run("ip link add vc type veth peer name vd");
	wait_for(l, NETDEV_CHANGE_NEW);
	assert_non_null(netdev_watch_find(l->watch, "vc"));
}

CASE_WITH(a_device_that_goes_is_reported_and_found_again_when_it_comes_back, set_up, tear_down)
{
	struct lab *l = *state;
	int index = va(l)->index;

	testing_run("ip link del va");
	wait_for(l, NETDEV_CHANGE_GONE);
	assert_null(va(l));
	testing_run("ip link add va type veth peer name vb");
	wait_for(l, NETDEV_CHANGE_NEW);
	assert_int_not_equal(va(l)->index, index);
}

CASE_WITH(up_and_down_are_reported, set_up, tear_down)
{
	struct lab *l = *state;

	testing_run("ip link set va up");
	wait_for(l, NETDEV_CHANGE_STATE);
	assert_true(va(l)->up);
	testing_run("ip link set va down");
	wait_for(l, NETDEV_CHANGE_STATE);
	assert_false(va(l)->up);
}

CASE_WITH(a_device_whose_peer_is_down_has_no_carrier, set_up, tear_down)
{
	struct lab *l = *state;

	testing_run("ip link set va up");
	wait_for(l, NETDEV_CHANGE_STATE);
	assert_false(va(l)->carrier);
	testing_run("ip link set vb up");
	wait_for(l, NETDEV_CHANGE_STATE);
	assert_true(va(l)->carrier);
}

CASE_WITH(changes_of_mtu_mac_and_name_are_reported, set_up, tear_down)
{
	struct lab *l = *state;

	testing_run("ip link set va mtu 4200");
	wait_for(l, NETDEV_CHANGE_MTU);
	assert_int_equal(va(l)->mtu, 4200);
	testing_run("ip link set va address 02:00:00:00:00:07");
	wait_for(l, NETDEV_CHANGE_MAC);
	assert_int_equal(va(l)->mac[5], 7);
	strcpy(l->name, "other");
	testing_run("ip link set va name other");
	wait_for(l, NETDEV_CHANGE_NAME);
	assert_null(va(l));
}

CASE_WITH(ipv4_addresses_come_and_go, set_up, tear_down)
{
	struct lab *l = *state;

	testing_run("ip addr add 10.0.0.1/24 dev va");
	wait_for(l, NETDEV_CHANGE_ADDRESSES);
	testing_run("ip addr add 10.0.0.2/24 dev va");
	wait_for(l, NETDEV_CHANGE_ADDRESSES);
	assert_int_equal(va(l)->n_addresses, 2);
	assert_true(has(va(l), "::ffff:10.0.0.1"));
	assert_int_equal(va(l)->address[0].prefix, 24);
	testing_run("ip addr del 10.0.0.2/24 dev va");
	wait_for(l, NETDEV_CHANGE_ADDRESSES);
	assert_int_equal(va(l)->n_addresses, 1);
	assert_false(has(va(l), "::ffff:10.0.0.2"));
}

CASE_WITH(of_a_point_to_point_address_it_is_the_local_one, set_up, tear_down)
{
	struct lab *l = *state;

	testing_run("ip addr add 10.0.0.1 peer 10.0.0.9/32 dev va");
	wait_for(l, NETDEV_CHANGE_ADDRESSES);
	assert_true(has(va(l), "::ffff:10.0.0.1"));
	assert_false(has(va(l), "::ffff:10.0.0.9"));
}

CASE_WITH(a_tentative_address_is_not_there_yet, set_up, tear_down)
{
	struct lab *l = *state;

	/* without a carrier, the look for duplicates does not begin */
	testing_run("ip link set va up; ip link set vb down");
	testing_run("ip addr add 2001:db8::1/64 dev va; ip addr add 10.0.0.1/24 dev va");
	while (!has(va(l), "::ffff:10.0.0.1"))
		wait_for(l, NETDEV_CHANGE_ADDRESSES);
	assert_false(has(va(l), "2001:db8::1"));
	testing_run("ip link set vb up");
	while (!has(va(l), "2001:db8::1")) /* others come as well */
		wait_for(l, NETDEV_CHANGE_ADDRESSES);
}

CASE_WITH(the_addresses_of_ipv6_go_when_the_device_goes_down, set_up, tear_down)
{
	struct lab *l = *state;

	testing_run("ip link set va up; ip link set vb up");
	testing_run("ip addr add 10.0.0.1/24 dev va");
	testing_run("ip addr add 2001:db8::1/64 dev va nodad");
	while (!has(va(l), "2001:db8::1"))
		wait_for(l, NETDEV_CHANGE_ADDRESSES);
	testing_run("ip link set va down");
	while (va(l)->n_addresses > 1)
		wait_for(l, NETDEV_CHANGE_ADDRESSES);
	assert_true(has(va(l), "::ffff:10.0.0.1"));
}

CASE_WITH(a_device_on_another_is_one_like_others, set_up, tear_down)
{
	struct lab *l = *state;

	strcpy(l->name, "va.7");
	testing_run("ip link add link va name va.7 type macvlan");
	wait_for(l, NETDEV_CHANGE_NEW);
	testing_run("ip addr add 10.7.0.1/24 dev va.7");
	wait_for(l, NETDEV_CHANGE_ADDRESSES);
	assert_true(has(netdev_watch_find(l->watch, "va.7"), "::ffff:10.7.0.1"));
}

CASE_WITH(a_port_that_leaves_its_bridge_is_still_there, set_up, tear_down)
{
	struct lab *l = *state;

	testing_run("ip link add br0 type bridge; ip link set va master br0");
	testing_run("ip link set va nomaster; ip link set va mtu 1400");
	wait_for(l, NETDEV_CHANGE_MTU);
	assert_non_null(va(l));
}

/* So many that the kernel has to drop messages; one that it drops is the last. */
CASE_WITH(after_lost_messages_the_kernel_is_asked_again, set_up, tear_down)
{
	struct lab *l = *state;
	struct ib_gid last;

	testing_run("for i in $(seq 0 3999); do "
	            "echo addr add 10.1.$((i / 250)).$((i %% 250 + 1))/32 dev va; done | "
	            "ip -batch -");
	testing_run("ip link set va mtu 1400");
	wait_for(l, NETDEV_CHANGE_ADDRESSES | NETDEV_CHANGE_MTU);
	assert_int_equal(va(l)->n_addresses, 4000);
	inet_pton(AF_INET6, "::ffff:10.1.15.250", &last);
	assert_memory_equal(&va(l)->address[3999].gid, &last, sizeof(last));
}

CASE_WITH(a_device_that_may_have_been_away_unnoticed_is_reported_unsure, set_up, tear_down)
{
	struct lab *l = *state;
	int index = va(l)->index;

	testing_run("for i in $(seq 0 3999); do "
	            "echo addr add 10.1.$((i / 250)).$((i %% 250 + 1))/32 dev lo; done | "
	            "ip -batch -");
	testing_run("ip link del va; ip link add va index %d type veth peer name vb", index);
	wait_for(l, NETDEV_CHANGE_UNSURE);
	testing_run("ip addr flush to 10.1.0.0/16 dev lo");
}

CASE_WITH(a_device_that_went_unnoticed_is_reported_gone, set_up, tear_down)
{
	struct lab *l = *state;

	testing_run("for i in $(seq 0 3999); do "
	            "echo addr add 10.1.$((i / 250)).$((i %% 250 + 1))/32 dev lo; done | "
	            "ip -batch -");
	testing_run("ip link del va; ip link add va type veth peer name vb");
	wait_for(l, NETDEV_CHANGE_GONE | NETDEV_CHANGE_NEW);
	assert_int_equal(va(l)->n_addresses, 0);
	testing_run("ip addr flush to 10.1.0.0/16 dev lo");
}

int main(void)
{
	return harness_run(testing_enter_namespace, NULL);
}
