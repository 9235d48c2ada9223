/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * partitions.conf: the meaning of its lines, with the examples of opensm(8), and the errors of
 * wrong lines.
 */
#include <harness.h>
#include <infiniband/verbs.h>

#include "base/util.h"
#include "subnet/partitions.h"

static int parse(const char *text, struct partitions **p, char *why, size_t len)
{
	size_t bytes = strlen(text);
	char *copy = malloc(
	        bytes +
	        1); /* a copy of its exact size: a sanitizer then finds reads beyond the end */
	const struct partitions_file file = { "conf", copy, bytes };
	int ret;

	assert_non_null(copy);
	memcpy(copy, text, bytes);
	copy = realloc(copy, bytes ? bytes : 1);
	ret = partitions_parse(p, &(struct partitions_file){ file.name, copy, bytes }, why, len);
	free(copy);
	return ret;
}

static struct partitions *read_text(const char *text)
{
	struct partitions *p;
	char why[256] = "";

	if (parse(text, &p, why, sizeof(why)))
		fail_msg("%s", why);
	return p;
}

/* A rule of the text. The two rules in front, which hold without any text, are skipped. */
static const struct partition_rule *rule(const struct partitions *p, unsigned i)
{
	assert_true(i + 2 < p->n_rules);
	return &p->rule[i + 2];
}

static uint16_t pkey_of(const struct partitions *p, unsigned i)
{
	return p->partition[rule(p, i)->partition].pkey;
}

static void assert_group(const struct partition_group *g, const char *mgid)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, &g->mgid, text, sizeof(text));
	assert_string_equal(text, mgid);
}

/* ---- partitions and members ---- */

CASE(without_a_line_all_are_limited_members_of_the_default_partition)
{
	static const char *const texts[] = { "", "\n", " \t\n# nothing\n\n", "#" };

	for (size_t i = 0; EACH_ROW(i, texts); i++) {
		struct partitions *p = read_text(texts[i]);

		assert_int_equal(p->n, 1);
		assert_int_equal(p->partition[0].pkey, 0x7FFF);
		assert_string_equal(p->partition[0].name, "Default");
		assert_int_equal(p->n_rules, 2);
		assert_int_equal(p->rule[0].ports, PARTITION_ALL);
		assert_int_equal(p->rule[0].membership, PARTITION_LIMITED);
		assert_int_equal(p->rule[1].ports, PARTITION_SELF);
		assert_int_equal(p->rule[1].membership, PARTITION_FULL);
		assert_int_equal(p->n_groups, 0);
		partitions_free(p);
	}
}

CASE(ports_are_named_by_guid_or_by_kind)
{
	static const enum partition_ports kinds[] = {
		PARTITION_PORT,         PARTITION_PORT,        PARTITION_ALL,  PARTITION_ALL_CAS,
		PARTITION_ALL_SWITCHES, PARTITION_ALL_ROUTERS, PARTITION_SELF,
	};
	struct partitions *p =
	        read_text("A=1:0x2c90300a1b2c3,17,ALL,ALL_CAS,ALL_SWITCHES,ALL_ROUTERS,SELF,NONE;");

	assert_int_equal(p->n_rules, 2 + ARRAY_SIZE(kinds));
	for (unsigned i = 0; EACH_ROW(i, kinds); i++) {
		assert_int_equal(rule(p, i)->ports, kinds[i]);
		assert_int_equal(rule(p, i)->membership, PARTITION_LIMITED);
		assert_int_equal(pkey_of(p, i), 1);
	}
	assert_int_equal(rule(p, 0)->guid, 0x2c90300a1b2c3);
	assert_int_equal(rule(p, 1)->guid, 17);
	partitions_free(p);
}

CASE(membership_is_said_by_port_or_for_all)
{
	struct partitions *p = read_text("A=1:1=full,2=limited,3=both,4;\n"
	                                 "B=2,defmember=full:1,2=limited;\n"
	                                 "C=3,defmember=both:1;D=4,defmember=limi:1=fu,2=b;");
	static const unsigned want[] = { PARTITION_FULL,         PARTITION_LIMITED,
		                         PARTITION_BOTH,         PARTITION_LIMITED,
		                         /* B */ PARTITION_FULL, PARTITION_LIMITED,
		                         /* C */ PARTITION_BOTH,
		                         /* D */ PARTITION_FULL, PARTITION_BOTH };

	assert_int_equal(p->n_rules, 2 + ARRAY_SIZE(want));
	for (unsigned i = 0; EACH_ROW(i, want); i++)
		assert_int_equal(rule(p, i)->membership, want[i]);
	partitions_free(p);
}

