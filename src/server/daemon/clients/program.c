/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of programs: see program.h.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/clients/program.h"

/* A look at its memory, for its arguments, could take long. */
bool daemon_program_name(pid_t pid, char name[static DAEMON_PROGRAM])
{
	char path[32];
	ssize_t n;
	int fd;

	if (pid <= 0) /* it is in another PID namespace */
		return false;
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, name, DAEMON_PROGRAM - 1);
	close(fd);
	if (n <= 0)
		return false;
	name[n] = '\0';
	name[strcspn(name, "\n")] = '\0';
	for (char *c = name; *c; c++) /* a program has the name that it likes */
		if (*c < ' ' || *c > '~')
			*c = '?';
	return true;
}
