/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A command that changes the subnet in mid-sweep returns when a sweep of its own is done; what an
 * SMP changes has one, too. The daemon is stopped while two requests are sent to it, so that it
 * finds the second one in the middle of the sweep that the first one begins.
 */
#include "daemon_lab.h"

#include <infiniband/umad.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_sm.h>

#include "harness.h"

#define UP_PORT 11 /* the first by which a leaf is linked to the switches above */

struct lab {
	struct control_client *first, *second;
	pid_t daemon;
};

struct request {
	enum control_type type;
	uint32_t bytes;
	union {
		struct control_link link;
		struct control_switch sw;
	} body;
};

static void lab_open(struct lab *lab)
{
	static const char key[] = "\"pid\":";
	const char *pid;
	char *status;

	lab->first = daemon_client(CONTROL_ROLE_CLI);
	lab->second = daemon_client(CONTROL_ROLE_CLI);
	assert_int_equal(control_show(lab->first, "status", &status), 0);
	assert_non_null(pid = strstr(status, key));
	lab->daemon = (pid_t)strtol(pid + strlen(key), NULL, 10);
	assert_true(lab->daemon > 1);
	free(status);
}

static void lab_close(struct lab *lab)
{
	control_close(lab->first);
	control_close(lab->second);
}

static struct request set_link(const char *node, unsigned port, bool up)
{
	struct request r = { .type = CONTROL_LINK, .bytes = sizeof(r.body.link) };

	snprintf(r.body.link.at.node, sizeof(r.body.link.at.node), "%s", node);
	r.body.link.at.port = port;
	r.body.link.up = up;
	return r;
}

static struct request set_switch(const char *name, bool alive)
{
	struct request r = { .type = CONTROL_SWITCH, .bytes = sizeof(r.body.sw) };

	snprintf(r.body.sw.name, sizeof(r.body.sw.name), "%s", name);
	r.body.sw.alive = alive;
	return r;
}

static void carry_out(const struct lab *lab, struct request r)
{
	assert_int_equal(control_request(lab->first, r.type, &r.body, r.bytes), 0);
}

static int post(struct control_client *c, const struct request *r)
{
	return control_post(c, r->type, &r->body, r->bytes);
}

/* The forwarding table of leaf1, when what has been sent by the connection before is done. */
static char *table(struct control_client *c)
{
	char *text;

	assert_int_equal(control_show_of(c, "routes", "leaf1", &text), 0);
	return text;
}

/* Returns when there is none under way. */
static void wait_for_sweep(const struct lab *lab)
{
	assert_int_equal(control_sm_event(lab->first, CONTROL_SM_CLIENT_REREGISTER, "h1", 1), 0);
}

/* Has both carried out, the second one in mid-sweep. It changes the table of leaf1, which is as it
 * stays once it is done. */
static void assert_done_at_once(const struct lab *lab, struct request first, struct request second)
{
	char *before = table(lab->first), *now, *later;
	int ret;

	assert_int_equal(kill(lab->daemon, SIGSTOP), 0);
	ret = post(lab->first, &first);
	if (!ret)
		ret = post(lab->second, &second);
	kill(lab->daemon, SIGCONT);
	assert_int_equal(ret, 0);
	now = table(lab->second);
	wait_for_sweep(lab);
	later = table(lab->first);
	assert_true(strcmp(before, now) != 0);
	assert_true(strcmp(now, later) == 0);
	free(before);
	free(now);
	free(later);
}

CASE(a_link_that_changes_in_mid_sweep_is_swept)
{
	struct lab lab;

	lab_open(&lab);
	carry_out(&lab, set_link("leaf2", UP_PORT, false));
	assert_done_at_once(&lab, set_link("leaf2", UP_PORT, true),
	                    set_link("leaf1", UP_PORT, false));
	carry_out(&lab, set_link("leaf2", UP_PORT, false));
	assert_done_at_once(&lab, set_link("leaf2", UP_PORT, true),
	                    set_link("leaf1", UP_PORT, true));
	lab_close(&lab);
}

