/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Limits of memory: see memory.h. A process is in a cgroup of version 2 that counts memory, or in
 * one of version 1, or in none. The limits of all groups above it count as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/signals.h"

#define RESERVE_PART 16
#define RESERVE_MOST (16ull << 20)
#define PATH_ROOM    1024
#define TEXT_ROOM    4096

/* The files of a cgroup, and the lines of memory.stat about files that are cached. */
static const struct version {
	const char *root;
	const char *limit, *used;
	const char *inactive, *active;
} version_1 = { "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
	        "total_inactive_file ", "total_active_file " },
  version_2 = { "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file ",
	        "active_file " };

struct group {
	const struct version *version;
	char folder[PATH_ROOM];
};

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool read_file(const struct group *g, const char *name, char *text, size_t room)
{
	char path[PATH_ROOM + 32];

	snprintf(path, sizeof(path), "%s/%s", g->folder, name);
	return base_read_start(path, text, room) > 0;
}

/* BASE_MEMORY_NO_LIMIT: the file has no number, or cannot be read. */
static uint64_t number_in(const struct group *g, const char *name)
{
	char text[32], *end;
	uint64_t n;

	if (!read_file(g, name, text, sizeof(text)))
		return BASE_MEMORY_NO_LIMIT;
	n = strtoull(text, &end, 10);
	/* version 1 has a large number */
	return end == text ? BASE_MEMORY_NO_LIMIT : less(n, BASE_MEMORY_NO_LIMIT);
}

/* The number in the line that begins with @name; 0: there is none. */
static uint64_t number_of(const char *text, const char *name)
{
	const size_t length = strlen(name);

	while (text && strncmp(text, name, length)) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text ? strtoull(text + length, NULL, 10) : 0;
}

/* The memory of cached files, which the kernel could take back at once. */
static uint64_t cached_files(const struct group *g)
{
	char text[TEXT_ROOM];

	return read_file(g, "memory.stat", text, sizeof(text))
	               ? number_of(text, g->version->inactive) + number_of(text, g->version->active)
	               : 0;
}

static uint64_t reserve_of(uint64_t limit)
{
	return less(limit / RESERVE_PART, RESERVE_MOST);
}

/* The memory that the group itself has left, beyond the reserve; or BASE_MEMORY_NO_LIMIT. */
static uint64_t left_in(const struct group *g, uint64_t enough)
{
	uint64_t limit = number_in(g, g->version->limit), used;

	if (limit == BASE_MEMORY_NO_LIMIT)
		return limit;
	used = number_in(g, g->version->used);
	if (used == BASE_MEMORY_NO_LIMIT) /* there may be no descriptor for it */
		return used;
	limit -= reserve_of(limit);
	if (used > limit || limit - used < enough) {
		uint64_t cached = cached_files(g);

		used = used > cached ? used - cached : 0;
	}
	return used < limit ? limit - used : 0;
}

/* The least that one of the groups has from @path on, below the root. In a container the root may
 * be its own group, and the path not be there. */
static uint64_t left_below(const struct version *version, const char *path, uint64_t enough)
{
	const size_t root = strlen(version->root);
	struct group g = { .version = version };
	uint64_t least = BASE_MEMORY_NO_LIMIT;

	if (root + strlen(path) >= sizeof(g.folder))
		return least;
	strcpy(g.folder, version->root);
	strcpy(g.folder + root, path);
	for (size_t end = strlen(g.folder); end >= root; end--) {
		if (end > root && g.folder[end] != '/' && g.folder[end])
			continue;
		g.folder[end] = 0;
		least = less(least, left_in(&g, enough));
	}
	return least;
}

/* Likewise of all cgroups that the process is in. */
static uint64_t left_to_groups(uint64_t enough)
{
	uint64_t least = BASE_MEMORY_NO_LIMIT;
	char text[TEXT_ROOM], *line, *next, *controllers, *path;

	base_read_start("/proc/self/cgroup", text, sizeof(text));
	for (line = text; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = 0;
		controllers = strchr(line, ':');
		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		if (!strcmp(controllers, ":"))
			least = less(least, left_below(&version_2, path, enough));
		else if (strstr(controllers, "memory"))
			least = less(least, left_below(&version_1, path, enough));
	}
	return least;
}

/* The kernel promises no more than there is: what it has not promised yet. */
static uint64_t left_to_promise(void)
{
	char text[TEXT_ROOM];
	uint64_t limit, promised;

	if (base_read_start("/proc/sys/vm/overcommit_memory", text, sizeof(text)) <= 0 ||
	    *text != '2' || base_read_start("/proc/meminfo", text, sizeof(text)) <= 0)
		return BASE_MEMORY_NO_LIMIT;
	limit = number_of(text, "CommitLimit:") << 10;
	promised = number_of(text, "Committed_AS:") << 10;
	promised += reserve_of(limit);
	return promised < limit ? limit - promised : 0;
}

bool base_memory_is_limited(void)
{
	int error = errno, cancel_state = base_cancel_off();
	bool limited = less(left_to_promise(), left_to_groups(0)) != BASE_MEMORY_NO_LIMIT;

	base_cancel_restore(cancel_state);
	errno = error;
	return limited;
}

uint64_t base_memory_left(uint64_t enough)
{
	int error = errno, cancel_state = base_cancel_off();
	uint64_t bytes = less(left_to_promise(), left_to_groups(enough));

	base_cancel_restore(cancel_state);
	errno = error;
	return bytes;
}
