/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receiving processes of one multicast group on one host, beside each other: what a message
 * costs until all of them have it, and how often the host's sockets received it. Both kinds of
 * link (common/link.h) in turns, each message 64 bytes, lists of 32. The sender is in network
 * namespace a, the processes are in b (wire.sh) and share a processor. Prints a line of
 * JSON a sample.
 *
 * receivers [--processes N] [--turns N]
 */
#include "common/util.h"

#include <getopt.h>

#include "base/pause.h"
#include "common/link.h"

#define MAX_PROCESSES 8
#define MESSAGES      6144 /* a sample */
#define LIST          32
#define PATIENCE_NS   10000000000u

static const struct bench_link_ops *const links[] = { &bench_roce_ops, &bench_udp_ops };

#define LINKS (sizeof(links) / sizeof(links[0]))

struct shared {
	_Alignas(64) _Atomic uint32_t met;
	struct {
		_Alignas(64) _Atomic uint32_t count; /* messages that this process has done with */
	} got[MAX_PROCESSES];
	uint64_t datagrams, packets; /* counters of namespace b, after a sample */
};

struct plan {
	unsigned processes, turns;
	struct bench_spec spec[LINKS];
	void *prepared[LINKS];
	struct shared *shared;
};

/* A look in vain: others may have the processor. */
static void pass(struct base_pause *pause, uint64_t since)
{
	base_pause_sleep(pause);
	if (bench_now() - since > PATIENCE_NS)
		errx(EXIT_FAILURE, "no end for ten seconds: messages are lost");
}

/* Returns when all processes have come to their @n-th meeting. */
static void meet(const struct plan *plan, uint32_t n)
{
	struct base_pause pause = { 0 };
	uint64_t since = bench_now();

	atomic_fetch_add_explicit(&plan->shared->met, 1, memory_order_acq_rel);
	while (atomic_load_explicit(&plan->shared->met, memory_order_acquire) <
	       n * (plan->processes + 1))
		pass(&pause, since);
}

/* Field @field (from 1) of the line of @path that begins with @key, the last one of these. */
static uint64_t read_counter(const char *path, const char *key, int field)
{
	FILE *f = fopen(path, "r");
	char line[1024], *rest;
	uint64_t value = 0;

	if (!f)
		err(EXIT_FAILURE, "%s", path);
	while (fgets(line, sizeof(line), f)) {
		rest = line + strspn(line, " ");
		if (strncmp(rest, key, strlen(key)) != 0)
			continue;
		rest += strlen(key);
		for (int i = 0; i < field; i++)
			value = strtoull(rest, &rest, 10);
	}
	fclose(f);
	return value;
}

static void note_counters(struct shared *shared)
{
	shared->datagrams = read_counter("/proc/net/snmp", "Udp:", 1);
	shared->packets = read_counter("/proc/net/dev", "eth0:", 2);
}

/* ---- receivers ---- */

static void take(const struct plan *plan, unsigned process, const struct bench_link_ops *ops,
                 void *link)
{
	_Atomic uint32_t *count = &plan->shared->got[process].count;
	struct base_pause pause = { 0 };
	uint64_t since = bench_now();
	uint32_t got = 0;

	while (got < MESSAGES) {
		unsigned n = ops->receive(link, LIST);

		if (!n) {
			pass(&pause, since);
			continue;
		}
		pause.looks = 0;
		got += n;
		ops->settle(link);
		/* release: pairs with the acquire in least() */
		atomic_store_explicit(count, got, memory_order_release);
	}
}

static void run_receiver(const struct plan *plan, unsigned process)
{
	void *link[LINKS];
	uint32_t met = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bench_must(!bench_pin(1), "sched_setaffinity");
	bench_enter("b");
	for (unsigned i = 0; i < LINKS; i++)
		link[i] = links[i]->open(plan->prepared[i], &plan->spec[i], 1);
	for (unsigned n = 0; n < (plan->turns + 1) * LINKS; n++) {
		atomic_store(&plan->shared->got[process].count, 0);
		if (!process)
			note_counters(plan->shared);
		meet(plan, ++met);
		take(plan, process, links[n % LINKS], link[n % LINKS]);
		meet(plan, ++met);
		if (!process)
			note_counters(plan->shared);
		meet(plan, ++met);
	}
	exit(0);
}

