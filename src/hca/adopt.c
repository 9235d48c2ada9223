/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adopting pages, and giving them back: see adopt.h.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"
#include "base/util.h"
#include "hca/adopt.h"
#include "hca/mr.h"
#include "hca/process.h"

#define FILE_BYTES   (1ull << 52) /* beyond all addresses */
#define MOST_RANGES  256          /* each is a mapping, of which a process has 65,530 */
#define MOST_REGIONS 4096         /* with more, a look at all of them costs too much */

/* Of /proc/self/pagemap(5). */
#define PAGE_IS_THERE  (1ull << 63)
#define PAGE_IS_SHARED (1ull << 61) /* or of a file */

struct range {
	LIST_ENTRY(range) entry;
	uint64_t from, to;
	unsigned regions; /* 0: it could not be given back yet */
};

static struct {
	pthread_mutex_t lock;
	int fd; /* -1: there is no file yet */
	ino_t inode;
	LIST_HEAD(, range) ranges;
	unsigned n_ranges;
	bool forks_watched, in_vain;       /* in_vain: no file can be made */
	const struct hca_process *offered; /* it has the file's descriptor */
} adopted = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* ---- what can be adopted ---- */

static bool has_one_thread(void)
{
	struct stat s;

	return !stat("/proc/self/task", &s) && s.st_nlink == 3;
}

static bool is_stack(uint64_t from, uint64_t to)
{
	static uint64_t low, high;
	pthread_attr_t attr;
	void *addr;
	size_t bytes;

	if (!high) {
		if (pthread_getattr_np(pthread_self(), &attr))
			return true;
		pthread_attr_getstack(&attr, &addr, &bytes);
		pthread_attr_destroy(&attr);
		low = (uintptr_t)addr;
		high = low + bytes;
	}
	return from < high && to > low;
}

/* Whether all pages are there, and are private anonymous ones. */
static bool are_private(uint64_t from, uint64_t to)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry[512];
	bool good = fd >= 0;

	for (uint64_t at = from; at < to && good;) {
		size_t n = (to - at) / HCA_ADOPT_PAGE;
		ssize_t bytes;

		n = n < ARRAY_SIZE(entry) ? n : ARRAY_SIZE(entry);
		bytes = pread(fd, entry, n * sizeof(entry[0]),
		              (off_t)(at / HCA_ADOPT_PAGE * sizeof(entry[0])));
		good = bytes == (ssize_t)(n * sizeof(entry[0]));
		for (size_t i = 0; i < n && good; i++)
			good = (entry[i] & PAGE_IS_THERE) && !(entry[i] & PAGE_IS_SHARED);
		at += n * HCA_ADOPT_PAGE;
	}
	if (fd >= 0)
		close(fd);
	return good;
}

static struct range *range_with(uint64_t from, uint64_t to)
{
	struct range *r;

	LIST_FOREACH(r, &adopted.ranges, entry)
	if (from >= r->from && to <= r->to)
		return r;
	return NULL;
}

static bool can_adopt(struct hca_process *p, uint64_t from, uint64_t to)
{
	return !adopted.in_vain && to - from <= HCA_ADOPT_MOST && adopted.n_ranges < MOST_RANGES &&
	       p->mrs.ids.used <= MOST_REGIONS && sysconf(_SC_PAGESIZE) == HCA_ADOPT_PAGE &&
	       has_one_thread() && !is_stack(from, to) && are_private(from, to) &&
	       !hca_mr_overlaps(&p->mrs, from, to);
}

/* ---- the file ---- */

static int make_file(void)
{
	struct rlimit limit;
	struct stat s;
	int fd;

	/* a file that is larger than a process may make is a signal */
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur != RLIM_INFINITY)
		return -1;
	fd = memfd_create("umbel-adopted", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	/* peers map it: it may not shrink under them */
	if (ftruncate(fd, (off_t)FILE_BYTES) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) || fstat(fd, &s)) {
		close(fd);
		return -1;
	}
	adopted.inode = s.st_ino;
	return fd;
}

static void free_pages(uint64_t from, uint64_t to)
{
	fallocate(adopted.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
	          (off_t)(to - from));
}

