/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The JSON text that a view (views.h) writes, value by value. It is written as it goes, without
 * objects in memory: a fabric may have millions of values. Commas and quotes are the writer's.
 * If memory runs out, the text remembers it, so writing needs no checks.
 */
#ifndef DAEMON_SHOW_JSON_H
#define DAEMON_SHOW_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ib.h"

/* All zero: nothing is written yet. */
struct show_json {
	char *text;
	size_t n, room;
	bool after; /* a value precedes: the next one follows a comma */
	bool failed;
};

void show_json_fini(struct show_json *o);

/* A value's key in the object that is open; NULL: it is an element of an array. */

/* Opens an object or an array: @bracket is '{' or '['. */
void show_open(struct show_json *o, const char *key, char bracket);
/* Closes the one that was opened last: @bracket is '}' or ']'. */
void show_close(struct show_json *o, char bracket);

void show_add_u64(struct show_json *o, const char *key, uint64_t v);
void show_add_true(struct show_json *o, const char *key);
void show_add_string(struct show_json *o, const char *key, const char *text);
/* A text longer than 127 bytes is cut. */
void show_add_text(struct show_json *o, const char *key, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
void show_add_gid(struct show_json *o, const char *key, const struct ib_gid *gid);
/* @n bytes as a string of hex digits. */
void show_add_hex(struct show_json *o, const char *key, const uint8_t *bytes, size_t n);

/* The name of a port's state (enum ib_port_state). */
const char *show_state_name(unsigned state);

/* The name of a membership (enum ib_join_state), of the best that the bits say. */
const char *show_join_name(unsigned state);

#endif
