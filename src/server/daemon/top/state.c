/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subnet manager's state in a file: see state.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/util.h"
#include "daemon/top/state.h"

#define MAX_BYTES   (64u << 20)
#define DELAY_MS    500  /* from a change to the copy, so that many changes are one */
#define SLICE_PORTS 1024 /* copied in one go: some hundred microseconds */

/* ---- the file ---- */

/* Whether the file's name leads to what @fd is. */
static bool is_named(const struct daemon_state *s, int fd)
{
	struct stat ours, now;

	return !fstat(fd, &ours) && !fstatat(s->dir, s->leaf, &now, 0) &&
	       ours.st_dev == now.st_dev && ours.st_ino == now.st_ino;
}

/* Opens the file and locks it; a missing file is made, without entries. So if several fabrics find
 * no file, one of them gets the lock. A fabric that holds the lock may replace the file meanwhile.
 */
static int open_locked(const struct daemon_state *s)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
	int fd = openat(s->dir, s->leaf, flags), ret;

	if (fd < 0 && errno == ENOENT)
		fd = openat(s->dir, s->leaf, flags | O_CREAT, 0666);
	if (fd < 0)
		return -errno;
	ret = flock(fd, LOCK_EX | LOCK_NB) ? -errno : is_named(s, fd) ? 0 : -EBUSY;
	if (!ret)
		return fd;
	close(fd);
	return ret == -EWOULDBLOCK ? -EBUSY : ret;
}

/* Has the file, also if somebody has removed or replaced the one that we had. 0; -EBUSY: another
 * fabric has it; -errno. */
static int hold_file(struct daemon_state *s)
{
	int fd;

	if (s->fd >= 0 && is_named(s, s->fd))
		return 0;
	fd = open_locked(s);
	if (fd < 0)
		return fd;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = fd;
	return 0;
}

/* Reads all of the file: 0 and @text, to be freed. */
static int read_all(int fd, char **text, size_t *bytes)
{
	struct stat st;
	ssize_t n = 0;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOTSUP;
	if (st.st_size > (off_t)MAX_BYTES)
		return -EFBIG;
	*text = malloc((size_t)st.st_size + 1);
	if (!*text)
		return -ENOMEM;
	for (*bytes = 0; *bytes < (size_t)st.st_size; *bytes += (size_t)n) {
		n = pread(fd, *text + *bytes, (size_t)st.st_size - *bytes, (off_t)*bytes);
		if (n <= 0)
			break;
	}
	return n < 0 ? -errno : 0;
}

/* The name of the file that is written, and then takes the place of the other. */
static int new_name(const struct daemon_state *s, char name[static NAME_MAX + 1])
{
	int n = snprintf(name, NAME_MAX + 1, "%s.new", s->leaf);

	return n > NAME_MAX ? -ENAMETOOLONG : 0;
}

/* A new file, empty, locked, and with the permissions of the old one. It or -errno. */
static int open_new(const struct daemon_state *s, const char *name)
{
	int fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
	struct stat old;
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB))
		ret = -EBUSY;
	else if (ftruncate(fd, 0) || (!fstat(s->fd, &old) && fchmod(fd, old.st_mode & 0777)))
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

/* Puts a file with this text in the place of the present one. 0 or -errno. */
static int replace(struct daemon_state *s, const char *text, size_t bytes)
{
	char name[NAME_MAX + 1];
	int ret = hold_file(s), fd;

	if (!ret)
		ret = new_name(s, name);
	fd = ret ? ret : open_new(s, name);
	if (fd < 0)
		return fd;
	ret = base_write_all(fd, text, bytes);
	if (!ret && fsync(fd))
		ret = -errno;
	if (!ret && renameat(s->dir, name, s->dir, s->leaf))
		ret = -errno;
	if (ret) {
		unlinkat(s->dir, name, 0);
		close(fd);
		return ret;
	}
	close(s->fd);
	s->fd = fd;
	return fsync(s->dir) ? -errno : 0;
}

/* ---- writing ---- */

