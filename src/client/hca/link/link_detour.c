/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The link of flows whose datagrams make the detour: see detour.h.
 */
#include "hca/link/detour.h"
#include "hca/link/flow.h"
#include "hca/link/packet.h"
#include "hca/process/link.h"

static void describe(struct hca_sender *s, const struct hca_flow *f, const struct hca_packet *pkt,
                     uint32_t remote_qpn, struct control_detour *d)
{
	const struct shm_arrival *a = &pkt->a;

	*d = (struct control_detour){
		.src_qpn = a->src_qpn,
		.flow = f->id,
		.payload_bytes = a->length,
		.class_flow = a->class_flow,
		.h.bth = { .opcode = a->flags & SHM_ARRIVAL_IMM ? WIRE_OPCODE_UD_SEND_ONLY_IMM
		                                                : WIRE_OPCODE_UD_SEND_ONLY,
		           .solicited = a->flags & SHM_ARRIVAL_SOLICITED,
		           .migrated = true,
		           .pkey = a->pkey,
		           .dest_qpn = remote_qpn,
		           .psn = s->psn++ & WIRE_PSN_MASK },
		.h.deth = { .qkey = pkt->qkey, .src_qpn = a->src_qpn },
		.h.imm_data = a->imm,
		.hop_limit = a->hop_limit,
		.sgid_index = a->sgid_index,
		.dgid = a->dgid,
		.slid = a->slid,
		.sl = a->sl,
		.path_bits = a->path_bits,
		.flags = a->flags,
	};
}

/* hca_link_ops.send. If the packet has receivers on other machines, the daemon sends it to the
 * network. */
static void send_by_detour(struct hca_sender *s, struct hca_flow *f, const struct hca_packet *pkt,
                           uint32_t remote_qpn)
{
	const void *message = pkt->a.data;
	struct control_detour d;

	describe(s, f, pkt, remote_qpn, &d);
	if (!hca_packet_is_small(pkt))
		message = shm_data_at(&s->process->region, pkt->a.payload_off);
	if (!hca_detour_send(s->process, &d, message))
		HCA_COUNT(s->process, s->port, xmit_discards);
}

const struct hca_link_ops hca_link_detour = {
	.name = "detour",
	.send = send_by_detour,
};
