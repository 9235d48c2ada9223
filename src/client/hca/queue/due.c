/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which completion queues of a channel have events: see due.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/util.h"
#include "hca/queue/cq.h"
#include "hca/queue/due.h"

static bool is_notified(const struct hca_cq *cq)
{
	/* acquire: pairs with the release in shm_cq_add_event() */
	return atomic_load_explicit(&cq->shm->notified, memory_order_acquire);
}

static struct hca_due_word *word_of(struct hca_due *d, const struct hca_cq *cq)
{
	return &d->word[cq->id / 64 - d->first];
}

static uint64_t bit_of(const struct hca_cq *cq)
{
	return 1ull << cq->id % 64;
}

/* ---- the heap ---- */

/* Puts it where it belongs, at that place or before or behind it, where there is none. */
static void put(struct hca_due *d, uint32_t at, struct hca_due_cq it)
{
	uint32_t next;

	for (; at && it.since_ns < d->heap[(at - 1) / 2].since_ns; at = (at - 1) / 2)
		d->heap[at] = d->heap[(at - 1) / 2];
	while ((next = 2 * at + 1) < d->n_heap) {
		if (next + 1 < d->n_heap && d->heap[next + 1].since_ns < d->heap[next].since_ns)
			next++;
		if (it.since_ns <= d->heap[next].since_ns)
			break;
		d->heap[at] = d->heap[next];
		at = next;
	}
	d->heap[at] = it;
}

static void put_in(struct hca_due *d, struct hca_cq *cq, uint64_t since_ns)
{
	word_of(d, cq)->found |= bit_of(cq);
	put(d, d->n_heap++, (struct hca_due_cq){ since_ns, cq });
}

static void take_out(struct hca_due *d, uint32_t at)
{
	const struct hca_cq *cq = d->heap[at].cq;

	word_of(d, cq)->found &= ~bit_of(cq);
	if (at < --d->n_heap)
		put(d, at, d->heap[d->n_heap]);
}

static uint32_t place_of(const struct hca_due *d, const struct hca_cq *cq)
{
	uint32_t at = 0;

	while (d->heap[at].cq != cq)
		at++;
	return at;
}

/* ---- the queues of the channel ---- */

static struct hca_cq *find(const struct hca_due *d, uint32_t id)
{
	struct base_hash_node *node = base_hash_first(&d->by_id, id);

	return node ? container_of(node, struct hca_cq, due_node) : NULL;
}

/* Has words up to that of the queue. */
static int cover(struct hca_due *d, uint32_t id)
{
	const uint32_t at = id / 64, last = d->first + d->n;
	const uint32_t first = d->n && d->first < at ? d->first : at;
	const uint32_t end = d->n && last > at ? last : at + 1;
	struct hca_due_word *word;

	if (end - first == d->n)
		return 0;
	word = calloc(end - first, sizeof(*word));
	if (!word)
		return -ENOMEM;
	if (d->n)
		memcpy(word + (d->first - first), d->word, d->n * sizeof(*word));
	free(d->word);
	d->word = word;
	d->first = first;
	d->n = end - first;
	return 0;
}

int hca_due_enter(struct hca_due *d, struct hca_cq *cq)
{
	int ret = cover(d, cq->id);

	if (!ret)
		ret = base_array_reserve(&d->heap, &d->room, d->by_id.n + 1);
	if (!ret)
		ret = base_hash_add(&d->by_id, &cq->due_node, cq->id);
	if (!ret)
		word_of(d, cq)->mine |= bit_of(cq);
	return ret;
}

void hca_due_leave(struct hca_due *d, struct hca_cq *cq)
{
	struct hca_due_word *word = word_of(d, cq);

	base_hash_remove(&d->by_id, &cq->due_node);
	word->mine &= ~bit_of(cq);
	if (word->found & bit_of(cq))
		take_out(d, place_of(d, cq));
}

void hca_due_fini(struct hca_due *d)
{
	base_hash_fini(&d->by_id);
	free(d->word);
	free(d->heap);
}

/* ---- events ---- */

/* It has no event left; unless it has one by now. */
static void clear_bit(struct hca_due *d, const struct hca_cq *cq)
{
	/* seq_cst: before the look; pairs with shm_cq_add_event() */
	atomic_fetch_and_explicit(&d->events[cq->id / 64].bits, ~bit_of(cq), memory_order_seq_cst);
	if (atomic_load_explicit(&cq->shm->notified, memory_order_seq_cst))
		shm_cq_events_set(&d->events[cq->id / 64], cq->id);
}

static void note(struct hca_due *d, struct hca_cq *cq)
{
	if (!is_notified(cq)) {
		clear_bit(d, cq);
		return;
	}
	put_in(d, cq, atomic_load_explicit(&cq->shm->notified_ns, memory_order_relaxed));
}

/* Finds what has come since the last look. */
static void look(struct hca_due *d)
{
	for (uint32_t i = 0; i < d->n; i++) {
		/* acquire: pairs with the release in shm_cq_events_set() */
		uint64_t bits =
		        atomic_load_explicit(&d->events[d->first + i].bits, memory_order_acquire);

		for (bits &= d->word[i].mine & ~d->word[i].found; bits; bits &= bits - 1)
			note(d, find(d, (d->first + i) * 64 + (uint32_t)__builtin_ctzll(bits)));
	}
}

struct hca_cq *hca_due_first(struct hca_due *d)
{
	look(d);
	return d->n_heap ? d->heap[0].cq : NULL;
}

void hca_due_take(struct hca_due *d)
{
	struct hca_cq *cq = d->heap[0].cq;

	take_out(d, 0);
	atomic_store_explicit(&cq->shm->notified_ns, base_now_ns(), memory_order_relaxed);
	if (atomic_fetch_sub_explicit(&cq->shm->notified, 1, memory_order_relaxed) == 1)
		clear_bit(d, cq);
}
