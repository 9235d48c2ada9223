/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The log: see log.h. Each of our shared libraries has a copy of its own, as everything in
 * src/shared/base; their constructors read the same UMBEL_LOG. Only commands complain of what is
 * wrong in it, so that it is said once and not by each library.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"
#include "base/util.h"

#define VARIABLE "UMBEL_LOG"

static const char *const level_names[BASE_LOG_LEVELS] = { "off",  "error", "warning",
	                                                  "info", "debug", "trace" };

#define PART(name, text) { #name, text },
static const struct part {
	const char *name, *text;
} parts[] = { BASE_LOG_PARTS(PART) };

unsigned char base_log_level_of[BASE_LOG_N_PARTS];
bool base_log_reasons;

const char *base_log_part_name(unsigned part)
{
	return part < BASE_LOG_N_PARTS ? parts[part].name : NULL;
}

const char *base_log_part_text(unsigned part)
{
	return part < BASE_LOG_N_PARTS ? parts[part].text : NULL;
}

/* ---- a line ---- */

/* A line that is being written: there is always room for the line break. */
struct line {
	char text[BASE_LOG_LINE_MAX];
	size_t len;
};

static void append_va(struct line *l, const char *format, va_list args)
{
	size_t room = sizeof(l->text) - 1 - l->len;
	int n = vsnprintf(l->text + l->len, room, format, args);

	if (n > 0)
		l->len += (size_t)n < room ? (size_t)n : room - 1;
}

__attribute__((format(printf, 2, 3))) static void append(struct line *l, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	append_va(l, format, args);
	va_end(args);
}

static void write_line(struct line *l)
{
	int cancel_state = base_cancel_off(); /* the caller may hold a lock */

	l->text[l->len++] = '\n';
	if (write(STDERR_FILENO, l->text, l->len) < 0)
		l->len = 0; /* nowhere left to say it */
	base_cancel_restore(cancel_state);
}

void base_log(const char *format, ...)
{
	struct line l = { .len = 0 };
	int saved = errno;
	va_list args;

	append(&l, "umbel: ");
	va_start(args, format);
	append_va(&l, format, args);
	va_end(args);
	write_line(&l);
	errno = saved;
}

static bool is_leap(int64_t year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* The date and time in UTC. gmtime_r() takes a lock, which may be held forever after fork(). */
static void append_time(struct line *l)
{
	static const int month_days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	struct timespec now;
	int64_t days, year = 1970;
	int seconds, month = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	days = now.tv_sec / 86400;
	seconds = (int)(now.tv_sec % 86400);
	for (; days >= 365 + is_leap(year); year++)
		days -= 365 + is_leap(year);
	for (; days >= month_days[month] + (month == 1 && is_leap(year)); month++)
		days -= month_days[month] + (month == 1 && is_leap(year));
	append(l, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", (int)year, month + 1, (int)days + 1,
	       seconds / 3600, seconds / 60 % 60, seconds % 60, (int)(now.tv_nsec / 1000));
}

void base_log_write(enum base_log_part part, enum base_log_level level, const char *format, ...)
{
	struct line l = { .len = 0 };
	int saved = errno;
	va_list args;
	size_t message;

	append_time(&l);
	append(&l, " umbel[%d] %s %s: ", (int)getpid(), parts[part].name, level_names[level]);
	message = l.len;
	errno = saved;
	va_start(args, format);
	append_va(&l, format, args);
	va_end(args);
	for (size_t i = message; i < l.len; i++)
		if (l.text[i] == '\n' || l.text[i] == '\r')
			l.text[i] = ' ';
	write_line(&l);
	errno = saved;
}

/* ---- levels ---- */

/* Whether the @len bytes at @text are @name. */
static bool is_word(const char *text, size_t len, const char *name)
{
	return strlen(name) == len && !memcmp(text, name, len);
}

static int find_level(const char *text, size_t len)
{
	for (int i = 0; i < BASE_LOG_LEVELS; i++)
		if (is_word(text, len, level_names[i]))
			return i;
	return -1;
}

static int find_part(const char *text, size_t len)
{
	for (int i = 0; i < BASE_LOG_N_PARTS; i++)
		if (is_word(text, len, parts[i].name))
			return i;
	return -1;
}

/* One word between commas: "LEVEL" if @whole is wanted, "PART=LEVEL" if not. NULL, or which of
 * the two names is wrong. */
static const char *set_word(const char *word, size_t len, bool whole)
{
	const char *equals = memchr(word, '=', len);
	size_t before = equals ? (size_t)(equals - word) + 1 : 0;
	int level, part;

	if (whole == !!equals || len == 0)
		return NULL;
	level = find_level(word + before, len - before);
	part = equals ? find_part(word, before - 1) : 0;
	if (part < 0)
		return "part";
	if (level < 0)
		return "level";
	if (whole)
		memset(base_log_level_of, level, sizeof(base_log_level_of));
	else
		base_log_level_of[part] = (unsigned char)level;
	return NULL;
}

static void list_names(char *why, size_t room, const char *wrong)
{
	bool is_part = !strcmp(wrong, "part");
	unsigned n = is_part ? BASE_LOG_N_PARTS : BASE_LOG_LEVELS;

	for (unsigned i = 0; i < n; i++) {
		size_t len = strlen(why);

		snprintf(why + len, room - len, "%s%s", i ? ", " : "",
		         is_part ? parts[i].name : level_names[i]);
	}
}

/* Each word of @text that is, or is not, a level for all parts. */
static int set_words(const char *text, bool whole, char *why, size_t room)
{
	int ret = 0;

	for (size_t len; *text; text += len + (text[len] == ',')) {
		const char *wrong;

		len = strcspn(text, ",");
		wrong = set_word(text, len, whole);
		if (wrong && !ret && room) {
			snprintf(why, room, "'%.*s' has no known %s; there are ",
			         (int)base_min((int)len, 64), text, wrong);
			list_names(why, room, wrong);
		}
		if (wrong)
			ret = -EINVAL;
	}
	return ret;
}

int base_log_set(enum base_log_level level, const char *text, char *why, size_t room)
{
	int of_all, of_parts;

	memset(base_log_level_of, level, sizeof(base_log_level_of));
	of_all = set_words(text ? text : "", true, why, room);
	of_parts = set_words(text ? text : "", false, why, of_all ? 0 : room);
	base_log_reasons = base_log_on(verbs, BASE_LOG_WARNING) ||
	                   base_log_on(rdmacm, BASE_LOG_WARNING) ||
	                   base_log_on(umad, BASE_LOG_WARNING);
	return of_all ? of_all : of_parts;
}

void base_log_start(enum base_log_level level)
{
	char why[512];

	if (base_log_set(level, getenv(VARIABLE), why, sizeof(why)))
		base_log(VARIABLE ": %s", why);
}

__attribute__((constructor)) static void read_environment(void)
{
	base_log_set(BASE_LOG_OFF, getenv(VARIABLE), NULL, 0);
}
