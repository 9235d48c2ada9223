/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attaching and detaching, with the flows that follow: see attach.h.
 */
#include "fabric/forwarding/attach.h"
#include "fabric/forwarding/flow.h"

int fabric_attach_add(struct fabric *f, uint32_t hca, uint32_t qpn, const struct ib_gid *mgid,
                      uint16_t mlid)
{
	int ret = fabric_attach_table_add(f, hca, qpn, mgid, mlid);

	if (ret > 0)
		fabric_flow_attached(f, mgid, qpn);
	return ret < 0 ? ret : 0;
}

int fabric_attach_remove(struct fabric *f, uint32_t hca, uint32_t qpn, const struct ib_gid *mgid,
                         uint16_t mlid)
{
	int ret = fabric_attach_table_remove(f, hca, qpn, mgid, mlid);

	if (ret > 0)
		fabric_flow_detached(f, mgid, qpn);
	return ret < 0 ? ret : 0;
}

void fabric_attach_drop(struct fabric *f, uint32_t qpn)
{
	struct ib_gid mgid;

	if (fabric_attach_table_drop(f, qpn, &mgid))
		fabric_flow_dropped(f, &mgid);
}

void fabric_attach_qp_moved(struct fabric *f, uint32_t qpn)
{
	const struct fabric_attach_qp *qp = &f->attach->qp[SHM_QP_INDEX(qpn)];

	for (uint32_t k = 0; k < qp->n; k++) {
		const struct fabric_attached *g = qp->at[k].group;

		if (g->entry[qp->at[k].i].again)
			continue;
		fabric_flow_detached(f, &g->mgid, qpn);
		fabric_flow_attached(f, &g->mgid, qpn);
	}
}
