/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adopting pages, and giving them back: see adopt.h.
 *
 * What this file knows lies in its own variables: memory of malloc(3) could be what is just being
 * moved.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"
#include "base/util.h"
#include "hca/adopt.h"
#include "hca/connected.h"
#include "hca/keys.h"
#include "hca/maps.h"
#include "hca/mr.h"
#include "hca/plain.h"
#include "hca/process.h"

#define SLOT_BYTES (1ull << HCA_ADOPT_SHIFT)
#define FILE_BYTES (SHM_OBJECTS * SLOT_BYTES)
/* Moved at once: what there is twice meanwhile must not be what a limit of memory is exceeded by.
 */
#define PIECE        (256ull << 10)
#define MOST_REGIONS 4096 /* with more, a look at all of them costs too much */
#define MOST_WAIT_MS 1000 /* for a child */

static struct {
	struct hca_process *owner; /* whose regions they are; NULL: nothing was ever adopted */
	int fd;
	ino_t inode;
	bool never;   /* no more: there is no file, or the process has forked */
	bool offered; /* peers can have the file */
	bool forks_watched;
	bool locked;   /* fork() has the owner's lock */
	bool in_child; /* which must leave the file as it is */
	int wait[2];   /* a pipe that the child holds until it has what it needs; or -1 */
	unsigned n;
	uint64_t from[SHM_OBJECTS], to[SHM_OBJECTS]; /* by slot; both 0: none */
} adopted = { .fd = -1, .wait = { -1, -1 } };

bool hca_adopt_any(void)
{
	return adopted.n;
}

/* ---- the file ---- */

static bool make_file(void)
{
	struct rlimit limit;
	struct stat s;
	int fd;

	/* a file that is larger than a process may make is a signal */
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur != RLIM_INFINITY)
		return false;
	fd = memfd_create("umbel-adopted", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return false;
	/* peers map it: it may not shrink under them */
	if (ftruncate(fd, (off_t)FILE_BYTES) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) || fstat(fd, &s)) {
		close(fd);
		return false;
	}
	adopted.inode = s.st_ino;
	adopted.fd = fd;
	return true;
}

/* Lets peers have the file. */
static bool offer(struct hca_process *p)
{
	struct control_offer_memory req = { .kind = CONTROL_MEMORY_ADOPTED };

	if (!adopted.offered)
		adopted.offered = !control_call(
		        p->control, &(struct control_call){ .type = CONTROL_OFFER_MEMORY,
		                                            .request = &req,
		                                            .request_bytes = sizeof(req),
		                                            .send_fd = &adopted.fd });
	return adopted.offered;
}

static void free_pages(uint64_t offset, uint64_t bytes)
{
	if (adopted.in_child)
		return;
	fallocate(adopted.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
	          (off_t)bytes);
}

static bool write_file(uint64_t offset, uint64_t at, uint64_t bytes)
{
	for (uint64_t done = 0; done < bytes;) {
		ssize_t n = pwrite(adopted.fd, (const void *)(uintptr_t)(at + done), bytes - done,
		                   (off_t)(offset + done));

		if (n <= 0)
			return false;
		done += (uint64_t)n;
	}
	return true;
}

static bool read_file(uint64_t at, uint64_t offset, uint64_t bytes)
{
	for (uint64_t done = 0; done < bytes;) {
		ssize_t n = pread(adopted.fd, (void *)(uintptr_t)(at + done), bytes - done,
		                  (off_t)(offset + done));

		if (n <= 0)
			return false;
		done += (uint64_t)n;
	}
	return true;
}

/* ---- moving: the caller's thread is alone, and takes no signal ---- */

static bool map_file(uint64_t at, uint64_t offset, uint64_t bytes, int prot, int flags)
{
	return mmap((void *)(uintptr_t)at, bytes, prot, flags | MAP_FIXED, adopted.fd,
	            (off_t)offset) != MAP_FAILED;
}

/* Has the memory at @at lie in the file. */
static bool move_in(uint64_t at, uint64_t offset, uint64_t bytes)
{
	/* first: if there is no memory, touching the file is a signal */
	if (fallocate(adopted.fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes))
		return false;
	if (write_file(offset, at, bytes) &&
	    map_file(at, offset, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE))
		return true;
	free_pages(offset, bytes);
	return false;
}

