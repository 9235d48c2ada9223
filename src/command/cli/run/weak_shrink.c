/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Delta debugging: see weak_shrink.h.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "base/weak.h"
#include "cli/run/weak_shrink.h"

#define MOST_RUNS 120         /* of the program, to make a failure small */
#define MOST_NS   60000000000 /* likewise */
#define TOLD      8           /* choices that are told in words */

struct choices {
	struct base_weak_choice *at;
	size_t n, room;
};

static bool add(struct choices *all, const struct base_weak_choice *c)
{
	struct base_weak_choice *at = all->at;

	if (all->n == all->room) {
		all->room = all->room ? 2 * all->room : 1024;
		at = realloc(at, all->room * sizeof(*at));
		if (!at)
			return false;
		all->at = at;
	}
	all->at[all->n++] = *c;
	return true;
}

/* ---- the notes ---- */

/* Calls @each with the path and the name of each process's notes. */
static void each_note(const char *dir, void (*each)(void *arg, const char *path, const char *name),
                      void *arg)
{
	char path[PATH_MAX];
	const struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.')
			each(arg, path, e->d_name);
	}
	if (d)
		closedir(d);
}

static void forget(void *arg, const char *path, const char *name)
{
	(void)arg;
	(void)name;
	unlink(path);
}

void cli_weak_forget_notes(const char *dir)
{
	each_note(dir, forget, NULL);
}

/* A choice that came by time is noted once more. */
static void note_time(struct choices *all, size_t from, const struct base_weak_note *n)
{
	for (size_t i = all->n; i-- > from;) {
		struct base_weak_choice *c = &all->at[i];

		if (c->at.object == n->object && c->at.request == n->request && c->step == n->step)
			c->by_time = true;
	}
}

static void read_notes(struct choices *all, const struct base_weak_noted *notes, size_t most,
                       const struct base_weak_place *who)
{
	const size_t from = all->n, n = notes->n < most ? notes->n : most;

	for (size_t i = 0; i < n; i++) {
		const struct base_weak_note *note = &notes->at[i];
		struct base_weak_choice c = { .at = *who, .step = note->step };

		if (note->step >= BASE_WEAK_STEPS)
			continue;
		c.at.object = note->object;
		c.at.request = note->request;
		c.amount = note->amount;
		if (note->by_time)
			note_time(all, from, note);
		else if (!add(all, &c))
			return;
	}
}

static void read_process(void *arg, const char *path, const char *name)
{
	struct choices *all = arg;
	const char *dot = strrchr(name, '.');
	struct base_weak_place who = { 0 };
	const struct base_weak_noted *notes;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || !dot || fstat(fd, &st) || st.st_size < (off_t)sizeof(*notes)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (strncmp(name, "-.", 2))
		snprintf(who.host, sizeof(who.host), "%.*s", (int)(dot - name), name);
	who.process = (uint32_t)strtoul(dot + 1, NULL, 10);
	notes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (notes == MAP_FAILED)
		return;
	read_notes(all, notes, ((size_t)st.st_size - sizeof(*notes)) / sizeof(notes->at[0]), &who);
	munmap((void *)notes, (size_t)st.st_size);
}

/* ---- making it small ---- */

struct shrink {
	const struct cli_weak_shrink *how;
	char path[PATH_MAX];
	unsigned runs;
	uint64_t until_ns;
};

static bool write_choices(const char *path, const struct choices *c, uint32_t seed)
{
	FILE *to = fopen(path, "we");

	if (!to) {
		base_log("cannot write '%s': %s", path, strerror(errno));
		return false;
	}
	fprintf(to, "# Choices of a weak fabric, by umbel run --weak, seed %" PRIu32 ".\n", seed);
	for (size_t i = 0; i < c->n; i++)
		base_weak_write(to, &c->at[i]);
	return !fclose(to);
}

static bool fails(struct shrink *s, const struct choices *c)
{
	if (s->runs >= MOST_RUNS || base_now_ns() > s->until_ns ||
	    !write_choices(s->path, c, s->how->seed))
		return false;
	s->runs++;
	return s->how->run(s->how->arg, s->path);
}

/* All but the choices from @begin up to @end. @room has room for all. */
static struct choices without(const struct choices *all, size_t begin, size_t end,
                              struct base_weak_choice *room)
{
	memcpy(room, all->at, begin * sizeof(*room));
	memcpy(room + begin, all->at + end, (all->n - end) * sizeof(*room));
	return (struct choices){ room, all->n - (end - begin), all->n };
}

/* Leaves out halves, quarters, ..., as long as the program fails without them. */
static void shrink(struct shrink *s, struct choices *all)
{
	struct base_weak_choice *room = malloc((all->n + 1) * sizeof(*room));
	size_t part = (all->n + 1) / 2;

	while (room && all->n && part) {
		bool any = false;

		for (size_t begin = 0; begin < all->n;) {
			const size_t end = begin + part < all->n ? begin + part : all->n;
			const struct choices rest = without(all, begin, end, room);

			if (!fails(s, &rest)) {
				begin = end;
				continue;
			}
			memcpy(all->at, rest.at, rest.n * sizeof(*rest.at));
			all->n = rest.n;
			any = true;
		}
		if (part == 1 && !any)
			break;
		part = part > 1 ? part / 2 : 1;
	}
	free(room);
}

/* ---- telling ---- */

static void say(const struct shrink *s, const struct choices *all)
{
	char text[300];

	if (!all->n)
		base_log("it fails without any choice, too: by time, now and then");
	else
		base_log("it needs %zu choice%s of the fabric:", all->n, all->n == 1 ? "" : "s");
	for (size_t i = 0; i < all->n && i < TOLD; i++) {
		base_weak_say(&all->at[i], text, sizeof(text));
		base_log("  %s%s", text,
		         all->at[i].by_time ? " (until a time limit: not repeatable)" : "");
	}
	if (all->n > TOLD)
		base_log("  and %zu more", all->n - TOLD);
	base_log("again: umbel run --weak=%s%s -- COMMAND", strchr(s->how->save, '/') ? "" : "./",
	         s->how->save);
}

void cli_weak_shrink(const struct cli_weak_shrink *how)
{
	struct shrink s = { .how = how, .until_ns = base_now_ns() + MOST_NS };
	struct choices all = { 0 };

	each_note(how->dir, read_process, &all);
	snprintf(s.path, sizeof(s.path), "%s/.choices", how->dir);
	if (!all.n)
		base_log("no process has noted a choice: it opened no RDMA device, or ended first");
	else if (fails(&s, &all))
		shrink(&s, &all);
	else
		base_log("it does not fail again with the same choices: it depends on time");
	if (all.n && write_choices(how->save, &all, how->seed))
		say(&s, &all);
	free(all.at);
}
