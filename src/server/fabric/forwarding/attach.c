/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attaching and detaching, with the flows that follow: see attach.h.
 */
#include "fabric/forwarding/attach.h"
#include "fabric/forwarding/change.h"
#include "fabric/forwarding/flow.h"
#include "fabric/model/routers.h"

/* Packets that came to an HCA while a queue pair was attached are counted before the last queue
 * pair is detached: later they would seem to have come in vain. @at_once: see
 * fabric_flow_count_group(). */
static void count_before_last(struct fabric *f, const struct fabric_attached *g, bool at_once)
{
	if (g && g->n == 1)
		fabric_flow_count_group(f, &g->mgid, at_once);
}

/* Routers want to know of what may come from beyond the subnet. */
static void tell_routers(struct fabric *f, const struct ib_gid *mgid, int change)
{
	if (f->routers->attached && fabric_mgid_is_wide(mgid))
		f->routers->attached(f->routers->arg, mgid, change);
}

int fabric_attach_add(struct fabric *f, uint32_t hca, uint32_t qpn, const struct ib_gid *mgid,
                      uint16_t mlid)
{
	int ret = fabric_attach_table_add(f, hca, qpn, mgid, mlid);

	if (ret > 0) {
		fabric_flow_attached(f, mgid, qpn);
		tell_routers(f, mgid, 1);
	}
	return ret < 0 ? ret : 0;
}

/* All flows have left it out. It may have gone meanwhile. */
static void on_left(struct fabric *f, const struct fabric_change *c)
{
	const struct fabric_attachment *e =
	        fabric_attach_only(f, c->hca, c->qpn, &c->mgid, c->mlid);

	if (e && e->leaves && fabric_attach_table_remove(f, c->hca, c->qpn, &c->mgid, c->mlid) > 0)
		tell_routers(f, &c->mgid, -1);
}

/* 0: flows leave it out in slices, and it goes then. 1: they are few. */
static int leave_in_slices(struct fabric *f, uint32_t hca, uint32_t qpn, const struct ib_gid *mgid,
                           uint16_t mlid)
{
	const struct fabric_change c = { .kind = FABRIC_CHANGE_LEAVES,
		                         .mgid = *mgid,
		                         .qpn = qpn,
		                         .hca = hca,
		                         .mlid = mlid,
		                         .done = on_left };
	struct fabric_attachment *e;

	if (!fabric_change_is_long(f, mgid))
		return 1;
	e = fabric_attach_only(f, hca, qpn, mgid, mlid);
	if (!e || fabric_change_add(f, &c))
		return 1;
	e->leaves = true;
	return 0;
}

int fabric_attach_remove(struct fabric *f, uint32_t hca, uint32_t qpn, const struct ib_gid *mgid,
                         uint16_t mlid)
{
	int ret = leave_in_slices(f, hca, qpn, mgid, mlid);

	if (ret <= 0)
		return ret;
	count_before_last(f, fabric_attach_find(f, hca, mgid), false);
	ret = fabric_attach_table_remove(f, hca, qpn, mgid, mlid);
	if (ret > 0) {
		fabric_flow_detached(f, mgid, qpn);
		tell_routers(f, mgid, -1);
	}
	return ret < 0 ? ret : 0;
}

void fabric_attach_drop(struct fabric *f, uint32_t qpn)
{
	const struct fabric_attach_qp *qp = &f->attach->qp[SHM_QP_INDEX(qpn)];
	struct ib_gid mgid;

	/* a count of very many would hold up everybody */
	if (qp->n && !fabric_change_is_long(f, &qp->at[qp->n - 1].group->mgid))
		count_before_last(f, qp->at[qp->n - 1].group, true);
	if (fabric_attach_table_drop(f, qpn, &mgid)) {
		fabric_flow_dropped(f, &mgid);
		tell_routers(f, &mgid, -1);
	}
}

void fabric_attach_qp_moved(struct fabric *f, uint32_t qpn)
{
	const struct fabric_attach_qp *qp = &f->attach->qp[SHM_QP_INDEX(qpn)];

	for (uint32_t k = 0; k < qp->n; k++) {
		const struct fabric_attached *g = qp->at[k].group;

		if (g->entry[qp->at[k].i].again)
			continue;
		if (!fabric_change_is_long(f, &g->mgid)) /* or the one change does both */
			fabric_flow_detached(f, &g->mgid, qpn);
		fabric_flow_attached(f, &g->mgid, qpn);
	}
}
