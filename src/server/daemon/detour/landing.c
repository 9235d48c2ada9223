/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets at the end of their detour: see landing.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "daemon/detour/landing.h"
#include "daemon/network/roce_state.h"
#include "fabric/forwarding/mcast_path.h"
#include "fabric/model/flow_state.h"
#include "hca/link/flow.h"
#include "hca/link/link_shm.h"
#include "hca/link/payload.h"
#include "wire/grh.h"
#include "wire/roce.h"

/* ---- datagrams ---- */

/* A packet where it lands. */
struct landed {
	const struct control_detour *in;
	const void *payload;
	const struct ib_gid *sgid; /* as daemon_land()'s */
};

/* Receivers make a GRH for senders of their subnet; a packet from another subnet brings it
 * along. */
static void add_grh(const struct landed *p, struct shm_arrival *a)
{
	const struct control_detour *in = p->in;
	const struct wire_grh grh = {
		.traffic_class = (uint8_t)(in->class_flow >> 20),
		.flow_label = in->class_flow & 0xFFFFF,
		.payload_bytes =
		        wire_grh_ud_payload(in->payload_bytes, in->flags & SHM_ARRIVAL_IMM),
		.hop_limit = in->hop_limit,
		.sgid = *p->sgid,
		.dgid = in->dgid,
	};

	wire_grh_encode(&grh, a->data);
	a->flags |= SHM_ARRIVAL_ROCE;
}

/* Makes a packet for @n receivers of it. False: no memory; it is counted. */
static bool describe(struct daemon_landing *l, const struct landed *p,
                     const struct fabric_port *from, uint32_t n, struct hca_packet *pkt)
{
	const struct control_detour *in = p->in;
	const uint8_t kept = SHM_ARRIVAL_GRH | SHM_ARRIVAL_IMM | SHM_ARRIVAL_SOLICITED |
	                     SHM_ARRIVAL_ETHERNET | SHM_ARRIVAL_TRACED;
	struct hca_payload *slot;

	*pkt = (struct hca_packet){
		.a = { .src_qpn = in->src_qpn,
		       .length = in->payload_bytes,
		       .imm = in->h.imm_data,
		       .class_flow = in->class_flow,
		       .slid = in->slid,
		       .pkey = in->h.bth.pkey,
		       .src_port = from->index,
		       .sgid_index = in->sgid_index,
		       .hop_limit = in->hop_limit,
		       .sl = in->sl,
		       .flags = in->flags & kept,
		       .path_bits = in->path_bits,
		       .dgid = in->dgid },
		.qkey = in->h.deth.qkey,
		.sender = l->sender.shm,
		.writer = (uint16_t)SHM_QP_INDEX(l->sender.qpn),
	};
	if (p->sgid) {
		add_grh(p, &pkt->a);
	} else if (in->payload_bytes <= SHM_INLINE) {
		memcpy(pkt->a.data, p->payload, in->payload_bytes);
		return true;
	}
	slot = hca_payload_get(&l->sender);
	if (!slot || hca_payload_reserve(slot, n)) {
		HCA_COUNT(l->self->process, from->index, no_payload_slot);
		return false;
	}
	memcpy(shm_data_at(&l->self->process->region, slot->off), p->payload, in->payload_bytes);
	pkt->a.flags |= SHM_ARRIVAL_PAYLOAD;
	pkt->a.payload_off = slot->off;
	pkt->payload = slot;
	return true;
}

/* To all queue pairs that the flow lists. */
static void land_mcast(struct daemon_landing *l, const struct landed *landed,
                       const struct fabric_flow *flow, const uint8_t *cut)
{
	const struct shm_flow *r = shm_flow_at(l->f->region, flow->id);
	const uint32_t *list = (const void *)((const char *)l->f->region->control + r->list_off);
	struct hca_process *p = l->self->process;
	struct hca_packet pkt;
	uint32_t n = 0;

	if (landed->in->h.bth.dest_qpn != IB_QPN_MCAST) {
		HCA_COUNT(p, flow->from->index, not_mcast_qpn);
		return;
	}
	if (!r->count || base_array_reserve(&l->to, &l->to_room, r->count) ||
	    !describe(l, landed, flow->from, r->count, &pkt))
		return;
	for (uint32_t i = 0; i < r->count; i++)
		if (!cut || !cut[shm_qp_at(l->f->region, SHM_QP_INDEX(list[i]))->port])
			hca_receiver_init(p, &l->to[n++], list[i]);
	hca_deliver_to(p, &pkt, HCA_ANY_PORT, l->to, n);
}

