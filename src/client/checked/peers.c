/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of peers: see peers.h.
 */
#include "checked/peers.h"

#define WORD 8

/* Both are connected to each other. */
static bool is_peer_here(struct checked_object *qp)
{
	const struct ibv_qp *of = qp->object;

	if (!qp->peer)
		qp->peer = checked_queue_pair_find(qp->remote_qpn, of->qp_num) ? PEER_HERE
		                                                               : PEER_ELSEWHERE;
	return qp->peer == PEER_HERE;
}

static uint32_t bytes_of(const struct hca_record *r)
{
	return r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD
	               ? WORD
	               : r->bytes;
}

/* A word that is written or read as a whole is how threads and peers talk: no race. Of atomic
 * operations stores of the peer are one, loads are not: they read, as far as that goes. */
static bool is_word(const struct hca_record *r, uint32_t bytes)
{
	return r->rdma_addr / WORD == (r->rdma_addr + bytes - 1) / WORD &&
	       r->opcode != IBV_WR_ATOMIC_CMP_AND_SWP && r->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD;
}

void checked_peer_lend(struct checked_lent *l, const struct hca_record *r,
                       struct checked_object *qp, uint32_t place)
{
	const struct ibv_sge range = { r->rdma_addr, bytes_of(r), r->rdma_rkey };
	const struct checked_object *region;
	uint64_t from;

	if (!r->rdma_rkey || !range.length || is_word(r, range.length) ||
	    !checked_tools_see_peers() || !qp || !is_peer_here(qp))
		return;
	region = checked_region_find(r->rdma_rkey); /* both keys of a region are one */
	if (!region || !checked_region_place(region, &range, &from))
		return;
	*l = (struct checked_lent){ .from = from,
		                    .to = from + range.length,
		                    .is_written = r->opcode == IBV_WR_RDMA_WRITE ||
		                                  r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM,
		                    .place = place,
		                    .queue = (uintptr_t)r->qp + 2,
		                    .is_peers = true };
	checked_tools_lend(l);
}
