/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Complaints about a line of a file: see complain.h.
 */
#include <stdio.h>

#include "base/complain.h"

void base_complain(char *why, size_t len, const struct base_place *place, const char *format,
                   va_list args)
{
	int n = snprintf(why, len, "%s:%u: ", place->name, place->line);

	if (n >= 0 && (size_t)n < len)
		vsnprintf(why + n, len - (size_t)n, format, args);
}
