/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of programs: see program.h.
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "daemon/clients/program.h"

/* A look at its memory, for its arguments, could take long. */
bool daemon_program_name(pid_t pid, char name[static DAEMON_PROGRAM])
{
	char path[32];

	if (pid <= 0) /* it is in another PID namespace */
		return false;
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (base_read_start(path, name, DAEMON_PROGRAM) <= 0)
		return false;
	name[strcspn(name, "\n")] = '\0';
	for (char *c = name; *c; c++) /* a program has the name that it likes */
		if (*c < ' ' || *c > '~')
			*c = '?';
	return true;
}
