/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When connections' times are over: see roce_wires.h.
 */
#include "base/util.h"
#include "daemon/network/roce_wires.h"
#include "hca/link/wires.h"
#include "shm/wire.h"

#define TICK_NS DAEMON_NS_PER_MS
#define WORDS   (SHM_MAX_QPS / 64)
/* So long they are looked at in one turn, ns; others in the next. */
#define TURN_NS (2 * DAEMON_NS_PER_MS)

static void on_tick(struct base_timer *t);

static void say(struct daemon_roce *r, uint32_t ticking)
{
	for (unsigned i = 0; i < r->n_ports; i++)
		/* seq_cst: see hca_wire_watch() */
		atomic_store_explicit(&r->d.f->region->roce_ports[r->port[i].port->index].ticking,
		                      ticking, memory_order_seq_cst);
}

/* The link of queue pair index @index; NULL: it has none any more. */
static struct hca_roce *link_of(const struct daemon_roce *r, uint32_t index)
{
	uint32_t port = r->d.f->region->qps[index].port;

	if (!r->d.f->region->qps[index].qpn || port < r->d.f->n_ib_ports ||
	    port - r->d.f->n_ib_ports >= r->n_ports)
		return NULL;
	return daemon_roce_port(r, port)->link;
}

/* The bit is taken back first: whoever sets it meanwhile is seen the next time. */
static void look_at(const struct daemon_roce *r, uint32_t index, uint64_t now)
{
	struct shm_wire_busy *busy = &r->d.f->region->wire_busy[index / 64];
	uint64_t bit = 1ull << index % 64;
	struct hca_roce *link;

	atomic_fetch_and_explicit(&busy->bits, ~bit, memory_order_seq_cst);
	link = link_of(r, index);
	if (link && hca_wires_tick(&link->wires, index, now))
		atomic_fetch_or_explicit(&busy->bits, bit, memory_order_relaxed);
}

/* Looks at queue pairs from the last one on. Whether there are any. */
static bool look(struct daemon_roce *r)
{
	uint64_t now = base_now_ns();
	unsigned n = 0;

	for (unsigned i = 0; i < WORDS; i++) {
		uint32_t word = r->next_word % WORDS;
		uint64_t bits = atomic_load_explicit(&r->d.f->region->wire_busy[word].bits,
		                                     memory_order_seq_cst);

		for (; bits; bits &= bits - 1, n++) {
			if (n && base_now_ns() - now > TURN_NS)
				return true; /* the others of this word are first the next time */
			look_at(r, word * 64 + (uint32_t)__builtin_ctzll(bits), now);
		}
		r->next_word++;
	}
	return n;
}

static void on_tick(struct base_timer *t)
{
	struct daemon_roce *r = container_of(t, struct daemon_roce, wires_timer);

	if (!look(r)) {
		say(r, 0);
		if (!look(r))
			return;
		say(r, 1);
	}
	base_timer_set_in(&r->d.loop->timers, &r->wires_timer, TICK_NS, on_tick);
}

void roce_wires_begin(struct daemon_roce *r)
{
	if (base_timer_is_set(&r->wires_timer))
		return;
	say(r, 1);
	base_timer_set_in(&r->d.loop->timers, &r->wires_timer, TICK_NS, on_tick);
}

void roce_wires_stop(struct daemon_roce *r)
{
	base_timer_stop(&r->wires_timer);
}
