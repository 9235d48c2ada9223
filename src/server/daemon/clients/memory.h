/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shared memory that queue pairs have: receive rings and payload memory. Memory whose holder is
 * gone retires: it is freed once nobody uses it any more.
 *
 *  - A ring is used while a live sender is just filling a slot of it. Its slots are closed one by
 *    one; if such a sender was met, it is looked at again later.
 *  - Payload memory is used while an unread arrival lies in it. Nobody counts these: a mark-and-
 *    sweep finds them. A pass walks over the unread arrivals of all rings once, marks the pages
 * that they lie in, and then frees all memory without a mark that had retired when the pass began.
 *    Memory with a mark is looked at again later.
 *  - Memory of keys is used while a live queue pair says that it deals with one that is gone: its
 *    thread may just be writing to keys that it found before (hca_exchange_begin()). Such words are
 *    noted; once each of them is another one, the memory is freed that had retired before.
 *
 * If there is no payload memory left, that of senders that are not just posting retires, too. The
 * lease in their records (enum shm_lease) tells them.
 *
 * Small pieces that are not used any more serve the next ones of their size: while connections come
 * and go, the system is not asked for their pages again and again. A piece that nobody has wanted
 * for a second is freed.
 *
 * All of that is done in slices (chores.h), and looks that were in vain become ever seldomer. It
 * costs what is there: unread arrivals, and pages that were written.
 */
#ifndef DAEMON_MEMORY_H
#define DAEMON_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/clients/pages.h"
#include "daemon/clients/unowned.h"
#include "daemon/core/chores.h"
#include "shm/extent.h"
#include "shm/region.h"
#include "shm/ring.h"

/* A client that asks for memory when there is none; all zero at first. */
struct daemon_memory_want {
	unsigned looks;         /* how often all that had retired was looked at for it */
	uint64_t refused_until; /* that was in vain: it is not repeated before, ns */
};

/* The users of memory: the queue pairs know them. */
struct daemon_memory_users {
	/* Whether the queue pair with this index may still be filling a slot: it lives and, unless
	 * @qpn is 0, says that it deals with the queue pair of this number. */
	bool (*may_fill)(void *arg, uint16_t index, uint32_t qpn);
	/* The ring of the first live queue pair whose index is *@index or more, which becomes
	 * *@index. NULL: there is none. */
	struct shm_ring *(*next_ring)(void *arg, uint32_t *index, uint8_t *shift);
	/* The number of the live queue pair with this index; 0: there is none. */
	uint32_t (*qpn_of)(void *arg, uint32_t index);
	/* Retires payload memory that the queue pair with index *@index, or one behind it, does not
	 * use just now; *@index becomes the next index to look at. Returns the bytes; 0: it has
	 * come to the end. */
	uint64_t (*revoke)(void *arg, uint32_t *index);
	/* Retires some of what lies reserved and nobody uses yet. False: there is no more. */
	bool (*take_back)(void *arg);
	void *arg;
};

TAILQ_HEAD(daemon_retired_list, daemon_retired);

#define DAEMON_SPARE_PAGES 4 /* of a piece that is kept, at most */

/* Pieces that nobody uses, by their pages. */
struct daemon_spares {
	struct {
		struct daemon_retired_list list; /* the last one in is the first one out */
		unsigned n, unwanted; /* so many at least were there all the time lately */
	} of[DAEMON_SPARE_PAGES];
	uint64_t bytes;
};

#define DAEMON_MAX_DEALS 64

/* The words by which live queue pairs say that they deal with queue pairs that are gone. */
struct daemon_deals {
	bool walks;     /* over all queue pairs, to note such words */
	uint32_t index; /* of the next one */
	unsigned n;     /* more than there is room for: it walks again later */
	struct {
		const _Atomic uint32_t *word;
		uint32_t value;
	} noted[DAEMON_MAX_DEALS];
};

