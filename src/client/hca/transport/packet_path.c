/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire: whether a connected queue pair exchanges packets, and which way they go. See
 * packet_connection.h.
 */
#include <string.h>

#include "hca/link/flow.h"
#include "hca/transport/packet_connection.h"

/* The way that queue pair @qpn has chosen for its connection with @peer: SHM_BY_DETOUR,
 * SHM_BY_MEMORY, or 0: none yet. */
static uint32_t choice_of(const struct shm_region *r, uint32_t qpn, uint32_t peer)
{
	uint32_t word = hca_connected_load(&shm_connection_at(r, SHM_QP_INDEX(qpn))->chosen);

	return word >> 8 == peer ? word & SHM_BY_MASK : 0;
}

/* Whether a connection that is made now shall go by the daemon. */
static bool is_to_detour(struct hca_connected_qp *c, uint32_t peer)
{
	const struct shm_control *all = c->qp.ctx->process->region.control;
	const struct hca_flow *f;
	uint32_t qpn;

	if (!atomic_load_explicit(&all->detour, memory_order_relaxed))
		return false;
	f = hca_flow_get(&c->qp.sender, &c->path);
	if (f && !f->detours)
		return false;
	for (unsigned i = 0; i < SHM_DETOUR_QPNS; i++) {
		qpn = atomic_load_explicit(&all->detour_qpns[i], memory_order_relaxed);
		if (qpn == c->qp.sender.qpn || qpn == peer)
			return true;
		if (!qpn)
			return !i;
	}
	return false;
}

/* Whether packets go by the daemon. Both ends have to choose alike, once: the second end chooses as
 * the first has, whatever is open now. */
static bool detours(struct hca_connected_qp *c)
{
	const struct shm_region *r = &c->qp.ctx->process->region;
	const uint32_t own = c->qp.sender.qpn, peer = c->qp.connection.dest_qpn;
	uint32_t choice = choice_of(r, own, peer);

	if (!choice)
		choice = choice_of(r, peer, own);
	if (!choice)
		choice = is_to_detour(c, peer) ? SHM_BY_DETOUR : SHM_BY_MEMORY;
	atomic_store_explicit(&c->shm->chosen,
	                      c->qp.connection.dest_qpn << 8 | choice |
	                              (c->weak ? SHM_BY_ITSELF : 0),
	                      memory_order_release);
	return choice == SHM_BY_DETOUR;
}

/* The same of a connection that leaves the fabric: chosen when it is opened, by this end alone. */
static bool detours_away(struct hca_connected_qp *c, const struct hca_flow *f, bool is_open)
{
	const struct shm_control *all = c->qp.ctx->process->region.control;

	if (!is_open && f->detours &&
	    atomic_load_explicit(&all->detour, memory_order_relaxed) == SHM_DETOUR_RULES)
		atomic_store_explicit(&c->shm->chosen,
		                      c->qp.connection.dest_qpn << 8 | SHM_BY_DETOUR,
		                      memory_order_release);
	return hca_connected_detours(c->shm);
}

/* Whether what it sends becomes packets. *@path: says where they go. */
static bool makes_packets(struct hca_connected_qp *c, struct shm_wire_path *path, bool is_open)
{
	struct hca_flow *f = c->qp.sender.network ? hca_flow_get(&c->qp.sender, &c->path) : NULL;
	const bool leaves = f && f->leaves && !f->count;

	if (leaves)
		path->detours = detours_away(c, f, is_open) ? SHM_WIRE_AWAY : SHM_WIRE_NO_DETOUR;
	else
		path->detours = detours(c) ? SHM_WIRE_HERE : SHM_WIRE_NO_DETOUR;
	if (path->detours && !f) /* else it is asked for when it is needed, if ever */
		f = hca_flow_get(&c->qp.sender, &c->path);
	path->flow = path->detours && f ? f->id : 0;
	return leaves || (path->detours && f);
}

static void path_of(const struct hca_connected_qp *c, struct shm_wire_path *path)
{
	const struct shm_port *port = shm_port_at(&c->qp.ctx->process->region, c->qp.sender.port);
	const struct hca_connection *a = &c->qp.connection;

	memcpy(&path->dgid, c->path.dest.gid, sizeof(path->dgid));
	path->class_flow = c->path.class_flow;
	path->hop_limit = c->path.hop_limit;
	path->sgid_index = c->path.sgid_index;
	path->sgid = port->gid[path->sgid_index % SHM_GIDS];
	path->timeout = a->timeout;
	path->retry_cnt = a->retry_cnt;
	path->rnr_retry = a->rnr_retry;
	path->min_rnr_timer = a->min_rnr_timer;
	path->max_rd_atomic = a->max_rd_atomic;
	path->mtu_shift = (uint8_t)(7 + a->path_mtu);
	path->first_psn = c->qp.sender.psn & WIRE_PSN_MASK;
	path->first_expected = a->rq_psn & WIRE_PSN_MASK;
}

bool hca_wire_choose(struct hca_connected_qp *c, struct shm_wire_path *path, bool is_open)
{
	if (!makes_packets(c, path, is_open))
		return false;
	path_of(c, path);
	return true;
}
