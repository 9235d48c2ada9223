/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The link of flows that are traced (UMBEL_LOG=packet=trace). It logs where each packet goes, marks
 * the packet, so that its receivers log it too, and sends it by the flow's own links. A flow has it
 * only while tracing is on, so tracing costs nothing otherwise.
 */
#include <stdio.h>

#include "base/log.h"
#include "hca/link/flow.h"
#include "hca/link/packet.h"
#include "hca/process/link.h"
#include "wire/text.h"

/* The destination as text, in @text: the GID if the packet has one, else the LID. */
static const char *destination(const struct hca_flow *f, const struct hca_packet *pkt,
                               char text[static WIRE_TEXT])
{
	if (pkt->a.flags & SHM_ARRIVAL_GRH)
		return wire_gid_format(&pkt->a.dgid, text);
	snprintf(text, WIRE_TEXT, "LID %u", (unsigned)f->dest.lid);
	return text;
}

static void log_packet(struct hca_sender *s, const struct hca_flow *f, const struct hca_packet *pkt,
                       uint32_t remote_qpn)
{
	const struct shm_region *r = &s->process->region;
	const struct shm_port *port = shm_port_at(r, s->port);
	char text[WIRE_TEXT];

	base_log_trace(packet,
	               "QP 0x%06x: sends %u bytes from %s port %u to %s QP 0x%06x, flow %u: %u "
	               "receivers here%s",
	               s->qpn, pkt->a.length, shm_hca_at(r, port->hca)->name, port->port_num,
	               destination(f, pkt, text), remote_qpn, f->id, f->count,
	               f->detours  ? ", by the daemon"
	               : f->leaves ? ", and the network"
	                           : "");
}

static void send_traced(struct hca_sender *s, struct hca_flow *f, const struct hca_packet *pkt,
                        uint32_t remote_qpn)
{
	struct hca_packet marked = *pkt;

	marked.a.flags |= SHM_ARRIVAL_TRACED;
	log_packet(s, f, pkt, remote_qpn);
	if (f->detours) {
		hca_link_detour.send(s, f, &marked, remote_qpn);
		return;
	}
	hca_link_shm.send(s, f, &marked, remote_qpn);
	if (f->leaves)
		s->network->ops->send(s, f, &marked, remote_qpn);
}

const struct hca_link_ops hca_link_trace = {
	.name = "trace",
	.send = send_traced,
};
