/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Routers, as a subnet sees them: see routers.h.
 */
#include <endian.h>
#include <string.h>

#include "fabric/model/routers.h"
#include "wire/mgid.h"

void fabric_router_add(struct fabric *f, struct fabric_port *p)
{
	struct fabric_routers *r = f->routers;

	if (!p->node->is_router || p->ethernet || r->n == FABRIC_ROUTERS)
		return;
	r->port[r->n++] = p;
	p->router = (uint8_t)r->n;
}

uint64_t fabric_prefix_of(const struct ib_gid *gid)
{
	uint64_t prefix;

	memcpy(&prefix, gid->raw, sizeof(prefix));
	return be64toh(prefix);
}

bool fabric_gid_is_beyond(const struct fabric *f, const struct ib_gid *gid)
{
	const uint64_t prefix = fabric_prefix_of(gid);

	return !ib_gid_is_mcast(gid) && prefix != f->subnet_prefix &&
	       prefix != IB_SUBNET_PREFIX_DEFAULT;
}

bool fabric_mgid_is_wide(const struct ib_gid *mgid)
{
	return ib_gid_is_mcast(mgid) && (mgid->raw[1] & 0xF) > WIRE_SCOPE_LINK;
}

const struct fabric_route *fabric_route_find(const struct fabric *f, uint64_t prefix)
{
	for (unsigned i = 0; i < f->routers->n_routes; i++)
		if (f->routers->route[i].prefix == prefix)
			return &f->routers->route[i];
	return NULL;
}

void fabric_set_prefix(struct fabric *f, uint64_t prefix)
{
	f->subnet_prefix = prefix;
	for (unsigned i = 0; i < f->n_ib_ports; i++)
		fabric_port_publish(f, f->hca_port[i]);
}
