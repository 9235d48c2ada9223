/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rings and payload memory, in use and retired: see memory.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/util.h"
#include "daemon/clients/memory.h"
#include "shm/connection.h"

#define PAGE        DAEMON_PAGE
#define NS_PER_MS   1000000ull
#define LOOK_NS     (50 * NS_PER_MS) /* at first; seldomer while it is in vain */
#define LOOK_MAX_NS (2000 * NS_PER_MS)
#define REFUSE_NS   (100 * NS_PER_MS)

/* Between two looks at what memory the daemon has left: time, or what was given. */
#define ROOM_NS    (5 * NS_PER_MS)
#define ROOM_BYTES (128ull << 10)

#define SPARE_BYTES (1ull << 20)       /* of each kind */
#define SPARE_NS    (1000 * NS_PER_MS) /* pieces that nobody wants for so long are freed */

#define REVOKE_BYTES (256ull << 20) /* for one request */
#define MAX_LOOKS    64
#define KEYS_BYTES   (1ull << 30) /* a word keeps no more keys of the dead than that */
#define PIECE        16 /* pages: memory is freed in such pieces if others are still used */

struct daemon_retired {
	TAILQ_ENTRY(daemon_retired) entry;
	bool is_ring; /* else payload */
	uint8_t ring_shift;
	uint64_t off, bytes;
	uint32_t begin;    /* a ring's: it begins so many bytes behind off */
	uint64_t at;       /* bytes that the present step is done with */
	uint64_t data_end; /* a ring's: up to there it has pages */
	unsigned filling;  /* slots that live senders are filling */
	uint32_t qpn;      /* of the queue pair whose ring it is; 0: it is shared */
	bool again;        /* it was looked at before */
	bool taken; /* its owner has made a claim void whose sender may be filling it still */
};

static void spares_init(struct daemon_spares *s)
{
	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; i < DAEMON_SPARE_PAGES; i++)
		TAILQ_INIT(&s->of[i].list);
}

void daemon_memory_init(struct daemon_memory *m, struct shm_region *region,
                        struct daemon_chores *chores, const struct daemon_memory_users *users)
{
	const struct shm_control *control = region->control;

	m->region = region;
	m->chores = chores;
	m->users = *users;
	m->is_limited = base_memory_is_limited();
	TAILQ_INIT(&m->closing);
	TAILQ_INIT(&m->filling);
	TAILQ_INIT(&m->taken);
	TAILQ_INIT(&m->taken_now);
	TAILQ_INIT(&m->retired);
	TAILQ_INIT(&m->passing);
	TAILQ_INIT(&m->unread);
	TAILQ_INIT(&m->keys);
	TAILQ_INIT(&m->keys_noted);
	TAILQ_INIT(&m->clearing);
	spares_init(&m->spare_rings);
	spares_init(&m->spare_payloads);
	shm_extents_init(&m->rings, PAGE, control->rings_off, control->rings_size);
	shm_extents_init(&m->payloads, PAGE, control->payloads_off, control->payloads_size);
	daemon_unowned_init(&m->unowned, region, chores, &m->rings, &m->payloads);
}

/* ---- clearing: pages go back to the system, and read as zero then ---- */

/* Where the next page is that was written, from @off on; @end: there is none before. */
static uint64_t next_data(const struct daemon_memory *m, uint64_t off, uint64_t end)
{
	uint64_t data = daemon_pages_next(m->region, off);

	return data < end ? data : end;
}

static bool clear_one(struct daemon_memory *m, struct daemon_retired *r, uint32_t *budget)
{
	const uint64_t end = r->off + r->bytes;

	while (r->at < r->bytes) {
		uint64_t from;

		if (!daemon_chore_spend(budget, DAEMON_PAGES_SEEK))
			return false;
		from = next_data(m, r->off + r->at, end);
		r->at = from - r->off;
		if (from < end)
			r->at += daemon_pages_free(m->region, from, end - from, budget);
	}
	return true;
}

