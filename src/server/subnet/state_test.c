/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state that a subnet manager keeps over a restart: its text, which any bytes may pose as, and
 * what a new fabric, the same or another, makes of it. The random texts run for UMBEL_FUZZ_SECONDS,
 * or for about a second.
 */
#include <harness.h>

#include "fabric/testing.h"
#include "subnet/partitions.h"
#include "subnet/sa_groups.h"
#include "subnet/state.h"
#include "subnet/testing_passes.h"

#define FIRST "umbel-state 1\n"
#define END   "end\n"
#define VALUES                                                                                \
	"mlid 0xc001 pkey 0xffff qkey 0x01234567 mtu 4 rate 3 sl 1 tclass 2 flow_label 3 hop" \
	"_limit 4 life 18"
#define GROUP "ff12:1::1"

static const char full[] = FIRST "lid 0x0000000000000011 7\n"
                                 "lid 0xfffffffffffffff1 49151\n"
                                 "guid 0x0000000000000011 1 0x0000000000000099\n"
                                 "pkey 0x0000000000000011 3 0x8010\n"
                                 "group ff12:1::1 " VALUES "\n" END;

/* ---- the text ---- */

/* The text is copied to memory of its exact size: a sanitizer then finds reads beyond the end. */
static int parse_bytes(const void *text, size_t bytes, struct subnet_state *s, char why[static 200])
{
	char *copy = malloc(bytes);
	const struct subnet_state_text from = { "file", copy, bytes };
	int ret;

	assert_true(copy || !bytes);
	if (bytes)
		memcpy(copy, text, bytes);
	*why = '\0';
	ret = subnet_state_parse(s, &from, why, 200);
	free(copy);
	return ret;
}

static void parse(const char *text, struct subnet_state *s)
{
	char why[200];

	if (parse_bytes(text, strlen(text), s, why))
		fail_msg("%s", why);
}

static void assert_format(const struct subnet_state *s, const char *want)
{
	size_t bytes;
	char *text;

	assert_int_equal(subnet_state_format(s, &text, &bytes), 0);
	assert_int_equal(bytes, strlen(want));
	assert_memory_equal(text, want, bytes);
	free(text);
}

CASE(what_was_written_is_read)
{
	struct subnet_state s;

	parse(full, &s);
	assert_int_equal(s.n_ports, 2);
	assert_true(s.port[0].guid == 0x11 && s.port[0].lid == 7 && s.port[0].line == 2);
	assert_int_equal(s.n_aliases, 1);
	assert_true(s.alias[0].index == 1 && s.alias[0].value == 0x99);
	assert_int_equal(s.n_pkeys, 1);
	assert_true(s.pkey[0].index == 3 && s.pkey[0].value == 0x8010);
	assert_int_equal(s.n_groups, 1);
	assert_true(s.group[0].rec.mlid == 0xC001 && s.group[0].rec.qkey == 0x01234567 &&
	            s.group[0].rec.life == 18 && s.group[0].line == 6);
	assert_format(&s, full);
	subnet_state_fini(&s);
}

CASE(a_person_may_write_it)
{
	struct subnet_state s;

	parse("", &s);
	assert_format(&s, FIRST END);
	subnet_state_fini(&s);
	parse(FIRST "\r\n# words\n \t lid\t17  7 \r\n  # and more\nend", &s);
	assert_format(&s, FIRST "lid 0x0000000000000011 7\n" END);
	subnet_state_fini(&s);
}