/* Makes the memory at @at, which is mapped of the file, private anonymous memory. */
static bool move_out(uint64_t at, uint64_t offset, uint64_t bytes, int prot)
{
	if (mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE,
	         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return false;
	if (!read_file(at, offset, bytes)) {
		map_file(at, offset, bytes, prot, MAP_SHARED);
		return false;
	}
	if (prot != (PROT_READ | PROT_WRITE))
		mprotect((void *)(uintptr_t)at, bytes, prot);
	free_pages(offset, bytes);
	return true;
}

/* Likewise, in pieces. */
static bool move_all(const struct hca_vma *v)
{
	for (uint64_t done = 0, n; done < v->to - v->from; done += n) {
		n = v->to - v->from - done;
		n = n < PIECE ? n : PIECE;
		if (!move_out(v->from + done, v->offset + done, n, v->prot))
			return false;
	}
	return true;
}

/* Likewise, while other threads may be writing there: see adopt.h. */
static bool detach(const struct hca_vma *v)
{
	uint64_t bytes = v->to - v->from;

	if (!map_file(v->from, v->offset, bytes, v->prot, MAP_PRIVATE))
		return false;
	/* if it cannot be had for writing, what nobody writes stays in the file */
	if (!madvise((void *)(uintptr_t)v->from, bytes, MADV_POPULATE_WRITE))
		free_pages(v->offset, bytes);
	return true;
}

/* ---- what is mapped of the file ---- */

/* Calls @visit for each shared mapping of the slot's part of the file, wherever the program has
 * moved it by now (mremap(2)). Whether it was true for all of them. */
static bool each_mapping(unsigned slot, bool (*visit)(const struct hca_vma *v))
{
	struct hca_maps m;
	struct hca_vma v;
	bool good = true;

	if (!hca_maps_open(&m, "/proc/self/maps"))
		return false;
	while (good && hca_maps_next(&m, &v))
		if (v.inode == adopted.inode && v.shared && v.offset >> HCA_ADOPT_SHIFT == slot &&
		    strstr(v.name, "umbel-adopted"))
			good = visit(&v);
	hca_maps_close(&m);
	return good;
}

static bool give_back(unsigned slot, bool is_alone)
{
	sigset_t all, before;
	bool done;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before); /* no handler writes there meanwhile */
	done = each_mapping(slot, is_alone ? move_all : detach);
	if (done) {
		adopted.from[slot] = adopted.to[slot] = 0;
		adopted.n--;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return done;
}

bool hca_adopt_end(unsigned slot, bool is_alone)
{
	int cancel_state = base_cancel_off();
	bool done = give_back(slot, is_alone);

	base_cancel_restore(cancel_state);
	return done;
}

bool hca_adopt_is_there(unsigned slot, uint64_t from, uint64_t to)
{
	uint64_t offset = hca_adopt_offset(slot, from);
	struct hca_vma v;

	return hca_maps_find(from, &v) && v.shared && v.inode == adopted.inode && v.to >= to &&
	       v.offset + (from - v.from) == offset;
}

/* ---- fork ---- */

/* Whether the slot's memory may be given back although regions lie there, once peers do not use the
 * file any more. */
static bool can_leave(unsigned slot)
{
	struct hca_process *p = adopted.owner;

	return adopted.to[slot] && !hca_mr_overlaps(&p->mrs, adopted.from[slot], adopted.to[slot],
	                                            &p->mrs.objects[slot]);
}

/* Gives back what can be, and has peers reach it as other memory, once all is moved: a copy by the
 * kernel could be under way to where a page was. */
static void leave_all(void)
{
	struct hca_process *p = adopted.owner;
	bool leaves[SHM_OBJECTS];
	bool is_alone;

	if (hca_plain_pinned())
		return;
	hca_keys_set_busy(p, true);
	for (unsigned i = 0; i < SHM_OBJECTS; i++) {
		leaves[i] = can_leave(i);
		if (leaves[i])
			hca_keys_unmap(p, i);
	}
	if (hca_connections_wait_all(p)) {
		is_alone = hca_plain_alone();
		for (unsigned i = 0; i < SHM_OBJECTS; i++)
			if (leaves[i] && give_back(i, is_alone))
				hca_mr_forget_object(&p->mrs, i);
	}
	hca_keys_set_busy(p, false);
}

/* The owner's lock; not for long: who calls fork() in a signal handler may have it already. */
static bool try_lock(void)
{
	pthread_mutex_t *lock = &adopted.owner->mrs.lock;
	struct timespec until;

	if (!pthread_mutex_trylock(lock))
		return true;
	if (hca_plain_alone()) /* it is this thread's */
		return false;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += 200000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return !pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &until);
}

