/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When connections' times are over: see packet_timers.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "daemon/core/loop.h"
#include "daemon/network/packet_timers.h"
#include "shm/packets.h"

#define TICK_NS DAEMON_NS_PER_MS
#define WORDS   (SHM_MAX_QPS / 64)
/* So long they are looked at in one turn, ns; others in the next. */
#define TURN_NS (2 * DAEMON_NS_PER_MS)

static void on_tick(struct base_timer *t);

static void say(struct daemon_wires *w, uint32_t ticking)
{
	/* seq_cst: see hca_wire_watch() */
	atomic_store_explicit(&w->f->region->data->ticking, ticking, memory_order_seq_cst);
}

/* Where packets of queue pair index @index come in; NULL: nowhere any more. */
static struct hca_wires *wires_of(const struct daemon_wires *w, uint32_t index)
{
	const struct shm_qp *q = shm_qp_at(w->f->region, index);

	if (shm_wire_at(w->f->region, index)->path.detours == SHM_WIRE_HERE)
		return w->detour;
	return q->qpn && q->port < w->f->n_hca_ports ? w->of_port[q->port] : NULL;
}

/* The bit is taken back first: a process that sets it meanwhile is seen the next time. */
static void look_at(const struct daemon_wires *w, uint32_t index, uint64_t now)
{
	struct shm_wire_busy *busy = shm_wire_busy_at(w->f->region, index / 64);
	uint64_t bit = 1ull << index % 64;
	struct hca_wires *wires;

	atomic_fetch_and_explicit(&busy->bits, ~bit, memory_order_seq_cst);
	wires = wires_of(w, index);
	if (wires && hca_wires_tick(wires, index, now))
		atomic_fetch_or_explicit(&busy->bits, bit, memory_order_relaxed);
}

/* Looks at queue pairs from the last one on. Whether there are any. */
static bool look(struct daemon_wires *w)
{
	uint64_t now = base_now_ns();
	unsigned n = 0;

	for (unsigned i = 0; i <= WORDS; i++) { /* the first word may come in two parts */
		uint32_t word = w->next / 64 % WORDS;
		uint64_t bits = atomic_load_explicit(&shm_wire_busy_at(w->f->region, word)->bits,
		                                     memory_order_seq_cst);

		for (bits &= -1ull << w->next % 64; bits; bits &= bits - 1, n++) {
			w->next = word * 64 + (uint32_t)__builtin_ctzll(bits);
			if (n && base_now_ns() - now > TURN_NS)
				return true; /* it is the first the next time */
			look_at(w, w->next, now);
		}
		w->next = (word + 1) * 64;
	}
	return n;
}

static void on_tick(struct base_timer *t)
{
	struct daemon_wires *w = container_of(t, struct daemon_wires, timer);

	if (!look(w)) {
		say(w, 0);
		if (!look(w))
			return;
		say(w, 1);
	}
	base_timer_set_beat(w->timers, &w->timer, TICK_NS, on_tick);
}

void daemon_wires_begin(struct daemon_wires *w)
{
	if (base_timer_is_set(&w->timer))
		return;
	say(w, 1);
	base_timer_set_beat(w->timers, &w->timer, TICK_NS, on_tick);
}

int daemon_wires_init(struct daemon_wires *w, struct fabric *f, struct base_timers *timers)
{
	*w = (struct daemon_wires){ .f = f, .timers = timers };
	w->of_port = calloc(f->n_hca_ports + 1, sizeof(struct hca_wires *));
	return w->of_port ? 0 : -ENOMEM;
}

void daemon_wires_fini(struct daemon_wires *w)
{
	base_timer_stop(&w->timer);
	free(w->of_port);
	w->of_port = NULL;
}