/* Writes the copy, unless that is what the file has. 0 or -errno. */
static int write_copy(struct daemon_state *s)
{
	size_t bytes = 0;
	char *text = NULL;
	int ret = subnet_state_format(&s->copy, &text, &bytes);
	uint64_t hash;

	subnet_state_fini(&s->copy);
	hash = ret ? 0 : base_hash_of(text, bytes, 0);
	if (!ret && (hash != s->hash || s->failed))
		ret = replace(s, text, bytes);
	free(text);
	if (!ret)
		s->hash = hash;
	if (ret && !s->failed)
		base_log_error(sm, "the state cannot be written to '%s': %s", s->name,
		               ret == -EBUSY ? "another fabric uses it" : strerror(-ret));
	s->failed = ret;
	return ret;
}

static void *run_writer(void *arg)
{
	struct daemon_state *s = arg;

	write_copy(s);
	atomic_store_explicit(&s->written, true, memory_order_release); /* end_writer() */
	return NULL;
}

/* Waits for the writer, if there is one. */
static void join_writer(struct daemon_state *s)
{
	if (s->writing)
		pthread_join(s->writer, NULL);
	s->writing = false;
}

/* Whether there is no writer any more. */
static bool end_writer(struct daemon_state *s)
{
	if (s->writing && atomic_load_explicit(&s->written, memory_order_acquire))
		join_writer(s);
	return !s->writing;
}

static void start_writer(struct daemon_state *s)
{
	int ret;

	atomic_store_explicit(&s->written, false, memory_order_relaxed);
	ret = pthread_create(&s->writer, NULL, run_writer, s);
	s->writing = !ret;
	if (ret) {
		base_log_warning(sm, "no thread to write '%s': %s", s->name, strerror(ret));
		subnet_state_fini(&s->copy);
		s->dirty = true; /* the next change, or the end, has it written */
	}
}

/* ---- copying ---- */

static void on_due(struct base_timer *t);

static void begin_copy(struct daemon_state *s)
{
	subnet_state_fini(&s->copy);
	s->at = 0;
	s->changes = s->subnet->changes;
	s->dirty = false;
}

/* Copies up to @n ports, and after the last one the groups. As subnet_state_add_ports(). */
static int copy_some(struct daemon_state *s, unsigned n)
{
	int ret = subnet_state_add_ports(&s->copy, s->subnet->f, &s->at, n);

	if (ret > 0 && subnet_state_add_groups(&s->copy, s->subnet->mad.sa))
		ret = -ENOMEM;
	return ret;
}

static bool is_at_rest(const struct daemon_state *s)
{
	return s->subnet->mad.sa && !daemon_subnet_is_sweeping(s->subnet);
}

/* A slice of the copy. After a change meanwhile it begins again. */
static void on_copy(struct base_timer *t)
{
	struct daemon_state *s = container_of(t, struct daemon_state, timer);
	int ret;

	if (!is_at_rest(s) || s->changes != s->subnet->changes) {
		subnet_state_fini(&s->copy);
		s->dirty = true;
		daemon_loop_wake_in(s->loop, &s->timer, DELAY_MS, on_due);
		return;
	}
	ret = copy_some(s, SLICE_PORTS);
	if (!ret)
		base_timer_set_in(&s->loop->timers, &s->timer, 0, on_copy);
	else if (ret > 0)
		start_writer(s);
	else
		base_log_warning(sm, "no memory to write '%s'", s->name);
}

static void on_due(struct base_timer *t)
{
	struct daemon_state *s = container_of(t, struct daemon_state, timer);

	if (!s->subnet->mad.sa) /* what the master changes is not ours */
		return;
	if (!is_at_rest(s) || !end_writer(s)) {
		daemon_loop_wake_in(s->loop, &s->timer, DELAY_MS, on_due);
		return;
	}
	begin_copy(s);
	on_copy(t);
}

void daemon_state_look(struct daemon_state *s)
{
	const struct sa *sa = s->name ? s->subnet->mad.sa : NULL;

	if (!sa || (s->seen[0] == s->subnet->changes && s->seen[1] == sa->changes))
		return;
	s->seen[0] = s->subnet->changes;
	s->seen[1] = sa->changes;
	s->dirty = true;
	if (!base_timer_is_set(&s->timer))
		daemon_loop_wake_in(s->loop, &s->timer, DELAY_MS, on_due);
}

