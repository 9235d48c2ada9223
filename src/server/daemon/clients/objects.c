/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All objects that processes hold: see objects.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "daemon/clients/keys.h"
#include "daemon/clients/objects.h"
#include "daemon/clients/reserve.h"

#define UNDO_COST 2 /* units of work (chores.h) */

int daemon_objects_init(struct daemon_objects *o, struct fabric *f, struct daemon_loop *loop)
{
	const struct daemon_memory_users users = { .may_fill = daemon_qp_may_fill,
		                                   .next_ring = daemon_qp_next_ring,
		                                   .qpn_of = daemon_qp_number_of,
		                                   .revoke = daemon_qp_revoke,
		                                   .take_back = daemon_reserve_take_back,
		                                   .arg = &o->qps };

	o->loop = loop;
	daemon_chores_init(&o->chores, &loop->timers);
	daemon_memory_init(&o->memory, f->region, &o->chores, &users);
	/* each behind those that its objects need: ending.h */
	daemon_hcas_init(&o->hcas, loop, &o->memory, &o->endings);
	daemon_keys_init(&o->memory, &o->keys_ending, &o->endings);
	if (daemon_xrcds_init(&o->xrcds, loop, &o->endings))
		return -ENOMEM;
	daemon_pds_init(&o->pds, &o->hcas, &o->endings);
	daemon_channels_init(&o->channels, &o->endings);
	daemon_cqs_init(&o->cqs, f->region, &o->channels, &loop->timers, &o->endings);
	daemon_srqs_init(&o->srqs, f->region, &o->memory, &o->endings);
	daemon_reserve_init(&o->qps, &o->reserve_ending, &o->endings);
	daemon_qps_register(&o->qps, &o->endings);
	return daemon_qps_init(&o->qps, f, &o->memory, &o->cqs, &o->srqs);
}

void daemon_objects_stop(struct daemon_objects *o)
{
	o->memory.stopping = true;
}

struct daemon_holder *daemon_objects_holder(struct daemon_objects *o, uint32_t client, pid_t pid)
{
	struct daemon_holder *holder = calloc(1, sizeof(*holder));

	if (!holder)
		return NULL;
	holder->objects = o;
	holder->loop = o->loop;
	holder->client = client;
	holder->pid = pid;
	TAILQ_INIT(&holder->qps);
	TAILQ_INIT(&holder->reserved);
	for (unsigned kind = 0; kind < CONTROL_MEMORY_KINDS; kind++)
		holder->memory_fd[kind] = -1;
	return holder;
}

static bool undo(struct daemon_chore *c, uint32_t *budget)
{
	struct daemon_holder *holder = container_of(c, struct daemon_holder, undo);
	struct daemon_qps *qps = &holder->objects->qps;
	struct daemon_qp *qp;

	while ((qp = TAILQ_FIRST(&holder->qps)) && qp->undone != holder->undone) {
		if (!daemon_chore_spend(budget, UNDO_COST) ||
		    !daemon_qp_undo_sending(qps, qp, budget))
			return false;
		qp->undone = holder->undone;
		TAILQ_REMOVE(&holder->qps, qp, entry);
		TAILQ_INSERT_TAIL(&holder->qps, qp, entry);
	}
	return true;
}

static void begin_undo(struct daemon_objects *o, struct daemon_holder *holder)
{
	if (!holder->undo.waits)
		holder->undone++;
	daemon_chore_add(&o->chores, &holder->undo, undo);
}

void daemon_objects_undo(struct daemon_objects *o, struct daemon_holder *holder)
{
	begin_undo(o, holder);
	daemon_chores_slice(&o->chores);
}

static bool end_hca(struct daemon_chore *c, uint32_t *budget)
{
	struct daemon_hca *h = container_of(c, struct daemon_hca, end);

	if (!daemon_pds_free(&h->holder->objects->pds, h, budget))
		return false;
	free(h);
	return true;
}

/* Its holder is there until it has ended: that is a chore, too, which comes later. */
void daemon_objects_close_hca(struct daemon_objects *o, struct daemon_hca *h)
{
	daemon_hca_close(&o->hcas, h);
	daemon_chore_add(&o->chores, &h->end, end_hca);
	daemon_chores_slice(&o->chores);
}

static bool release(struct daemon_chore *c, uint32_t *budget)
{
	struct daemon_holder *holder = container_of(c, struct daemon_holder, end);
	const struct daemon_ending *e;

	LIST_FOREACH(e, &holder->objects->endings, entry)
	if (e->free && !e->free(e->arg, holder, budget))
		return false;
	free(holder);
	return true;
}

void daemon_objects_release(struct daemon_objects *o, struct daemon_holder *holder)
{
	const struct daemon_ending *e;

	LIST_FOREACH(e, &o->endings, entry)
	if (e->gone)
		e->gone(e->arg, holder);
	holder->dead = true;
	daemon_unowned_look(&o->memory.unowned);
	/* first what others may wait for */
	begin_undo(o, holder);
	daemon_chore_add(&o->chores, &holder->end, release);
	daemon_chores_slice(&o->chores);
}