/* Lets peers have the file. */
static bool offer(struct hca_process *p)
{
	struct control_offer_memory req = { .kind = CONTROL_MEMORY_ADOPTED };

	if (adopted.offered == p)
		return true;
	if (control_call(p->control, &(struct control_call){ .type = CONTROL_OFFER_MEMORY,
	                                                     .request = &req,
	                                                     .request_bytes = sizeof(req),
	                                                     .send_fd = &adopted.fd }))
		return false;
	adopted.offered = p;
	return true;
}

/* ---- moving ---- */

/* Copies adopted memory to @to: from the file, as the program may have freed it by now. */
static bool read_file(void *to, uint64_t from, uint64_t bytes)
{
	for (uint64_t done = 0; done < bytes;) {
		ssize_t n =
		        pread(adopted.fd, (char *)to + done, bytes - done, (off_t)(from + done));

		if (n <= 0)
			return false;
		done += (uint64_t)n;
	}
	return true;
}

static bool read_memory(void *to, uint64_t from, uint64_t bytes)
{
	memcpy(to, (const void *)(uintptr_t)from, bytes);
	return true;
}

/*
 * Has the memory at @from, of @bytes, lie in what @there is a mapping of, which ends, and @read
 * copies. No signal handler writes in between.
 */
static bool replace(uint64_t from, void *there, uint64_t bytes,
                    bool (*read)(void *to, uint64_t from, uint64_t bytes))
{
	sigset_t all, before;
	bool done;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	done = read(there, from, bytes) &&
	       mremap(there, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
	              (void *)(uintptr_t)from) != MAP_FAILED;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!done)
		munmap(there, bytes);
	return done;
}

static bool move_in(uint64_t from, uint64_t to)
{
	void *there;

	/* at once: if there is no memory, touching the file is a signal */
	if (fallocate(adopted.fd, FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from)))
		return false;
	there = mmap(NULL, to - from, PROT_READ | PROT_WRITE, MAP_SHARED, adopted.fd, (off_t)from);
	if (there == MAP_FAILED) {
		free_pages(from, to);
		return false;
	}
	if (!replace(from, there, to - from, read_memory)) {
		free_pages(from, to);
		return false;
	}
	/* a child gets them by after_fork_in_child(), if at all */
	madvise((void *)(uintptr_t)from, to - from, MADV_DONTFORK);
	return true;
}

static bool move_out(uint64_t from, uint64_t to)
{
	void *there =
	        mmap(NULL, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return there != MAP_FAILED && replace(from, there, to - from, read_file);
}

/* ---- what is still ours: the program may have unmapped it, and mapped something else ---- */

/* Calls @visit with each part of the range that the file is still mapped at, where it was. Whether
 * it was true for all of them, and no part is mapped elsewhere (mremap(2)). */
static bool each_part(const struct range *r, bool (*visit)(uint64_t from, uint64_t to))
{
	FILE *f = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t room = 0;
	bool good = f;

	while (f && getline(&line, &room, f) > 0) {
		uint64_t from, to, offset;
		uintmax_t inode;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %ju", &from, &to,
		           &offset, &inode) != 4 ||
		    inode != adopted.inode || !strstr(line, "umbel-adopted"))
			continue;
		if (offset != from) {
			good = good && (offset >= r->to || offset + (to - from) <= r->from);
			continue;
		}
		from = from > r->from ? from : r->from;
		to = to < r->to ? to : r->to;
		if (from < to)
			good = visit(from, to) && good;
	}
	free(line);
	if (f)
		fclose(f);
	return good;
}

static uint64_t found; /* bytes, of what count_part() was called for */
static uint64_t found_from, found_to;

static bool count_part(uint64_t from, uint64_t to)
{
	from = from > found_from ? from : found_from;
	to = to < found_to ? to : found_to;
	found += from < to ? to - from : 0;
	return true;
}

/* Whether all of this part of the range is still mapped of the file. */
static bool is_ours(const struct range *r, uint64_t from, uint64_t to)
{
	found = 0;
	found_from = from;
	found_to = to;
	return each_part(r, count_part) && found == to - from;
}

/* ---- fork ---- */

/* What the child will have in place of adopted pages: a copy of them. */
struct part {
	uint64_t from, bytes;
	void *copy;
};

static struct part *parts;
static unsigned n_parts;

static bool copy_part(uint64_t from, uint64_t to)
{
	struct part *p = realloc(parts, (n_parts + 1) * sizeof(*parts));

	if (!p)
		return false;
	parts = p;
	p += n_parts;
	*p = (struct part){ .from = from, .bytes = to - from };
	p->copy = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->copy == MAP_FAILED)
		return false;
	n_parts++;
	return read_file(p->copy, from, p->bytes);
}

