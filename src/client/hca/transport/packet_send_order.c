/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire: packets of one worker do not overtake those of another on their way out. See
 * packet_connection.h.
 *
 * A program that waits for events shares its sending with the daemon, which goes on with it when
 * something comes. To a peer that sees an order that was not sent, something got lost: it has all
 * sent again from there.
 */
#include "base/util.h"
#include "hca/link/payload.h"
#include "hca/transport/packet_connection.h"

/* A worker that has not looked for so long may have missed turns, and their numbers come around. */
#define UNSEEN_NS (HCA_WIRE_PATIENCE_NS / 2)
/* So often an exchange is tried again: others can write there all the time. */
#define TRIES 16
/* Added at each turn, below SHM_WIRE_WANTED. */
#define TURN (IB_QPN_MASK + 1)

bool hca_wire_has_waited(struct hca_wire_wait *wait, uint32_t worker)
{
	const uint64_t now = base_now_ns();

	if (now - wait->seen_ns > UNSEEN_NS || wait->worker != worker) {
		wait->since_ns = now;
		wait->worker = worker;
	}
	wait->seen_ns = now;
	return now - wait->since_ns > HCA_WIRE_PATIENCE_NS;
}

static uint32_t next_turn(struct hca_wire *w)
{
	w->egress_turn = (w->egress_turn + TURN) & ~SHM_WIRE_WANTED;
	return w->egress_turn | w->worker;
}

/* The egress is another worker's, or wanted. Takes it if nobody has it, or if its holder was
 * stopped; else tells the holder that there is more to send. */
static BASE_COLD bool ask_for(struct hca_wire *w, uint32_t by, uint32_t mine)
{
	for (unsigned tries = 0; tries < TRIES; tries++) {
		uint32_t holder = by & ~SHM_WIRE_WANTED, wanted = by & SHM_WIRE_WANTED;
		bool takes = !holder || hca_wire_has_waited(&w->egress_wait, holder);

		/* acquire: pairs with the release in has_left(): packets that are sent now are
		 * behind that. Release: work that this worker leaves to the other one comes before
		 * the bit, also if the bit is there already */
		if (!atomic_compare_exchange_strong_explicit(
		            &w->shm->egress, &by, takes ? mine | wanted : by | SHM_WIRE_WANTED,
		            memory_order_acq_rel, memory_order_relaxed))
			continue;
		if (!takes)
			break;
		w->egress_wait.seen_ns = 0;
		w->egress = mine;
		return true;
	}
	hca_wire_watch(w); /* if that one does not come to it */
	return false;
}

void hca_wire_want_egress(struct hca_wire *w)
{
	if (!w->path.detours)
		atomic_fetch_or_explicit(&w->shm->egress, SHM_WIRE_WANTED, memory_order_seq_cst);
	hca_wire_watch(w);
}

bool hca_wire_acquire_egress(struct hca_wire *w)
{
	uint32_t by = 0, mine;

	if (w->egress || w->path.detours)
		return !hca_wire_is_lost(w);
	mine = next_turn(w);
	if (base_unlikely(!atomic_compare_exchange_strong_explicit(
	            &w->shm->egress, &by, mine, memory_order_acquire, memory_order_relaxed)))
		return ask_for(w, by, mine);
	w->egress_wait.seen_ns = 0;
	w->egress = mine;
	return true;
}

/* Releases the egress. Whether another worker wanted it. If another worker has it by now, this one
 * was taken for stopped, and the other one goes on. */
static bool has_left(struct hca_wire *w)
{
	const uint32_t mine = w->egress;
	uint32_t by = mine;

	w->egress = 0;
	/* release; acquire: pairs with the release in ask_for() */
	while (!atomic_compare_exchange_strong_explicit(&w->shm->egress, &by, 0,
	                                                memory_order_acq_rel, memory_order_relaxed))
		if (by != (mine | SHM_WIRE_WANTED))
			return false;
	return by != mine;
}

bool hca_wire_leave(struct hca_wire *w)
{
	if (base_unlikely(hca_wire_is_lost(w)))
		hca_wire_find(w);
	if (w->sender->unfinished)
		hca_sender_finish(w->sender);
	return w->egress && has_left(w);
}