/* To the network, for receivers elsewhere. */
static void send_to_network(const struct daemon_landing *l, const struct control_detour *in,
                            const void *payload, const struct fabric_port *from)
{
	struct hca_roce *link = daemon_roce_port(l->roce, from->index)->link;
	struct wire_roce_packet packet = {
		.ip = { .sgid = shm_port_at(l->f->region, from->index)
		                        ->gid[in->sgid_index % SHM_GIDS],
		        .dgid = in->dgid,
		        .flow_label = in->class_flow & 0xFFFFF,
		        .traffic_class = (uint8_t)(in->class_flow >> 20),
		        .hop_limit = in->hop_limit },
		.h = in->h,
		.payload = payload,
		.payload_bytes = in->payload_bytes,
	};

	packet.h.deth.src_qpn = in->src_qpn; /* of a datagram */
	if (!link || ib_gid_is_zero(&packet.ip.sgid) ||
	    wire_gid_is_ipv4(&packet.ip.sgid) != wire_gid_is_ipv4(&packet.ip.dgid) ||
	    hca_roce_send_one(link, &packet))
		HCA_COUNT(l->self->process, from->index, xmit_discards);
}

static void land_datagram(struct daemon_landing *l, const struct landed *p,
                          const struct fabric_flow *flow, const uint8_t *cut)
{
	const struct shm_flow *r = shm_flow_at(l->f->region, flow->id);
	struct hca_packet pkt;

	if (r->flags & SHM_FLOW_ROCE)
		send_to_network(l, p->in, p->payload, flow->from);
	if (ib_lid_is_mcast(flow->key.dlid) && (r->count || !(r->flags & SHM_FLOW_ROCE)))
		land_mcast(l, p, flow, cut);
	else if (r->count && !flow->path->routers && describe(l, p, flow->from, 1, &pkt))
		hca_deliver(l->self->process, &pkt, p->in->h.bth.dest_qpn, r->dest_port);
}

/* ---- packets of connected queue pairs ---- */

static void land_connected(struct daemon_landing *l, const struct control_detour *in,
                           const void *payload, const struct fabric_flow *flow)
{
	const struct shm_flow *r = shm_flow_at(l->f->region, flow->id);
	const struct wire_roce_packet packet = {
		.ip = { .traffic_class = (uint8_t)(in->class_flow >> 20) },
		.h = in->h,
		.payload = payload,
		.payload_bytes = in->payload_bytes,
	};

	if (r->flags & SHM_FLOW_ROCE && !r->count)
		send_to_network(l, in, payload, flow->from);
	if (!r->count)
		return;
	l->wires.port = r->dest_port;
	l->wires.from = flow->from->index;
	hca_wires_receive(&l->wires, &packet, 1);
}

bool daemon_land(struct daemon_landing *l, const struct fabric_flow *flow,
                 const struct control_detour *in, const void *payload, const uint8_t *cut,
                 const struct ib_gid *sgid)
{
	const struct landed landed = { .in = in, .payload = payload, .sgid = sgid };

	if (!l->is_ready)
		return false;
	if (in->payload_bytes > shm_flow_at(l->f->region, flow->id)->mtu) {
		HCA_COUNT(l->self->process, flow->from->index, xmit_discards);
		HCA_COUNT(l->self->process, flow->from->index, xmit_mtu);
		return false;
	}
	if (wire_opcode_transport(in->h.bth.opcode) == WIRE_TRANSPORT_UD)
		land_datagram(l, &landed, flow, cut);
	else
		land_connected(l, in, payload, flow);
	return true;
}

/* ---- life ---- */

bool daemon_landing_finish(struct daemon_landing *l)
{
	bool more = !TAILQ_EMPTY(&l->wires.due) && hca_wires_finish(&l->wires, false);

	hca_sender_finish(&l->sender);
	return more;
}

int daemon_landing_open(struct daemon_landing *l)
{
	struct hca_process *process = l->self->process;
	struct control_open_roce_reply rep = { 0 };
	struct control_handle req;
	int ret = daemon_self_open_hca(l->self, 0, &req.handle);

	if (!ret)
		ret = hca_ask_memory(process, &CONTROL_CALL(CONTROL_OPEN_ROCE, &req, &rep));
	if (ret)
		return ret;
	l->sender = (struct hca_sender){
		.process = process,
		.qpn = rep.qpn,
		.shm = shm_sender_at(l->f->region, SHM_QP_INDEX(rep.qpn)),
	};
	hca_wires_init(&l->wires, process, &l->sender, 0);
	l->is_ready = true;
	return 0;
}

void daemon_landing_close(struct daemon_landing *l)
{
	free(l->to);
	l->to = NULL;
	if (!l->is_ready)
		return;
	l->is_ready = false;
	hca_wires_fini(&l->wires);
	hca_flow_drop_all(&l->sender);
	hca_payload_fini(&l->sender.payloads);
}