static bool clear(struct daemon_chore *c, uint32_t *budget)
{
	struct daemon_memory *m = container_of(c, struct daemon_memory, clear);
	struct daemon_retired *r;

	while ((r = TAILQ_FIRST(&m->clearing))) {
		if (!clear_one(m, r, budget))
			return false;
		TAILQ_REMOVE(&m->clearing, r, entry);
		shm_extent_put(r->is_ring ? &m->rings : &m->payloads, r->off);
		free(r);
	}
	return true;
}

static void start_clearing(struct daemon_memory *m, struct daemon_retired *r)
{
	r->at = 0;
	TAILQ_INSERT_TAIL(&m->clearing, r, entry);
	daemon_chore_add(m->chores, &m->clear, clear);
}

/* ---- spare memory ---- */

/* The index of those of so many bytes; DAEMON_SPARE_PAGES: none are kept of that size. */
static unsigned size_of(uint64_t bytes)
{
	uint64_t pages = (bytes + PAGE - 1) / PAGE;

	return pages && pages <= DAEMON_SPARE_PAGES ? (unsigned)pages - 1 : DAEMON_SPARE_PAGES;
}

static struct daemon_spares *spares_for(struct daemon_memory *m, bool rings)
{
	return rings ? &m->spare_rings : &m->spare_payloads;
}

static void remove_spare(struct daemon_spares *s, unsigned size, struct daemon_retired *r)
{
	TAILQ_REMOVE(&s->of[size].list, r, entry);
	s->bytes -= r->bytes;
	if (--s->of[size].n < s->of[size].unwanted)
		s->of[size].unwanted = s->of[size].n;
}

/* Frees those that nobody has wanted; or all. */
static void tidy(struct daemon_memory *m, struct daemon_spares *s, bool all)
{
	for (unsigned size = 0; size < DAEMON_SPARE_PAGES; size++) {
		unsigned n = all ? s->of[size].n : s->of[size].unwanted;

		for (; n; n--) {
			struct daemon_retired *r =
			        TAILQ_LAST(&s->of[size].list, daemon_retired_list);

			remove_spare(s, size, r);
			start_clearing(m, r);
		}
		s->of[size].unwanted = s->of[size].n;
	}
}

static void on_tidy(struct base_timer *t)
{
	struct daemon_memory *m = container_of(t, struct daemon_memory, tidy);

	tidy(m, &m->spare_rings, false);
	tidy(m, &m->spare_payloads, false);
	if (m->spare_rings.bytes || m->spare_payloads.bytes)
		base_timer_set_in(m->chores->timers, &m->tidy, SPARE_NS, on_tidy);
}

static struct shm_ring *ring_of(const struct daemon_memory *m, const struct daemon_retired *r)
{
	return daemon_memory_ring_at(m, r->off + r->begin);
}

/* Nobody uses it any more. */
static void put_away(struct daemon_memory *m, struct daemon_retired *r)
{
	struct daemon_spares *s = spares_for(m, r->is_ring);
	unsigned size = size_of(r->bytes);

	if (size == DAEMON_SPARE_PAGES || s->bytes + r->bytes > SPARE_BYTES) {
		start_clearing(m, r);
		return;
	}
	if (r->is_ring) /* senders look there for what became of their messages */
		memset((void *)ring_of(m, r), 0, sizeof(struct shm_ring));
	TAILQ_INSERT_HEAD(&s->of[size].list, r, entry);
	s->of[size].n++;
	s->bytes += r->bytes;
	if (!base_timer_is_set(&m->tidy))
		base_timer_set_in(m->chores->timers, &m->tidy, SPARE_NS, on_tidy);
}

/* A spare one, cleared; 0: there is none of that size. */
static uint64_t take_spare(struct daemon_memory *m, struct daemon_spares *s, uint64_t bytes)
{
	unsigned size = size_of(bytes);
	struct daemon_retired *r = NULL;
	uint64_t off;

	if (size < DAEMON_SPARE_PAGES)
		r = TAILQ_FIRST(&s->of[size].list);
	if (!r)
		return 0;
	remove_spare(s, size, r);
	off = r->off;
	memset(shm_data_at(m->region, off), 0, r->bytes);
	free(r);
	return off;
}

