/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of log.c. Standard error is a socket that keeps messages apart, so that what one write()
 * wrote is received as one message.
 */
#include <harness.h>
#include <regex.h>

#include "base/log.h"

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
	return base_log_set(BASE_LOG_OFF, NULL, NULL, 0);
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

/* The text of the next write(), without its line break. */
static const char *next_line(const struct lab *lab, char line[static 2048])
{
	ssize_t n = recv(lab->reads, line, 2047, MSG_DONTWAIT);

	if (n < 0)
		return NULL;
	assert_int_equal(line[n - 1], '\n');
	line[n - 1] = '\0';
	return line;
}

static void expect_line(const struct lab *lab, const char *pattern)
{
	char line[2048];
	regex_t re;

	assert_non_null(next_line(lab, line));
	assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
	if (regexec(&re, line, 0, NULL, 0))
		fail_msg("'%s' does not match '%s'", line, pattern);
	regfree(&re);
}

static void expect_nothing(const struct lab *lab)
{
	char line[2048];

	assert_null(next_line(lab, line));
}

/* ---- lines ---- */

CASE_WITH(a_message_for_the_user_has_only_our_name_in_front, set_up, tear_down)
{
	base_log("no host '%s'", "h7");
	expect_line(*state, "^umbel: no host 'h7'$");
	expect_nothing(*state);
}

CASE_WITH(a_line_of_the_log_has_time_process_part_and_level, set_up, tear_down)
{
	char pattern[256];

	base_log_set(BASE_LOG_TRACE, NULL, NULL, 0);
	base_log_warning(sa, "MLID 0x%04x", 0xc001);
	snprintf(pattern, sizeof(pattern),
	         "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{6}Z "
	         "umbel\\[%d\\] sa warning: MLID 0xc001$",
	         (int)getpid());
	expect_line(*state, pattern);
}

/* As far as seconds. The clock is the log's: time(2) is up to a tick behind it. */
static void tell_time(char text[64])
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	strftime(text, 64, "%FT%T", gmtime(&now.tv_sec));
}

/* It is repeated if the second changes meanwhile. */
CASE_WITH(the_time_is_that_of_the_clock_in_utc, set_up, tear_down)
{
	char line[2048], before[64], after[64];

	base_log_set(BASE_LOG_INFO, NULL, NULL, 0);
	do {
		tell_time(before);
		base_log_info(sm, "tick");
		assert_non_null(next_line(*state, line));
		tell_time(after);
	} while (strcmp(before, after));
	line[strlen(before)] = '\0';
	assert_string_equal(line, before);
}

CASE_WITH(line_breaks_in_a_message_become_blanks, set_up, tear_down)
{
	base_log_set(BASE_LOG_INFO, NULL, NULL, 0);
	base_log_info(daemon, "one\ntwo\r\nthree\n");
	expect_line(*state, " daemon info: one two  three $");
	expect_nothing(*state);
}

CASE_WITH(a_long_message_is_cut_and_stays_a_line, set_up, tear_down)
{
	char line[2048], *longest = malloc(5000);

	memset(longest, 'x', 4999);
	longest[4999] = '\0';
	base_log_set(BASE_LOG_INFO, NULL, NULL, 0);
	base_log_info(daemon, "%s", longest);
	assert_non_null(next_line(*state, line));
	assert_int_equal(strlen(line), BASE_LOG_LINE_MAX - 2);
	base_log("%s", longest);
	assert_non_null(next_line(*state, line));
	assert_int_equal(strlen(line), BASE_LOG_LINE_MAX - 2);
	free(longest);
}

CASE_WITH(errno_stays_as_it_was, set_up, tear_down)
{
	struct lab *lab = *state;

	base_log_set(BASE_LOG_INFO, NULL, NULL, 0);
	close(STDERR_FILENO);
	errno = ENOENT;
	base_log("nobody reads this");
	assert_int_equal(errno, ENOENT);
	base_log_info(sm, "nobody reads this");
	assert_int_equal(errno, ENOENT);
	dup2(lab->saved, STDERR_FILENO);
}

/* ---- levels ---- */

static int evaluated;

static const char *costly(void)
{
	evaluated++;
	return "costly";
}

CASE_WITH(a_message_that_is_off_is_not_even_computed, set_up, tear_down)
{
	base_log_set(BASE_LOG_WARNING, NULL, NULL, 0);
	evaluated = 0;
	base_log_info(sm, "%s", costly());
	assert_int_equal(evaluated, 0);
	assert_false(base_log_on(sm, BASE_LOG_INFO));
	expect_nothing(*state);
	base_log_warning(sm, "%s", costly());
	assert_int_equal(evaluated, 1);
	assert_true(base_log_on(sm, BASE_LOG_WARNING));
	expect_line(*state, " sm warning: costly$");
}

CASE_WITH(each_level_prints_itself_and_what_is_more_urgent, set_up, tear_down)
{
	static const char *const names[] = { "off", "error", "warning", "info", "debug", "trace" };

	for (int level = BASE_LOG_OFF; level < BASE_LOG_LEVELS; level++) {
		assert_int_equal(base_log_set(BASE_LOG_OFF, names[level], NULL, 0), 0);
		base_log_error(cm, "1");
		base_log_warning(cm, "2");
		base_log_info(cm, "3");
		base_log_debug(cm, "4");
		base_log_trace(cm, "5");
		for (int printed = BASE_LOG_ERROR; printed <= level; printed++)
			expect_line(*state, names[printed]);
		expect_nothing(*state);
	}
}

