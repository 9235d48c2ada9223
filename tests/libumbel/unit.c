/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A unit test as users of libumbel write it: it starts its fabric itself, and breaks it.
 */
#include "verbs/lab.h"

#include "umbel.h"

static int no_faults(void **state)
{
	assert_int_equal(umbel_fault_clear(), 0);
	return lab_clean_up(state);
}

static void it_says(const char *words)
{
	if (!strstr(umbel_error(), words))
		fail_msg("'%s' is not in '%s'", words, umbel_error());
}

/* Numbers from h1 to h2. */
static void send_numbers(struct lab_end *a, struct lab_end *b, uint32_t n)
{
	struct ibv_ah *ah = lab_ah_to(a, b);

	for (uint32_t i = 0; i < n; i++)
		lab_send(a, ah, b->qp->qp_num, &i, sizeof(i));
}

static void expect_number(struct lab_end *at, uint32_t n)
{
	lab_expect(at, &n, sizeof(n));
}

CASE_WITH(a_fault_fires, NULL, no_faults)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	int first = umbel_fault("to=h2:0x%x nth=2 drop", b->qp->qp_num);
	int second = umbel_fault("to=h2:0x%x nth=9 drop", b->qp->qp_num);

	assert_true(first > 0);
	assert_true(second > first);
	lab_post(b, 4);
	send_numbers(a, b, 3);
	expect_number(b, 0);
	expect_number(b, 2);
	assert_int_equal(umbel_fault_fired(first), 1);
	assert_int_equal(umbel_fault_fired(second), 0);
	assert_string_equal(umbel_error(), "");
	assert_int_equal(umbel_fault_clear(), 0);
	assert_int_equal(umbel_fault_fired(first), -1);
	it_says("no rule");
}

LAB_CASE(a_link_goes_down_and_up)
{
	struct ibv_context *context = lab_open(2);
	struct ibv_port_attr port;

	assert_int_equal(umbel_link("h2:1", false), 0);
	lab_async_event(context, IBV_EVENT_PORT_ERR);
	assert_int_equal(ibv_query_port(context, 1, &port), 0);
	assert_int_not_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(umbel_link("h2:1", false), -1);
	it_says("down already");
	assert_int_equal(umbel_link("--help", false), -1);
	it_says("begins with");
	assert_int_equal(umbel_link("h2:1", true), 0);
	lab_async_event(context, IBV_EVENT_PORT_ACTIVE);
}

LAB_CASE(a_switch_dies_and_lives)
{
	struct ibv_context *context = lab_open(1);

	assert_int_equal(umbel_switch("sw1", false), 0);
	lab_async_event(context, IBV_EVENT_PORT_ERR);
	assert_int_equal(umbel_switch("sw1", true), 0);
	lab_async_event(context, IBV_EVENT_PORT_ACTIVE);
	assert_int_equal(umbel_switch("sw7", false), -1);
	it_says("sw7");
	assert_int_equal(umbel_switch("--help", false), -1);
	it_says("begins with");
}

LAB_CASE(counters_are_read)
{
	static const char *const no_port[] = { "h2",    "h2:",   "h2:1x",        ":1",
		                               "h2:+1", "h2: 1", "h2:4294967297" };
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	int64_t before = umbel_counter("h2:1", "no_receive");

	assert_true(before >= 0);
	send_numbers(a, b, 3);
	assert_int_equal(umbel_counter("h2:1", "no_receive"), before + 3);
	assert_true(umbel_counter("sw1:1", "rcv_pkts") >= 3);
	errno = 0;
	assert_int_equal(umbel_counter("h2:1", "nonsense"), -1);
	assert_int_equal(errno, ENOENT);
	it_says("nonsense");
	assert_int_equal(umbel_counter("h2:9", "no_receive"), -1);
	assert_int_equal(umbel_counter("h9:1", "no_receive"), -1);
	for (size_t i = 0; i < sizeof(no_port) / sizeof(*no_port); i++) {
		errno = 0;
		assert_int_equal(umbel_counter(no_port[i], "no_receive"), -1);
		assert_int_equal(errno, EINVAL);
		it_says("NODE:PORT");
	}
}

