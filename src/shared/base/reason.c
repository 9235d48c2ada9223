/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a call fails: see reason.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/newer_libc.h"
#include "base/reason.h"

#define SEEN   256 /* failures that are remembered; a newer one takes the place of an older one */
#define SHOWN  4   /* so many times the same failure is printed in any case */
#define MAX_OF 256 /* bytes of what fails, in front of the reason */

static _Thread_local struct {
	int error; /* 0: there is none */
	char text[BASE_REASON_MAX];
} reason;

static struct seen {
	_Atomic uint64_t which;
	_Atomic uint32_t times;
} seen[SEEN];

void base_reason_keep(void)
{
	base_log_reasons = true;
}

void base_reason_give(int error, const char *format, ...)
{
	int saved = errno;
	va_list args;

	reason.error = 0; /* a signal handler does not see half a text */
	atomic_signal_fence(memory_order_seq_cst);
	va_start(args, format);
	vsnprintf(reason.text, sizeof(reason.text), format, args);
	va_end(args);
	atomic_signal_fence(memory_order_seq_cst);
	reason.error = error;
	errno = saved;
}

void base_reason_take(int error, char *text)
{
	text[0] = '\0';
	if (reason.error == error && error)
		snprintf(text, BASE_REASON_MAX, "%s", reason.text);
	reason.error = 0;
}

/* How often this failure has been seen, with this time. Threads may count each other out: then a
 * line too many or too few is printed. */
static uint32_t see(uint64_t which)
{
	struct seen *s = &seen[which % SEEN];

	if (atomic_exchange_explicit(&s->which, which, memory_order_relaxed) != which)
		atomic_store_explicit(&s->times, 0, memory_order_relaxed);
	return atomic_fetch_add_explicit(&s->times, 1, memory_order_relaxed) + 1;
}

static void print(const struct base_failure *f, const char *what, const char *why, uint32_t times)
{
	if (times <= SHOWN)
		base_log_write(f->part, BASE_LOG_WARNING, "%s: %s", what, why);
	else if (!(times & (times - 1)))
		base_log_write(f->part, BASE_LOG_WARNING, "%s: %s (%u times so far)", what, why,
		               times);
}

void base_failure_log(const struct base_failure *f, const char *format, ...)
{
	char what[MAX_OF], why[BASE_REASON_MAX];
	int saved = errno;
	va_list args;

	base_reason_take(f->error, why);
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	print(f, what, why[0] ? why : f->otherwise, see(f->again));
	errno = saved;
}

static bool is_not_yet(int error)
{
	return error == EAGAIN || error == EINTR || error == EINPROGRESS;
}

const char *base_error_name(int error)
{
	const char *name = BASE_KNOWS_ERRORS ? strerrorname_np(error) : NULL;

	return name ? name : "an error";
}

void base_reason_call_failed(enum base_log_part part, const char *call, int error)
{
	const char *text = BASE_KNOWS_ERRORS ? strerrordesc_np(error) : NULL;
	struct base_failure f = { .part = part, .error = -error, .otherwise = text ? text : "?" };

	if (is_not_yet(error) && reason.error != -error)
		return;
	f.again = base_hash_of(call, strlen(call), (uint64_t)error);
	if (reason.error == -error)
		f.again = base_hash_of(reason.text, strlen(reason.text), f.again);
	base_failure_log(&f, "%s() fails with %s", call, base_error_name(error));
}
