/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers and memory that lie reserved: see reserve.h.
 */
#include "daemon/clients/reserve.h"

#define MOST           4096         /* of all processes */
#define MOST_OF_HOLDER 64           /* CONTROL_MAX_RESERVED of a few shapes */
#define MOST_BYTES     (2ull << 20) /* of all that a holder has */
#define TAKEN_AT_ONCE  64

#define FREE_COST 8 /* units of work (chores.h) */

static struct shm_sender *sender_of(const struct daemon_qps *all, const struct daemon_qp *qp)
{
	return shm_sender_at(all->f->region, SHM_QP_INDEX(qp->qpn));
}

static uint64_t ring_bytes(const struct daemon_qps *all, const struct daemon_qp *qp)
{
	return shm_extent_bytes(&all->memory->rings, qp->ring_off);
}

static uint64_t payload_bytes(const struct daemon_qps *all, const struct daemon_qp *qp)
{
	return qp->queue_off ? shm_extent_bytes(&all->memory->payloads, qp->queue_off) : 0;
}

static void add(struct daemon_qps *all, struct daemon_holder *holder, struct daemon_qp *qp)
{
	uint64_t rings = ring_bytes(all, qp), payloads = payload_bytes(all, qp);

	qp->reserved.holder = holder;
	TAILQ_INSERT_TAIL(&all->reserved, qp, reserved.of_all);
	TAILQ_INSERT_TAIL(&holder->reserved, qp, reserved.of_holder);
	daemon_qp_step(qp, DAEMON_QP_IS_RESERVED);
	holder->n_reserved++;
	holder->reserved_bytes += rings + payloads;
	all->memory->reserved_rings += rings;
	all->memory->reserved_payloads += payloads;
}

static void drop(struct daemon_qps *all, struct daemon_qp *qp)
{
	struct daemon_holder *holder = qp->reserved.holder;
	uint64_t rings = ring_bytes(all, qp), payloads = payload_bytes(all, qp);

	qp->reserved.holder = NULL;
	TAILQ_REMOVE(&all->reserved, qp, reserved.of_all);
	TAILQ_REMOVE(&holder->reserved, qp, reserved.of_holder);
	daemon_qp_step(qp, DAEMON_QP_IS_TAKEN);
	holder->n_reserved--;
	holder->reserved_bytes -= rings + payloads;
	all->memory->reserved_rings -= rings;
	all->memory->reserved_payloads -= payloads;
}

/* Frees it, whether its process uses it or not. */
static void free_reserved(struct daemon_qps *all, struct daemon_qp *qp)
{
	drop(all, qp);
	daemon_qp_give_up(all, qp);
}

/* False: its process is making a queue pair of it. */
static bool take_back(struct daemon_qps *all, struct daemon_qp *qp)
{
	uint64_t ticket = qp->reserved.ticket;

	/* relaxed: the winner needs nothing that the other side has written */
	if (!atomic_compare_exchange_strong_explicit(&sender_of(all, qp)->ticket, &ticket, 0,
	                                             memory_order_relaxed, memory_order_relaxed))
		return false;
	free_reserved(all, qp);
	return true;
}

bool daemon_reserve_take_back(void *qps)
{
	struct daemon_qps *all = qps;
	struct daemon_qp *qp, *next;
	unsigned n = 0;

	for (qp = TAILQ_FIRST(&all->reserved); qp && n < TAKEN_AT_ONCE; qp = next) {
		next = TAILQ_NEXT(qp, reserved.of_all);
		n += take_back(all, qp);
	}
	return n;
}

/* ---- how many ---- */

static bool is_scarce(const struct shm_extents *e, uint64_t size)
{
	return e->in_use > size - size / 4;
}

static bool all_is_plenty(const struct daemon_qps *all)
{
	const struct shm_control *c = all->f->region->control;

	return all->ids.used <= all->ids.limit - all->ids.limit / 4 &&
	       !is_scarce(&all->memory->rings, c->rings_size) &&
	       !is_scarce(&all->memory->payloads, c->payloads_size);
}

/* Takes the oldest ones of the holder back, which it has not wanted, until it has room for @n of so
 * many bytes. */
static void make_room(struct daemon_qps *all, struct daemon_holder *holder, uint32_t n,
                      uint64_t bytes)
{
	struct daemon_qp *qp, *next;

	for (qp = TAILQ_FIRST(&holder->reserved);
	     qp && (holder->n_reserved + n > MOST_OF_HOLDER ||
	            holder->reserved_bytes + bytes > MOST_BYTES);
	     qp = next) {
		next = TAILQ_NEXT(qp, reserved.of_holder);
		take_back(all, qp);
	}
}

/* How many the holder may have of what is wanted. */
static uint32_t how_many(struct daemon_qps *all, struct daemon_holder *holder,
                         const struct control_reserve_qps *want)
{
	uint64_t each = daemon_qp_bytes(&want->shape);
	uint32_t n = want->n < CONTROL_MAX_RESERVED ? want->n : CONTROL_MAX_RESERVED;

	/* what others have wanted least of late is theirs no more */
	while (all->n_in[DAEMON_QP_RESERVED] + n > MOST)
		if (!daemon_reserve_take_back(all))
			return 0;
	if (!all_is_plenty(all))
		return 0;
	if (n > MOST_BYTES / each)
		n = (uint32_t)(MOST_BYTES / each);
	make_room(all, holder, n, n * each);
	while (n && (holder->n_reserved + n > MOST_OF_HOLDER ||
	             holder->reserved_bytes + n * each > MOST_BYTES))
		n--;
	return n;
}

/* ---- */

void daemon_reserve(struct daemon_qps *all, struct daemon_holder *holder,
                    const struct control_reserve_qps *want, struct control_reserve_qps_reply *out)
{
	uint32_t n = how_many(all, holder, want);

	for (out->n = 0; out->n < n; out->n++) {
		struct control_reserved_qp *next = &out->of[out->n];
		struct daemon_qp *qp;

		if (daemon_qp_prepare(all, holder, &want->shape, NULL, &qp))
			break;
		qp->reserved.shape = want->shape;
		next->ticket = qp->reserved.ticket = ++all->last_ticket;
		atomic_store_explicit(&sender_of(all, qp)->ticket, qp->reserved.ticket,
		                      memory_order_relaxed);
		daemon_qp_tell(all, qp, &next->qp);
		add(all, holder, qp);
	}
}

struct daemon_qp *daemon_reserve_take(struct daemon_qps *all, const struct daemon_holder *holder,
                                      uint32_t qpn)
{
	uint32_t index = SHM_QP_INDEX(qpn);
	struct daemon_qp *qp = index > IB_QPN_GSI ? base_idtable_get(&all->ids, index) : NULL;

	if (!qp || qp->qpn != qpn || qp->reserved.holder != holder)
		return NULL;
	drop(all, qp);
	atomic_store_explicit(&sender_of(all, qp)->ticket, 0, memory_order_relaxed);
	return qp;
}

/* ---- all ---- */

static bool free_of_holder(void *arg, struct daemon_holder *holder, uint32_t *budget)
{
	struct daemon_qp *qp;

	while ((qp = TAILQ_FIRST(&holder->reserved)) && daemon_chore_spend(budget, FREE_COST))
		free_reserved(arg, qp);
	return !qp;
}

void daemon_reserve_init(struct daemon_qps *all, struct daemon_ending *ending,
                         struct daemon_endings *endings)
{
	daemon_ending_register(endings, ending, free_of_holder, all);
}
