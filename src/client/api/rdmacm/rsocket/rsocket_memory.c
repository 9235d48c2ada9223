/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of stream rsockets' buffers: see rsocket_memory.h. Thread-safe. A child of fork() has its
 * parent's segments, too: it leaves them alone, and makes its own.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/shm.h>
#include <unistd.h>

#include "api/rdmacm/rsocket/rsocket_memory.h"
#include "base/util.h"

/* As many blocks are made as there are, up to these. */
#define MOST_BYTES  (4u << 20)
#define MOST_BLOCKS 64

/* Blocks side by side. Unused blocks are zero. */
struct slab {
	TAILQ_ENTRY(slab) entry;
	pid_t owner;     /* 0: a parent of this process */
	bool is_segment; /* no: there was none to be had */
	uint8_t *memory;
	size_t bytes; /* of a block */
	unsigned n;
	uint64_t used; /* a bit for each */
	uint64_t lost; /* of these: a peer may yet write there */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(slabs, slab) slabs = TAILQ_HEAD_INITIALIZER(slabs); /* full ones last */

/* One thread may hold the mutex while another one forks: the child must find it free. */
static void before_fork(void)
{
	pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&mutex);
}

/* In another PID namespace the child may have its parent's number. */
static void in_child(void)
{
	struct slab *s;

	TAILQ_FOREACH(s, &slabs, entry)
	s->owner = 0;
	after_fork();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

static uint64_t all_of(const struct slab *s)
{
	return UINT64_MAX >> (MOST_BLOCKS - s->n);
}

static bool is_for(const struct slab *s, pid_t owner, size_t bytes)
{
	return s->owner == owner && s->bytes == bytes;
}

/* How many blocks a new one should have. */
static unsigned blocks_for(pid_t owner, size_t bytes)
{
	const struct slab *s;
	size_t n = 0;

	TAILQ_FOREACH(s, &slabs, entry)
	if (is_for(s, owner, bytes))
		n += (size_t)__builtin_popcountll(s->used);
	if (n > MOST_BYTES / bytes)
		n = MOST_BYTES / bytes;
	if (n > MOST_BLOCKS)
		n = MOST_BLOCKS;
	return n ? (unsigned)n : 1;
}

/* The segment is removed at once: it ends with the last process that has it attached. Until then
 * Linux lets peers attach it by its identifier. */
static void *get_segment(size_t bytes)
{
	const int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
	void *p;

	if (id < 0)
		return NULL;
	p = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	return p == (void *)-1 ? NULL : p;
}

static struct slab *make(pid_t owner, size_t bytes)
{
	struct slab *s = calloc(1, sizeof(*s));
	void *memory;

	if (!s)
		return NULL;
	*s = (struct slab){ .owner = owner, .bytes = bytes, .n = blocks_for(owner, bytes) };
	memory = get_segment(s->n * bytes);
	s->is_segment = memory != NULL;
	if (!memory && posix_memalign(&memory, (size_t)sysconf(_SC_PAGESIZE), s->n * bytes)) {
		free(s);
		return NULL;
	}
	/* registration tells a segment from other memory only by pages that are present */
	memset(memory, 0, s->n * bytes);
	s->memory = memory;
	TAILQ_INSERT_HEAD(&slabs, s, entry);
	return s;
}

static struct slab *find(pid_t owner, size_t bytes)
{
	struct slab *s;

	TAILQ_FOREACH(s, &slabs, entry)
	if (is_for(s, owner, bytes) && s->used != all_of(s))
		return s;
	return make(owner, bytes);
}

static void *take(struct slab *s)
{
	const unsigned i = (unsigned)__builtin_ctzll(~s->used);

	s->used |= 1ull << i;
	if (s->used == all_of(s)) {
		TAILQ_REMOVE(&slabs, s, entry);
		TAILQ_INSERT_TAIL(&slabs, s, entry);
	}
	return s->memory + i * s->bytes;
}

void *rsocket_memory_get(size_t bytes)
{
	void *block = NULL;
	struct slab *s;

	bytes = base_align_up(bytes, (size_t)sysconf(_SC_PAGESIZE));
	pthread_mutex_lock(&mutex);
	s = find(getpid(), bytes);
	if (s)
		block = take(s);
	pthread_mutex_unlock(&mutex);
	return block;
}

static void release(struct slab *s)
{
	TAILQ_REMOVE(&slabs, s, entry);
	if (s->is_segment)
		shmdt(s->memory);
	else
		free(s->memory);
	free(s);
}

/* One that nobody uses is kept, the last one of all: each that is made is another segment to peers,
 * which must attach it. */
static void keep(struct slab *s)
{
	static struct slab *kept;
	struct slab *other;

	TAILQ_FOREACH(other, &slabs, entry)
	if (other == kept && other != s && !other->used) {
		release(other);
		break;
	}
	kept = s;
}

static void give_back(struct slab *s, uint8_t *block, bool is_quiet)
{
	const uint64_t bit = 1ull << (size_t)(block - s->memory) / s->bytes;
	const bool is_own = s->owner == getpid();

	if (!is_quiet) {
		s->lost |= bit;
	} else {
		if (is_own)
			memset(block, 0, s->bytes);
		s->used &= ~bit;
	}
	/* a peer writes to a segment where it has attached it, but to other memory here */
	if (s->used == s->lost && (s->lost ? s->is_segment : !is_own)) {
		release(s);
		return;
	}
	TAILQ_REMOVE(&slabs, s, entry);
	if (s->used == all_of(s))
		TAILQ_INSERT_TAIL(&slabs, s, entry);
	else
		TAILQ_INSERT_HEAD(&slabs, s, entry);
	if (!s->used)
		keep(s);
}

void rsocket_memory_put(void *block, bool is_quiet)
{
	uint8_t *p = block;
	struct slab *s;

	pthread_mutex_lock(&mutex);
	TAILQ_FOREACH(s, &slabs, entry)
	if (p >= s->memory && p < s->memory + s->n * s->bytes) {
		give_back(s, p, is_quiet);
		break;
	}
	pthread_mutex_unlock(&mutex);
}
