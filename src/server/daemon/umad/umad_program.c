/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MADs to programs: see umad_program.h.
 */
#include <string.h>

#include "daemon/umad/umad_program.h"

#define HEADER_BYTES   sizeof(struct ib_user_mad)
#define RETURNED_BYTES 24 /* the common header */

void umad_program_send(struct umad_agent *agent, struct ib_user_mad *header, const uint8_t *data,
                       size_t bytes)
{
	uint8_t *packet = agent->port->u->packet;
	struct daemon_datagram g = { .data = packet, .bytes = HEADER_BYTES + bytes };

	if (agent->leaving)
		return;
	header->agent_id = agent->id;
	header->length = (uint32_t)(HEADER_BYTES + bytes);
	if (header->length > CONTROL_UMAD_DATAGRAM) {
		g.bytes = HEADER_BYTES + MAD_BYTES;
		g.beside = data;
		g.beside_bytes = bytes;
	}
	memcpy(packet, header, HEADER_BYTES);
	memcpy(packet + HEADER_BYTES, data, g.bytes - HEADER_BYTES);
	if (daemon_outbox_send_datagram(agent->port->box, &g))
		agent->port->u->d.f->mads->stats.unread++;
}

void umad_program_return(struct umad_agent *agent, const struct ib_user_mad *header,
                         const uint8_t *data, int status)
{
	struct ib_user_mad h = *header;

	h.status = (uint32_t)status;
	umad_program_send(agent, &h, data, RETURNED_BYTES);
}