LAB_CASE(a_group_is_waited_for)
{
	char mgid[INET6_ADDRSTRLEN];
	struct lab_group *g = lab_join(1, "239.7.7.7");

	inet_ntop(AF_INET6, &g->mgid, mgid, sizeof(mgid));
	assert_int_equal(umbel_wait_group(mgid, 1, 0, 60), 0);
	assert_int_equal(umbel_wait_group(mgid, 2, 0, 1), -1);
	it_says("1 of 2 members");
	assert_int_equal(umbel_wait_group("nonsense", 1, 0, 1), -1);
	it_says("nonsense");
}

LAB_CASE(anything_is_asked)
{
	char *text = umbel_ask((const char *const[]){ "show", "hosts", "--json", NULL });

	assert_non_null(text);
	assert_non_null(strstr(text, "umbel_h2_0"));
	free(text);
	errno = 0;
	assert_null(umbel_ask((const char *const[]){ "nonsense", NULL }));
	assert_int_equal(errno, EPROTO);
	it_says("nonsense");
}

LAB_CASE(a_wrong_rule_is_refused)
{
	char longest[600];

	memset(longest, '1', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(umbel_fault("to=h2:* dorp"), -1);
	it_says("dorp");
	assert_int_equal(umbel_fault("to=h9:* drop"), -1);
	it_says("h9");
	assert_int_equal(umbel_fault("--help"), -1);
	it_says("begins with");
	assert_int_equal(umbel_fault("drop nth=%s", longest), -1);
	assert_int_equal(umbel_fault("drop nth=%.300s", longest), -1);
	assert_string_not_equal(umbel_error(), "");
}

/* Where tests/libumbel/unit.sh looks for it. */
static const char *capture_path(char path[static 256])
{
	snprintf(path, 256, "%s/unit.pcapng", getenv("TMPDIR"));
	return path;
}

LAB_CASE(what_is_sent_is_captured)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct umbel_capture *c, *other;
	char qp[32], path[256];
	int64_t lost = -1;

	snprintf(qp, sizeof(qp), "h2:0x%x", b->qp->qp_num);
	c = umbel_capture_begin(capture_path(path), (const char *const[]){ "--qp", qp, NULL });
	assert_non_null(c);
	assert_string_equal(umbel_error(), "");
	assert_non_null(other = umbel_capture_begin("/dev/null", NULL));
	lab_post(b, 4);
	send_numbers(a, b, 3);
	for (uint32_t i = 0; i < 3; i++)
		expect_number(b, i);
	assert_int_equal(umbel_capture_end(c, &lost), 3);
	assert_int_equal(lost, 0);
	assert_int_equal(umbel_capture_end(other, NULL), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* it leaves no process */
	assert_int_equal(errno, ECHILD);
}

LAB_CASE(a_capture_that_fails_says_why)
{
	struct umbel_capture *c;

	errno = 0;
	assert_null(umbel_capture_begin("/nowhere/x", NULL));
	assert_int_equal(errno, EPROTO);
	it_says("cannot write '/nowhere/x'");
	assert_null(umbel_capture_begin("/dev/null", (const char *const[]){ "h9", NULL }));
	it_says("no node 'h9'");
	assert_null(umbel_capture_begin("/dev/null", (const char *const[]){ "--help", NULL }));
	c = umbel_capture_begin("/dev/full", NULL);
	if (c) /* nothing is in its way before it writes */
		assert_int_equal(umbel_capture_end(c, NULL), -1);
	it_says("cannot write");
}

/* The test blocks and ignores what it likes: the command does not. */
LAB_CASE(signals_are_the_tests_own)
{
	sigset_t all, old;
	void (*was)(int) = signal(SIGPIPE, SIG_IGN);

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	assert_int_equal(umbel_fault_clear(), 0);
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGPIPE, was);
}

LAB_CASE(without_the_command_it_says_so)
{
	char *path = strdup(getenv("PATH"));

	setenv("PATH", "/nowhere", 1);
	errno = 0;
	assert_int_equal(umbel_fault_clear(), -1);
	assert_int_equal(errno, ENOENT);
	it_says("cannot run umbel");
	setenv("PATH", path, 1);
	free(path);
}

