/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clocks, processors, order statistics: see util.h.
 */
#include "common/util.h"

_Noreturn void bench_fail(const char *what)
{
	err(EXIT_FAILURE, "%s", what);
}

uint64_t bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

double bench_tick_ns(void)
{
	static double ns;

	if (ns == 0) {
		uint64_t t0 = bench_now(), c0 = bench_ticks(), t1;

		while ((t1 = bench_now()) - t0 < 10000000)
			;
		ns = (double)(t1 - t0) / (double)(bench_ticks() - c0);
	}
	return ns;
}

int bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

void bench_enter(const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET) || setenv("UMBEL_FABRIC", name, 1))
		bench_fail(path);
	close(fd);
}

void *bench_alloc(size_t bytes, int shared)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	               (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		bench_fail("no memory");
	return p;
}

void bench_free(void *p, size_t bytes)
{
	munmap(p, bytes);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void bench_sort(double *value, size_t n)
{
	qsort(value, n, sizeof(*value), by_value);
}

double bench_quantile(const double *value, size_t n, double p)
{
	size_t i = (size_t)(p * (double)n);

	return value[i < n ? i : n - 1];
}
