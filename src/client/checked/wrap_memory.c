/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions of the C library's names by which memory goes, or gets other pages. They stand before
 * its own where libumbel-checked.so is preloaded, and look whether that memory is registered
 * (moves.h). Calls within the C library, and a sanitizer's, do not come by here. Any thread may
 * call them, and before constructors have run.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fast.h"
#include "checked/locked.h"
#include "checked/moves.h"
#include "checked/places.h"
#include "checked/report.h"
#include "checked/requests.h"

/* Where our libraries are built with a sanitizer, its functions stay the first. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

bool checked_sees_moves(void)
{
	return false;
}

#else

#define REAL(X)                                                 \
	X(int, munmap, (void *, size_t))                        \
	X(void *, mmap, (void *, size_t, int, int, int, off_t)) \
	X(void *, mremap, (void *, size_t, size_t, int, ...))   \
	X(int, madvise, (void *, size_t, int))                  \
	X(int, ftruncate, (int, off_t))                         \
	X(void, free, (void *))                                 \
	X(void *, realloc, (void *, size_t))                    \
	X(size_t, malloc_usable_size, (void *))

static struct {
#define MEMBER(result, name, args) result(*name) args;
	REAL(MEMBER)
#undef MEMBER
	bool knows_sizes; /* of blocks: the functions are of one library */
	atomic_bool found;
} real;

static __thread bool is_finding __attribute__((tls_model("initial-exec")));

static BASE_COLD void find(void)
{
	Dl_info of[2] = { 0 };

	is_finding = true;
#define FIND(result, name, args)                     \
	{                                            \
		void *at = dlsym(RTLD_NEXT, #name);  \
                                                     \
		memcpy(&real.name, &at, sizeof(at)); \
	}
	REAL(FIND)
#undef FIND
	real.knows_sizes = real.malloc_usable_size && dladdr((void *)real.free, &of[0]) &&
	                   dladdr((void *)real.malloc_usable_size, &of[1]) &&
	                   of[0].dli_fbase == of[1].dli_fbase;
	is_finding = false;
	atomic_store_explicit(&real.found, true, memory_order_release); /* with ready() */
}

static inline void ready(void)
{
	if (base_unlikely(!atomic_load_explicit(&real.found, memory_order_acquire)))
		find();
}

/* Whether it is worth a look: memory of a region, and not within the checker. */
static bool is_near(uint64_t from, uint64_t to)
{
	return from < to && checked_regions_near(from, to) && !checked_is_inside();
}

/* A card moves no memory: calls of libibverbs itself do not count. It may hold locks meanwhile that
 * another thread waits for with ours. */
static bool matters(const struct checked_move *m)
{
	return is_near(m->from, m->to) && !checked_place_is_ours(m->caller);
}

static struct checked_move pages(const char *how, const void *at, size_t bytes, const void *caller)
{
	const uint64_t from = (uintptr_t)at, page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (struct checked_move){ how, from, (from + bytes + page - 1) / page * page, caller };
}

#define MOVE(how, at, bytes) pages(how, at, bytes, __builtin_return_address(0))

static void tell(const struct checked_move *m)
{
	checked_memory_goes(m);
	checked_move(m);
}

/* ---- mappings ---- */

/* Nobody else registers what comes there before that is known. */
int munmap(void *at, size_t bytes)
{
	const struct checked_move m = MOVE("unmapped", at, bytes);
	int ret;

	ready();
	if (!matters(&m) || !checked_lock_soon())
		return real.munmap(at, bytes);
	HELD;
	ret = real.munmap(at, bytes);
	if (!ret)
		tell(&m);
	return ret;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	const struct checked_move m = MOVE("mapped anew", at, bytes);
	void *ret;

	ready();
	if (!(flags & MAP_FIXED) || !matters(&m) || !checked_lock_soon())
		return real.mmap(at, bytes, protection, flags, fd, offset);
	HELD;
	ret = real.mmap(at, bytes, protection, flags, fd, offset);
	if (ret == at)
		tell(&m);
	return ret;
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
        __attribute__((alias("mmap")));

static void tell_of_remap(const struct checked_move *old, const struct checked_move *new, void *ret)
{
	struct checked_move cut = *old;

	cut.from += new->to - new->from;
	if ((uintptr_t)ret != old->from)
		tell(old);
	else if (cut.from < cut.to)
		tell(&cut);
	if ((uintptr_t)ret == new->from &&new->from != old->from)
		tell(new);
}

void *mremap(void *at, size_t bytes, size_t new_bytes, int flags, ...)
{
	const struct checked_move old = MOVE("moved", at, bytes);
	struct checked_move new;
	void *to = NULL, *ret;
	va_list args;

	va_start(args, flags);
	if (flags & MREMAP_FIXED)
		to = va_arg(args, void *);
	va_end(args);
	new = MOVE("mapped anew", to, new_bytes);
	ready();
	if ((!matters(&old) && !(to && matters(&new))) || !checked_lock_soon())
		return real.mremap(at, bytes, new_bytes, flags, to);
	HELD;
	ret = real.mremap(at, bytes, new_bytes, flags, to);
	if (ret != MAP_FAILED)
		tell_of_remap(&old, &new, ret);
	return ret;
}

/* ---- pages ---- */

/* A line of /proc/self/maps. */
struct mapping {
	uint64_t from, to, offset, inode;
	dev_t device;
	bool is_private;
};

static bool read_mapping(FILE *maps, struct mapping *m)
{
	unsigned long from, to, offset, inode;
	unsigned major, minor;
	char access[5];
	int c, n = fscanf(maps, "%lx-%lx %4s %lx %x:%x %lu", &from, &to, access, &offset, &major,
	                  &minor, &inode);

	do {
		c = fgetc(maps);
	} while (c != '\n' && c != EOF);
	*m = (struct mapping){
		from, to, offset, inode, makedev(major, minor), n == 7 && access[3] == 'p'
	};
	return n == 7;
}

/* Of shared memory the pages stay: they are the file's. */
static void tell_of_private(const struct checked_move *all)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct mapping m;

	while (maps && read_mapping(maps, &m)) {
		struct checked_move part = *all;

		part.from = m.from > all->from ? m.from : all->from;
		part.to = m.to < all->to ? m.to : all->to;
		if (m.is_private && part.from < part.to)
			tell(&part);
	}
	if (maps)
		fclose(maps);
}

int madvise(void *at, size_t bytes, int advice)
{
	const struct checked_move m = MOVE("discarded", at, bytes);
	int ret;

	ready();
	if ((advice != MADV_DONTNEED && advice != MADV_FREE) || !matters(&m) ||
	    !checked_lock_soon())
		return real.madvise(at, bytes, advice);
	HELD;
	ret = real.madvise(at, bytes, advice);
	if (!ret && advice == MADV_DONTNEED)
		tell_of_private(&m);
	else if (!ret)
		checked_memory_goes(&m);
	return ret;
}

static void tell_of_file(const struct stat *file, uint64_t bytes, const struct checked_move *all)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t end = (bytes + page - 1) / page * page;
	FILE *maps = fopen("/proc/self/maps", "re");
	struct mapping m;

	while (maps && read_mapping(maps, &m)) {
		struct checked_move cut = *all;

		cut.from = m.from;
		cut.to = m.to;
		if (m.inode != file->st_ino || m.device != file->st_dev)
			continue;
		if (end > m.offset)
			cut.from += end - m.offset;
		if (cut.from < cut.to)
			tell(&cut);
	}
	if (maps)
		fclose(maps);
}

