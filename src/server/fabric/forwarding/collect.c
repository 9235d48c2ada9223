/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Collecting counters, and those who read them: see collect.h.
 */
#include "fabric/forwarding/collect.h"
#include "fabric/forwarding/mcast_path.h"

#define READ_WORK     128 /* units: a reader may want all ports of a switch */
#define WAY_BACK_WORK 32  /* units: finding one takes a microsecond */

static void spend(uint32_t *budget, uint32_t units)
{
	*budget -= units < *budget ? units : *budget;
}

/* ---- flows ---- */

/* Packets from the network: the process that received them has counted them. */
static void collect_wire(struct fabric *f, struct fabric_port *p)
{
	struct shm_roce_port *w = shm_roce_port_at(f->region, p->index);
	uint64_t packets = atomic_load_explicit(&w->packets, memory_order_relaxed);
	uint64_t bytes = atomic_load_explicit(&w->bytes, memory_order_relaxed);

	p->stats.recv_packets += packets - p->collected.packets;
	p->stats.recv_bytes += bytes - p->collected.bytes;
	p->collected.packets = packets;
	p->collected.bytes = bytes;
}

/* Adds what was counted on the flow with this number, if it has one. How much work that was. */
static uint32_t collect_flow(struct fabric *f, uint32_t id)
{
	struct fabric_flow *flow = base_idtable_get(&f->flows->ids, id);
	uint32_t work = 1;
	uint64_t before;

	if (!flow || !fabric_flow_has_more(f, id))
		return work;
	if (fabric_flow_find_back(f, flow))
		work += WAY_BACK_WORK;
	before = f->flows->work;
	fabric_flow_count(f, flow);
	return work + (uint32_t)(f->flows->work - before) + (flow->back ? flow->back->n_hops : 0);
}

bool fabric_flow_collect_step(struct fabric *f, uint32_t *at, uint32_t *budget)
{
	uint32_t size = f->flows->ids.size;

	for (; *at < size && *budget; ++*at)
		spend(budget, collect_flow(f, *at));
	if (*at < size)
		return false;
	for (unsigned i = f->n_ib_ports; i < f->n_hca_ports; i++)
		collect_wire(f, f->hca_port[i]);
	return true;
}

void fabric_flow_collect(struct fabric *f)
{
	uint32_t at = 0, budget;

	do
		budget = FABRIC_COLLECT_SLICE;
	while (!fabric_flow_collect_step(f, &at, &budget));
}

/* ---- readers ---- */

bool fabric_collect_at_once(struct fabric *f)
{
	struct fabric_collect *c = &f->flows->collect;
	uint32_t at = 0;

	if (!c->wake) {
		fabric_flow_collect(f);
		return true;
	}
	spend(&c->spare, READ_WORK);
	return f->flows->ids.size <= c->spare && fabric_flow_collect_step(f, &at, &c->spare);
}

void fabric_collect_wait(struct fabric *f, struct fabric_reader *r,
                         void (*read)(struct fabric *f, struct fabric_reader *r))
{
	struct fabric_collect *c = &f->flows->collect;

	r->pass = c->begun + 1;
	r->read = read;
	TAILQ_INSERT_TAIL(&c->waiting, r, entry);
	c->wake(c->arg);
}

void fabric_collect_cancel(struct fabric *f, struct fabric_reader *r)
{
	TAILQ_REMOVE(&f->flows->collect.waiting, r, entry);
}

void fabric_collect_run(struct fabric *f)
{
	struct fabric_collect *c = &f->flows->collect;
	uint32_t budget = FABRIC_COLLECT_SLICE;
	struct fabric_reader *r;

	while ((r = TAILQ_FIRST(&c->waiting)) && budget) {
		if (r->pass <= c->done) {
			TAILQ_REMOVE(&c->waiting, r, entry);
			spend(&budget, READ_WORK);
			r->read(f, r);
			continue;
		}
		if (c->begun == c->done) {
			c->begun++;
			c->at = 0;
		}
		if (fabric_flow_collect_step(f, &c->at, &budget))
			c->done = c->begun;
	}
	if (r)
		c->wake(c->arg);
}

void fabric_collect_turn(struct fabric *f)
{
	f->flows->collect.spare = FABRIC_COLLECT_SLICE;
	f->flows->collect.turn++;
}
