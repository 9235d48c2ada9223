/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rings of posted requests: see posts.h. A datagram begins with its length, and takes a multiple of
 * 8 bytes.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fast.h"
#include "control/posts.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct length {
	uint32_t bytes; /* that follow */
	uint32_t reserved;
};
static_assert((CONTROL_POSTS_BYTES & (CONTROL_POSTS_BYTES - 1)) == 0, "positions wrap");

static int map(struct control_posts **ring, int fd)
{
	void *at = mmap(NULL, sizeof(**ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	*ring = at;
	return 0;
}

int control_posts_make(struct control_posts_reader *r, int *fd)
{
	int made = memfd_create("umbel-posts", MFD_CLOEXEC | MFD_ALLOW_SEALING), ret;

	if (made < 0)
		return -errno;
	ret = ftruncate(made, sizeof(struct control_posts)) || fcntl(made, F_ADD_SEALS, SEALS)
	              ? -errno
	              : map(&r->ring, made);
	if (ret) {
		close(made);
		return ret;
	}
	atomic_store_explicit(&r->ring->asleep, 1, memory_order_relaxed);
	r->tail = 0;
	*fd = made;
	return 0;
}

int control_posts_map(struct control_posts **ring, int fd)
{
	struct stat s;

	if (fstat(fd, &s))
		return -errno;
	return s.st_size == sizeof(**ring) ? map(ring, fd) : -EPROTO;
}

void control_posts_unmap(struct control_posts *ring)
{
	if (ring)
		munmap(ring, sizeof(*ring));
}

/* ---- the process ---- */

static void write_at(struct control_posts *ring, uint32_t at, const void *from, uint32_t bytes)
{
	const uint32_t off = at % CONTROL_POSTS_BYTES;
	const uint32_t n = bytes < CONTROL_POSTS_BYTES - off ? bytes : CONTROL_POSTS_BYTES - off;

	if (n)
		memcpy(ring->data + off, from, n);
	if (n < bytes)
		memcpy(ring->data, (const char *)from + n, bytes - n);
}

int control_posts_put(struct control_posts *ring, const void *ahead, uint32_t bytes,
                      const struct control_packet *p, bool *tell)
{
	const uint32_t own = (uint32_t)sizeof(p->header) + p->header.bytes;
	const struct length length = { .bytes = bytes + own };
	const uint32_t all = (uint32_t)(sizeof(length) + base_align_up(length.bytes, 8));
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	/* acquire: the daemon has copied what was there */
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	if (all > CONTROL_POSTS_BYTES - (head - tail))
		return -ENOBUFS;
	write_at(ring, head, &length, sizeof(length));
	write_at(ring, head + sizeof(length), ahead, bytes);
	write_at(ring, head + sizeof(length) + bytes, p, own);
	/* release: all of it is there before. The barrier: it is seen by a reader that goes to
	 * sleep, or is seen to sleep */
	atomic_exchange_explicit(&ring->head, head + all, memory_order_seq_cst);
	base_fence_behind_seq_cst();
	*tell = atomic_load_explicit(&ring->asleep, memory_order_relaxed);
	if (*tell)
		atomic_store_explicit(&ring->asleep, 0, memory_order_relaxed);
	return 0;
}

/* ---- the daemon ---- */

static void read_at(const struct control_posts *ring, uint32_t at, void *to, uint32_t bytes)
{
	const uint32_t off = at % CONTROL_POSTS_BYTES;
	const uint32_t n = bytes < CONTROL_POSTS_BYTES - off ? bytes : CONTROL_POSTS_BYTES - off;

	memcpy(to, ring->data + off, n);
	if (n < bytes)
		memcpy((char *)to + n, ring->data, bytes - n);
}

uint32_t control_posts_written(const struct control_posts_reader *r)
{
	/* acquire: with what it counts */
	return atomic_load_explicit(&r->ring->head, memory_order_acquire);
}

int control_posts_take(struct control_posts_reader *r, uint32_t until, struct control_packet *p)
{
	const uint32_t there = until - r->tail;
	struct length length;

	if (!there)
		return -EAGAIN;
	if (there > CONTROL_POSTS_BYTES || there < sizeof(length))
		return -EPROTO;
	read_at(r->ring, r->tail, &length, sizeof(length));
	if (length.bytes > there - sizeof(length) ||
	    length.bytes > sizeof(p->header) + sizeof(p->body))
		return -EPROTO;
	read_at(r->ring, r->tail + sizeof(length), p, length.bytes);
	r->tail += (uint32_t)(sizeof(length) + base_align_up(length.bytes, 8));
	/* release: it is copied */
	atomic_store_explicit(&r->ring->tail, r->tail, memory_order_release);
	return control_packet_set(p, length.bytes);
}

bool control_posts_sleep(struct control_posts_reader *r)
{
	atomic_exchange_explicit(&r->ring->asleep, 1, memory_order_seq_cst);
	base_fence_behind_seq_cst();
	if (atomic_load_explicit(&r->ring->head, memory_order_relaxed) == r->tail)
		return true;
	atomic_store_explicit(&r->ring->asleep, 0, memory_order_relaxed);
	return false;
}
