/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Looks things up in the fabric, and publishes its ports: see fabric.h.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "fabric/model/fabric.h"
#include "wire/sm_attr.h"

#define PHYS_POLLING  2
#define PHYS_DISABLED 3
#define PHYS_LINK_UP  5

int fabric_host_find(const struct fabric *f, const char *name)
{
	for (unsigned i = 0; i < f->n_hosts; i++)
		if (!strcmp(f->host[i].name, name))
			return (int)i;
	return -1;
}

void fabric_gid_make(const struct fabric *f, uint64_t guid, struct ib_gid *gid)
{
	uint64_t word[2] = { htobe64(f->subnet_prefix), htobe64(guid) };

	memcpy(gid->raw, word, sizeof(gid->raw));
}

bool fabric_port_has_gid(const struct fabric *f, const struct fabric_port *p,
                         const struct ib_gid *gid)
{
	const struct shm_port *s = shm_port_at(f->region, p->index);

	for (unsigned i = 0; i < (p->alias ? SHM_IB_GIDS : 1); i++)
		if (ib_gid_equal(&s->gid[i], gid))
			return !ib_gid_is_zero(gid);
	return false;
}

static uint64_t guid_hash(uint64_t guid)
{
	return base_hash_of(&guid, sizeof(guid), 0);
}

int fabric_port_index(struct fabric *f, struct fabric_port *p)
{
	return base_hash_add(&f->by_guid, &p->by_guid, guid_hash(p->guid));
}