/* Whether there is memory for what the daemon writes for a client: its cgroup may have a limit. The
 * loop's time stands still while it serves many. */
static bool has_room(struct daemon_memory *m, uint64_t bytes)
{
	uint64_t now = base_timers_now(m->chores->timers);

	m->room_used += bytes;
	if (m->is_limited && (now >= m->room_until || m->room_used > ROOM_BYTES)) {
		m->is_full = !base_memory_left(1);
		m->room_until = now + ROOM_NS;
		m->room_used = 0;
	}
	return !m->is_full;
}

static uint64_t get(struct daemon_memory *m, bool rings, uint64_t bytes)
{
	struct daemon_spares *s = spares_for(m, rings);
	uint64_t off = take_spare(m, s, bytes);

	if (!off && has_room(m, bytes))
		off = shm_extent_get(rings ? &m->rings : &m->payloads, bytes);
	if (!off) /* they are pieces of what is asked for */
		tidy(m, s, true);
	if (off && !shm_data_map(m->region, off, bytes)) {
		shm_extent_put(rings ? &m->rings : &m->payloads, off);
		return 0;
	}
	return off;
}

uint16_t daemon_memory_generation(struct daemon_memory *m)
{
	if (!++m->generation)
		m->generation = 1; /* 0 is what memory has that was never a ring */
	return m->generation;
}

/*
 * Where in its first page a ring of @bytes begins: each elsewhere, as far as its last page has room
 * for. The address in the page says in which few places of a cache a line may be. Were it the same
 * for all rings, a sender to many would have room for the heads, and the next slots, of a few.
 */
static uint64_t place_of(struct daemon_memory *m, uint64_t bytes)
{
	const uint64_t unit = sizeof(struct shm_arrival);
	const uint64_t places = (base_align_up(bytes, PAGE) - bytes) / unit + 1;

	return m->n_placed++ % places * unit;
}

uint64_t daemon_memory_ring(struct daemon_memory *m, uint8_t shift)
{
	const uint64_t bytes = shm_ring_bytes(shift);
	uint64_t off = get(m, true, bytes);

	return off ? off + place_of(m, bytes) : 0;
}

uint64_t daemon_memory_payload(struct daemon_memory *m, uint64_t bytes)
{
	return get(m, false, bytes);
}

uint64_t daemon_memory_in_use(const struct daemon_memory *m, bool rings)
{
	return rings ? m->rings.in_use - m->spare_rings.bytes - m->reserved_rings
	             : m->payloads.in_use - m->spare_payloads.bytes - m->reserved_payloads;
}

/* ---- rings close ---- */

/* Claims at which a ring stays. */
struct claims {
	const struct daemon_memory *m;
	uint32_t qpn; /* by queue pairs that deal with it; 0: by any that lives */
	uint32_t own; /* and by this queue pair, whose ring it was: its process may go on; 0: not */
};

static bool may_fill(void *arg, uint16_t index)
{
	const struct claims *c = arg;

	return (c->own && index == SHM_QP_INDEX(c->own)) ||
	       c->m->users.may_fill(c->m->users.arg, index, c->qpn);
}

/*
 * Closes slots, but those of pages that were never written: they are zero.
 *
 * A claim can name any queue pair, also one that lives for ever. So at the second look the named
 * queue pair must also say that it deals with the ring's owner: by then the words that an honest
 * sender wrote before its claim have long been seen. Claims of a thread of the owner's for a peer
 * (connected_help.c) have long been filled by then.
 */