int ftruncate(int fd, off_t bytes)
{
	const struct checked_move any = { "cut off", 0, UINT64_MAX, __builtin_return_address(0) };
	struct stat before;
	int ret;

	ready();
	if (!matters(&any) || fstat(fd, &before) || before.st_size <= bytes)
		return real.ftruncate(fd, bytes);
	LOCKED;
	ret = real.ftruncate(fd, bytes);
	if (!ret)
		tell_of_file(&before, (uint64_t)bytes, &any);
	return ret;
}

int ftruncate64(int fd, off_t bytes) __attribute__((alias("ftruncate")));

/* ---- blocks ---- */

/* Freed memory may be registered on: a region of a cache is of pages, and these stay. */
static bool is_block_near(void *at)
{
	const uint64_t from = (uintptr_t)at;

	/* a sanitizer frees before it knows sizes */
	return is_near(from, UINT64_MAX) &&
	       is_near(from, from + (real.knows_sizes ? real.malloc_usable_size(at) : 1));
}

static struct checked_move freed(void *at, const void *caller)
{
	const uint64_t from = (uintptr_t)at;

	return (struct checked_move){ "freed", from,
		                      from + (real.knows_sizes ? real.malloc_usable_size(at) : 1),
		                      caller };
}

/* A thread may hold a lock of the dynamic linker here, which another one waits for that has ours:
 * so if ours is not free, nothing is said. */
static BASE_COLD void look_at_block(void *at, const void *caller)
{
	const struct checked_move m = freed(at, caller);

	const int error = errno; /* stays */

	if (!checked_try_lock())
		return;
	if (!checked_place_is_ours(caller))
		checked_memory_goes(&m);
	checked_unlock();
	errno = error;
}

/* A block that is freed while the functions are looked for is lost: a few bytes. */
void free(void *at)
{
	if (is_finding || !at)
		return;
	ready();
	if (base_unlikely(is_block_near(at)))
		look_at_block(at, __builtin_return_address(0));
	real.free(at);
}

/* As free(), but whether the block moves is known afterwards, and nobody is to post there before.
 */
static BASE_COLD void *realloc_near(void *at, size_t bytes, const void *caller)
{
	const struct checked_move m = freed(at, caller);
	void *ret;

	if (!checked_try_lock())
		return real.realloc(at, bytes);
	ret = real.realloc(at, bytes);
	if ((ret ? ret != at : !bytes) && !checked_place_is_ours(caller))
		checked_memory_goes(&m);
	checked_unlock();
	return ret;
}

void *realloc(void *at, size_t bytes)
{
	if (is_finding)
		return NULL;
	ready();
	if (base_unlikely(at && is_block_near(at)))
		return realloc_near(at, bytes, __builtin_return_address(0));
	return real.realloc(at, bytes);
}

/* ---- whether they are called ---- */

bool checked_sees_moves(void)
{
	Dl_info first, ours;

	return dladdr(dlsym(RTLD_DEFAULT, "munmap"), &first) &&
	       dladdr((void *)checked_sees_moves, &ours) && first.dli_fbase == ours.dli_fbase;
}

#endif
