/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel top`: what happens on the fabric, on a screen that follows it. A thread of its own asks
 * the daemon, for what `umbel show --json` asks, so that keys have their effect while it waits;
 * this one draws.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/fabrics.h"
#include "cli/base/options.h"
#include "cli/show/top_screen.h"
#include "control/client.h"

#define MOST_SECONDS 3600
#define NS_PER_S     1000000000ull
#define CLOCK_MS     1000 /* the screen has a clock */
#define END_SECONDS  1    /* for which the end waits for the daemon's last reply */

static const char help[] =
        "Usage: umbel top [OPTION]... [VIEW]\n"
        "Show on a screen what happens on the fabric. The views:\n"
        "\n"
        "  ports        bytes and packets a second, and what was lost\n"
        "  groups       multicast groups: members, what is sent to them\n"
        "  connections  of rdma_cm and by hand\n"
        "  qps          queue pairs: receives, requests that wait, what they send\n"
        "  processes    programs: what they have and send\n";

static const char help_end[] = "\nThe key h shows what keys do.\n";

struct top {
	const char *name;
	long interval;
	const char *view;
};

static const struct top defaults = { .interval = 1 };

static const struct cli_option options[] = {
	{ CLI_NAME_LINE, CLI_TEXT(struct top, name) },
	{ "      --interval N  seconds between two looks (default: 1)\n",
	  CLI_NUMBER(struct top, interval, 1, MOST_SECONDS) },
	CLI_HELP_ROW,
};

/* ---- the thread that asks ---- */

struct sampler {
	struct control_client *client;
	long interval;
	_Atomic unsigned view;
	_Atomic bool stops, is_ahead; /* is_ahead: what it has sent was not taken yet */
	int wake, out[2]; /* wake: another view, or the end; out: a pipe of struct message */
	pthread_t thread;
	struct json_object *texts;
	struct cli_top_history history[CLI_TOP_VIEWS];
};

struct message {
	struct cli_top_sample *sample; /* NULL: ->error */
	int error;
};

/* Until it is time, or somebody wants something. */
static void rest(struct sampler *s)
{
	struct pollfd p = { .fd = s->wake, .events = POLLIN };
	uint64_t n;

	if (poll(&p, 1, (int)s->interval * 1000) > 0 && read(s->wake, &n, sizeof(n)) < 0)
		return; /* it is only a wake-up */
}

static void *sample(void *arg)
{
	struct sampler *s = arg;

	while (!s->stops) {
		unsigned view = s->view;
		struct message m = { 0 };

		m.error = cli_top_sample_take(s->client, &cli_top_views[view], &s->history[view],
		                              &s->texts, &m.sample);
		s->is_ahead = true;
		if (write(s->out[1], &m, sizeof(m)) != sizeof(m)) {
			cli_top_sample_free(m.sample);
			break;
		}
		if (m.error)
			break;
		/* a terminal that is held (Ctrl-S) takes none for a while */
		do
			rest(s);
		while (s->is_ahead && !s->stops);
	}
	return NULL;
}

/* Signals are the other thread's. 0 or -errno. */
static int sampler_start(struct sampler *s)
{
	int ret;

	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake < 0)
		return -errno;
	if (pipe2(s->out, O_CLOEXEC) < 0) {
		ret = -errno;
		close(s->wake);
		return ret;
	}
	ret = base_thread_start(&s->thread, 0, sample, s);
	if (ret) {
		close(s->wake);
		close(s->out[0]);
		close(s->out[1]);
	}
	return ret;
}

static void sampler_wake(const struct sampler *s)
{
	if (eventfd_write(s->wake, 1) < 0)
		return; /* it has been woken more often than it can count */
}

/* If the daemon is stopped, the thread waits for its reply still, and ends with the process. */
static void sampler_end(struct sampler *s)
{
	struct timespec until;
	struct message m;

	s->stops = true;
	sampler_wake(s);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_SECONDS;
	if (pthread_timedjoin_np(s->thread, NULL, &until))
		return;
	close(s->out[1]);
	while (read(s->out[0], &m, sizeof(m)) == sizeof(m))
		cli_top_sample_free(m.sample);
	close(s->out[0]);
	close(s->wake);
	for (unsigned i = 0; i < CLI_TOP_VIEWS; i++)
		cli_top_history_fini(&s->history[i]);
	json_object_put(s->texts);
	control_close(s->client);
	free(s);
}

/* ---- keys ---- */

struct screen {
	struct cli_top_state state;
	struct sampler *sampler;
	uint64_t heard_ns; /* when the daemon replied last */
};

static void choose_view(struct screen *s, unsigned view)
{
	struct cli_top_state *t = &s->state;

	if (view >= CLI_TOP_VIEWS || view == t->view)
		return;
	t->view = view;
	t->first = 0;
	cli_top_sample_free(t->sample);
	t->sample = NULL;
	s->sampler->view = view;
	sampler_wake(s->sampler);
}

static void choose_column(struct cli_top_state *t, bool right)
{
	const unsigned n = cli_top_n_columns(&cli_top_views[t->view]);
	struct cli_top_order *order = &t->order[t->view];

	order->column = (order->column + (right ? 1 : n - 1)) % n;
	order->reverse = false;
}

static void scroll(struct cli_top_state *t, int key)
{
	const size_t page = cli_top_screen_rows();
	size_t up = 0;

	switch (key) {
	case CLI_TOP_UP:
		up = 1;
		break;
	case CLI_TOP_PAGE_UP:
		up = page;
		break;
	case CLI_TOP_FIRST:
		up = t->first;
		break;
	case CLI_TOP_DOWN:
		t->first++;
		break;
	case CLI_TOP_PAGE_DOWN:
		t->first += page;
		break;
	case CLI_TOP_LAST:
		t->first = t->sample ? t->sample->n : 0;
		break;
	default:
		break;
	}
	t->first -= up < t->first ? up : t->first;
}

/* A key of the filter's text. */
static void type(struct cli_top_state *t, int key)
{
	size_t n = strlen(t->filter);

	if (key == 27)
		t->filter[0] = '\0';
	if (key == 27 || key == '\r' || key == '\n')
		t->typing = false;
	else if (key == CLI_TOP_BACKSPACE && n)
		t->filter[n - 1] = '\0';
	else if (key >= ' ' && key <= '~' && n + 1 < sizeof(t->filter)) {
		t->filter[n] = (char)key;
		t->filter[n + 1] = '\0';
	}
}

/* False: it is to quit. */
static bool obey(struct screen *s, int key)
{
	struct cli_top_state *t = &s->state;

	if (t->typing) {
		type(t, key);
		return true;
	}
	if (t->helping && key != CLI_TOP_REDRAW) {
		t->helping = false;
		return true;
	}
	switch (key) {
	case 'q':
	case 'Q':
		return false;
	case '\t':
		choose_view(s, (t->view + 1) % CLI_TOP_VIEWS);
		break;
	case '<':
	case CLI_TOP_LEFT:
		choose_column(t, false);
		break;
	case '>':
	case CLI_TOP_RIGHT:
		choose_column(t, true);
		break;
	case 'r':
		t->order[t->view].reverse = !t->order[t->view].reverse;
		break;
	case '/':
		t->typing = true;
		t->filter[0] = '\0';
		break;
	case 'p':
	case ' ':
		t->paused = !t->paused;
		break;
	case 'h':
	case '?':
		t->helping = true;
		break;
	default:
		if (key >= '1' && key <= '9')
			choose_view(s, (unsigned)(key - '1'));
		else
			scroll(t, key);
	}
	return true;
}

/* ---- the loop ---- */

/* A sample has come, or an error, which is returned. */
static int take(struct screen *s)
{
	struct cli_top_state *t = &s->state;
	struct message m;

	if (read(s->sampler->out[0], &m, sizeof(m)) != sizeof(m))
		return -EIO;
	s->sampler->is_ahead = false;
	if (m.error)
		return m.error;
	s->heard_ns = base_now_ns();
	/* of a view that was left; or, while it pauses, it is not wanted unless there is none */
	if (m.sample->view != &cli_top_views[t->view] || (t->paused && t->sample)) {
		cli_top_sample_free(m.sample);
		return 0;
	}
	cli_top_sample_free(t->sample);
	t->sample = m.sample;
	return 0;
}

/* How it ended. */
struct ended {
	int error;  /* of the daemon */
	int signal; /* that has come */
	bool gone;  /* the terminal is */
};

/* Reads all keys. False: it is to quit. */
static bool read_keys(struct screen *s)
{
	int key;

	while ((key = cli_top_screen_key()) != CLI_TOP_NO_KEY)
		if (!obey(s, key))
			return false;
	return true;
}

static void loop(struct screen *s, int signals, struct ended *ended)
{
	struct pollfd p[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
		{ .fd = s->sampler->out[0], .events = POLLIN },
	};
	struct signalfd_siginfo info;
	uint64_t since;

	for (;;) {
		since = (base_now_ns() - s->heard_ns) / NS_PER_S;
		s->state.silent = since > (uint64_t)s->state.interval
		                          ? (unsigned)(since - (uint64_t)s->state.interval)
		                          : 0;
		cli_top_screen_draw(&s->state);
		/* interrupted: the size has changed, which is a key */
		if (poll(p, ARRAY_SIZE(p), CLOCK_MS) < 0)
			p[0].revents = p[1].revents = p[2].revents = 0;
		if (!read_keys(s))
			return;
		if (p[1].revents && read(signals, &info, sizeof(info)) == sizeof(info)) {
			ended->signal = (int)info.ssi_signo;
			return;
		}
		if (p[0].revents & (POLLHUP | POLLERR | POLLNVAL)) {
			ended->gone = true;
			return;
		}
		if (p[2].revents)
			ended->error = take(s);
		if (ended->error)
			return;
	}
}

/* Whether the signal, if nobody catches it, ends a program, and neither by a fault of its own nor
 * by force. */
static bool ends_programs(int number)
{
	static const int others[] = { SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN,  SIGTTOU,
		                      SIGCONT, SIGCHLD, SIGURG,  SIGWINCH, SIGSEGV,
		                      SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP,  SIGSYS };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (number == others[i])
			return false;
	return true;
}

/* The signals that end it, which come by a descriptor while there is a screen: none leaves the
 * terminal as it is then. Those that are ignored stay so. */
static int open_signals(sigset_t *before)
{
	struct sigaction action;
	sigset_t set;

	sigemptyset(&set);
	for (int number = 1; number <= SIGRTMAX; number++)
		if (ends_programs(number) && !sigaction(number, NULL, &action) &&
		    action.sa_handler != SIG_IGN)
			sigaddset(&set, number);
	pthread_sigmask(SIG_BLOCK, &set, before);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Shows it until the user, a signal or the daemon ends it; the terminal is as it was then. */
static int show(struct screen *s, int signals, struct ended *ended)
{
	int ret = cli_top_screen_open();

	if (ret)
		return ret;
	loop(s, signals, ended);
	cli_top_screen_close();
	cli_top_sample_free(s->state.sample);
	if (ended->error)
		base_log("fabric '%s' is not there any more: %s", s->state.fabric,
		         strerror(-ended->error));
	return ended->error || ended->gone ? CLI_FAILED : CLI_OK;
}

static int run(const struct top *top, struct sampler *sampler, int view)
{
	struct screen s = { .sampler = sampler, .heard_ns = base_now_ns() };
	struct ended ended = { 0 };
	sigset_t before;
	int signals, ret;

	s.state.fabric = cli_fabric_name(top->name);
	s.state.interval = sampler->interval = top->interval;
	s.state.view = sampler->view = (unsigned)view;
	for (unsigned i = 0; i < CLI_TOP_VIEWS; i++)
		s.state.order[i].column = cli_top_views[i].sort;
	signals = open_signals(&before);
	ret = signals < 0 ? -errno : sampler_start(sampler);
	if (ret) {
		base_log("top: %s", strerror(-ret));
		control_close(sampler->client);
		free(sampler);
		return CLI_FAILED;
	}
	ret = show(&s, signals, &ended);
	sampler_end(sampler);
	close(signals);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ended.signal) { /* as if nobody had caught it */
		signal(ended.signal, SIG_DFL);
		raise(ended.signal);
	}
	return ret;
}

static int take_word(const struct cli_command *self, void *options_, const char *word)
{
	struct top *top = options_;

	if (top->view)
		return cli_usage_error(self, "one view at first, not '%s' too", word);
	top->view = word;
	return 0;
}

static int execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	static struct sampler *sampler; /* static: it may be in use when the process ends */
	const struct top *top = from;
	int view = cli_top_find(top->view ? top->view : cli_top_views[0].name), ret;

	(void)argc; /* take_word() has had them */
	(void)argv;
	if (view < 0)
		return cli_usage_error(self,
		                       "no view '%s': ports, groups, connections, qps or processes",
		                       top->view);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		base_log("top: it needs a terminal; without one: umbel show --watch");
		return CLI_USAGE;
	}
	sampler = calloc(1, sizeof(*sampler));
	if (!sampler)
		return cli_no_memory();
	ret = cli_connect(&sampler->client, cli_fabric_name(top->name));
	if (ret) {
		free(sampler);
		return ret;
	}
	return run(top, sampler, view);
}

const struct cli_command cli_top = {
	.name = "top",
	.summary = "show ports, groups, connections and programs on a screen",
	.help = help,
	.help_end = help_end,
	CLI_OPTIONS(options, struct top),
	.defaults = &defaults,
	.word = take_word,
	.execute = execute,
};
