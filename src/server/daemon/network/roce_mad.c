/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Management datagrams of Ethernet ports: see roce_mad.h.
 */
#include <string.h>

#include <infiniband/verbs.h>

#include "daemon/network/roce_mad.h"
#include "daemon/network/roce_state.h"
#include "fabric/agents/mads.h"

#define HOP_LIMIT 64

/* The index of @gid in the port's table, or -1. */
static int gid_index(const struct daemon_roce_port *p, const struct ib_gid *gid)
{
	for (int i = 0; i < NETDEV_GIDS; i++)
		if (!memcmp(&p->gids.gid[i], gid, sizeof(*gid)))
			return i;
	return -1;
}

/* Whether QP1 of the port accepts it; if not, it is counted. */
static bool is_for_us(const struct daemon_roce_port *p, const struct control_roce_mad *came)
{
	struct shm_port_count *c = shm_port_count_at(p->roce->d.f->region, p->port->index);

	if (!ib_pkey_match(came->pkey, IB_PKEY_DEFAULT))
		atomic_fetch_add_explicit(&c->bad_pkey, 1, memory_order_relaxed);
	else if (came->qkey != IB_QKEY_GSI)
		atomic_fetch_add_explicit(&c->bad_qkey, 1, memory_order_relaxed);
	else if (gid_index(p, &came->dgid) < 0)
		atomic_fetch_add_explicit(&c->no_qp, 1, memory_order_relaxed);
	else
		return true;
	return false;
}

void daemon_roce_mad(struct daemon_roce *r, uint32_t port, const struct control_roce_mad *came)
{
	struct daemon_roce_port *p = daemon_roce_port(r, port);
	struct fabric_mad mad = { .src_qpn = came->src_qpn & IB_QPN_MASK,
		                  .dest_qpn = IB_QPN_GSI,
		                  .qkey = came->qkey,
		                  .has_grh = true,
		                  .sgid = came->sgid,
		                  .dgid = came->dgid };

	if (!is_for_us(p, came))
		return;
	memcpy(mad.data, came->data, sizeof(mad.data));
	fabric_mad_input(r->d.f, p->port, &mad);
	daemon_mads_send(r->d.mads); /* the responses */
}

/* The GID to send to @dgid from, if nobody has said: the first of the same IP version. */
static struct ib_gid source_for(const struct daemon_roce_port *p, const struct ib_gid *dgid)
{
	static const struct ib_gid none;
	bool is_ipv4 = wire_gid_is_ipv4(dgid);

	for (int i = 0; i < NETDEV_GIDS; i++)
		if (wire_gid_is_ipv4(&p->gids.gid[i]) == is_ipv4 &&
		    memcmp(&p->gids.gid[i], &none, sizeof(none)))
			return p->gids.gid[i];
	return none;
}

void daemon_roce_send_mad(struct daemon_roce *r, struct fabric_port *from,
                          const struct fabric_mad *mad)
{
	struct daemon_roce_port *p = daemon_roce_port(r, from->index);
	struct wire_roce_packet packet = {
		.ip = { .sgid = mad->sgid, .dgid = mad->dgid, .hop_limit = HOP_LIMIT },
		.h.bth = { .opcode = WIRE_OPCODE_UD_SEND_ONLY,
		           .migrated = true,
		           .pkey = IB_PKEY_DEFAULT,
		           .dest_qpn = mad->dest_qpn },
		.h.deth = { .qkey = mad->qkey, .src_qpn = mad->src_qpn },
		.payload = mad->data,
		.payload_bytes = sizeof(mad->data),
	};

	if (gid_index(p, &mad->sgid) < 0 ||
	    wire_gid_is_ipv4(&mad->sgid) != wire_gid_is_ipv4(&mad->dgid))
		packet.ip.sgid = source_for(p, &mad->dgid);
	if (p->link && hca_roce_send_one(p->link, &packet))
		atomic_fetch_add_explicit(&p->link->shm->unreachable, 1, memory_order_relaxed);
}