static bool close_one(struct daemon_memory *m, struct daemon_retired *r, uint32_t *budget)
{
	struct claims claims = { .m = m,
		                 .qpn = r->again ? r->qpn : 0,
		                 .own = r->again ? 0 : r->qpn };
	const struct shm_ring_writers writers = { .is_alive = may_fill, .arg = &claims };
	const uint64_t end = r->begin + shm_ring_bytes(r->ring_shift);
	const uint64_t slots = r->begin + sizeof(struct shm_ring);
	const uint64_t each = sizeof(struct shm_arrival);
	struct shm_ring *ring = ring_of(m, r);

	if (r->at < slots) {
		shm_ring_close_claim(ring, r->ring_shift);
		r->at = slots;
	}
	if (end <= PAGE) /* its head has been written */
		r->data_end = end;
	while (r->at < end && daemon_chore_spend(budget, 1)) {
		uint64_t n;

		if (r->at >= r->data_end) {
			daemon_chore_spend(budget, DAEMON_PAGES_SEEK);
			r->at = next_data(m, r->off + r->at, r->off + end) - r->off;
			r->data_end = (r->at / PAGE + 1) * PAGE;
			continue;
		}
		n = ((r->data_end < end ? r->data_end : end) - r->at) / each;
		daemon_chore_spend(budget, (uint32_t)n);
		r->filling += shm_ring_close(ring, (uint32_t)((r->at - slots) / each), (uint32_t)n,
		                             &writers);
		r->at += n * each;
	}
	return r->at >= end;
}

static void look_again(struct daemon_memory *m);

/* Senders may be filling slots of it. */
static void close_later(struct daemon_memory *m, struct daemon_retired *r)
{
	r->again = true;
	TAILQ_INSERT_TAIL(&m->filling, r, entry);
	look_again(m);
}

/* Notes if the sender says that it deals with a queue pair that is gone. */
static void note_target(struct daemon_memory *m, uint32_t sender)
{
	/* acquire: pairs with the release of a sender that has come to the end of its deliveries */
	uint32_t qpn = IB_QPN_MASK &
	               atomic_load_explicit(
	                       (_Atomic uint32_t *)&shm_sender_at(m->region, sender)->target_qpn,
	                       memory_order_acquire);
	uint32_t index = SHM_QP_INDEX(qpn);

	if (qpn && m->users.qpn_of(m->users.arg, index) != qpn)
		m->targets[index / 64] |= 1ull << (index % 64);
}

/* Of all live senders. True: it is done. */
static bool note_targets(struct daemon_memory *m, uint32_t *budget)
{
	const struct daemon_memory_users *users = &m->users;
	uint8_t shift;

	for (; *budget; m->target_index++) {
		uint32_t from = m->target_index;

		if (!users->next_ring(users->arg, &m->target_index, &shift))
			return true;
		daemon_chore_spend(budget, 1 + (m->target_index - from) / 8);
		note_target(m, m->target_index);
	}
	return false;
}

/* One walk over all senders serves all rings that wait for it. */
static bool look_at_taken(struct daemon_chore *c, uint32_t *budget)
{
	struct daemon_memory *m = container_of(c, struct daemon_memory, look_taken);
	struct daemon_retired *r;

	if (TAILQ_EMPTY(&m->taken_now)) {
		TAILQ_CONCAT(&m->taken_now, &m->taken, entry);
		memset(m->targets, 0, sizeof(m->targets));
		m->target_index = 0;
	}
	if (!note_targets(m, budget))
		return false;
	while ((r = TAILQ_FIRST(&m->taken_now))) {
		uint32_t index = SHM_QP_INDEX(r->qpn);

		if (!daemon_chore_spend(budget, 2))
			return false;
		TAILQ_REMOVE(&m->taken_now, r, entry);
		if (m->targets[index / 64] >> (index % 64) & 1)
			close_later(m, r);
		else
			put_away(m, r);
	}
	if (!TAILQ_EMPTY(&m->taken))
		daemon_chore_add(m->chores, &m->look_taken, look_at_taken);
	return true;
}