CASE(a_wrong_line_is_named)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "x", "file:1: expected 'umbel-state 1', found 'x'" },
		{ "\n", "file:1: expected 'umbel-state 1', found the end of the line" },
		{ "umbel-state 2\nend\n",
		  "file:1: expected 'umbel-state 1', found 'umbel-state 2'" },
		{ FIRST, "file:2: expected 'end', found the end of the file: the file was cut" },
		{ FIRST "lid 17 7\n",
		  "file:3: expected 'end', found the end of the file: the file was cut" },
		{ FIRST "en", "file:2: expected lid, guid, pkey, group or end, found 'en'" },
		{ FIRST "end\nlid 17 7\n",
		  "file:3: expected nothing behind 'end', found 'lid 17 7'" },
		{ FIRST "end 1\n", "file:2: expected the end of the line, found '1'" },
		{ FIRST "ports 1\n",
		  "file:2: expected lid, guid, pkey, group or end, found 'ports 1'" },
		{ FIRST "\x01\xFF\n",
		  "file:2: expected lid, guid, pkey, group or end, found '?\?'" },
		{ FIRST "lid\n", "file:2: expected a port's GUID, found the end of the line" },
		{ FIRST "lid 0 7\n", "file:2: expected a port's GUID, found '0 7'" },
		{ FIRST "lid -1 7\n", "file:2: expected a port's GUID, found '-1 7'" },
		{ FIRST "lid 0x 7\n", "file:2: expected a port's GUID, found '0x 7'" },
		{ FIRST "lid 0x10000000000000000 7\n",
		  "file:2: expected a port's GUID, found '0x10000000000000000 7'" },
		{ FIRST "lid 17 0\n", "file:2: expected a LID from 1 to 49151, found '0'" },
		{ FIRST "lid 17 49152\n", "file:2: expected a LID from 1 to 49151, found '49152'" },
		{ FIRST "lid 17 1 1\n", "file:2: expected the end of the line, found '1'" },
		{ FIRST "lid 17 7\nlid 18 7\n", "file:3: an earlier line has LID 7, too" },
		{ FIRST "lid 17 7\nlid 17 8\nend\n",
		  "file:3: line 2 has a LID of GUID 0x0000000000000011, too" },
		{ FIRST "guid 17 16 5\n", "file:2: expected an index of the table, found '16 5'" },
		{ FIRST "guid 17 1 0\n", "file:2: expected another GUID of the port, found '0'" },
		{ FIRST "pkey 17 1 0x10000\n", "file:2: expected a P_Key, found '0x10000'" },
		{ FIRST "group fe80::1\n", "file:2: expected a multicast GID, found 'fe80::1'" },
		{ FIRST "group\n", "file:2: expected a multicast GID, found the end of the line" },
		{ FIRST "group ff12::1 pkey 1\n", "file:2: expected mlid, found 'pkey 1'" },
		{ FIRST "group ff12::1 mlid 0xffff\n",
		  "file:2: expected mlid from 0xc000 to 0xfffe, found '0xffff'" },
		{ FIRST "group ff12::1 mlid 0xc000 pkey 1 qkey 1 mtu 6\n",
		  "file:2: expected mtu from 1 to 5, found '6'" },
		{ FIRST "group ff12::1 mlid 0xc000 pkey 1 qkey 1 mtu 1 rate 0 sl 0 tclass 0 "
		        "flow_label 0 hop_limit 0 life 64\n",
		  "file:2: expected life from 0 to 63, found '64'" },
		{ FIRST "group ff12::1 mlid 0xc000 pkey 1 qkey 1 mtu 1 rate 1 sl 0 tclass 0 "
		        "flow_label 0 hop_limit 0 life 1\n",
		  "file:2: expected an encoded rate (3: 10 Gb/s), found 1" },
		{ FIRST "0123456789012345678901234567890123456789\n",
		  "file:2: expected lid, guid, pkey, group or end, found "
		  "'012345678901234567890123456789012345678...'" },
	};

	for (size_t i = 0; EACH_NAMED(i, rows, text); i++) {
		struct subnet_state s;
		char why[200];

		assert_int_equal(parse_bytes(rows[i].text, strlen(rows[i].text), &s, why), -EINVAL);
		assert_string_equal(why, rows[i].why);
		subnet_state_fini(&s);
	}
}

CASE(a_file_that_was_cut_is_none)
{
	for (size_t bytes = 1; bytes < strlen(full) - 1; bytes++) {
		struct subnet_state s;
		char why[200];

		assert_int_equal(parse_bytes(full, bytes, &s, why), -EINVAL);
		subnet_state_fini(&s);
	}
}

/* ---- random texts ---- */

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	return *seed ^= *seed << 17;
}

