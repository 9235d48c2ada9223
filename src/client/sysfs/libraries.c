/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Libraries for RDMA that are not ours: see libraries.h.
 */
#define _GNU_SOURCE
#include "sysfs/libraries.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "sysfs/real.h"

#define OWN_NAME "libumbel-sysfs.so"

/* The value of LD_PRELOAD before the program was started again: the program gets it back. */
#define PRELOAD_BEFORE "UMBEL_PRELOAD_BEFORE"

static const char *const names[] = { "libibverbs.so.1", "librdmacm.so.1", "libibumad.so.3" };

struct search {
	char dir[PATH_MAX];                     /* of our libraries */
	const char *foreign[ARRAY_SIZE(names)]; /* the file that was loaded instead, or NULL */
	unsigned n;
};

static bool is_ours(const struct search *s, const char *path, const char *name)
{
	char own[PATH_MAX + 32];
	struct stat a, b;

	snprintf(own, sizeof(own), "%s/%s", s->dir, name);
	return !strcmp(own, path) || sysfs_real()->stat(own, &a) || sysfs_real()->stat(path, &b) ||
	       (a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *file = strrchr(info->dlpi_name, '/');
	struct search *s = arg;

	(void)size;
	for (size_t i = 0; file && i < ARRAY_SIZE(names); i++) {
		if (strcmp(file + 1, names[i]) != 0 || is_ours(s, info->dlpi_name, names[i]))
			continue;
		s->foreign[i] = info->dlpi_name;
		s->n++;
	}
	return 0;
}

/* Whether there are some. */
static bool search(struct search *s)
{
	const char *file;
	Dl_info own;

	*s = (struct search){ 0 };
	if (!dladdr(names, &own) || !(file = strrchr(own.dli_fname, '/')) ||
	    strcmp(file + 1, OWN_NAME) != 0)
		return false;
	snprintf(s->dir, sizeof(s->dir), "%.*s", (int)(file - own.dli_fname), own.dli_fname);
	dl_iterate_phdr(look_at, s);
	return s->n > 0;
}

static void explain(const struct search *s)
{
	static atomic_bool done;
	size_t i = 0;

	if (atomic_exchange(&done, true))
		return;
	while (!s->foreign[i])
		i++;
	base_log("'%s' has loaded '%s' instead of Umbel's, by an RPATH or LD_LIBRARY_PATH of its "
	         "own, and sees no "
	         "devices: LD_PRELOAD=\"$LD_PRELOAD:%s/%s\" in its environment loads Umbel's first",
	         program_invocation_short_name, s->foreign[i], s->dir, names[i]);
}

void sysfs_libraries_explain(void)
{
	struct search s;
	int error = errno;

	if (search(&s))
		explain(&s);
	errno = error;
}

/* Whether what runs the program would run it again: not if the dynamic linker was started by hand,
 * with the program as its argument, or valgrind interprets it. */
static bool can_start_again(const char *preload)
{
	return !getenv(PRELOAD_BEFORE) && getauxval(AT_BASE) && !strstr(preload, "vgpreload");
}

/* The file of the program, by its name if that still means it. */
static const char *find_program(char path[static PATH_MAX])
{
	static const char self[] = "/proc/self/exe";
	ssize_t n = sysfs_real()->readlink(self, path, PATH_MAX - 1);
	struct stat a, b;

	if (n < 0)
		return self;
	path[n] = '\0';
	if (sysfs_real()->stat(self, &a) || sysfs_real()->stat(path, &b) || a.st_dev != b.st_dev ||
	    a.st_ino != b.st_ino)
		return self;
	return path;
}

/* Returns if that fails, with the environment as it was. */
static void start_again(const struct search *s, const char *preload, char **argv)
{
	char path[PATH_MAX], *list = NULL;
	size_t bytes;
	FILE *to = open_memstream(&list, &bytes);

	if (!to)
		return;
	fputs(preload, to);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (s->foreign[i])
			fprintf(to, ":%s/%s", s->dir, names[i]);
	if (!fclose(to) && !setenv(PRELOAD_BEFORE, preload, 1)) {
		char *before = strdup(preload); /* @preload is in the environment */

		if (before && !setenv("LD_PRELOAD", list, 1)) {
			execv(find_program(path), argv);
			setenv("LD_PRELOAD", before, 1);
		}
		unsetenv(PRELOAD_BEFORE);
		free(before);
	}
	free(list);
}

void sysfs_libraries_mend(char **argv)
{
	const char *before = getenv(PRELOAD_BEFORE), *preload = getenv("LD_PRELOAD");
	struct search s;

	if (search(&s)) {
		if (preload && can_start_again(preload))
			start_again(&s, preload, argv);
		explain(&s);
	}
	if (before) {
		setenv("LD_PRELOAD", before, 1);
		unsetenv(PRELOAD_BEFORE);
	}
}
