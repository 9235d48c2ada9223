/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A command that changes the subnet in mid-sweep returns when a sweep of its own is done. The
 * daemon is stopped while two requests are sent to it, so that it finds the second one in the
 * middle of the sweep that the first one begins.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/client.h"
#include "control/path.h"

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

static struct control_client *connect_to_daemon(void)
{
	struct control_client *c;
	char path[200];

	assert_int_equal(control_path(path, sizeof(path), control_fabric_name(), "ctl"), 0);
	assert_int_equal(control_connect(&c, path, CONTROL_ROLE_CLI, NULL), 0);
	return c;
}

static void lab_open(struct lab *lab)
{
	static const char key[] = "\"pid\":";
	const char *pid;
	char *status;

	lab->first = connect_to_daemon();
	lab->second = connect_to_daemon();
	assert_int_equal(control_show(lab->first, "status", &status), 0);
	pid = strstr(status, key);
	assert_non_null(pid);
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
	/* waits for any sweep */
	assert_int_equal(control_sm_event(lab->first, CONTROL_SM_CLIENT_REREGISTER, "h1", 1), 0);
	later = table(lab->first);
	assert_true(strcmp(before, now) != 0);
	assert_true(strcmp(now, later) == 0);
	free(before);
	free(now);
	free(later);
}

static void a_link_that_changes_in_mid_sweep_is_swept(void **state)
{
	struct lab lab;

	(void)state;
	lab_open(&lab);
	carry_out(&lab, set_link("leaf2", UP_PORT, false));
	assert_done_at_once(&lab, set_link("leaf2", UP_PORT, true),
	                    set_link("leaf1", UP_PORT, false));
	carry_out(&lab, set_link("leaf2", UP_PORT, false));
	assert_done_at_once(&lab, set_link("leaf2", UP_PORT, true),
	                    set_link("leaf1", UP_PORT, true));
	lab_close(&lab);
}

static void a_switch_that_dies_or_returns_in_mid_sweep_is_swept(void **state)
{
	struct lab lab;

	(void)state;
	lab_open(&lab);
	carry_out(&lab, set_link("leaf2", UP_PORT, false));
	assert_done_at_once(&lab, set_link("leaf2", UP_PORT, true), set_switch("leaf100", false));
	carry_out(&lab, set_link("leaf2", UP_PORT, false));
	assert_done_at_once(&lab, set_link("leaf2", UP_PORT, true), set_switch("leaf100", true));
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_that_changes_in_mid_sweep_is_swept),
		cmocka_unit_test(a_switch_that_dies_or_returns_in_mid_sweep_is_swept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
