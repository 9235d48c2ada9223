/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Complaints about a line of a file that a person has written: "NAME:LINE: expected ...".
 */
#ifndef BASE_COMPLAIN_H
#define BASE_COMPLAIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct base_place {
	const char *name; /* of the file */
	uint32_t line;
};

/* Writes the place and the message to @why, at most @len bytes; the rest is cut. */
void base_complain(char *why, size_t len, const struct base_place *place, const char *format,
                   va_list args) __attribute__((format(printf, 4, 0)));

#endif