static bool close_rings(struct daemon_chore *c, uint32_t *budget)
{
	struct daemon_memory *m = container_of(c, struct daemon_memory, close);
	struct daemon_retired *r;

	while ((r = TAILQ_FIRST(&m->closing))) {
		if (!close_one(m, r, budget))
			return false;
		TAILQ_REMOVE(&m->closing, r, entry);
		if (r->filling) {
			close_later(m, r);
		} else if (r->taken) {
			TAILQ_INSERT_TAIL(&m->taken, r, entry);
			daemon_chore_add(m->chores, &m->look_taken, look_at_taken);
		} else {
			put_away(m, r);
		}
	}
	return true;
}

static void start_closing(struct daemon_memory *m, struct daemon_retired *r)
{
	r->at = r->data_end = 0;
	r->filling = 0;
	TAILQ_INSERT_TAIL(&m->closing, r, entry);
	daemon_chore_add(m->chores, &m->close, close_rings);
}

/* ---- payload memory: mark and sweep ---- */

/* A message begins where a page does, and takes a few in a row; only a hostile one does not. */
static void mark(struct daemon_memory *m, uint64_t off, uint32_t bytes)
{
	const struct shm_control *c = m->region->control;
	const uint64_t all = c->payloads_size / PAGE;
	uint64_t page = (off - c->payloads_off) / PAGE, end;

	if (off < c->payloads_off || page >= all)
		return;
	end = page + 1 + (bytes < SHM_PAYLOAD_MOST ? bytes : SHM_PAYLOAD_MOST) / PAGE;
	for (; page < end && page < all; page++)
		m->now.marks[page / 64] |= 1ull << (page % 64);
}

/* Whether an unread arrival lies in the piece that begins @from bytes into it. */
static bool is_marked(const struct daemon_memory *m, const struct daemon_retired *r, uint64_t from)
{
	uint64_t page = (r->off + from - m->region->control->payloads_off) / PAGE;
	uint64_t end = page + (r->bytes - from < PIECE * PAGE ? (r->bytes - from) / PAGE : PIECE);

	for (; page < end; page++)
		if (m->now.marks[page / 64] & 1ull << (page % 64))
			return true;
	return false;
}

/* Marks what the arrivals of the present ring lie in. True: it has come to their end. */
static bool mark_ring(struct daemon_memory *m, uint32_t *budget)
{
	const struct shm_arrival *slot;
	uint64_t s;

	while (daemon_chore_spend(budget, 1)) {
		slot = shm_ring_walk_next(&m->now.walk, &s);
		if (!slot)
			return true;
		/* a receiver that has taken an arrival may be reading its message; memory that a
		 * claim seems to mark while it is being filled is looked at again */
		if (shm_slot_kind(s) != SHM_SLOT_VOID && (slot->flags & SHM_ARRIVAL_PAYLOAD))
			mark(m, slot->payload_off, slot->length);
	}
	return false;
}

/* True: it has walked over all rings. */
static bool mark_all(struct daemon_memory *m, uint32_t *budget)
{
	const struct daemon_memory_users *users = &m->users;
	struct shm_ring *ring;
	uint8_t shift;

	while (*budget) {
		uint32_t from = m->now.index;

		/* a queue pair may have gone while the pass paused, with its ring */
		if (m->now.qpn && users->qpn_of(users->arg, m->now.index) == m->now.qpn) {
			if (!mark_ring(m, budget))
				return false;
			m->now.index++;
		}
		m->now.qpn = 0;
		ring = users->next_ring(users->arg, &m->now.index, &shift);
		if (!ring)
			return true;
		daemon_chore_spend(budget, 2 + (m->now.index - from) / 8);
		m->now.qpn = users->qpn_of(users->arg, m->now.index);
		shm_ring_walk_begin(&m->now.walk, ring, shift);
	}
	return false;
}