static void before_fork(void)
{
	const struct range *r;

	pthread_mutex_lock(&adopted.lock);
	LIST_FOREACH(r, &adopted.ranges, entry)
	{
		unsigned before = n_parts;
		bool good = each_part(r, copy_part);

		if (!good && n_parts == before) /* nobody can tell what is mapped there */
			good = copy_part(r->from, r->to);
		if (!good)
			base_log_warning(verbs,
			                 "a child of fork() lacks some of %" PRIu64
			                 " bytes of registered memory",
			                 r->to - r->from);
	}
}

static void after_fork_in_parent(void)
{
	for (; n_parts; n_parts--)
		munmap(parts[n_parts - 1].copy, parts[n_parts - 1].bytes);
	pthread_mutex_unlock(&adopted.lock);
}

/* The child starts anew. */
static void after_fork_in_child(void)
{
	struct range *r;

	for (unsigned i = 0; i < n_parts; i++)
		mremap(parts[i].copy, parts[i].bytes, parts[i].bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
		       (void *)(uintptr_t)parts[i].from);
	n_parts = 0;
	while ((r = LIST_FIRST(&adopted.ranges))) {
		LIST_REMOVE(r, entry);
		free(r);
	}
	if (adopted.fd >= 0)
		close(adopted.fd);
	adopted.fd = -1;
	adopted.n_ranges = 0;
	adopted.offered = NULL;
	pthread_mutex_unlock(&adopted.lock);
}

/* ---- ranges ---- */

static bool prepare(struct hca_process *p)
{
	if (adopted.fd < 0)
		adopted.fd = make_file();
	adopted.in_vain = adopted.fd < 0; /* it would not be better next time */
	if (adopted.in_vain)
		return false;
	if (!adopted.forks_watched &&
	    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child))
		return false;
	adopted.forks_watched = true;
	return offer(p);
}

static bool add_range(struct hca_process *p, uint64_t from, uint64_t to)
{
	struct range *r;

	if (!can_adopt(p, from, to) || !prepare(p))
		return false;
	r = malloc(sizeof(*r));
	if (!r)
		return false;
	*r = (struct range){ .from = from, .to = to, .regions = 1 };
	if (!move_in(from, to)) {
		free(r);
		return false;
	}
	LIST_INSERT_HEAD(&adopted.ranges, r, entry);
	adopted.n_ranges++;
	return true;
}

/* Makes private memory again of all ranges that no region is on, if that can be. */
static void give_back(struct hca_process *p)
{
	struct range *r, *next;

	if (LIST_EMPTY(&adopted.ranges) || !has_one_thread())
		return;
	for (r = LIST_FIRST(&adopted.ranges); r; r = next) {
		next = LIST_NEXT(r, entry);
		if (r->regions || hca_mr_overlaps(&p->mrs, r->from, r->to) ||
		    !each_part(r, move_out))
			continue;
		free_pages(r->from, r->to);
		LIST_REMOVE(r, entry);
		adopted.n_ranges--;
		free(r);
	}
}

bool hca_adopt(struct hca_process *p, const void *start, size_t length)
{
	uint64_t to, from = hca_adopt_range((uintptr_t)start, length, &to);
	struct range *r;
	bool done = false;
	int cancel_state;

	if (from >= to)
		return false;
	cancel_state = base_cancel_off();
	pthread_mutex_lock(&adopted.lock);
	give_back(p);
	r = range_with(from, to);
	if (!r) {
		done = add_range(p, from, to);
	} else if (adopted.offered == p && is_ours(r, from, to)) {
		r->regions++;
		done = true;
	}
	pthread_mutex_unlock(&adopted.lock);
	base_cancel_restore(cancel_state);
	return done;
}

void hca_adopt_end(struct hca_process *p, const void *start, size_t length)
{
	uint64_t to, from = hca_adopt_range((uintptr_t)start, length, &to);
	struct range *r;
	int cancel_state = base_cancel_off();

	pthread_mutex_lock(&adopted.lock);
	r = range_with(from, to);
	if (r && r->regions)
		r->regions--;
	give_back(p);
	pthread_mutex_unlock(&adopted.lock);
	base_cancel_restore(cancel_state);
}
