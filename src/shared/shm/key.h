/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Looking up the keys of a process, and writing one's own (shm/connection.h). Any thread of any
 * process may look up; one thread at a time writes.
 */
#ifndef SHM_KEY_H
#define SHM_KEY_H

#include "base/fast.h"
#include "shm/connection.h"
#include "shm/region.h"

/* The place of @key in the keys at @keys_off; NULL: there is no such chunk. */
static inline struct shm_key *shm_key_at(const struct shm_region *r, uint64_t keys_off,
                                         uint32_t key)
{
	const struct shm_keys *keys = shm_payload_at(r, keys_off, sizeof(*keys));
	uint32_t index = key >> 8;
	struct shm_key *chunk;
	uint64_t off;

	if (!keys || index >= SHM_KEY_CHUNK * SHM_KEY_CHUNKS)
		return NULL;
	/* acquire: pairs with the release after the chunk was added */
	off = atomic_load_explicit((_Atomic uint64_t *)&keys->chunk_off[index / SHM_KEY_CHUNK],
	                           memory_order_acquire);
	/* others could write there: an offset that is no multiple is no key's place */
	chunk = off % sizeof(*chunk) ? NULL
	                             : shm_payload_at(r, off, SHM_KEY_CHUNK * sizeof(*chunk));
	return chunk ? &chunk[index % SHM_KEY_CHUNK] : NULL;
}

/* The memory that a key gives access to. */
struct shm_reach {
	uint64_t iova, length, start;
	uint32_t access, domain, qpn;
};

/* Copies what stands at @k behind @key. False: nothing. */
static inline bool shm_key_read_at(struct shm_key *k, uint32_t key, struct shm_reach *reach)
{
	/* acquire: pairs with the release in shm_key_write() */
	if (!k || !key || atomic_load_explicit(&k->key, memory_order_acquire) != key)
		return false;
	reach->iova = atomic_load_explicit(&k->iova, memory_order_relaxed);
	reach->length = atomic_load_explicit(&k->length, memory_order_relaxed);
	reach->start = atomic_load_explicit(&k->start, memory_order_relaxed);
	reach->access = atomic_load_explicit(&k->access, memory_order_relaxed);
	reach->domain = atomic_load_explicit(&k->domain, memory_order_relaxed);
	reach->qpn = atomic_load_explicit(&k->qpn, memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire); /* the fields before the second look */
	return atomic_load_explicit(&k->key, memory_order_relaxed) == key;
}

/* Likewise, of the keys at @keys_off. */
static inline bool shm_key_read(const struct shm_region *r, uint64_t keys_off, uint32_t key,
                                struct shm_reach *reach)
{
	return shm_key_read_at(shm_key_at(r, keys_off, key), key, reach);
}

/*
 * Adds @user, the number of a queue pair of the caller's process, to the users of what stands at
 * @k. Returns the serial of that. The caller reads the key afterwards, again if it has before, and
 * compares the serial behind it: then the key's owner waits for the queue pair once it is gone.
 */
static inline uint32_t shm_key_join(struct shm_key *k, uint32_t user)
{
	/* acquire: this key's users are counted from none before; pairs with shm_key_write() */
	uint32_t serial = atomic_load_explicit(&k->serial, memory_order_acquire);

	for (unsigned i = 0; i < SHM_KEY_USERS; i++) {
		/* seq_cst: before the look at the key; pairs with shm_key_remove() */
		uint32_t was = atomic_load_explicit(&k->users[i], memory_order_seq_cst);

		if (!was && atomic_compare_exchange_strong_explicit(&k->users[i], &was, user,
		                                                    memory_order_seq_cst,
		                                                    memory_order_seq_cst))
			break;
		if (was == user || was == SHM_KEY_MANY)
			break;
		if (i + 1 == SHM_KEY_USERS)
			atomic_store_explicit(&k->users[i], SHM_KEY_MANY, memory_order_seq_cst);
	}
	atomic_thread_fence(memory_order_seq_cst);
	return serial;
}

/* Has @key stand for @reach. @serial: none that stood here before. */
static inline void shm_key_write(struct shm_key *k, uint32_t key, uint32_t serial,
                                 const struct shm_reach *reach)
{
	atomic_store_explicit(&k->key, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); /* no key before the new fields */
	for (unsigned i = 0; i < SHM_KEY_USERS; i++)
		atomic_store_explicit(&k->users[i], 0, memory_order_relaxed);
	/* release: pairs with the acquire in shm_key_join() */
	atomic_store_explicit(&k->serial, serial, memory_order_release);
	atomic_store_explicit(&k->iova, reach->iova, memory_order_relaxed);
	atomic_store_explicit(&k->length, reach->length, memory_order_relaxed);
	atomic_store_explicit(&k->start, reach->start, memory_order_relaxed);
	atomic_store_explicit(&k->access, reach->access, memory_order_relaxed);
	atomic_store_explicit(&k->domain, reach->domain, memory_order_relaxed);
	atomic_store_explicit(&k->qpn, reach->qpn, memory_order_relaxed);
	/* release: pairs with the acquire in shm_key_read() */
	atomic_store_explicit(&k->key, key, memory_order_release);
}

/* Nobody finds @key at @k any more; @users: queue pairs that may have found it. It may be gone
 * already. */
static inline void shm_key_remove(struct shm_key *k, uint32_t key, uint32_t users[SHM_KEY_USERS])
{
	/* seq_cst: before the look at the users, and at threads at work (hca_connections_wait());
	 * also if a peer has just invalidated it */
	atomic_compare_exchange_strong_explicit(&k->key, &key, 0, memory_order_seq_cst,
	                                        memory_order_seq_cst);
	base_fence_behind_seq_cst(); /* pairs with shm_key_join() */
	for (unsigned i = 0; i < SHM_KEY_USERS; i++)
		users[i] = atomic_load_explicit(&k->users[i], memory_order_seq_cst);
}

/* *@at: the address of @length bytes that @reach calls @addr. False: they are not all there. */
static inline bool shm_reach_addr(const struct shm_reach *reach, uint64_t addr, uint64_t length,
                                  uint64_t *at)
{
	uint64_t offset = addr - reach->iova;

	if (addr < reach->iova || offset > reach->length || reach->length - offset < length)
		return false;
	*at = reach->start + offset;
	return true;
}

#endif
