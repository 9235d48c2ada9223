/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of stream rsockets' buffers: see rsocket_memory.h. Thread-safe.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "api/rdmacm/rsocket/rsocket_memory.h"
#include "base/util.h"

/* As many blocks are made as there are, up to these. */
#define MOST_BYTES  (4u << 20)
#define MOST_BLOCKS 64

/* Blocks side by side. What is not used is zero. */
struct slab {
	TAILQ_ENTRY(slab) entry;
	struct ibv_pd *pd;
	struct ibv_mr *mr; /* NULL: it could not be registered; then each rsocket has to ask */
	uint8_t *memory;
	size_t bytes; /* of a block */
	unsigned n;
	uint64_t used; /* a bit for each */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(slabs, slab) slabs = TAILQ_HEAD_INITIALIZER(slabs); /* full ones last */

static uint64_t all_of(const struct slab *s)
{
	return UINT64_MAX >> (MOST_BLOCKS - s->n);
}

static bool is_for(const struct slab *s, const struct ibv_pd *pd, size_t bytes)
{
	return s->pd == pd && s->bytes == bytes;
}

static unsigned count(const struct ibv_pd *pd, size_t bytes)
{
	const struct slab *s;
	unsigned n = 0;

	TAILQ_FOREACH(s, &slabs, entry)
	if (is_for(s, pd, bytes))
		n += (unsigned)__builtin_popcountll(s->used);
	return n;
}

static struct slab *make(struct ibv_pd *pd, size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct slab *s = calloc(1, sizeof(*s));
	void *memory;

	if (!s)
		return NULL;
	*s = (struct slab){ .pd = pd, .bytes = bytes, .n = count(pd, bytes) };
	if (s->n > MOST_BYTES / bytes)
		s->n = (unsigned)(MOST_BYTES / bytes);
	if (s->n > MOST_BLOCKS)
		s->n = MOST_BLOCKS;
	if (!s->n)
		s->n = 1;
	if (posix_memalign(&memory, page, s->n * bytes)) {
		free(s);
		return NULL;
	}
	s->memory = memory;
	memset(memory, 0, s->n * bytes); /* only pages that are there can be moved */
	s->mr = ibv_reg_mr(pd, memory, s->n * bytes, IBV_ACCESS_LOCAL_WRITE);
	TAILQ_INSERT_HEAD(&slabs, s, entry);
	return s;
}

static struct slab *find(struct ibv_pd *pd, size_t bytes)
{
	struct slab *s;

	TAILQ_FOREACH(s, &slabs, entry)
	if (is_for(s, pd, bytes) && s->used != all_of(s))
		return s;
	return make(pd, bytes);
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

void *rsocket_memory_get(struct ibv_pd *pd, size_t bytes)
{
	void *block = NULL;
	struct slab *s;

	bytes = base_align_up(bytes, (size_t)sysconf(_SC_PAGESIZE));
	pthread_mutex_lock(&mutex);
	s = find(pd, bytes);
	if (s)
		block = take(s);
	pthread_mutex_unlock(&mutex);
	return block;
}

static void give_back(struct slab *s, uint8_t *block)
{
	memset(block, 0, s->bytes);
	s->used &= ~(1ull << (size_t)(block - s->memory) / s->bytes);
	TAILQ_REMOVE(&slabs, s, entry);
	if (s->used) {
		TAILQ_INSERT_HEAD(&slabs, s, entry);
		return;
	}
	if (s->mr)
		ibv_dereg_mr(s->mr);
	free(s->memory);
	free(s);
}

void rsocket_memory_put(void *block)
{
	uint8_t *p = block;
	struct slab *s;

	pthread_mutex_lock(&mutex);
	TAILQ_FOREACH(s, &slabs, entry)
	if (p >= s->memory && p < s->memory + s->n * s->bytes) {
		give_back(s, p);
		break;
	}
	pthread_mutex_unlock(&mutex);
}