/* ---- the sender ---- */

/* The number of messages that the slowest has. */
static uint32_t least(const struct plan *plan)
{
	uint32_t least = MESSAGES;

	for (unsigned i = 0; i < plan->processes; i++) {
		uint32_t n =
		        atomic_load_explicit(&plan->shared->got[i].count, memory_order_acquire);

		least = n < least ? n : least;
	}
	return least;
}

/* Nanoseconds a message. */
static double send_all(const struct plan *plan, const struct bench_link_ops *ops, void *link)
{
	uint32_t depth = plan->spec[0].depth;
	uint64_t begin = bench_now();

	for (uint32_t sent = 0; sent < MESSAGES; sent += LIST) {
		while (least(plan) + depth < sent + LIST)
			bench_relax();
		ops->send(link, LIST);
	}
	while (least(plan) < MESSAGES)
		bench_relax();
	return (double)(bench_now() - begin) / MESSAGES;
}

static void run_sender(const struct plan *plan)
{
	void *link[LINKS];
	uint32_t met = 0;

	bench_must(!bench_pin(0), "sched_setaffinity");
	bench_enter("a");
	for (unsigned i = 0; i < LINKS; i++)
		link[i] = links[i]->open(plan->prepared[i], &plan->spec[i], 0);
	for (unsigned n = 0; n < (plan->turns + 1) * LINKS; n++) {
		const struct bench_link_ops *ops = links[n % LINKS];
		uint64_t datagrams, packets;
		double ns;

		meet(plan, ++met);
		datagrams = plan->shared->datagrams;
		packets = plan->shared->packets;
		ns = send_all(plan, ops, link[n % LINKS]);
		meet(plan, ++met);
		meet(plan, ++met);
		if (n >= LINKS) /* the first turn warms up */
			printf("{\"measure\": \"receivers\", \"link\": \"%s\", \"processes\": %u, "
			       "\"ns\": %.2f, \"packets\": %.4f, \"datagrams\": %.4f}\n",
			       ops->name, plan->processes, ns,
			       (double)(plan->shared->packets - packets) / MESSAGES,
			       (double)(plan->shared->datagrams - datagrams) / MESSAGES);
	}
}

static void parse(struct plan *plan, int argc, char **argv)
{
	static const struct option options[] = { { "processes", required_argument, NULL, 'p' },
		                                 { "turns", required_argument, NULL, 't' },
		                                 { NULL, 0, NULL, 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'p')
			plan->processes = (unsigned)atoi(optarg);
		else if (c == 't')
			plan->turns = (unsigned)atoi(optarg);
		else
			exit(2);
	}
	if (!plan->processes || plan->processes > MAX_PROCESSES)
		errx(2, "one to %d processes", MAX_PROCESSES);
}

/* One has failed, and said why. */
static void on_child(int signal)
{
	int status;

	(void)signal;
	if (waitpid(-1, &status, WNOHANG) > 0 && status)
		_exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	struct plan plan = { .processes = 1, .turns = 5 };

	parse(&plan, argc, argv);
	plan.shared = bench_alloc(sizeof(*plan.shared), 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; i < LINKS; i++) {
		plan.spec[i] = (struct bench_spec){ .bytes = 64,
			                            .depth = 512,
			                            .address = { "192.0.2.1", "192.0.2.2" },
			                            .device = "eth0",
			                            .index = i };
		if (links[i]->prepare)
			plan.prepared[i] = links[i]->prepare(&plan.spec[i]);
	}
	signal(SIGCHLD, on_child);
	for (unsigned i = 0; i < plan.processes; i++) {
		pid_t pid = fork();

		bench_must(pid >= 0, "fork");
		if (!pid) {
			signal(SIGCHLD, SIG_DFL);
			run_receiver(&plan, i);
		}
	}
	run_sender(&plan);
	return 0;
}
