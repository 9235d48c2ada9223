/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The GID table of a RoCEv2 port, from addresses that come and go; its MTU.
 */
#include <harness.h>

#include "base/util.h"
#include "netdev/netdev.h"

/* A device with addresses, its table, and what the last update changed. */
struct lab {
	struct netdev dev;
	struct netdev_address address[64];
	struct netdev_gid_table table;
	uint32_t used;
	uint32_t changed;
};

static struct ib_gid gid(const char *text)
{
	struct ib_gid g;

	assert_int_equal(inet_pton(AF_INET6, text, &g), 1);
	return g;
}

static void update(struct lab *l)
{
	l->changed = netdev_gid_table_drop(&l->table, &l->dev);
	l->changed |= netdev_gid_table_add(&l->table, &l->dev, l->used);
}

static void add(struct lab *l, const char *text)
{
	l->address[l->dev.n_addresses++].gid = gid(text);
	update(l);
}

static void drop(struct lab *l, const char *text)
{
	struct ib_gid g = gid(text);
	unsigned i = 0;

	while (!ib_gid_equal(&l->address[i].gid, &g))
		assert_in_range(++i, 1, l->dev.n_addresses - 1);
	l->dev.n_addresses--;
	memmove(&l->address[i], &l->address[i + 1],
	        (l->dev.n_addresses - i) * sizeof(l->address[0]));
	update(l);
}

static int set_up(void **state)
{
	struct lab *l = test_calloc(1, sizeof(*l));

	l->dev.address = l->address;
	memcpy(l->dev.mac, (uint8_t[]){ 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 }, NETDEV_MAC_BYTES);
	update(l);
	*state = l;
	return 0;
}

static int tear_down(void **state)
{
	test_free(*state);
	return 0;
}

/* @text "": empty. */
static void assert_gid(const struct lab *l, unsigned index, const char *text)
{
	struct ib_gid expected = gid(*text ? text : "::");

	assert_memory_equal(&l->table.gid[index], &expected, sizeof(expected));
}

#define DEFAULT_GID "fe80::11:22ff:fe33:4455"

CASE_WITH(without_a_link_local_address_entry_0_is_that_of_the_mac, set_up, tear_down)
{
	struct lab *l = *state;

	assert_int_equal(l->changed, 1);
	assert_gid(l, 0, DEFAULT_GID);
	add(l, "::ffff:10.0.0.1");
	assert_gid(l, 0, DEFAULT_GID);
}

CASE_WITH(the_link_local_address_is_entry_0_whenever_it_comes, set_up, tear_down)
{
	struct lab *l = *state;

	add(l, "::ffff:10.0.0.1");
	add(l, "fe80::1");
	assert_int_equal(l->changed, 1);
	assert_gid(l, 0, "fe80::1");
	assert_gid(l, 1, "::ffff:10.0.0.1");
	assert_gid(l, 2, "");
}

CASE_WITH(the_default_that_becomes_an_address_changes_nothing, set_up, tear_down)
{
	struct lab *l = *state;

	add(l, DEFAULT_GID);
	assert_int_equal(l->changed, 0);
	assert_gid(l, 1, "");
}

CASE_WITH(the_others_are_in_the_order_in_which_they_came, set_up, tear_down)
{
	struct lab *l = *state;

	add(l, "::ffff:10.0.0.1");
	assert_int_equal(l->changed, 1 << 1);
	add(l, "2001:db8::1");
	assert_int_equal(l->changed, 1 << 2);
	add(l, "::ffff:10.0.0.2");
	assert_int_equal(l->changed, 1 << 3);
	assert_gid(l, 1, "::ffff:10.0.0.1");
	assert_gid(l, 2, "2001:db8::1");
	assert_gid(l, 3, "::ffff:10.0.0.2");
}

CASE_WITH(a_removed_address_leaves_an_entry_that_the_next_one_gets, set_up, tear_down)
{
	struct lab *l = *state;

	add(l, "::ffff:10.0.0.1");
	add(l, "::ffff:10.0.0.2");
	add(l, "::ffff:10.0.0.3");
	drop(l, "::ffff:10.0.0.2");
	assert_int_equal(l->changed, 1 << 2);
	assert_gid(l, 2, "");
	assert_gid(l, 3, "::ffff:10.0.0.3");
	add(l, "::ffff:10.0.0.4");
	assert_int_equal(l->changed, 1 << 2);
	assert_gid(l, 2, "::ffff:10.0.0.4");
}

CASE_WITH(a_second_link_local_address_is_one_of_the_others, set_up, tear_down)
{
	struct lab *l = *state;

	add(l, "fe80::1");
	add(l, "fe80::2");
	assert_gid(l, 0, "fe80::1");
	assert_gid(l, 1, "fe80::2");
}

