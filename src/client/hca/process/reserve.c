/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers and memory that lie reserved: see reserve.h.
 */
#include <string.h>

#include "control/client.h"
#include "hca/process/reserve.h"
#include "shm/region.h"

#define MADE_BEFORE  2  /* queue pairs, before some are reserved */
#define MADE_BETWEEN 64 /* after none could be */

/* All with the lock held. */

/* Those of @shape. There may be none yet: the numbers that had their place are forgotten, and the
 * daemon takes them back when they are wanted. */
static struct hca_reserve_of *reserve_of(struct hca_reserve *all,
                                         const struct control_qp_shape *shape)
{
	struct hca_reserve_of *of = all->of, *oldest = all->of;

	for (; of < all->of + HCA_RESERVE_SHAPES; of++) {
		if (!memcmp(&of->shape, shape, sizeof(*shape)))
			break;
		if (of->use < oldest->use)
			oldest = of;
	}
	if (of == all->of + HCA_RESERVE_SHAPES) {
		of = oldest;
		*of = (struct hca_reserve_of){ .shape = *shape };
	}
	of->use = ++all->uses;
	return of;
}

/* False: none is left, or the daemon has taken back what was. */
static bool take(struct hca_reserve *r, struct hca_reserve_of *of,
                 struct control_create_qp_reply *out)
{
	while (of->next < of->n) {
		const struct control_reserved_qp *first = &of->of[of->next++];
		struct shm_sender *sender = shm_sender_at(r->region, SHM_QP_INDEX(first->qp.qpn));
		uint64_t ticket = first->ticket;

		/* relaxed: what belongs to it was there before the daemon's reply */
		if (atomic_compare_exchange_strong_explicit(&sender->ticket, &ticket, 0,
		                                            memory_order_relaxed,
		                                            memory_order_relaxed)) {
			*out = first->qp;
			return true;
		}
	}
	return false;
}

/* Asks the daemon for twice as many as the last time. */
static void ask(struct hca_reserve *r, struct hca_reserve_of *of)
{
	struct control_reserve_qps req = { .shape = of->shape, .n = 2 * of->n_asked };
	struct control_reserve_qps_reply rep = { .n = 0 };

	if (req.n < 2)
		req.n = 2;
	if (req.n > CONTROL_MAX_RESERVED)
		req.n = CONTROL_MAX_RESERVED;
	if (control_ask(r->control, CONTROL_RESERVE_QPS, &req, &rep) ||
	    rep.n > CONTROL_MAX_RESERVED)
		rep.n = 0;
	of->n_asked = req.n;
	if (!rep.n) {
		of->n_asked = 0;
		of->made = MADE_BEFORE - MADE_BETWEEN;
	}
	of->next = 0;
	of->n = rep.n;
	memcpy(of->of, rep.of, rep.n * sizeof(*rep.of));
}

static bool get(struct hca_reserve *r, struct hca_reserve_of *of,
                struct control_create_qp_reply *out)
{
	if (take(r, of, out))
		return true;
	if (of->made++ < MADE_BEFORE)
		return false;
	ask(r, of);
	return take(r, of, out);
}

bool hca_reserve_get(struct hca_reserve *r, const struct control_qp_shape *shape,
                     struct control_create_qp_reply *out)
{
	bool got;

	pthread_mutex_lock(&r->lock);
	got = get(r, reserve_of(r, shape), out);
	pthread_mutex_unlock(&r->lock);
	return got;
}
