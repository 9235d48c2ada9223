/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages to standard error, one line each. There are two kinds.
 *
 * base_log() is for the user: "umbel: MESSAGE", always printed. Commands use it.
 *
 * base_log_error() ... base_log_trace() are the log. Each message names its part of Umbel:
 *
 *	base_log_debug(sm, "switch '%s' has no route to LID %u", name, lid);
 *	2026-11-20T11:35:25.123456Z umbel[4711] sm debug: switch 'sw1' has no route to LID 7
 *
 * The time is the wall clock in UTC, so that lines of several processes, or of OpenSM, can be
 * put in order. The environment variable UMBEL_LOG chooses the messages: a level, and levels of
 * single parts, in any order:
 *
 *	UMBEL_LOG=debug
 *	UMBEL_LOG=warning,sa=debug,packet=trace
 *
 * Without it the daemon and the commands print errors and warnings. The libraries in programs then
 * print only why the fabric of UMBEL_FABRIC cannot be used. A constructor reads UMBEL_LOG, so it
 * holds for the first message, too.
 *
 * A message that is off costs one load and one branch; its arguments are not evaluated. Still none
 * belongs on the fast path. The functions are safe in any thread, in a signal handler and after
 * fork(): they take no lock, allocate no memory, and make one write() for each line. They do not
 * change errno. A line break in a message becomes a blank, and a line is cut at BASE_LOG_LINE_MAX
 * bytes.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fast.h"

enum { BASE_LOG_LINE_MAX = 1024 };

enum base_log_level {
	BASE_LOG_OFF,
	BASE_LOG_ERROR,   /* something that was asked for cannot be done */
	BASE_LOG_WARNING, /* it goes on, but not as its user expects */
	BASE_LOG_INFO,    /* rare events: a subnet manager takes over, a device comes back */
	BASE_LOG_DEBUG,   /* what is done, and why something is refused */
	BASE_LOG_TRACE,   /* each step */
	BASE_LOG_LEVELS,
};

/* All parts: the name, and the subject of its messages. This is the only list; a new part is a line
 * here. */
#define BASE_LOG_PARTS(X)                                         \
	X(daemon, "the daemon: its clients and their objects")    \
	X(sm, "the embedded subnet manager")                      \
	X(sa, "the embedded subnet administrator")                \
	X(cm, "the daemon's half of rdma_cm")                     \
	X(fabric, "nodes, links, tables, flows")                  \
	X(netdev, "network devices and sockets")                  \
	X(hosts, "hosts with a network of their own (--ipoib)")   \
	X(roce, "RoCEv2: ports, groups, datagrams")               \
	X(shm, "the shared memory")                               \
	X(control, "requests between processes and the daemon")   \
	X(hca, "a process's HCA: queue pairs, completion queues") \
	X(verbs, "libibverbs: calls that fail, and why")          \
	X(rdmacm, "librdmacm: likewise")                          \
	X(umad, "libibumad: likewise, and MADs of programs")      \
	X(ipoib, "umbel-ipoib: interfaces of IP over InfiniBand") \
	X(ibsim, "umbel-ibsim: clients of ibsim")                 \
	X(sysfs, "files in /sys and /dev that programs see")      \
	X(packet, "each packet's steps from sender to receiver")  \
	X(join, "each multicast join's steps")

#define BASE_LOG_PART(name, text) BASE_LOG_PART_##name,
enum base_log_part { BASE_LOG_PARTS(BASE_LOG_PART) BASE_LOG_N_PARTS };
#undef BASE_LOG_PART

/* The process's registry: the level of each part. Written before there are threads. */
extern unsigned char base_log_level_of[BASE_LOG_N_PARTS] __attribute__((visibility("hidden")));

/* Whether a part that logs why calls fail is at "warning": then reasons are kept (reason.h). */
extern bool base_log_reasons __attribute__((visibility("hidden")));

/* Whether messages of @part, a word of the list, and @level, an enum base_log_level, are
 * printed: for what is worth computing only then. */
#define base_log_on(part, level) \
	base_unlikely(base_log_level_of[BASE_LOG_PART_##part] >= (unsigned)(level))

#define BASE_LOG_AT(part, level, ...)                                             \
	do {                                                                      \
		if (base_log_on(part, level))                                     \
			base_log_write(BASE_LOG_PART_##part, level, __VA_ARGS__); \
	} while (0)

#define base_log_error(part, ...)   BASE_LOG_AT(part, BASE_LOG_ERROR, __VA_ARGS__)
#define base_log_warning(part, ...) BASE_LOG_AT(part, BASE_LOG_WARNING, __VA_ARGS__)
#define base_log_info(part, ...)    BASE_LOG_AT(part, BASE_LOG_INFO, __VA_ARGS__)
#define base_log_debug(part, ...)   BASE_LOG_AT(part, BASE_LOG_DEBUG, __VA_ARGS__)
#define base_log_trace(part, ...)   BASE_LOG_AT(part, BASE_LOG_TRACE, __VA_ARGS__)

/* Prints it, whatever the levels: for the macros above. */
BASE_COLD void base_log_write(enum base_log_part part, enum base_log_level level,
                              const char *format, ...) __attribute__((format(printf, 3, 4)));

/* "umbel: MESSAGE". */
BASE_COLD void base_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Sets all levels to @level, and then those in @text, written as in UMBEL_LOG, unless it is NULL.
 * 0, or -EINVAL if a part of @text was wrong: the other parts are set, and @why, of @room bytes,
 * names a wrong one. Call it while there is one thread.
 */
int base_log_set(enum base_log_level level, const char *text, char *why, size_t room);

/* base_log_set() with UMBEL_LOG, for a program of ours whose own level is @level. Errors in it are
 * said with base_log(). */
void base_log_start(enum base_log_level level);

/* The name and the meaning of a part; NULL behind the last one. */
const char *base_log_part_name(unsigned part);
const char *base_log_part_text(unsigned part);

#endif