/* Makes two of @r, the first of @bytes. The second one, or NULL: there is no memory for it. */
static struct daemon_retired *split(struct daemon_memory *m, struct daemon_retired *r,
                                    uint64_t bytes)
{
	struct daemon_retired *rest = malloc(sizeof(*rest));

	if (!rest)
		return NULL;
	*rest = (struct daemon_retired){ .off = r->off + bytes, .bytes = r->bytes - bytes };
	r->bytes = bytes;
	shm_extent_split(&m->payloads, r->off, bytes);
	return rest;
}

/* Frees the pieces of @r that have no mark, and keeps the others. */
static void sweep_one(struct daemon_memory *m, struct daemon_retired *r)
{
	while (r) {
		bool marked = is_marked(m, r, 0);
		struct daemon_retired *rest = NULL;
		uint64_t bytes = PIECE * PAGE;

		while (bytes < r->bytes && is_marked(m, r, bytes) == marked)
			bytes += PIECE * PAGE;
		if (bytes < r->bytes) {
			rest = split(m, r, bytes);
			marked = marked || !rest;
		}
		if (marked)
			TAILQ_INSERT_TAIL(&m->unread, r, entry);
		else
			put_away(m, r);
		r = rest;
	}
}

/* True: it is done. */
static bool sweep(struct daemon_memory *m, uint32_t *budget)
{
	struct daemon_retired *r;

	while ((r = TAILQ_FIRST(&m->passing))) {
		if (!daemon_chore_spend(budget, (uint32_t)(2 + r->bytes / PAGE / 8)))
			return false;
		TAILQ_REMOVE(&m->passing, r, entry);
		sweep_one(m, r);
	}
	if (!TAILQ_EMPTY(&m->unread))
		look_again(m);
	return true;
}

/* False: there is no memory for it. */
static bool begin_pass(struct daemon_memory *m, uint32_t *budget)
{
	size_t bytes = m->region->control->payloads_size / PAGE / 8;

	if (!m->now.marks)
		m->now.marks = malloc(bytes);
	if (!m->now.marks)
		return false;
	memset(m->now.marks, 0, bytes);
	daemon_chore_spend(budget, 128);
	TAILQ_CONCAT(&m->passing, &m->unread, entry);
	TAILQ_CONCAT(&m->passing, &m->retired, entry);
	m->now.index = m->now.qpn = 0;
	m->now.step = DAEMON_PASS_MARKS;
	return true;
}

static bool pass(struct daemon_chore *c, uint32_t *budget)
{
	struct daemon_memory *m = container_of(c, struct daemon_memory, pass);

	if (m->now.step == DAEMON_PASS_NONE && !begin_pass(m, budget)) {
		look_again(m);
		return true;
	}
	if (m->now.step == DAEMON_PASS_MARKS) {
		if (!mark_all(m, budget))
			return false;
		m->now.step = DAEMON_PASS_SWEEPS;
	}
	if (!sweep(m, budget))
		return false;
	m->now.step = DAEMON_PASS_NONE;
	if (!TAILQ_EMPTY(&m->retired)) /* while this pass was under way */
		daemon_chore_add(m->chores, &m->pass, pass);
	return true;
}

/* ---- memory of keys ---- */

/* Notes the word if it says that somebody deals with a queue pair that is gone. */
static void note_deal(struct daemon_memory *m, const _Atomic uint32_t *word)
{
	struct daemon_deals *d = &m->deals;
	/* acquire: the writes before that of the word are there */
	uint32_t value = atomic_load_explicit((_Atomic uint32_t *)word, memory_order_acquire);
	uint32_t qpn = value & IB_QPN_MASK;

	if (!qpn || m->users.qpn_of(m->users.arg, SHM_QP_INDEX(qpn)) == qpn)
		return;
	if (d->n < DAEMON_MAX_DEALS) {
		d->noted[d->n].word = word;
		d->noted[d->n].value = value;
	}
	d->n++;
}

static void begin_deals(struct daemon_memory *m)
{
	m->deals.walks = true;
	m->deals.index = m->deals.n = 0;
	/* the records of those that are gone were written before the words are looked at; pairs
	 * with hca_exchange_begin() and say_whom() */
	atomic_thread_fence(memory_order_seq_cst);
}

