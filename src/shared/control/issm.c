/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ports that may have a subnet manager: see issm.h.
 */
#include "control/issm.h"
#include "control/umad_message.h"

void control_issm_read_port(struct control_client *c, const struct shm_region *region,
                            uint32_t index, struct shm_port *port)
{
	const struct control_umad_at req = { .index = index };
	const struct control_call call = { .type = (enum control_type)CONTROL_UMAD_ISSM,
		                           .request = &req,
		                           .request_bytes = sizeof(req) };

	shm_port_read(region, index, port);
	if (port->has_issm_open && !control_call(c, &call))
		shm_port_read(region, index, port);
}
