/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Readers of counters: see collect.h.
 */
#include "base/util.h"
#include "fabric/flow.h"

#define READ_WORK 128 /* units: a reader may want all ports of a switch */

static void spend(uint32_t *budget, uint32_t units)
{
	*budget -= units < *budget ? units : *budget;
}

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
}