CASE_WITH(a_part_has_its_own_level_wherever_it_is_named, set_up, tear_down)
{
	static const char *const same[] = { "warning,sa=debug,join=off",
		                            "sa=debug,join=off,warning",
		                            "sa=debug,,warning,join=trace,join=off," };

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		assert_int_equal(base_log_set(BASE_LOG_TRACE, same[i], NULL, 0), 0);
		assert_true(base_log_on(sa, BASE_LOG_DEBUG));
		assert_false(base_log_on(sa, BASE_LOG_TRACE));
		assert_true(base_log_on(sm, BASE_LOG_WARNING));
		assert_false(base_log_on(sm, BASE_LOG_INFO));
		assert_false(base_log_on(join, BASE_LOG_ERROR));
	}
}

CASE_WITH(what_a_text_leaves_out_has_the_level_of_the_program, set_up, tear_down)
{
	assert_int_equal(base_log_set(BASE_LOG_WARNING, "sa=debug", NULL, 0), 0);
	assert_true(base_log_on(sm, BASE_LOG_WARNING));
	assert_false(base_log_on(sm, BASE_LOG_INFO));
	assert_true(base_log_on(sa, BASE_LOG_DEBUG));
	assert_int_equal(base_log_set(BASE_LOG_WARNING, "", NULL, 0), 0);
	assert_false(base_log_on(sa, BASE_LOG_INFO));
}

CASE_WITH(what_is_wrong_in_a_text_is_named_and_the_rest_counts, set_up, tear_down)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "sm=loud,sa=debug", "'sm=loud' has no known level; there are off, error, " },
		{ "sa=debug,noise=info", "'noise=info' has no known part; there are daemon, sm, " },
		{ "shouting,sa=debug", "'shouting' has no known level; there are off, error, " },
		{ "sa=debug,sm=", "'sm=' has no known level; " },
		{ "=debug,sa=debug", "'=debug' has no known part; " },
		{ "sa=debug,SM=debug", "'SM=debug' has no known part; " },
		{ "sa=debug,sm=loud,much", "'much' has no known level; " },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char why[512] = "";

		assert_int_equal(base_log_set(BASE_LOG_OFF, wrong[i].text, why, sizeof(why)),
		                 -EINVAL);
		if (strncmp(why, wrong[i].why, strlen(wrong[i].why)))
			fail_msg("'%s': %s", wrong[i].text, why);
		assert_true(base_log_on(sa, BASE_LOG_DEBUG));
		assert_false(base_log_on(sm, BASE_LOG_ERROR));
	}
}

CASE_WITH(a_long_wrong_text_is_cut_in_the_complaint, set_up, tear_down)
{
	char *text = malloc(4000), why[40] = "";

	memset(text, 'y', 3999);
	text[3999] = '\0';
	assert_int_equal(base_log_set(BASE_LOG_OFF, text, why, sizeof(why)), -EINVAL);
	assert_int_equal(strlen(why), sizeof(why) - 1);
	free(text);
}

CASE_WITH(the_variable_is_read_and_complained_of_once, set_up, tear_down)
{
	setenv("UMBEL_LOG", "sa=debug,noise=info,mess", 1);
	base_log_start(BASE_LOG_WARNING);
	unsetenv("UMBEL_LOG");
	assert_true(base_log_on(sa, BASE_LOG_DEBUG));
	assert_true(base_log_on(sm, BASE_LOG_WARNING));
	expect_line(*state, "^umbel: UMBEL_LOG: 'mess' has no known level; there are off, ");
	expect_nothing(*state);
}

CASE_WITH(every_part_has_a_name_and_a_text, set_up, tear_down)
{
	unsigned n = 0;

	for (; base_log_part_name(n); n++)
		assert_true(*base_log_part_text(n));
	assert_int_equal(n, BASE_LOG_N_PARTS);
	assert_null(base_log_part_text(n));
}

/* ---- threads, processes, signals ---- */

enum { THREADS = 4, LINES = 400 };

static void *log_lines(void *arg)
{
	for (int i = 0; i < LINES; i++)
		base_log_info(sm, "thread %d line %d.", (int)(intptr_t)arg, i);
	return NULL;
}

CASE_WITH(lines_of_threads_come_whole_and_in_each_threads_order, set_up, tear_down)
{
	struct lab *lab = *state;
	pthread_t thread[THREADS];
	int next[THREADS] = { 0 };

	base_log_set(BASE_LOG_INFO, NULL, NULL, 0);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, log_lines, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS * LINES; i++) {
		char line[2048], end;
		int of, number;
		ssize_t n = recv(lab->reads, line, sizeof(line) - 1, 0);

		assert_true(n > 0);
		line[n] = '\0';
		assert_int_equal(
		        sscanf(strstr(line, "thread "), "thread %d line %d%c", &of, &number, &end),
		        3);
		assert_int_equal(number, next[of]++);
		assert_int_equal(end, '.');
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	expect_nothing(lab);
}

static void on_signal(int number)
{
	base_log_info(sm, "signal %d", number);
}

CASE_WITH(a_signal_handler_and_a_child_may_log, set_up, tear_down)
{
	int status;
	pid_t child;

	base_log_set(BASE_LOG_INFO, NULL, NULL, 0);
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	expect_line(*state, " sm info: signal 10$");
	child = fork();
	if (child == 0) {
		base_log_info(sm, "child %d", (int)getpid());
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	expect_line(*state, "umbel\\[([0-9]+)\\] sm info: child [0-9]+$");
	signal(SIGUSR1, SIG_DFL);
}