/* True: it has walked over all queue pairs. */
static bool note_deals(struct daemon_memory *m, uint32_t *budget)
{
	const struct daemon_memory_users *users = &m->users;
	struct daemon_deals *d = &m->deals;
	uint8_t shift;

	for (; *budget; d->index++) {
		uint32_t from = d->index;

		if (!users->next_ring(users->arg, &d->index, &shift)) {
			d->walks = false;
			return true;
		}
		daemon_chore_spend(budget, 4 + (d->index - from) / 8);
		note_deal(m, &shm_sender_at(m->region, d->index)->target_qpn);
		note_deal(m, &shm_connection_at(m->region, d->index)->helps);
	}
	return false;
}

/* Whether all that was noted has come to its end. */
static bool deals_are_over(struct daemon_memory *m)
{
	struct daemon_deals *d = &m->deals;

	if (d->n > DAEMON_MAX_DEALS) {
		begin_deals(m);
		return false;
	}
	for (unsigned i = d->n; i-- > 0;)
		/* acquire: as in note_deal() */
		if (atomic_load_explicit((_Atomic uint32_t *)d->noted[i].word,
		                         memory_order_acquire) != d->noted[i].value)
			d->noted[i] = d->noted[--d->n];
	return !d->n;
}

static bool free_keys(struct daemon_chore *c, uint32_t *budget)
{
	struct daemon_memory *m = container_of(c, struct daemon_memory, free_keys);
	struct daemon_retired *r;

	if (TAILQ_EMPTY(&m->keys_noted)) {
		TAILQ_CONCAT(&m->keys_noted, &m->keys, entry);
		begin_deals(m);
	}
	if (m->deals.walks && !note_deals(m, budget))
		return false;
	/* a word can say anything for ever: it must not keep all that there is */
	if (!deals_are_over(m) && m->keys_bytes <= KEYS_BYTES) {
		look_again(m);
		return true;
	}
	while ((r = TAILQ_FIRST(&m->keys_noted))) {
		TAILQ_REMOVE(&m->keys_noted, r, entry);
		m->keys_bytes -= r->bytes;
		start_clearing(m, r);
	}
	if (!TAILQ_EMPTY(&m->keys)) /* while this look was under way */
		daemon_chore_add(m->chores, &m->free_keys, free_keys);
	return true;
}

/* ---- again and again ---- */

/* Looks at all that is still used. */
static void look(struct daemon_memory *m)
{
	struct daemon_retired_list rings = TAILQ_HEAD_INITIALIZER(rings);
	struct daemon_retired *r;

	TAILQ_CONCAT(&rings, &m->filling, entry);
	while ((r = TAILQ_FIRST(&rings))) {
		TAILQ_REMOVE(&rings, r, entry);
		start_closing(m, r);
	}
	if (!TAILQ_EMPTY(&m->unread) || !TAILQ_EMPTY(&m->retired))
		daemon_chore_add(m->chores, &m->pass, pass);
	if (!TAILQ_EMPTY(&m->keys_noted) || !TAILQ_EMPTY(&m->keys))
		daemon_chore_add(m->chores, &m->free_keys, free_keys);
}

static void on_look(struct base_timer *t)
{
	struct daemon_memory *m = container_of(t, struct daemon_memory, look);

	/* a receiver that never polls must not keep the daemon busy */
	if (m->look_ns < LOOK_MAX_NS)
		m->look_ns *= 2;
	look(m);
}

static void look_again(struct daemon_memory *m)
{
	if (!base_timer_is_set(&m->look))
		base_timer_set_in(m->chores->timers, &m->look, m->look_ns, on_look);
}

