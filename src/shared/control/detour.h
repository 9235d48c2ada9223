/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A packet on its detour: from the process that sends it to the daemon, as one datagram of the
 * socket that CONTROL_OPEN_DETOUR has brought (hca/link/detour.h). The payload follows, at most
 * WIRE_ROCE_MAX_PAYLOAD bytes.
 */
#ifndef CONTROL_DETOUR_H
#define CONTROL_DETOUR_H

#include "wire/headers.h"
#include "wire/ib.h"

/* Instead of a flow: it is no packet, but the daemon is to look at the times of connections. */
#define CONTROL_DETOUR_CALL UINT32_MAX

struct control_detour {
	uint32_t src_qpn;
	uint32_t flow; /* the sender's, by which it goes */
	uint32_t payload_bytes;
	uint32_t class_flow; /* traffic class << 20 | flow label; it need not have a GRH */
	struct wire_headers h;
	uint8_t hop_limit, sgid_index;
	uint8_t reserved[2];
	/* UD, and connections that leave the fabric: */
	struct ib_gid dgid;
	/* UD: */
	uint16_t slid;
	uint8_t sl, path_bits;
	uint8_t flags; /* enum shm_arrival_flags */
	uint8_t reserved2[3];
};

#endif