CASE_WITH(it_moves_to_entry_0_when_the_first_goes, set_up, tear_down)
{
	struct lab *l = *state;

	add(l, "fe80::1");
	add(l, "fe80::2");
	drop(l, "fe80::1");
	assert_int_equal(l->changed, 1 << 1 | 1 << 0);
	assert_gid(l, 0, "fe80::2");
	assert_gid(l, 1, "");
}

CASE_WITH(an_address_with_two_prefixes_is_one_entry, set_up, tear_down)
{
	struct lab *l = *state;

	add(l, "::ffff:10.0.0.1");
	add(l, "::ffff:10.0.0.1");
	assert_int_equal(l->changed, 0);
	drop(l, "::ffff:10.0.0.1");
	assert_int_equal(l->changed, 0);
	assert_gid(l, 1, "::ffff:10.0.0.1");
	drop(l, "::ffff:10.0.0.1");
	assert_gid(l, 1, "");
}

CASE_WITH(an_address_without_an_entry_gets_the_next_free_one, set_up, tear_down)
{
	struct lab *l = *state;
	char text[64];

	for (unsigned i = 0; i < NETDEV_GIDS; i++) {
		snprintf(text, sizeof(text), "2001:db8::%x", i + 1);
		add(l, text);
	}
	assert_int_equal(l->changed, 0);
	assert_gid(l, NETDEV_GIDS - 1, "2001:db8::1f");
	drop(l, "2001:db8::5");
	assert_int_equal(l->changed, 1 << 5);
	assert_gid(l, 5, "2001:db8::20");
}

/* ---- entries from which somebody still sends ---- */

CASE_WITH(an_entry_in_use_is_left_to_the_address_that_was_there, set_up, tear_down)
{
	struct lab *l = *state;

	add(l, "::ffff:10.0.0.1");
	add(l, "::ffff:10.0.0.2");
	l->used = 1 << 1 | 1 << 2;
	drop(l, "::ffff:10.0.0.1");
	drop(l, "::ffff:10.0.0.2");
	assert_gid(l, 1, "");
	add(l, "::ffff:10.0.0.3");
	assert_gid(l, 3, "::ffff:10.0.0.3");
	add(l, "::ffff:10.0.0.2");
	assert_gid(l, 2, "::ffff:10.0.0.2");
	assert_gid(l, 1, "");
	l->used = 0;
	add(l, "::ffff:10.0.0.4");
	assert_gid(l, 1, "::ffff:10.0.0.4");
}

CASE_WITH(an_address_without_an_entry_gets_one_that_is_not_in_use_any_more, set_up, tear_down)
{
	struct lab *l = *state;
	char text[64];

	for (unsigned i = 1; i < NETDEV_GIDS; i++) {
		snprintf(text, sizeof(text), "2001:db8::%x", i);
		add(l, text);
	}
	assert_false(netdev_gid_table_lacks(&l->table, &l->dev));
	l->used = 1 << 7;
	drop(l, "2001:db8::7");
	add(l, "::ffff:10.0.0.1");
	assert_gid(l, 7, "");
	assert_true(netdev_gid_table_lacks(&l->table, &l->dev));
	l->used = 0;
	update(l);
	assert_gid(l, 7, "::ffff:10.0.0.1");
	assert_false(netdev_gid_table_lacks(&l->table, &l->dev));
}

CASE_WITH(entry_0_in_use_waits_for_its_address, set_up, tear_down)
{
	struct lab *l = *state;

	add(l, "fe80::1");
	l->used = 1 << 0;
	drop(l, "fe80::1");
	assert_gid(l, 0, "");
	add(l, "fe80::2");
	assert_gid(l, 0, "");
	assert_gid(l, 1, "fe80::2");
	drop(l, "fe80::2");
	add(l, "fe80::1");
	assert_gid(l, 0, "fe80::1");
	assert_gid(l, 1, "");
}

CASE_WITH(a_link_local_address_in_use_stays_where_it_is, set_up, tear_down)
{
	struct lab *l = *state;

	add(l, "fe80::1");
	add(l, "fe80::2");
	l->used = 1 << 1;
	drop(l, "fe80::1");
	assert_gid(l, 0, "");
	assert_gid(l, 1, "fe80::2");
	assert_true(netdev_gid_table_lacks(&l->table, &l->dev));
	l->used = 0;
	update(l);
	assert_gid(l, 0, "fe80::2");
	assert_gid(l, 1, "");
}

CASE(the_mtu_leaves_room_for_headers)
{
	static const struct {
		uint32_t device;
		unsigned bytes;
	} row[] = { { 68, 256 },    { 335, 256 },   { 336, 256 },   { 591, 256 },   { 592, 512 },
		    { 1103, 512 },  { 1104, 1024 }, { 1500, 1024 }, { 2127, 1024 }, { 2128, 2048 },
		    { 4175, 2048 }, { 4176, 4096 }, { 9000, 4096 }, { 65536, 4096 } };

	for (size_t i = 0; EACH_ROW(i, row); i++)
		assert_int_equal(IB_MTU_BYTES(netdev_active_mtu(row[i].device)), row[i].bytes);
}
