/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The log: see log.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"

void base_log(const char *format, ...)
{
	static const char prefix[] = "umbel: ";
	const int room = 1000;
	char line[sizeof(prefix) + 1000 + 1];
	va_list args;
	int n;

	n = snprintf(line, sizeof(line), "%s", prefix);
	va_start(args, format);
	n += base_min(vsnprintf(line + n, room, format, args), room - 1);
	va_end(args);
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return; /* nowhere left to say it */
}
