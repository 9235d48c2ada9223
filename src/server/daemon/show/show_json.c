/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * JSON text, written value by value: see show_json.h.
 */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "daemon/show/show_json.h"

static const char digits[] = "0123456789abcdef";

void show_json_fini(struct show_json *o)
{
	free(o->text);
	*o = (struct show_json){ 0 };
}

/* Room for @n more bytes, which then count; NULL: there is no memory. */
static char *more(struct show_json *o, size_t n)
{
	size_t room = o->room ? o->room : 4096;
	char *grown;

	while (room < o->n + n)
		room *= 2;
	if (room > o->room) {
		grown = realloc(o->text, room);
		if (!grown) {
			o->failed = true;
			return NULL;
		}
		o->text = grown;
		o->room = room;
	}
	o->n += n;
	return o->text + o->n - n;
}

static void put(struct show_json *o, const char *bytes, size_t n)
{
	char *to = more(o, n);

	if (to)
		memcpy(to, bytes, n);
}

static void put_char(struct show_json *o, unsigned char c)
{
	char escaped[6] = { '\\', 'u', '0', '0', digits[c >> 4], digits[c & 15] };

	if (c < ' ') {
		put(o, escaped, sizeof(escaped));
		return;
	}
	if (c == '"' || c == '\\')
		put(o, "\\", 1);
	put(o, (const char *)&c, 1);
}

static void put_string(struct show_json *o, const char *text)
{
	size_t plain;

	put(o, "\"", 1);
	while (*text) {
		for (plain = 0;
		     (unsigned char)text[plain] >= ' ' && text[plain] != '"' && text[plain] != '\\';
		     plain++)
			;
		put(o, text, plain);
		text += plain;
		if (*text)
			put_char(o, (unsigned char)*text++);
	}
	put(o, "\"", 1);
}

/* Writes the part before a value. */
static void begin(struct show_json *o, const char *key)
{
	if (o->after)
		put(o, ",", 1);
	o->after = true;
	if (!key)
		return;
	put_string(o, key);
	put(o, ":", 1);
}

void show_open(struct show_json *o, const char *key, char bracket)
{
	begin(o, key);
	put(o, &bracket, 1);
	o->after = false;
}

void show_close(struct show_json *o, char bracket)
{
	put(o, &bracket, 1);
	o->after = true;
}

void show_add_u64(struct show_json *o, const char *key, uint64_t v)
{
	char text[20];
	size_t at = sizeof(text);

	begin(o, key);
	do {
		text[--at] = digits[v % 10];
		v /= 10;
	} while (v);
	put(o, text + at, sizeof(text) - at);
}

void show_add_true(struct show_json *o, const char *key)
{
	begin(o, key);
	put(o, "true", 4);
}

void show_add_string(struct show_json *o, const char *key, const char *text)
{
	begin(o, key);
	put_string(o, text);
}

void show_add_text(struct show_json *o, const char *key, const char *format, ...)
{
	char text[128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	show_add_string(o, key, text);
}

void show_add_gid(struct show_json *o, const char *key, const struct ib_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid, text, sizeof(text));
	show_add_string(o, key, text);
}

void show_add_hex(struct show_json *o, const char *key, const uint8_t *bytes, size_t n)
{
	char *to;

	begin(o, key);
	to = more(o, 2 * n + 2);
	if (!to)
		return;
	*to++ = '"';
	for (size_t i = 0; i < n; i++) {
		*to++ = digits[bytes[i] >> 4];
		*to++ = digits[bytes[i] & 15];
	}
	*to = '"';
}

const char *show_state_name(unsigned state)
{
	static const char *const names[] = { "none", "down", "init", "armed", "active" };

	return state < ARRAY_SIZE(names) ? names[state] : "?";
}

const char *show_join_name(unsigned state)
{
	if (state & IB_JOIN_FULL)
		return "full";
	if (state & IB_JOIN_SEND_ONLY_FULL)
		return "send-only";
	return state & IB_JOIN_NON ? "non" : "send-only-non";
}