CASE(a_switch_that_dies_or_returns_in_mid_sweep_is_swept)
{
	struct lab lab;

	lab_open(&lab);
	carry_out(&lab, set_link("leaf2", UP_PORT, false));
	assert_done_at_once(&lab, set_link("leaf2", UP_PORT, true), set_switch("leaf100", false));
	carry_out(&lab, set_link("leaf2", UP_PORT, false));
	assert_done_at_once(&lab, set_link("leaf2", UP_PORT, true), set_switch("leaf100", true));
	lab_close(&lab);
}

/* ---- SMPs ---- */

#define PORT_INFO_LID   16 /* where it is (InfiniBand specification volume 1, section 14.2.5.6) */
#define PORT_INFO_STATE 32 /* the states, logical and physical; 0: they stay */
#define DIRECTION       0x8000 /* bit of a response's status */
#define OTHER_LID       0x3000
#define HCA             "umbel_h3_0"

struct smp {
	struct ib_user_mad umad;
	struct umad_smp mad;
};

/* Sends it from the port to itself. */
static int send_smp(int fd, int agent, uint8_t method, struct smp *smp)
{
	smp->mad.base_version = 1;
	smp->mad.mgmt_class = UMAD_CLASS_SUBN_DIRECTED_ROUTE;
	smp->mad.class_version = 1;
	smp->mad.method = method;
	smp->mad.status = 0;
	smp->mad.hop_ptr = 0;
	smp->mad.attr_id = htobe16(UMAD_SM_ATTR_PORT_INFO);
	smp->mad.attr_mod = htobe32(1);
	smp->mad.dr_slid = smp->mad.dr_dlid = 0xFFFF;
	umad_set_addr(smp, 0xFFFF, 0, 0, 0);
	return umad_send(fd, agent, smp, sizeof(smp->mad), 10000, 3);
}

static void receive_smp(int fd, struct smp *smp)
{
	int bytes = sizeof(smp->mad);

	assert_true(umad_recv(fd, smp, &bytes, -1) >= 0);
	assert_int_equal(umad_status(smp), 0);
	assert_int_equal(be16toh(smp->mad.status) & ~DIRECTION, 0);
}

/* Whether leaf1 has a route to the LID. */
static bool has_route(const struct lab *lab, unsigned lid)
{
	static const char key[] = "\"lft\":\"";
	const char *lft;
	bool has = false;
	char *text;

	assert_int_equal(control_show_of(lab->first, "routes", "leaf1", &text), 0);
	lft = strstr(text, key);
	if (lft && strcspn(lft + strlen(key), "\"") > (size_t)2 * lid)
		has = strncmp(lft + strlen(key) + (size_t)2 * lid, "ff", 2) != 0;
	free(text);
	return has;
}

CASE(a_lid_that_changes_in_mid_sweep_is_swept)
{
	struct request r = set_link("leaf2", UP_PORT, true);
	struct smp smp = { 0 };
	struct lab lab;
	int fd, agent, ret;

	lab_open(&lab);
	fd = umad_open_port(HCA, 1);
	agent = umad_register(fd, UMAD_CLASS_SUBN_DIRECTED_ROUTE, 1, 0, NULL);
	assert_true(fd >= 0 && agent >= 0);
	assert_int_equal(send_smp(fd, agent, UMAD_METHOD_GET, &smp), 0);
	receive_smp(fd, &smp);
	smp.mad.data[PORT_INFO_LID] = OTHER_LID >> 8;
	smp.mad.data[PORT_INFO_LID + 1] = OTHER_LID & 0xFF;
	memset(&smp.mad.data[PORT_INFO_STATE], 0, 2);
	carry_out(&lab, set_link("leaf2", UP_PORT, false));
	assert_false(has_route(&lab, OTHER_LID));
	assert_int_equal(kill(lab.daemon, SIGSTOP), 0);
	ret = post(lab.first, &r);
	if (!ret)
		ret = send_smp(fd, agent, UMAD_METHOD_SET, &smp);
	kill(lab.daemon, SIGCONT);
	assert_int_equal(ret, 0);
	receive_smp(fd, &smp);
	wait_for_sweep(&lab);
	wait_for_sweep(&lab); /* the other one begins when the first one ends */
	assert_true(has_route(&lab, OTHER_LID));
	umad_close_port(fd);
	lab_close(&lab);
}

