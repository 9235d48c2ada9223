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

/* Units of work (chores.h). */
#define UNDO_COST   2
#define QP_COST     8
#define CQ_COST     2
#define PD_COST     1
#define SYSTEM_COST 16 /* that closes a descriptor */

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
	daemon_hcas_init(&o->hcas, loop);
	daemon_pds_init(&o->pds);
	daemon_channels_init(&o->channels);
	daemon_cqs_init(&o->cqs, f->region, &o->channels, &loop->timers);
	daemon_memory_init(&o->memory, f->region, &o->chores, &users);
	daemon_srqs_init(&o->srqs, f->region, &o->memory);
	if (daemon_xrcds_init(&o->xrcds, loop))
		return -ENOMEM;
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

/* False: the budget was used up before. */
static bool free_pds(struct daemon_objects *o, struct daemon_hca *h, uint32_t *budget)
{
	struct daemon_pd *pd;

	while ((pd = LIST_FIRST(&h->pds)) && daemon_chore_spend(budget, PD_COST))
		daemon_pd_free(&o->pds, pd);
	return !pd;
}

static bool end_hca(struct daemon_chore *c, uint32_t *budget)
{
	struct daemon_hca *h = container_of(c, struct daemon_hca, end);

	if (!free_pds(h->holder->objects, h, budget))
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

/* Frees the objects in an order in which each goes before what it needs. */
static bool release(struct daemon_chore *c, uint32_t *budget)
{
	struct daemon_holder *holder = container_of(c, struct daemon_holder, end);
	struct daemon_objects *o = holder->objects;
	struct daemon_qp_user *used;
	struct daemon_qp *qp, *reserved;
	struct daemon_srq *srq;
	struct daemon_cq *cq;
	struct daemon_channel *channel;
	struct daemon_hca *hca;

	while ((used = LIST_FIRST(&holder->used_qps)) && daemon_chore_spend(budget, QP_COST))
		daemon_qp_close(used);
	while ((qp = TAILQ_FIRST(&holder->qps)) && daemon_chore_spend(budget, QP_COST))
		daemon_qp_free(&o->qps, qp);
	while ((reserved = TAILQ_FIRST(&holder->reserved)) && daemon_chore_spend(budget, QP_COST))
		daemon_reserve_free(&o->qps, reserved);
	while ((srq = LIST_FIRST(&holder->srqs)) && daemon_chore_spend(budget, QP_COST))
		daemon_srq_free(&o->srqs, srq);
	while ((cq = LIST_FIRST(&holder->cqs)) && daemon_chore_spend(budget, CQ_COST))
		daemon_cq_free(&o->cqs, cq);
	while ((channel = LIST_FIRST(&holder->channels)) && daemon_chore_spend(budget, SYSTEM_COST))
		daemon_channel_free(&o->channels, channel);
	while ((hca = LIST_FIRST(&holder->hcas)) && free_pds(o, hca, budget) &&
	       daemon_chore_spend(budget, SYSTEM_COST)) {
		daemon_hca_close(&o->hcas, hca);
		free(hca);
	}
	if (used || qp || reserved || srq || cq || channel || hca)
		return false; /* the budget was used up there */
	daemon_xrcd_close_all(&o->xrcds, holder);
	daemon_keys_close(&o->memory, holder);
	daemon_hca_end_gids(&o->memory, holder);
	free(holder);
	return true;
}

void daemon_objects_release(struct daemon_objects *o, struct daemon_holder *holder)
{
	holder->dead = true;
	daemon_unowned_look(&o->memory.unowned);
	/* first what others may wait for */
	begin_undo(o, holder);
	daemon_chore_add(&o->chores, &holder->end, release);
	daemon_chores_slice(&o->chores);
}