/* Changes, copies or removes some bytes of the text; often a digit, a blank or an end of line. */
static size_t mutate(char text[static 2048], size_t bytes, uint64_t *seed)
{
	static const char likely[] = "0123456789abcdefx \n\t#:-";

	for (uint64_t n = next(seed) % 6; n--;) {
		size_t at = next(seed) % bytes, some = next(seed) % 40;

		switch (next(seed) % 4) {
		case 0:
			text[at] = (char)next(seed);
			break;
		case 1:
			text[at] = likely[next(seed) % (sizeof(likely) - 1)];
			break;
		case 2:
			some = some < bytes - at ? some : bytes - at - 1;
			memmove(text + at, text + at + some, bytes - at - some);
			bytes -= some;
			break;
		default:
			if (bytes + some >= 2048)
				break;
			memmove(text + at + some, text + at, bytes - at);
			bytes += some;
		}
	}
	return bytes;
}

/* A state that was parsed, written and parsed again is the same state. */
static void check_again(const struct subnet_state *s)
{
	struct subnet_state again;
	size_t bytes;
	char *text, *copy, why[200];

	assert_int_equal(subnet_state_format(s, &text, &bytes), 0);
	assert_int_equal(parse_bytes(text, bytes, &again, why), 0);
	copy = strndup(text, bytes);
	free(text);
	assert_format(&again, copy);
	free(copy);
	subnet_state_fini(&again);
}

CASE(any_text_is_safe)
{
	const char *seconds = getenv("UMBEL_FUZZ_SECONDS");
	uint64_t end = base_now_ns() + (seconds ? strtoull(seconds, NULL, 10) : 0) * 1000000000ull;
	uint64_t seed = 88172645463325252u, good = 0, bad = 0;

	while (good + bad < 200000 || base_now_ns() < end) {
		struct subnet_state s;
		char text[2048], why[200];
		size_t bytes = strlen(full);
		int ret;

		memcpy(text, full, bytes);
		bytes = mutate(text, bytes, &seed);
		ret = parse_bytes(text, bytes, &s, why);
		assert_true(ret ? ret == -EINVAL && !strncmp(why, "file:", 5) : !*why);
		if (!ret)
			check_again(&s);
		*(ret ? &bad : &good) += 1;
		subnet_state_fini(&s);
	}
	assert_true(good > 10000 && bad > 10000);
}

/* ---- fabrics ---- */

struct env {
	struct fabric *f;
	struct sm *sm;
	struct sa *sa;
	struct subnet_state_misfits misfits;
};

static void no_wake(void *arg, unsigned ms)
{
	(void)arg;
	(void)ms;
}

