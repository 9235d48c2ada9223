/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two processes in lockstep: see pair.h.
 */
#include "common/util.h"
#include "common/pair.h"

#define LINE_EXCHANGES 50 /* with each line */

struct bench_pair *bench_pair_new(void)
{
	bench_tick_ns(); /* known on both sides */
	return bench_alloc(sizeof(struct bench_pair), 1);
}

/* The other side has ended before its time, and said why. */
static void on_child(int signal)
{
	int status;

	(void)signal;
	if (waitpid(-1, &status, WNOHANG) > 0 && status)
		_exit(EXIT_FAILURE);
}

int bench_pair_run(struct bench_pair *pair, void (*run)(struct bench_pair *, int side, void *),
                   void *arg)
{
	cpu_set_t set;
	pid_t other;

	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < 2 || bench_pin(1)) {
		printf("{\"cannot\": \"two processes that poll need two processors\"}\n");
		return 1;
	}
	signal(SIGCHLD, on_child);
	fflush(stdout);
	other = fork();
	bench_must(other >= 0, "fork");
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGCHLD, SIG_DFL);
		run(pair, 1, arg);
		bench_pair_meet(pair, 1);
		_exit(0);
	}
	bench_must(!bench_pin(0), "sched_setaffinity");
	run(pair, 0, arg);
	bench_pair_meet(pair, 0);
	return 0;
}

void bench_pair_meet(struct bench_pair *pair, int side)
{
	/* release and acquire: what each side wrote before, the other sees after */
	uint32_t n = atomic_fetch_add_explicit(&pair->met[side], 1, memory_order_acq_rel) + 1;

	while ((int32_t)(atomic_load_explicit(&pair->met[!side], memory_order_acquire) - n) < 0)
		bench_relax();
}

static void exchange(_Atomic uint32_t *line, uint32_t side)
{
	for (int i = 0; i < LINE_EXCHANGES; i++) {
		uint32_t v;

		do
			v = atomic_load_explicit(line, memory_order_acquire);
		while ((v & 1) != side);
		atomic_store_explicit(line, v + 1, memory_order_release);
	}
}

double bench_pair_line(struct bench_pair *pair, int side)
{
	double taken[BENCH_LINES];

	bench_pair_meet(pair, side);
	for (int i = 0; i < BENCH_LINES; i++) {
		uint64_t t = bench_ticks();

		exchange(&pair->line[i].turn, (uint32_t)side);
		taken[i] = (double)(bench_ticks() - t) * bench_tick_ns() / LINE_EXCHANGES / 2;
	}
	bench_sort(taken, BENCH_LINES);
	return taken[BENCH_LINES / 2];
}

uint64_t bench_interrupted(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_nivcsw;
}
