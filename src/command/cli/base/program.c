/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that the dynamic linker does not preload into: see program.h. Single-threaded.
 */
#define _GNU_SOURCE
#include "cli/base/program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define MAX_HEADERS 64

/* The file of a command; false: there is none. */
static bool find_file(const char *name, char path[static PATH_MAX])
{
	const char *dir = getenv("PATH"), *end;

	if (strchr(name, '/') || !dir)
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
	for (;; dir = end + 1) {
		end = strchrnul(dir, ':');
		snprintf(path, PATH_MAX, "%.*s/%s", (int)(end - dir), dir, name);
		if (!access(path, X_OK))
			return true;
		if (!*end)
			return false;
	}
}

/* Whether it is an ELF file that names no dynamic linker. */
static bool is_static(int fd)
{
	Elf64_Phdr header[MAX_HEADERS];
	Elf64_Ehdr elf;
	size_t bytes;

	if (pread(fd, &elf, sizeof(elf), 0) != sizeof(elf) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) || elf.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	bytes = elf.e_phnum * sizeof(header[0]);
	if (elf.e_phnum > MAX_HEADERS || elf.e_phentsize != sizeof(header[0]) ||
	    pread(fd, header, bytes, (off_t)elf.e_phoff) != (ssize_t)bytes)
		return false;
	for (unsigned i = 0; i < elf.e_phnum; i++)
		if (header[i].p_type == PT_INTERP)
			return false;
	return true;
}

/* The reason why the dynamic linker does not load our libraries into it, or NULL. */
static const char *find_obstacle(int fd)
{
	struct stat st;

	if (is_static(fd))
		return "it is a static program";
	if (!fstat(fd, &st) && (st.st_mode & (S_ISUID | S_ISGID)) && st.st_uid != getuid())
		return "it runs with another user's rights";
	return NULL;
}

void cli_program_explain(const char *name)
{
	const char *why = NULL;
	char path[PATH_MAX];
	int fd;

	if (!base_log_on(sysfs, BASE_LOG_INFO) || !find_file(name, path))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	why = find_obstacle(fd);
	close(fd);
	if (why)
		base_log_info(sysfs, "'%s' sees no RDMA devices in /sys and /dev: %s", name, why);
}