static bool ethernet_has_gid(const struct fabric_port *p, const struct ib_gid *gid)
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
	if (ethernet_has_gid(from, gid))
		return from;
	for (unsigned i = 0; i < f->n_hca_ports; i++) {
		if (!ethernet_has_gid(f->hca_port[i], gid))
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

struct fabric_port *fabric_port_by_gid(struct fabric *f, const struct ib_gid *gid)
{
	struct fabric_alias *a;
	struct fabric_port *p;
	uint64_t guid, hash;

	memcpy(&guid, gid->raw + 8, sizeof(guid));
	hash = guid_hash(be64toh(guid));
	BASE_HASH_FOREACH(p, &f->by_guid, hash, by_guid)
		if (fabric_port_has_gid(f, p, gid))
			return p;
	BASE_HASH_FOREACH(a, &f->by_alias, hash, by_guid)
		if (fabric_port_has_gid(f, a->port, gid))
			return a->port;
	if (f->n_ib_ports == f->n_hca_ports)
		return NULL;
	return fabric_ethernet_find(f, f->hca_port[f->n_ib_ports], gid);
}

uint64_t fabric_port_guid(const struct fabric_port *p, unsigned i)
{
	if (i == 0)
		return p->guid;
	return p->alias ? p->alias[i].guid : 0;
}

int fabric_port_set_guid(struct fabric *f, struct fabric_port *p, unsigned i, uint64_t guid)
{
	struct fabric_alias *a;
	int ret = 0;

	if (!p->alias && !guid)
		return 0;
	if (!p->alias)
		p->alias = calloc(SHM_IB_GIDS, sizeof(*p->alias));
	if (!p->alias)
		return -ENOMEM;
	a = &p->alias[i];
	a->port = p;
	if (a->guid)
		base_hash_remove(&f->by_alias, &a->by_guid);
	a->guid = guid;
	if (guid)
		ret = base_hash_add(&f->by_alias, &a->by_guid, guid_hash(guid));
	if (ret)
		a->guid = 0;
	return ret;
}

uint32_t fabric_port_capabilities(const struct fabric_port *p)
{
	bool is_switch = p->node->type == FABRIC_SWITCH;

	if (is_switch && p->num)
		return 0;
	return PORT_CAP_TRAP | PORT_CAP_SYSTEM_IMAGE_GUID | PORT_CAP_EXTENDED_SPEEDS |
	       PORT_CAP_CAPABILITY_MASK2 | PORT_CAP_DR_NOTICE | PORT_CAP_CAP_MASK_NOTICE |
	       PORT_CAP_CLIENT_REREGISTER | PORT_CAP_SL_MAPPING |
	       (is_switch ? PORT_CAP_MULTICAST_FDB_TOP | PORT_CAP_PKEY_SWITCH_TRAP : 0) |
	       p->capabilities;
}

uint16_t fabric_port_capabilities2(const struct fabric_port *p)
{
	bool is_switch = p->node->type == FABRIC_SWITCH;
	unsigned first = is_switch ? 1 : p->num, last = is_switch ? p->node->n_ports : p->num;
	uint16_t mask = PORT_CAP2_PORT_INFO_EXTENDED;

	if (is_switch && p->num)
		return 0;
	for (unsigned i = first; i <= last; i++) {
		const struct fabric_port *port = &p->node->port[i];

		if (port->width_built == FABRIC_WIDTH_2X)
			mask |= PORT_CAP2_LINK_WIDTH_2X;
		if (port->speed_built >= FABRIC_SPEED_HDR)
			mask |= PORT_CAP2_LINK_SPEED_HDR;
		if (port->speed_built >= FABRIC_SPEED_NDR)
			mask |= PORT_CAP2_LINK_SPEED_NDR;
	}
	return mask;
}

/* The port's own GID and those of its aliases. */
static void publish_gids(struct fabric *f, const struct fabric_port *p, struct ib_gid *gid)
{
	for (unsigned i = 0; i < (p->alias ? SHM_IB_GIDS : 1); i++) {
		memset(&gid[i], 0, sizeof(gid[i]));
		if (fabric_port_guid(p, i))
			fabric_gid_make(f, fabric_port_guid(p, i), &gid[i]);
	}
}

/* The members that an InfiniBand port has, and an Ethernet port does not. */
static void publish_infiniband(struct fabric *f, const struct fabric_port *p, struct shm_port *s)
{
	s->link_layer = IBV_LINK_LAYER_INFINIBAND;
	s->n_gids = SHM_IB_GIDS;
	s->n_pkeys = SHM_PKEYS;
	publish_gids(f, p, s->gid);
	memcpy(s->pkey, p->pkey, sizeof(s->pkey));
	s->lid = p->lid;
	s->lmc = p->lmc;
	s->sm_lid = p->sm_lid;
	s->sm_sl = p->sm_sl;
	s->subnet_timeout = p->subnet_timeout;
	s->cap_flags = fabric_port_capabilities(p);
	s->cap_flags2 = fabric_port_capabilities2(p);
	s->has_issm_open = p->has_issm_open;
	s->phys_state = p->state == IB_PORT_DOWN ? PHYS_POLLING : PHYS_LINK_UP;
}

static void publish_ethernet(const struct fabric_port *p, struct shm_port *s)
{
	const struct fabric_ethernet *e = p->ethernet;

	s->link_layer = IBV_LINK_LAYER_ETHERNET;
	s->n_gids = SHM_GIDS;
	s->n_pkeys = 1;
	memcpy(s->gid, e->gid, sizeof(s->gid));
	memset(s->gid_type, IBV_GID_TYPE_ROCE_V2, sizeof(s->gid_type));
	s->pkey[0] = IB_PKEY_DEFAULT;
	s->ifindex = e->ifindex;
	s->socket_round = e->round;
	s->ipv4 = e->ipv4;
	memcpy(s->ipv6, e->ipv6, sizeof(s->ipv6));
	s->cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	s->phys_state = p->state == IB_PORT_DOWN ? PHYS_DISABLED : PHYS_LINK_UP;
}

void fabric_port_relinked(struct fabric *f, struct fabric_port *p)
{
	if (p->is_relinked)
		return;
	p->is_relinked = true;
	SLIST_INSERT_HEAD(&f->relinked, p, of_relinked);
}

void fabric_port_publish(struct fabric *f, struct fabric_port *p)
{
	struct shm_port *s = shm_port_at(f->region, p->index);

	shm_write_begin(&s->seq);
	s->hca = p->node->hca;
	s->guid = p->guid;
	s->state = p->state;
	s->max_mtu = IBV_MTU_4096;
	s->active_mtu = p->mtu;
	s->active_width = p->width;
	s->active_speed = p->speed;
	s->port_num = p->num;
	if (p->ethernet)
		publish_ethernet(p, s);
	else
		publish_infiniband(f, p, s);
	shm_write_end(&s->seq);
}