/* ---- the subnet administrator ---- */

#define PORT_INFO_CAPABILITIES 20
#define IS_SM                  0x02 /* in the last byte */
#define SA_QKEY                0x80010000
#define RETRY_MS               50

static bool is_sm_there(int fd, int agent)
{
	struct smp smp = { 0 };

	assert_int_equal(send_smp(fd, agent, UMAD_METHOD_GET, &smp), 0);
	receive_smp(fd, &smp);
	return smp.mad.data[PORT_INFO_CAPABILITIES + 3] & IS_SM;
}

/* The status of SubnAdmGet(ClassPortInfo), sent again and again until there is a response. */
static uint16_t ask_sa(int fd, int agent, uint16_t lid)
{
	struct {
		struct ib_user_mad umad;
		struct umad_sa_packet mad;
	} m = { 0 };
	int bytes = sizeof(m.mad);

	m.mad.mad_hdr.base_version = 1;
	m.mad.mad_hdr.mgmt_class = UMAD_CLASS_SUBN_ADM;
	m.mad.mad_hdr.class_version = UMAD_SA_CLASS_VERSION;
	m.mad.mad_hdr.method = UMAD_METHOD_GET;
	m.mad.mad_hdr.attr_id = htobe16(UMAD_ATTR_CLASS_PORT_INFO);
	umad_set_addr(&m, lid, 1, 0, SA_QKEY);
	assert_int_equal(umad_send(fd, agent, &m, bytes, RETRY_MS, 1000), 0);
	assert_true(umad_recv(fd, &m, &bytes, -1) >= 0);
	assert_int_equal(umad_status(&m), 0);
	return be16toh(m.mad.mad_hdr.status);
}

CASE(the_sa_of_a_subnet_manager_that_takes_over_is_silent_until_it_is_there)
{
	const struct control_sm_event start = { .type = CONTROL_SM_START };
	int own, asker, smi, gsi;
	umad_port_t port;
	struct lab lab;

	lab_open(&lab);
	own = umad_open_port("umbel_h1_0", 1);
	asker = umad_open_port(HCA, 1);
	smi = umad_register(own, UMAD_CLASS_SUBN_DIRECTED_ROUTE, 1, 0, NULL);
	gsi = umad_register(asker, UMAD_CLASS_SUBN_ADM, UMAD_SA_CLASS_VERSION, 0, NULL);
	assert_true(own >= 0 && asker >= 0 && smi >= 0 && gsi >= 0);
	assert_int_equal(umad_get_port(HCA, 1, &port), 0);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(control_sm_event(lab.first, CONTROL_SM_STOP, "", 0), 0);
		assert_false(is_sm_there(own, smi));
		assert_int_not_equal(ask_sa(asker, gsi, (uint16_t)port.sm_lid), 0);
		assert_int_equal(control_post(lab.first, CONTROL_SM_EVENT, &start, sizeof(start)),
		                 0);
		while (!is_sm_there(own, smi))
			;
		/* it has begun with its first sweep */
		assert_int_equal(ask_sa(asker, gsi, (uint16_t)port.sm_lid), 0);
		wait_for_sweep(&lab);
	}
	umad_release_port(&port);
	umad_close_port(own);
	umad_close_port(asker);
	lab_close(&lab);
}