CASE(a_definition_may_span_many_lines)
{
	struct partitions *p = read_text("A = 0x11 , indx0 :\n\n # first\n\t0x1 = full , # one\n"
	                                 " 0x2\n0x3,,\n; B=0x12: 0x4 ;C=0x13:;D=0x14:5");

	assert_int_equal(p->n, 5);
	assert_int_equal(p->n_rules, 2 + 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(rule(p, i)->guid, i + 1);
		assert_int_equal(pkey_of(p, i), i < 3 ? 0x11 : i == 3 ? 0x12 : 0x14);
		assert_int_equal(rule(p, i)->index0, i < 3);
	}
	partitions_free(p);
}

CASE(pkeys_have_fifteen_bits_and_may_be_made_up)
{
	struct partitions *p = read_text("A=0x8005:1;=0x6:2;0x7:3;B:4;C:5;B:6;D=2:7;Default:8;");
	static const uint16_t want[] = { 5, 6, 7, 1, 2, 1, 2, 0x7FFF };

	for (unsigned i = 0; EACH_ROW(i, want); i++)
		assert_int_equal(pkey_of(p, i), want[i]);
	assert_int_equal(p->n, 6); /* D is C: the first name holds */
	assert_string_equal(p->partition[rule(p, 4)->partition].name, "C");
	assert_string_equal(p->partition[rule(p, 1)->partition].name, "");
	partitions_free(p);
}

/* ---- groups ---- */

CASE(ipoib_makes_the_broadcast_group)
{
	struct partitions *p = read_text("A=0x11,ipoib:1;B=0x12,ipoib,mtu=5,rate=16,sl=3,"
	                                 "Q_Key=0x80000b1b,TClass=7,FlowLabel=0xabcde:1;C=0x13:1;");
	const struct partition_group *g = p->group;

	assert_int_equal(p->n_groups, 2);
	assert_group(&g[0], "ff12:401b:8011::ffff:ffff");
	assert_int_equal(g[0].pkey, 0x8011);
	assert_int_equal(g[0].qkey, 0x0B1B);
	assert_int_equal(g[0].mtu, IBV_MTU_2048);
	assert_int_equal(g[0].rate, IBV_RATE_10_GBPS);
	assert_int_equal(g[0].sl, 0);
	assert_group(&g[1], "ff12:401b:8012::ffff:ffff");
	assert_int_equal(g[1].qkey, 0x80000B1B);
	assert_int_equal(g[1].mtu, IBV_MTU_4096);
	assert_int_equal(g[1].rate, IBV_RATE_100_GBPS);
	assert_int_equal(g[1].sl, 3);
	assert_int_equal(p->partition[1].sl, 0);
	assert_int_equal(p->partition[2].sl, 3);
	assert_int_equal(g[1].tclass, 7);
	assert_int_equal(g[1].flow_label, 0xABCDE);
	partitions_free(p);
}

CASE(each_scope_is_a_group_of_its_own)
{
	struct partitions *p = read_text("A=0x11,ipoib,scope=5,scope=0xe:mgid=ff10::1,scope=1\n;");

	assert_int_equal(p->n_groups, 5);
	assert_group(&p->group[0], "ff15:401b:8011::ffff:ffff");
	assert_group(&p->group[1], "ff1e:401b:8011::ffff:ffff");
	assert_group(&p->group[2], "ff11::1");
	assert_group(&p->group[3], "ff15::1"); /* the partition's are meant as well */
	assert_group(&p->group[4], "ff1e::1");
	partitions_free(p);
}

