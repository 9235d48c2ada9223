/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line of umbel-ipoib, and the kernel's lists of groups.
 */
#include <harness.h>

#include "ipoib/members.h"
#include "ipoib/options.h"
#include "ipoib/testing.h"

static struct ipoib_options options;
static char why[128];

/* Parses the words of @line. */
static int parse(const char *line)
{
	static char copy[512];
	char *argv[64] = { "umbel-ipoib" }, *rest = copy;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	while (rest && *rest)
		argv[argc++] = strsep(&rest, " ");
	return ipoib_options_parse(&options, argc, argv, why, sizeof(why));
}

CASE(the_interface_suffices)
{
	assert_int_equal(parse("--interface ib0"), 0);
	assert_string_equal(options.interface, "ib0");
	assert_int_equal(options.port, 1);
	assert_int_equal(options.pkey, 0xFFFF);
	assert_int_equal(options.status_fd, -1);
	assert_false(options.is_new);
	assert_false(options.connected);
	assert_false(options.multicast);
	assert_false(options.await);
}

CASE(addresses_are_of_both_families)
{
	struct ib_gid ipv4 = testing_ip("192.0.2.1"), ipv6 = testing_ip("2001:db8::1");

	assert_int_equal(parse("--interface ib0 --address 192.0.2.1/24 --address 2001:db8::1/64 "
	                       "--pkey 0x1 --port 2 --new --mode connected --multicast --status-fd "
	                       "3 --control-fd 4 --await-pkey"),
	                 0);
	assert_int_equal(options.n_addresses, 2);
	assert_true(ib_gid_equal(&options.address[0].gid, &ipv4));
	assert_int_equal(options.address[0].prefix, 24);
	assert_true(ib_gid_equal(&options.address[1].gid, &ipv6));
	assert_int_equal(options.pkey, 0x8001);
	assert_int_equal(options.port, 2);
	assert_true(options.is_new);
	assert_true(options.connected);
	assert_true(options.multicast);
	assert_true(options.await);
	assert_int_equal(options.status_fd, 3);
	assert_int_equal(options.control_fd, 4);
}

CASE(what_is_wrong_is_said)
{
	static const char *const wrong[][2] = {
		{ "", "which --interface?" },
		{ "--interface ib0 more", "what is 'more'?" },
		{ "--interface abcdefghijklmnop", "--interface does not take 'abcdefghijklmnop'" },
		{ "--interface a/b", "--interface does not take 'a/b'" },
		{ "--interface ib0 --address 192.0.2.1", "--address does not take '192.0.2.1'" },
		{ "--interface ib0 --address 192.0.2.1/33",
		  "--address does not take '192.0.2.1/33'" },
		{ "--interface ib0 --address ib0/24", "--address does not take 'ib0/24'" },
		{ "--interface ib0 --pkey 0x8000", "--pkey does not take '0x8000'" },
		{ "--interface ib0 --port 0", "--port does not take '0'" },
		{ "--interface ib0 --speed 1", "'--speed' is no option, or lacks its value" },
		{ "--interface", "'--interface' is no option, or lacks its value" },
	};

	for (size_t i = 0; EACH_ROW(i, wrong); i++) {
		assert_int_equal(parse(wrong[i][0]), -EINVAL);
		assert_string_equal(why, wrong[i][1]);
	}
}

/* ---- the kernel's lists ---- */

static struct ib_gid got[8];
static unsigned n_got;

static void member(void *arg, const struct ib_gid *group)
{
	(void)arg;
	assert_true(n_got < ARRAY_SIZE(got));
	got[n_got++] = *group;
}

static void assert_got(unsigned n, const char *text)
{
	struct ib_gid gid = testing_ip(text);

	assert_true(n < n_got);
	assert_true(ib_gid_equal(&got[n], &gid));
}

/* As this machine writes an address. */
static void add_group(char *text, const char *address)
{
	char line[64];

	snprintf(line, sizeof(line), "\t\t\t\t%08X     1 0:00000000\t\t0\n",
	         (unsigned)inet_addr(address));
	strcat(text, line);
}

CASE(ipv4_groups_of_our_device_are_found)
{
	static char text[512];

	strcpy(text, "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n"
	             "1\tlo        :     1      V3\n");
	add_group(text, "224.0.0.1");
	strcat(text, "2\tib0       :     2      V3\n");
	add_group(text, "239.1.2.3");
	add_group(text, "224.0.0.1");
	strcat(text, "3\tib01      :     1      V3\n");
	add_group(text, "239.9.9.9");
	strcat(text, "4\tlongdevice0:     1      V3\n");
	add_group(text, "239.8.8.8");
	n_got = 0;
	ipoib_members_parse_ipv4(strdupa(text), "ib0", member, NULL);
	assert_int_equal(n_got, 2);
	assert_got(0, "239.1.2.3");
	assert_got(1, "224.0.0.1");
	ipoib_members_parse_ipv4(strdupa(text), "longdevice0", member, NULL);
	assert_int_equal(n_got, 3);
	assert_got(2, "239.8.8.8");
}

CASE(ipv6_groups_of_our_device_are_found)
{
	char text[] = "1    lo              ff020000000000000000000000000001     1 0000000C 0\n"
	              "2    ib0             ff150000000000000000000000010203     1 00000004 0\n"
	              "2    ib0             ff02000000000000     1 00000004 0\n"
	              "3    ib01            ff020000000000000000000000000009     1 00000004 0\n";

	n_got = 0;
	ipoib_members_parse_ipv6(text, "ib0", member, NULL);
	assert_int_equal(n_got, 1);
	assert_got(0, "ff15::1:203");
}