/* Some memory that idle senders have retires, of the next ones each time. */
static bool revoke_idle(struct daemon_chore *c, uint32_t *budget)
{
	struct daemon_memory *m = container_of(c, struct daemon_memory, revoke);

	while (m->revoked < REVOKE_BYTES) {
		uint32_t from = m->revoke_index;
		uint64_t bytes;

		if (!*budget)
			return false;
		bytes = m->users.revoke(m->users.arg, &m->revoke_index);
		m->revoked += bytes;
		daemon_chore_spend(budget, 8 + (m->revoke_index - from) / 4);
		if (bytes)
			continue;
		m->revoke_index = 0;
		if (m->revoke_wrapped)
			break;
		m->revoke_wrapped = true;
	}
	return true;
}

int daemon_memory_none(struct daemon_memory *m, bool is_ring, struct daemon_memory_want *want)
{
	uint64_t now = base_timers_now(m->chores->timers);

	if (m->stopping)
		return -ENOMEM;
	m->users.take_back(m->users.arg);
	if (daemon_chores_wait(m->chores))
		return -EAGAIN;
	if (m->is_full) /* other senders would lose memory that they use, and ask for it again */
		return -ENOMEM;
	/* each look revokes a part of what idle senders have; in the end all of it */
	if (want->looks && (is_ring || !m->revoked || want->looks > MAX_LOOKS)) {
		want->looks = 0;
		want->refused_until = now + REFUSE_NS;
		return -ENOMEM;
	}
	if (now < want->refused_until)
		return -ENOMEM;
	if (!is_ring) {
		m->revoked = 0;
		m->revoke_wrapped = false;
		daemon_chore_add(m->chores, &m->revoke, revoke_idle);
	}
	look(m);
	if (!daemon_chores_wait(m->chores))
		return -ENOMEM;
	want->looks++;
	return -EAGAIN;
}

/* The record of memory that has retired; NULL: the memory stays as it is. */
static struct daemon_retired *retire(struct daemon_memory *m, uint64_t off, uint64_t bytes)
{
	struct daemon_retired *r;

	/* a process that lives on completes its receives from its rings */
	if (m->stopping)
		return NULL;
	r = malloc(sizeof(*r));
	if (!r) {
		base_log_warning(daemon, "out of memory: %llu bytes of shared memory are lost",
		                 (unsigned long long)bytes);
		return NULL;
	}
	*r = (struct daemon_retired){ .off = off, .bytes = bytes };
	m->look_ns = LOOK_NS;
	if (base_timer_is_set(&m->look))
		base_timer_set_sooner(m->chores->timers, &m->look,
		                      base_timers_now(m->chores->timers) + LOOK_NS, on_look);
	return r;
}

void daemon_memory_retire_ring(struct daemon_memory *m, uint64_t off, uint8_t shift, uint32_t qpn)
{
	const uint32_t begin = off % PAGE;
	struct daemon_retired *r = retire(m, off - begin, shm_extent_bytes(&m->rings, off));

	if (!r)
		return;
	r->is_ring = true;
	r->begin = begin;
	r->ring_shift = shift;
	r->qpn = qpn;
	r->taken = qpn && atomic_load_explicit(&daemon_memory_ring_at(m, off)->taken,
	                                       memory_order_relaxed);
	start_closing(m, r);
}

void daemon_memory_retire_payload(struct daemon_memory *m, uint64_t off)
{
	struct daemon_retired *r = retire(m, off, shm_extent_bytes(&m->payloads, off));

	if (!r)
		return;
	TAILQ_INSERT_TAIL(&m->retired, r, entry);
	daemon_chore_add(m->chores, &m->pass, pass);
}

void daemon_memory_retire_keys(struct daemon_memory *m, uint64_t off)
{
	struct daemon_retired *r = retire(m, off, shm_extent_bytes(&m->payloads, off));

	if (!r)
		return;
	TAILQ_INSERT_TAIL(&m->keys, r, entry);
	m->keys_bytes += r->bytes;
	daemon_chore_add(m->chores, &m->free_keys, free_keys);
}

void daemon_memory_free_payload(struct daemon_memory *m, uint64_t off)
{
	struct daemon_retired *r = retire(m, off, shm_extent_bytes(&m->payloads, off));

	if (r)
		put_away(m, r);
}