/* A rule of its own, and a mistake of its own. */
static void *breaks_something(void *arg)
{
	const unsigned *me = arg;
	char words[32];

	for (unsigned i = 0; i < 5; i++) {
		int rule = umbel_fault("qp=h1:* psn=%u drop", *me * 100 + i);

		if (rule < 0 || umbel_fault_fired(rule) || *umbel_error())
			return "its rule";
		snprintf(words, sizeof(words), "h9%u", *me);
		if (umbel_fault("to=%s:* drop", words) != -1 || !strstr(umbel_error(), words))
			return "its reason";
	}
	return NULL;
}

/* And a child is forked while the threads are at it, which calls it, too, and outlives them. */
LAB_CASE(threads_and_a_child_call_it)
{
	const unsigned before = harness_descriptors();
	unsigned number[4] = { 1, 2, 3, 4 };
	pthread_t thread[4];
	int wait[2], status;
	pid_t child;
	char byte;

	assert_int_equal(pipe(wait), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, breaks_something, &number[i]), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(wait[1]);
		status = 0;
#ifndef __SANITIZE_ADDRESS__ /* its malloc() stays locked in a child that was forked beside one */
		if (umbel_fault("qp=h2:* psn=7 drop") <= 0)
			status = 1;
#endif
		if (read(wait[0], &byte, 1) != 0) /* until the others have ended */
			status = 2;
		_exit(status);
	}
	for (unsigned i = 0; i < 4; i++) {
		void *wrong;

		assert_int_equal(pthread_join(thread[i], &wrong), 0);
		if (wrong)
			fail_msg("thread %u: %s", i, (const char *)wrong);
	}
	close(wait[0]);
	close(wait[1]);
	harness_expect_success(child);
	assert_int_equal(umbel_fault_clear(), 0);
	assert_int_equal(harness_descriptors(), before);
}

LAB_CASE(without_descriptors_it_says_so)
{
	const unsigned before = harness_descriptors();
	struct rlimit limit, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	for (unsigned room = 0; room < 4; room++) { /* it takes four for both streams */
		int lowest = dup(0);

		assert_true(lowest >= 0);
		close(lowest);
		few.rlim_cur = (rlim_t)lowest + room;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		errno = 0;
		assert_int_equal(umbel_fault_clear(), -1);
		assert_int_equal(errno, EMFILE);
		it_says("Too many open files");
		assert_null(umbel_capture_begin("/dev/null", NULL));
		assert_string_not_equal(umbel_error(), "");
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	}
	assert_int_equal(umbel_fault_clear(), 0);
	assert_int_equal(harness_descriptors(), before);
}

/* A child of the command, or one that was forked meanwhile, may keep the command's output open. */
LAB_CASE(it_waits_for_the_command_alone)
{
	char *path = strdup(getenv("PATH")), *text, *name, *searched;
	pid_t still;
	FILE *script;

	assert_true(asprintf(&name, "%s/bin", getenv("TMPDIR")) > 0);
	mkdir(name, 0700);
	assert_true(asprintf(&searched, "%s:%s", name, path) > 0);
	free(name);
	assert_true(asprintf(&name, "%s/bin/umbel", getenv("TMPDIR")) > 0);
	assert_non_null(script = fopen(name, "w"));
	fputs("#!/bin/sh\nsleep 1000 &\necho $!\n", script);
	fclose(script);
	assert_int_equal(chmod(name, 0700), 0);
	setenv("PATH", searched, 1);
	text = umbel_ask((const char *const[]){ "show", "hosts", NULL });
	setenv("PATH", path, 1);
	assert_non_null(text);
	still = atoi(text);
	assert_true(still > 1);
	assert_int_equal(kill(still, SIGKILL), 0);
	assert_int_equal(unlink(name), 0);
	free(text);
	free(searched);
	free(name);
	free(path);
}

static int no_command(char **argv)
{
	unsetenv("UMBEL_FABRIC");
	setenv("PATH", "/nowhere", 1);
	return umbel_enter(argv, NULL) == -1 && strstr(umbel_error(), "cannot run umbel") ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const char *const options[] = { "--hosts", "2", NULL };

	if (argc > 1 && !strcmp(argv[1], "--no-command"))
		return no_command(argv);
	/* arguments get there as they are */
	if (argc != 3 || strcmp(argv[1], "two words") != 0 || strcmp(argv[2], "") != 0)
		return 2;
	if (umbel_enter(argv, options)) {
		fprintf(stderr, "%s\n", umbel_error());
		return 1;
	}
	return harness_run(NULL, NULL);
}