/* A fabric starts with what was saved, as the daemon does it. @conf: partitions, or NULL. */
static void start(struct env *e, unsigned hosts, const struct shm_settings *settings,
                  const struct subnet_state *s, const struct partitions *p)
{
	const struct sm_ops ops = { .wake = no_wake };

	*e = (struct env){ .f = testing_fabric_with(hosts, settings) };
	assert_int_equal(sm_new(&e->sm, e->f, &ops), 0);
	sm_set_partitions(e->sm, p);
	sm_learn(e->sm);
	assert_int_equal(subnet_state_restore_ports(s, e->f, p, &e->misfits), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(subnet_state_check_lids(s, e->f, &e->misfits), 0);
	assert_int_equal(sa_new_restored(&e->sa, e->f, e->sm, s, &e->misfits), 0);
}

static void start_with(struct env *e, unsigned hosts, const char *text)
{
	struct shm_settings settings;
	struct subnet_state s;

	fabric_settings_default(&settings);
	parse(text, &s);
	start(e, hosts, &settings, &s, NULL);
	subnet_state_fini(&s);
}

static void stop(struct env *e)
{
	sa_free(e->sa);
	sm_free(e->sm);
	fabric_free(e->f);
}

/* Saves its state. */
static void save(const struct env *e, struct subnet_state *s)
{
	unsigned at = 0;
	int ret;

	subnet_state_init(s);
	while (!(ret = subnet_state_add_ports(s, e->f, &at, 2)))
		;
	assert_int_equal(ret, 1);
	assert_int_equal(subnet_state_add_groups(s, e->sa), 0);
}

#define MISFITS(e, count, first)                            \
	do {                                                \
		assert_int_equal((e)->misfits.n, count);    \
		assert_int_equal((e)->misfits.line, first); \
	} while (0)

static uint16_t lid_of(const struct env *e, unsigned host)
{
	return e->f->hca_port[host]->lid;
}

CASE(ports_keep_their_lids)
{
	struct subnet_state s;
	struct shm_settings settings;
	struct env e, again;

	fabric_settings_default(&settings);
	start_with(&e, 3, "");
	MISFITS(&e, 0, 0);
	assert_int_equal(sm_give_other_lid(e.sm, e.f->hca_port[1]), 0);
	assert_int_equal(sm_sweep(e.sm), 0);
	assert_int_equal(lid_of(&e, 1), 5);
	save(&e, &s);
	start(&again, 4, &settings, &s, NULL);
	MISFITS(&again, 1, 0); /* the switch has another GUID, as its number is another */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(lid_of(&again, i), lid_of(&e, i));
	assert_true(lid_of(&again, 3) && lid_of(&again, 3) != 5);
	assert_int_equal(shm_port_at(again.f->region, 1)->lid, 5);
	subnet_state_fini(&s);
	stop(&e);
	stop(&again);
}

#define H1 "0x02756d0000000101"
#define H2 "0x02756d0000000201"
#define H4 "0x02756d0000000401"
#define SW "0x02756d0000000400" /* of three hosts */

CASE(other_ports_are_passed_over)
{
	struct env e;

	start_with(&e, 3,
	           FIRST "lid " H1 " 30\nlid " H4 " 31\nlid " SW " 32\n"
	                 "guid " H4 " 1 0x99\nguid " SW " 1 0x98\nguid " H2 " 0 0x97\n"
	                 "guid " H1 " 2 " H2 "\n"
	                 "pkey " H4 " 1 0x8001\n" END);
	MISFITS(&e, 5, 3); /* P_Keys are not asked for without partitions */
	assert_int_equal(lid_of(&e, 0), 30);
	assert_int_equal(e.f->node[3]->port[0].lid, 32);
	assert_true(lid_of(&e, 1) && lid_of(&e, 2));
	stop(&e);
}

CASE(lids_that_cannot_be_are_given_anew)
{
	struct shm_settings settings;
	struct subnet_state s;
	struct env e;

	fabric_settings_default(&settings);
	settings.lmc = 2;
	parse(FIRST "lid " H1 " 8\nlid " H2 " 9\n" END, &s);
	start(&e, 3, &settings, &s, NULL);
	MISFITS(&e, 1, 3);
	assert_int_equal(lid_of(&e, 0), 8);
	assert_true(lid_of(&e, 1) % 4 == 0 && lid_of(&e, 1) != 8);
	subnet_state_fini(&s);
	stop(&e);
}

CASE(guids_of_a_port_are_there_again)
{
	struct subnet_state s;
	struct ib_gid gid;
	struct env e;

	start_with(&e, 3, FIRST "guid " H2 " 3 0x99\n" END);
	MISFITS(&e, 0, 0);
	fabric_gid_make(e.f, 0x99, &gid);
	assert_ptr_equal(fabric_port_by_gid(e.f, &gid), e.f->hca_port[1]);
	assert_memory_equal(&shm_port_at(e.f->region, 1)->gid[3], &gid, sizeof(gid));
	save(&e, &s);
	assert_int_equal(s.n_aliases, 1);
	assert_true(s.alias[0].index == 3 && s.alias[0].value == 0x99);
	subnet_state_fini(&s);
	stop(&e);
}

static struct partitions *partitions_of(const char *conf)
{
	const struct partitions_file file = { "conf", conf, strlen(conf) };
	struct partitions *p;
	char why[200];

	assert_int_equal(partitions_parse(&p, &file, why, sizeof(why)), 0);
	return p;
}

CASE(pkeys_keep_their_place)
{
	static const char conf[] = "Default:ALL=full; A=1:ALL=full; B=2:ALL=full;";
	struct shm_settings settings;
	struct subnet_state s, saved;
	struct partitions *p = partitions_of(conf);
	struct env e;

	fabric_settings_default(&settings);
	parse(FIRST "pkey " H1 " 4 0x8002\npkey " H1 " 5 0x8003\npkey " H4 " 1 0x8001\n" END, &s);
	start(&e, 3, &settings, &s, p);
	MISFITS(&e, 1, 4);
	assert_int_equal(e.f->hca_port[0]->pkey[0], 0xFFFF);
	assert_int_equal(e.f->hca_port[0]->pkey[1], 0x8001);
	assert_int_equal(e.f->hca_port[0]->pkey[4], 0x8002);
	assert_int_equal(e.f->hca_port[0]->pkey[5], 0);
	assert_int_equal(e.f->hca_port[1]->pkey[2], 0x8002);
	save(&e, &saved);
	assert_int_equal(saved.n_pkeys, 8); /* the switch has them, too */
	assert_true(saved.pkey[1].index == 4 && saved.pkey[1].value == 0x8002);
	subnet_state_fini(&saved);
	subnet_state_fini(&s);
	stop(&e);
	partitions_free(p);
}

/* ---- groups ---- */

static const struct sa_group *find(const struct env *e, const char *text)
{
	struct ib_gid mgid;

	assert_int_equal(inet_pton(AF_INET6, text, mgid.raw), 1);
	return sa_group_find(e->sa, &mgid);
}

/* A request of @host with all that a group needs, which are the values of GROUP. */
static enum sa_status join_with(struct env *e, unsigned host, const char *mgid, uint8_t states,
                                uint32_t qkey)
{
	struct wire_mcmember rec = { .port_gid = shm_port_at(e->f->region, host)->gid[0],
		                     .qkey = qkey,
		                     .pkey = IB_PKEY_DEFAULT,
		                     .sl = 1,
		                     .tclass = 2,
		                     .flow_label = 3,
		                     .join_state = states };

	assert_int_equal(inet_pton(AF_INET6, mgid, rec.mgid.raw), 1);
	return sa_mcmember_set(e->sa,
	                       SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE | SA_MCM_QKEY |
	                               SA_MCM_TCLASS | SA_MCM_PKEY | SA_MCM_FLOW_LABEL | SA_MCM_SL,
	                       &rec);
}

static enum sa_status join(struct env *e, unsigned host, const char *mgid)
{
	return join_with(e, host, mgid, IB_JOIN_FULL, 0x01234567);
}

static void leave(struct env *e, unsigned host, const char *mgid, uint8_t states)
{
	struct wire_mcmember rec = { .port_gid = shm_port_at(e->f->region, host)->gid[0],
		                     .join_state = states };

	assert_int_equal(inet_pton(AF_INET6, mgid, rec.mgid.raw), 1);
	assert_int_equal(
	        sa_mcmember_delete(e->sa, SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE, &rec),
	        SA_OK);
}

CASE(a_group_waits_for_its_members)
{
	struct env e;

	start_with(&e, 3, FIRST "group " GROUP " " VALUES "\n" END);
	MISFITS(&e, 0, 0);
	sa_swept(e.sa);
	sa_learned(e.sa);
	assert_non_null(find(&e, GROUP));
	assert_int_equal(join_with(&e, 1, GROUP, IB_JOIN_SEND_ONLY_NON, 0x01234567), SA_OK);
	leave(&e, 1, GROUP, IB_JOIN_SEND_ONLY_NON);
	assert_non_null(find(&e, GROUP));
	assert_int_equal(join(&e, 0, "ff12:1::2"), SA_OK);
	assert_int_not_equal(find(&e, "ff12:1::2")->rec.mlid, 0xC001);
	assert_int_equal(join(&e, 0, GROUP), SA_OK);
	assert_int_equal(find(&e, GROUP)->rec.mlid, 0xC001);
	assert_int_equal(find(&e, GROUP)->rec.mtu, 4);
	assert_int_equal(find(&e, GROUP)->rec.rate, 3);
	leave(&e, 0, GROUP, IB_JOIN_FULL); /* from now on it is like any other */
	assert_null(find(&e, GROUP));
	stop(&e);
}

CASE(it_gives_way_to_another_one_of_its_name)
{
	struct env e;

	start_with(&e, 3, FIRST "group " GROUP " " VALUES "\n" END);
	/* a port that cannot create the group has to fit */
	assert_int_equal(join_with(&e, 0, GROUP, IB_JOIN_NON, 2), SA_REQ_INVALID);
	assert_int_equal(find(&e, GROUP)->rec.qkey, 0x01234567);
	assert_int_equal(join_with(&e, 0, GROUP, IB_JOIN_FULL, 2), SA_OK);
	assert_int_equal(find(&e, GROUP)->rec.qkey, 2);
	assert_int_equal(join(&e, 1, GROUP), SA_REQ_INVALID);
	stop(&e);
	start_with(&e, 3, FIRST "group " GROUP " " VALUES "\n" END);
	assert_int_equal(join_with(&e, 0, GROUP, IB_JOIN_SEND_ONLY_NON, 0x01234567), SA_OK);
	assert_int_equal(join_with(&e, 1, GROUP, IB_JOIN_FULL, 2), SA_REQ_INVALID);
	stop(&e);
}

CASE(it_gives_its_mlid_when_there_is_no_other)
{
	struct shm_settings settings;
	struct subnet_state s;
	struct env e;

	fabric_settings_default(&settings);
	settings.mft_capacity = 3;
	parse(FIRST "group " GROUP " " VALUES "\n" END, &s);
	start(&e, 3, &settings, &s, NULL);
	assert_int_equal(join(&e, 0, "ff12:1::2"), SA_OK);
	assert_int_equal(find(&e, "ff12:1::2")->rec.mlid, 0xC002);
	assert_non_null(find(&e, GROUP));
	assert_int_equal(join(&e, 0, "ff12:1::3"), SA_OK);
	assert_int_equal(find(&e, "ff12:1::3")->rec.mlid, 0xC001);
	assert_null(find(&e, GROUP));
	assert_int_equal(join(&e, 0, "ff12:1::4"), SA_NO_RESOURCES);
	subnet_state_fini(&s);
	stop(&e);
}

CASE(groups_that_cannot_be_are_passed_over)
{
	struct shm_settings settings;
	struct subnet_state s;
	struct env e;

	fabric_settings_default(&settings);
	settings.mft_capacity = 3;
	parse(FIRST "group " GROUP " " VALUES "\n"
	            "group " GROUP " " VALUES "\n" /* twice */
	            "group ff12:1::2 " VALUES "\n" /* its MLID has another group */
	            "group ff12:1::3 mlid 0xc003 pkey 1 qkey 0 mtu 1 rate 2 sl 0 tclass 0 "
	            "flow_label 0 hop_limit 0 life 1\n" /* switches have no room for it */
	      END,
	      &s);
	start(&e, 3, &settings, &s, NULL);
	MISFITS(&e, 3, 3);
	stop(&e);
	settings.mlid_sharing = 1;
	start(&e, 3, &settings, &s, NULL);
	MISFITS(&e, 2, 3);
	assert_int_equal(find(&e, "ff12:1::2")->rec.mlid, 0xC001);
	subnet_state_fini(&s);
	stop(&e);
}

CASE(partitions_say_what_their_groups_are)
{
	static const char conf[] = "A=1:ALL=full,mgid=ff12:1::1,Q_Key=7,mtu=2;";
	struct shm_settings settings;
	struct partitions *p = partitions_of(conf);
	struct subnet_state s;
	struct env e;

	fabric_settings_default(&settings);
	parse(FIRST "group " GROUP " " VALUES "\n"
	            "group ff12:1::3 mlid 0xc003 pkey 0x8002 qkey 0 mtu 1 rate 2 sl 0 tclass 0 "
	            "flow_label 0 hop_limit 0 life 1\n" END,
	      &s);
	start(&e, 3, &settings, &s, p);
	MISFITS(&e, 1, 3); /* nobody has its P_Key */
	assert_int_equal(find(&e, GROUP)->rec.mlid, 0xC001);
	assert_int_equal(find(&e, GROUP)->rec.qkey, 7);
	assert_int_equal(find(&e, GROUP)->rec.pkey, 0x8001);
	assert_true(find(&e, GROUP)->well_known && !find(&e, GROUP)->awaited);
	subnet_state_fini(&s);
	stop(&e);
	partitions_free(p);
}
