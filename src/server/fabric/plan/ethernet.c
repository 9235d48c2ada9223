/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ports of the Ethernet link layer: see ethernet.h.
 */
#include <string.h>

#include "fabric/forwarding/flow.h"
#include "fabric/plan/ethernet.h"

unsigned fabric_ethernet_set(struct fabric *f, struct fabric_port *p,
                             const struct fabric_ethernet *now, uint8_t mtu)
{
	struct fabric_ethernet *e = p->ethernet;
	uint8_t state = now->up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	bool gids = memcmp(e->gid, now->gid, sizeof(e->gid)) != 0;
	bool flows = gids || p->state != state || p->mtu != mtu;
	unsigned changed = gids ? FABRIC_ETHERNET_GIDS : 0;

	if (p->state != state)
		changed |= FABRIC_ETHERNET_STATE;
	if (p->state != state && !now->up)
		p->stats.link_downed++;
	*e = *now;
	p->state = state;
	p->mtu = mtu;
	fabric_port_publish(f, p);
	if (flows)
		fabric_flow_all_changed(f);
	return changed;
}
