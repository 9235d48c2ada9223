/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of reason.c. Standard error is a socket that keeps lines apart.
 */
#include <harness.h>

#include "base/reason.h"

struct lab {
	int saved, reads; /* standard error as it was, and our end of what it is */
};

static int set_up(void **state)
{
	struct lab *lab = calloc(1, sizeof(*lab));
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	lab->saved = dup(STDERR_FILENO);
	lab->reads = pair[0];
	dup2(pair[1], STDERR_FILENO);
	close(pair[1]);
	*state = lab;
	return base_log_set(BASE_LOG_OFF, "verbs=warning", NULL, 0);
}

static int tear_down(void **state)
{
	struct lab *lab = *state;

	dup2(lab->saved, STDERR_FILENO);
	close(lab->saved);
	close(lab->reads);
	free(lab);
	return 0;
}

/* The text of the next line behind time, process, part and level; NULL: there is none. */
static const char *next_text(const struct lab *lab)
{
	static char line[2048];
	ssize_t n = recv(lab->reads, line, sizeof(line) - 1, MSG_DONTWAIT);
	const char *text;

	if (n < 0)
		return NULL;
	line[n - 1] = '\0';
	text = strstr(line, " verbs warning: ");
	assert_non_null(text);
	return text + strlen(" verbs warning: ");
}

static void expect(const struct lab *lab, const char *wanted)
{
	const char *text = next_text(lab);

	assert_non_null(text);
	assert_string_equal(text, wanted);
}

static int n_evaluated;

static int evaluated(void)
{
	return ++n_evaluated;
}

CASE_WITH(a_failed_call_is_told_with_its_reason, set_up, tear_down)
{
	assert_int_equal(base_because(-EINVAL, "port %d", 3), -EINVAL);
	base_call_failed(verbs, "ibv_one", EINVAL);
	expect(*state, "ibv_one() fails with EINVAL: port 3");
}

CASE_WITH(a_failed_call_is_told_without_a_reason, set_up, tear_down)
{
	base_call_failed(verbs, "ibv_two", ENOMEM);
	expect(*state, "ibv_two() fails with ENOMEM: Cannot allocate memory");
}

CASE_WITH(a_reason_counts_once_and_for_its_error_alone, set_up, tear_down)
{
	base_because(-EINVAL, "of another call");
	base_call_failed(verbs, "ibv_three", ENOSYS);
	expect(*state, "ibv_three() fails with ENOSYS: Function not implemented");
	base_call_failed(verbs, "ibv_three", EINVAL);
	expect(*state, "ibv_three() fails with EINVAL: Invalid argument");
}

static void *give(void *arg)
{
	(void)arg;
	base_because(-EINVAL, "of another thread");
	return NULL;
}

CASE_WITH(a_reason_belongs_to_its_thread, set_up, tear_down)
{
	pthread_t thread;

	pthread_create(&thread, NULL, give, NULL);
	pthread_join(thread, NULL);
	base_call_failed(verbs, "ibv_four", EINVAL);
	expect(*state, "ibv_four() fails with EINVAL: Invalid argument");
}

CASE_WITH(not_yet_is_no_failure, set_up, tear_down)
{
	base_call_failed(verbs, "ibv_five", EAGAIN);
	base_call_failed(verbs, "ibv_five", EINTR);
	assert_null(next_text(*state));
	base_because(-EAGAIN, "no subnet manager");
	base_call_failed(verbs, "ibv_five", EAGAIN);
	expect(*state, "ibv_five() fails with EAGAIN: no subnet manager");
}

CASE_WITH(a_log_that_is_off_says_and_keeps_nothing, set_up, tear_down)
{
	base_log_set(BASE_LOG_OFF, "verbs=error,packet=trace", NULL, 0);
	n_evaluated = 0;
	assert_int_equal(base_because(-EINVAL, "%d", evaluated()), -EINVAL);
	assert_int_equal(n_evaluated, 0);
	base_call_failed(verbs, "ibv_six", EINVAL);
	assert_null(next_text(*state));
	base_log_set(BASE_LOG_WARNING, NULL, NULL, 0);
	base_call_failed(verbs, "ibv_six", EINVAL);
	expect(*state, "ibv_six() fails with EINVAL: Invalid argument");
}

CASE_WITH(what_comes_again_and_again_is_counted, set_up, tear_down)
{
	unsigned lines = 0;
	const char *text;
	char last[256] = "";

	for (int i = 0; i < 1000; i++) {
		base_because(-ENOMEM, "full");
		base_call_failed(verbs, "ibv_seven", ENOMEM);
		while ((text = next_text(*state))) {
			snprintf(last, sizeof(last), "%s", text);
			lines++;
		}
	}
	assert_int_equal(lines, 4 + 7); /* 1 to 4, 8, 16 ... 512 */
	assert_string_equal(last, "ibv_seven() fails with ENOMEM: full (512 times so far)");
}

CASE_WITH(other_failures_are_told_in_between, set_up, tear_down)
{
	for (int i = 0; i < 100; i++)
		base_call_failed(verbs, "ibv_eight", ENOMEM);
	while (next_text(*state))
		;
	base_because(-ENOMEM, "another reason");
	base_call_failed(verbs, "ibv_eight", ENOMEM);
	expect(*state, "ibv_eight() fails with ENOMEM: another reason");
}

CASE_WITH(failures_are_the_same_by_their_number, set_up, tear_down)
{
	const struct base_failure f = {
		.part = BASE_LOG_PART_verbs, .error = 4, .otherwise = "as ever", .again = 77
	};

	for (int i = 0; i < 8; i++)
		base_failure_log(&f, "wr_id %d", i);
	for (int i = 0; i < 4; i++)
		assert_non_null(next_text(*state));
	expect(*state, "wr_id 7: as ever (8 times so far)");
	assert_null(next_text(*state));
}

CASE_WITH(errno_stays, set_up, tear_down)
{
	errno = ENOTTY;
	base_because(-EINVAL, "%s", "x");
	base_call_failed(verbs, "ibv_nine", EINVAL);
	assert_int_equal(errno, ENOTTY);
}