struct daemon_memory {
	struct shm_region *region;
	struct daemon_chores *chores;
	struct daemon_memory_users users;
	uint16_t generation; /* of the newest ring */
	uint32_t n_placed;   /* rings that were made */
	struct shm_extents rings, payloads;
	/* rings: being closed; live senders are filling slots of it */
	struct daemon_retired_list closing, filling;
	/* closed rings in which the owner has made claims void: the first list waits for the next
	 * walk over all senders, the second for the walk under way. The walk notes, by index, the
	 * queue pairs that senders deal with */
	struct daemon_retired_list taken, taken_now;
	uint64_t targets[SHM_MAX_QPS / 64];
	uint32_t target_index; /* of the next sender */
	/* payload memory: waits for the next pass; of this pass; has a mark of the last one */
	struct daemon_retired_list retired, passing, unread;
	/* memory of keys: waits for the next look at which queue pairs deal with each other; for
	 * the end of the dealings that were noted at the last look */
	struct daemon_retired_list keys, keys_noted;
	uint64_t keys_bytes;                        /* of both */
	uint64_t reserved_rings, reserved_payloads; /* bytes of what lies reserved (reserve.h) */
	struct daemon_deals deals;
	struct daemon_retired_list clearing;              /* all kinds: nobody uses it any more */
	struct daemon_spares spare_rings, spare_payloads; /* nor these, but somebody may soon */
	struct base_timer tidy;
	struct daemon_chore close, look_taken, pass, free_keys, clear, revoke;
	struct {
		enum { DAEMON_PASS_NONE, DAEMON_PASS_MARKS, DAEMON_PASS_SWEEPS } step;
		uint64_t *marks;     /* a bit for each page of payload memory */
		uint32_t index, qpn; /* of the ring that it walks over; qpn 0: of none yet */
		struct shm_ring_walk walk;
	} now;
	/* the present search for memory that idle senders have */
	uint32_t revoke_index;
	bool revoke_wrapped; /* it has begun with the first queue pair again */
	uint64_t revoked;    /* bytes */
	struct daemon_unowned unowned;
	struct base_timer look;
	uint64_t look_ns;         /* when it looks again */
	bool is_limited, is_full; /* memory of the daemon itself (base/memory.h) */
	uint64_t room_until;      /* so long is_full holds */
	uint64_t room_used;       /* bytes that were given since it was looked at */
	bool stopping; /* nothing is freed any more: processes may use what they have mapped until
	                  they end */
};

void daemon_memory_init(struct daemon_memory *m, struct shm_region *region,
                        struct daemon_chores *chores, const struct daemon_memory_users *users);

/* A generation that no ring at the same place has had, until they have gone round (shm/ring.h). */
uint16_t daemon_memory_generation(struct daemon_memory *m);

/* Memory for a ring with (1 << @shift) positions: its offset, or 0. Any multiple of 128 bytes. */
uint64_t daemon_memory_ring(struct daemon_memory *m, uint8_t shift);

/* Payload memory: its offset, or 0. */
uint64_t daemon_memory_payload(struct daemon_memory *m, uint64_t bytes);

/* Bytes of rings, or of payload memory, that are in use or were lately: no spare ones, and none
 * that lie reserved. */
uint64_t daemon_memory_in_use(const struct daemon_memory *m, bool rings);

/*
 * There was no memory for a ring, or for payloads. -EAGAIN: some is being freed, the client asks
 * again; or -ENOMEM: nobody has memory that is not used.
 */
int daemon_memory_none(struct daemon_memory *m, bool is_ring, struct daemon_memory_want *want);

/* The ring at @off. */
static inline struct shm_ring *daemon_memory_ring_at(const struct daemon_memory *m, uint64_t off)
{
	return shm_data_at(m->region, off);
}

/* Closes the ring; frees it once nobody is filling a slot of it. @qpn: of the queue pair whose ring
 * it is; 0: it is shared. */
void daemon_memory_retire_ring(struct daemon_memory *m, uint64_t off, uint8_t shift, uint32_t qpn);

/* Frees payload memory once no unread arrival lies in it. */
void daemon_memory_retire_payload(struct daemon_memory *m, uint64_t off);

/* Frees payload memory that held keys, once no process writes there any more that knew them from
 * queue pairs that are gone now. */
void daemon_memory_retire_keys(struct daemon_memory *m, uint64_t off);

/* Frees payload memory in which no arrival ever lay: without a pass over all rings. */
void daemon_memory_free_payload(struct daemon_memory *m, uint64_t off);

#endif