CASE(groups_of_a_partition_are_like_it_unless_they_say_otherwise)
{
	struct partitions *p =
	        read_text("A=0x11,sl=2,mtu=3:\nmgid=ff12::1,rate=2,mtu=2,Q_Key=7 # g\n"
	                  "mgid=ff12:401b::7\nmgid=ff12:601b:8011::8,sl=1; B=2:1;");
	const struct partition_group *g = p->group;

	assert_int_equal(p->n_groups, 3);
	assert_group(&g[0], "ff12::1");
	assert_int_equal(g[0].pkey, 0x8011);
	assert_int_equal(g[0].mtu, IBV_MTU_512);
	assert_int_equal(g[0].rate, IBV_RATE_2_5_GBPS);
	assert_int_equal(g[0].qkey, 7);
	assert_int_equal(g[0].sl, 2);
	assert_group(&g[1], "ff12:401b:8011::7");
	assert_int_equal(g[1].mtu, IBV_MTU_1024);
	assert_int_equal(g[1].qkey, 0x0B1B);
	assert_group(&g[2], "ff12:601b:8011::8");
	assert_int_equal(g[2].sl, 1);
	assert_int_equal(p->n, 3);
	partitions_free(p);
}

CASE(a_group_that_is_named_twice_is_one)
{
	struct partitions *p = read_text("A=1:mgid=ff12::1,sl=1\nmgid=ff12::1,sl=2\n;");

	assert_int_equal(p->n_groups, 1);
	assert_int_equal(p->group[0].sl, 1);
	partitions_free(p);
}

/* The examples of the manual page except one, which OpenSM refuses, too. */
CASE(the_examples_of_opensm_are_read)
{
	static const char text[] =
	        " Default=0x7fff : ALL, SELF=full ;\n"
	        " Default=0x7fff : ALL, ALL_SWITCHES=full, SELF=full ;\n"
	        " NewPartition , ipoib : 0x123456=full, 0x3456789034=limi, 0x2134af2306 ;\n"
	        " YetAnotherOne = 0x300 : SELF=full ;\n"
	        " YetAnotherOne = 0x300 : ALL=limited ;\n"
	        " ShareIO = 0x80 , defmember=full : 0x123451, 0x123452;\n"
	        " # 0x123453, 0x123454 will be limited\n"
	        " ShareIO = 0x80 : 0x123453, 0x123454, 0x123455=full;\n"
	        " ShareIO = 0x80 , defmember=full : 0x123459, 0x12345a;\n"
	        " ShareIO = 0x80 , defmember=full : 0x12345b, 0x12345c=limited, 0x12345d;\n"
	        " # multicast groups added to default\n"
	        " Default=0x7fff,ipoib:\n"
	        "        mgid=ff12:401b::0707,sl=1 # random IPv4 group\n"
	        "        mgid=ff12:601b::16    # MLDv2-capable routers\n"
	        "        mgid=ff12:401b::16    # IGMP\n"
	        "        mgid=ff12:601b::2     # All routers\n"
	        "        mgid=ff12::1,sl=1,Q_Key=0xDEADBEEF,rate=3,mtu=2 # random group\n"
	        "        ALL=full;\n";
	struct partitions *p = read_text(text);

	assert_int_equal(p->n, 4);
	assert_int_equal(p->n_rules, 2 + 2 + 3 + 3 + 1 + 1 + 2 + 3 + 2 + 3 + 1);
	assert_int_equal(p->n_groups, 7);
	assert_group(&p->group[0], "ff12:401b:8001::ffff:ffff");
	assert_group(&p->group[1], "ff12:401b:ffff::ffff:ffff");
	assert_group(&p->group[2], "ff12:401b:ffff::707");
	assert_group(&p->group[6], "ff12::1");
	assert_int_equal(p->group[6].qkey, 0xDEADBEEF);
	partitions_free(p);
}

/* ---- what cannot be ---- */