int daemon_state_save(struct daemon_state *s)
{
	int ret;

	if (!s->name)
		return 0;
	base_timer_stop(&s->timer);
	join_writer(s);
	/* while ports register the subnet administrator does not know all groups */
	if (!s->subnet->mad.sa || s->subnet->mad.sa->registering ||
	    !(s->dirty || s->failed || s->copy.n_ports))
		return s->failed ? -EIO : 0;
	begin_copy(s);
	ret = copy_some(s, UINT32_MAX);
	return ret < 0 ? ret : write_copy(s);
}

/* ---- start and end ---- */

/* Whether a new file can be made. 0 or -errno. */
static int try_to_write(const struct daemon_state *s)
{
	char name[NAME_MAX + 1];
	int ret = new_name(s, name), fd;

	fd = ret ? ret : open_new(s, name);
	if (fd < 0)
		return fd;
	ret = unlinkat(s->dir, name, 0) ? -errno : 0;
	close(fd);
	return ret;
}

static int open_dir(struct daemon_state *s, const char *name)
{
	char *slash;

	s->name = strdup(name);
	slash = s->name ? strrchr(s->name, '/') : NULL;
	if (!s->name)
		return -ENOMEM;
	s->leaf = slash ? slash + 1 : s->name;
	if (slash)
		*slash = '\0';
	s->dir = open(!slash ? "." : *s->name ? s->name : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (slash)
		*slash = '/';
	return s->dir < 0 ? -errno : 0;
}

static int read_file(struct daemon_state *s, char *why, size_t len)
{
	struct subnet_state_text from = { .name = s->name };
	char *text = NULL;
	int ret = hold_file(s);

	if (!ret)
		ret = read_all(s->fd, &text, &from.bytes);
	from.text = text;
	if (!ret)
		s->hash = base_hash_of(text, from.bytes, 0);
	if (!ret)
		ret = subnet_state_parse(&s->subnet->saved, &from, why, len);
	free(text);
	return ret;
}

static void explain(const struct daemon_state *s, int error, char *why, size_t len)
{
	if (*why)
		return;
	if (error == -EBUSY)
		snprintf(why, len, "the state in '%s' is in use by another fabric", s->name);
	else if (error == -ENOTSUP)
		snprintf(why, len, "'%s' is no regular file", s->name);
	else if (error == -EFBIG)
		snprintf(why, len, "%s: larger than %u MiB", s->name, MAX_BYTES >> 20);
	else
		snprintf(why, len, "the state cannot be kept in '%s': %s", s->name,
		         strerror(-error));
}

int daemon_state_open(struct daemon_state *s, const char *name, struct daemon_subnet *subnet,
                      char *why, size_t len)
{
	int ret;

	s->loop = subnet->loop;
	s->subnet = subnet;
	s->dir = s->fd = -1;
	if (!name)
		return 0;
	ret = open_dir(s, name);
	if (!ret)
		ret = read_file(s, why, len);
	if (!ret)
		ret = try_to_write(s);
	if (ret)
		explain(s, ret, why, len);
	return ret;
}

void daemon_state_note(const struct daemon_state *s, char *notes, size_t len)
{
	const struct subnet_state_misfits *misfits = &s->subnet->misfits;
	size_t used = strnlen(notes, len);

	if (!s->name || !misfits->n)
		return;
	snprintf(notes + used, len - used,
	         "%s:%u: %u entr%s not fit this fabric and %s passed over%s\n", s->name,
	         misfits->line, misfits->n, misfits->n == 1 ? "y does" : "ies do",
	         misfits->n == 1 ? "is" : "are", misfits->n == 1 ? "" : "; this is the first");
}

void daemon_state_fini(struct daemon_state *s)
{
	if (!s->subnet)
		return;
	base_timer_stop(&s->timer);
	join_writer(s);
	subnet_state_fini(&s->copy);
	if (s->fd >= 0)
		close(s->fd);
	if (s->dir >= 0)
		close(s->dir);
	free(s->name);
}
