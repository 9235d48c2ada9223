/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ports of the Ethernet link layer: see ethernet.h.
 */
#include <string.h>

#include "fabric/ethernet.h"
#include "fabric/flow.h"

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

static bool has_gid(const struct fabric_port *p, const struct ib_gid *gid)
{
	for (unsigned i = 0; p->ethernet && i < SHM_GIDS; i++)
		if (ib_gid_equal(&p->ethernet->gid[i], gid))
			return p->state == IB_PORT_ACTIVE;
	return false;
}

struct fabric_port *fabric_ethernet_find_anywhere(const struct fabric *f, struct fabric_port *from,
                                                  const struct ib_gid *gid)
{
	struct fabric_port *found = NULL;

	if (ib_gid_is_zero(gid))
		return NULL; /* as are all entries that are empty */
	if (has_gid(from, gid))
		return from;
	for (unsigned i = 0; i < f->n_hca_ports; i++) {
		if (!has_gid(f->hca_port[i], gid))
			continue;
		if (f->hca_port[i]->ethernet->network == from->ethernet->network)
			return f->hca_port[i];
		if (!found)
			found = f->hca_port[i];
	}
	return found;
}

struct fabric_port *fabric_ethernet_find(const struct fabric *f, struct fabric_port *from,
                                         const struct ib_gid *gid)
{
	struct fabric_port *to = fabric_ethernet_find_anywhere(f, from, gid);

	return to && to->ethernet->network == from->ethernet->network ? to : NULL;
}
