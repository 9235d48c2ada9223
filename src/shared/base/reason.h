/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a call fails, in one line at the level "warning":
 *
 *	... verbs warning: ibv_attach_mcast() fails with EINVAL: MLID 0x0005 is not one of 0xc000 to
 *0xfffe
 *
 * Two functions take part. The function that checks a rule gives the reason, along with the error:
 *
 *	return base_because(-EINVAL, "MLID 0x%04x is not one of 0xc000 to 0xfffe", mlid);
 *
 * The function by which all errors leave a library prints the line (base_call_failed()), so no
 * failure is silent: without a reason the line has the call and the error. A work request that
 * completes in error is logged likewise (base_failure_log()). When the daemon refuses a request, it
 * sends the reason with the status, and the process takes it as its own reason.
 *
 * A reason belongs to its thread, until it is printed or another one is given. It is kept with its
 * error, and is used for no other error. While such lines are not printed, a reason costs one load
 * and a branch, and its arguments are not evaluated.
 *
 * A line that repeats is not printed each time: see base_failure_log(). These functions are as safe
 * as the log: in any thread, in signal handlers, after fork(); they do not change errno.
 */
#ifndef BASE_REASON_H
#define BASE_REASON_H

#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

enum { BASE_REASON_MAX = 200 };

/* @error, which is not 0; and from now on the reason for it is the text. */
#define base_because(error, ...)                                    \
	({                                                          \
		const int reason_for_ = (error);                    \
		if (base_unlikely(base_log_reasons))                \
			base_reason_give(reason_for_, __VA_ARGS__); \
		reason_for_;                                        \
	})

BASE_COLD void base_reason_give(int error, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* Keeps reasons in any case: the daemon sends its reasons to others. */
void base_reason_keep(void);

/* The thread's reason for @error, which is forgotten; "" without one. @text: of BASE_REASON_MAX. */
void base_reason_take(int error, char *text);

/* A call of @part's library fails with @error, a positive errno. @call: its name. Nothing is said
 * of EAGAIN, EINTR and EINPROGRESS without a reason: "not yet" is no failure. */
#define base_call_failed(part, call, error)                                             \
	do {                                                                            \
		if (base_log_on(part, BASE_LOG_WARNING))                                \
			base_reason_call_failed(BASE_LOG_PART_##part, (call), (error)); \
	} while (0)

/* "EINVAL"; "an error" if @error is none, or the machine's C library is older than 2.32. */
const char *base_error_name(int error);

BASE_COLD void base_reason_call_failed(enum base_log_part part, const char *call, int error);

struct base_failure {
	enum base_log_part part;
	int error;             /* for which a reason may have been given */
	const char *otherwise; /* the reason if none was */
	uint64_t again;        /* failures with the same number, not 0, are the same again */
};

/*
 * Prints "MESSAGE: REASON", if base_log_on() its part. Of failures that are the same again, the
 * first ones are printed, and then those whose number is a power of two, with that number.
 */
BASE_COLD void base_failure_log(const struct base_failure *failure, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

#endif
