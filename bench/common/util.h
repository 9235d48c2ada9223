/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Needed by every measurement: clocks, processors, order statistics, and an end when something
 * fails. Any thread may call these. It includes what most measurements need of C and POSIX: include
 * it first.
 */
#ifndef BENCH_COMMON_UTIL_H
#define BENCH_COMMON_UTIL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BENCH_ALIGN 64

/* Ends the program: "NAME: WHAT: strerror(errno)". */
__attribute__((noreturn)) void bench_fail(const char *what);

/* The same, unless it is so. */
static inline void bench_must(bool is_so, const char *what)
{
	if (!is_so)
		bench_fail(what);
}

/* Pins the calling thread to processor @cpu. 0, or -1: there is none to pin to. */
int bench_pin(int cpu);

/* Moves the process to network namespace @name of `ip netns`, whose fabric has the same name. */
void bench_enter(const char *name);

/* Nanoseconds, monotonic. */
uint64_t bench_now(void);

/* The cheapest clock there is, for single messages; its unit is bench_tick_ns(). */
static inline uint64_t bench_ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return bench_now();
#endif
}

/* Nanoseconds a tick. The first call takes ten milliseconds: before the fork. */
double bench_tick_ns(void);

/* Zeroed, on cache lines; shared with processes forked later if @shared. Never NULL. */
void *bench_alloc(size_t bytes, int shared);
void bench_free(void *p, size_t bytes);

void bench_sort(double *value, size_t n);

/* Of @n sorted values, the one below which a fraction @p of them lies. */
double bench_quantile(const double *value, size_t n, double p);

/* Where the processor makes nothing of waiting in a loop. */
static inline void bench_relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
}

#endif