CASE(an_error_names_its_line)
{
	static const struct {
		const char *text, *why;
	} row[] = {
		{ "A=1", "1: expected ':' behind 'A=1', found the end of the line" },
		{ "A=1;", "1: expected ':' behind 'A=1', found the end of the definition" },
		{ "A=1\n:1;", "1: expected ':' behind 'A=1', found the end of the line" },
		{ "\n\nA=0x10000:1;", "3: expected a P_Key of 16 bits, found '0x10000'" },
		{ "A=one:1;", "1: expected a P_Key of 16 bits, found 'one'" },
		{ "A=:1;", "1: expected a P_Key of 16 bits, found ''" },
		{ "A=1:1=ful1;", "1: expected full, limited or both, found 'ful1'" },
		{ "A=1:1=;", "1: expected full, limited or both, found ''" },
		{ "A=1,defmember:1;", "1: expected full, limited or both, found ''" },
		{ "A=1,mtu=6:1;", "1: expected mtu=1 to mtu=5 (256 to 4096 bytes), found '6'" },
		{ "A=1,mtu:1;", "1: expected mtu=1 to mtu=5 (256 to 4096 bytes), found ''" },
		{ "A=1,rate=1:1;",
		  "1: expected rate= and an encoded rate (3: 10 Gb/s), found '1'" },
		{ "A=1,sl=16:1;", "1: expected sl=0 to sl=15, found '16'" },
		{ "A=1,scope=0:1;", "1: expected scope=1 to scope=15, found '0'" },
		{ "A=1,Q_Key=0x100000000:1;",
		  "1: expected Q_Key= and 32 bits, found '0x100000000'" },
		{ "A=1,TClass=256:1;", "1: expected TClass=0 to TClass=255, found '256'" },
		{ "A=1,FlowLabel=0x100000:1;",
		  "1: expected FlowLabel= and 20 bits, found '0x100000'" },
		{ "A=1:1;\nB=2: defmember=limited : 0x1;",
		  "2: expected a port's GUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF or "
		  "mgid=, "
		  "found 'defmember'" },
		{ "A=1:\n0;", "2: expected a port's GUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, "
		              "SELF or mgid=, found '0'" },
		{ "A=1:mgid=fe80::1;", "1: expected mgid= and a multicast GID, found 'fe80::1'" },
		{ "A=1:mgid;", "1: expected mgid= and a multicast GID, found ''" },
		{ "A=1:mgid=ff12::1,full;",
		  "1: expected rate=, mtu=, sl=, scope=, Q_Key=, TClass= or "
		  "FlowLabel= of a group, found 'full'" },
		{ "A=1:mgid=ff12:401b:8002::1;",
		  "1: expected the P_Key 0x8001, or none, in the MGID, found 0x8002" },
		{ "A=1:mgid=ff12:601b::1,mtu=5;",
		  "1: expected the MTU and rate of the partition, 4 and 3, found 5 and 3" },
		{ "A=1,nonsense:1;", "1: expected indx0, ipoib, defmember=, rate=, mtu=, sl=, "
		                     "scope=, Q_Key=, TClass=, "
		                     "FlowLabel= or ':', found 'nonsense'" },
		{ "A=1:\377;",
		  "1: expected a port's GUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, "
		  "SELF or mgid=, found '?'" },
	};

	for (size_t i = 0; EACH_NAMED(i, row, text); i++) {
		struct partitions *p;
		char why[256] = "", want[256];

		snprintf(want, sizeof(want), "conf:%s", row[i].why);
		assert_int_equal(parse(row[i].text, &p, why, sizeof(why)), -EINVAL);
		assert_string_equal(why, want);
	}
}

/* Bytes that look like such a file, and some that do not. */
CASE(no_text_does_harm)
{
	static const char *const words[] = {
		"A",         "=",
		"0x7fff",    ":",
		";",         ",",
		"\n",        "#",
		"ALL",       "SELF",
		"full",      "both",
		"mgid=",     "ff12:401b::1",
		"ipoib",     "mtu=4",
		"sl=",       "scope=5",
		" ",         "indx0",
		"\377",      "defmember=",
		"Q_Key=0x1", "18446744073709551616",
		"-1",
	};
	unsigned seed = 1;

	for (unsigned n = 0; n < 20000; n++) {
		char text[512] = "", why[64];
		struct partitions *p;

		for (unsigned k = 0; k < 20; k++) {
			seed = seed * 1103515245 + 12345;
			strcat(text, words[(seed >> 16) % ARRAY_SIZE(words)]);
		}
		if (!parse(text, &p, why, sizeof(why)))
			partitions_free(p);
		else
			assert_memory_equal(why, "conf:", 5);
	}
}
