/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns to READ: see readers.h.
 */
#include "shm/readers.h"

/* At the start few queue pairs may READ: nobody knows how much fits. Their number doubles until
 * something is lost. */
#define FIRST 4
/* After that it grows by one each time that so many times as many parts have been asked for. */
#define GROWS_AFTER 4

static uint32_t load(const _Atomic uint32_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void store(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint32_t most_of(const struct shm_readers *r)
{
	const uint32_t most = load(&r->most);

	return !most                      ? FIRST
	       : most < SHM_READERS_LEAST ? SHM_READERS_LEAST
	       : most < SHM_READERS       ? most
	                                  : SHM_READERS;
}

/* More may read, if nothing was lost for long enough. */
static void count_part(struct shm_readers *r)
{
	const uint32_t parts = atomic_fetch_add_explicit(&r->parts, 1, memory_order_relaxed) + 1,
	               most = most_of(r);
	const bool starts = !load(&r->shrank);

	if (parts - load(&r->grew) < (starts ? most : GROWS_AFTER * most))
		return;
	store(&r->grew, parts);
	store(&r->most, starts ? 2 * most : most + 1);
}

void shm_readers_lose(struct shm_readers *r)
{
	const uint32_t parts = load(&r->parts), most = most_of(r);

	/* the responses that are lost now may be of the READs that were too many before */
	if (load(&r->shrank) && parts - load(&r->shrank) < most)
		return;
	store(&r->shrank, parts ? parts : 1);
	store(&r->grew, parts);
	store(&r->most, most / 2);
}

static bool is_free(uint64_t place, uint32_t ms)
{
	return !place || ms - (uint32_t)(place >> 32) >= SHM_READERS_MS;
}

/* Two may take one place at one time: then one of them gets it. */
static bool take(_Atomic uint64_t *place, uint32_t qpn, uint32_t ms)
{
	uint64_t old = atomic_load_explicit(place, memory_order_relaxed);

	return (is_free(old, ms) || (uint32_t)old == qpn) &&
	       atomic_compare_exchange_strong_explicit(place, &old, (uint64_t)ms << 32 | qpn,
	                                               memory_order_relaxed, memory_order_relaxed);
}

/* Whether the turn goes on. */
static bool keeps(struct shm_readers *r, struct shm_reader *reader, uint32_t qpn, uint32_t ms)
{
	if (!reader->place || reader->place > most_of(r) ||
	    !take(&r->place[reader->place - 1], qpn, ms))
		return false;
	return reader->parts < SHM_READERS_PARTS || reader->refused == load(&r->refused);
}

bool shm_readers_ask(struct shm_readers *r, struct shm_reader *reader, uint32_t qpn, uint32_t ms)
{
	const uint32_t most = most_of(r);
	bool was_reading = reader->place;

	if (keeps(r, reader, qpn, ms)) {
		reader->parts++;
		count_part(r);
		return true;
	}
	shm_readers_leave(r, reader, qpn);
	for (uint32_t i = 0; i < most && !was_reading; i++) {
		if (!take(&r->place[i], qpn, ms))
			continue;
		*reader = (struct shm_reader){ i + 1, 1, load(&r->refused) };
		count_part(r);
		return true;
	}
	atomic_fetch_add_explicit(&r->refused, 1, memory_order_relaxed);
	return false;
}

void shm_readers_leave(struct shm_readers *r, struct shm_reader *reader, uint32_t qpn)
{
	_Atomic uint64_t *place = &r->place[(reader->place - 1) % SHM_READERS];
	uint64_t old = atomic_load_explicit(place, memory_order_relaxed);

	if (reader->place && (uint32_t)old == qpn)
		atomic_compare_exchange_strong_explicit(place, &old, 0, memory_order_relaxed,
		                                        memory_order_relaxed);
	reader->place = 0;
}

bool shm_readers_have_room(const struct shm_readers *r, uint32_t ms)
{
	const uint32_t most = most_of(r);

	for (uint32_t i = 0; i < most; i++)
		if (is_free(atomic_load_explicit(&r->place[i], memory_order_relaxed), ms))
			return true;
	return false;
}