static void before_fork(void)
{
	int cancel_state;

	if (!adopted.n)
		return;
	cancel_state = base_cancel_off();
	adopted.never = true;
	adopted.locked = try_lock();
	if (adopted.locked)
		leave_all();
	if (adopted.n && pipe2(adopted.wait, O_CLOEXEC))
		adopted.wait[0] = adopted.wait[1] = -1;
	base_cancel_restore(cancel_state);
}

static void unlock(void)
{
	if (adopted.locked)
		pthread_mutex_unlock(&adopted.owner->mrs.lock);
	adopted.locked = false;
}

static void close_pipe(void)
{
	for (unsigned i = 0; i < 2; i++) {
		if (adopted.wait[i] >= 0)
			close(adopted.wait[i]);
		adopted.wait[i] = -1;
	}
}

/* What the child has not got yet it takes out of the file, as it is before fork() returns here. */
static void after_fork_in_parent(void)
{
	struct pollfd end = { .fd = adopted.wait[0] };
	int cancel_state = base_cancel_off();

	if (adopted.wait[1] >= 0) {
		close(adopted.wait[1]);
		adopted.wait[1] = -1;
		while (poll(&end, 1, MOST_WAIT_MS) < 0 && errno == EINTR)
			;
	}
	close_pipe();
	unlock();
	base_cancel_restore(cancel_state);
}

/* The child starts anew. */
static void after_fork_in_child(void)
{
	adopted.in_child = true;
	for (unsigned i = 0; i < SHM_OBJECTS && adopted.n; i++)
		if (adopted.to[i] && !each_mapping(i, move_all))
			base_log_warning(verbs, "a child of fork() shares registered memory");
	close_pipe();
	unlock();
	if (adopted.fd >= 0)
		close(adopted.fd);
	memset(adopted.from, 0, sizeof(adopted.from));
	memset(adopted.to, 0, sizeof(adopted.to));
	adopted.fd = -1;
	adopted.n = 0;
	adopted.owner = NULL;
	adopted.never = adopted.offered = adopted.in_child = false;
}

/* ---- adopting ---- */

static bool prepare(struct hca_process *p)
{
	if (adopted.owner && adopted.owner != p)
		return false; /* a former fabric's */
	adopted.owner = p;
	adopted.never = adopted.fd < 0 && !make_file(); /* it would not be better next time */
	if (adopted.never)
		return false;
	if (!adopted.forks_watched &&
	    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child))
		return false;
	adopted.forks_watched = true;
	return offer(p);
}

static bool can_adopt(struct hca_process *p, uint64_t from, uint64_t to)
{
	return p->region.control->settings.adopt && !adopted.never &&
	       p->mrs.ids.used <= MOST_REGIONS && to - from <= HCA_ADOPT_MOST && to < SLOT_BYTES &&
	       hca_plain_alone() && !hca_mr_overlaps(&p->mrs, from, to, NULL) &&
	       hca_plain_range(from, to) && !hca_plain_pinned() && prepare(p);
}

/* The pages that were moved become private memory again. */
static void undo(unsigned slot, uint64_t from, uint64_t to)
{
	const struct hca_vma v = { .from = from,
		                   .to = to,
		                   .offset = hca_adopt_offset(slot, from),
		                   .prot = PROT_READ | PROT_WRITE };

	if (!move_all(&v))
		base_log_warning(verbs, "registered memory stays in a file");
}

/* Moves all in. Returns up to where: there may be no memory left. */
static uint64_t move_range(unsigned slot, uint64_t from, uint64_t to)
{
	for (uint64_t n; from < to; from += n) {
		n = to - from < PIECE ? to - from : PIECE;
		if (!move_in(from, hca_adopt_offset(slot, from), n))
			break;
	}
	return from;
}

static bool adopt(unsigned slot, uint64_t from, uint64_t to)
{
	sigset_t all, before;
	uint64_t at;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before); /* no handler writes there meanwhile */
	at = move_range(slot, from, to);
	if (at == to) {
		adopted.from[slot] = from;
		adopted.to[slot] = to;
		adopted.n++;
	} else {
		undo(slot, from, at);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return at == to;
}

bool hca_adopt(struct hca_process *p, unsigned slot, uint64_t from, uint64_t to)
{
	int cancel_state = base_cancel_off();
	bool done = can_adopt(p, from, to) && adopt(slot, from, to);

	base_cancel_restore(cancel_state);
	return done;
}
