/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses of the three families that rdma_cm knows, IPv4, IPv6 and AF_IB: the kind of an address,
 * the port that has it, the MGID of a multicast address. Used by all of cm/.
 */
#include <endian.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "cm/state.h"
#include "wire/mgid.h"

bool cm_addr_known(const union control_cm_addr *a)
{
	return a->sa.sa_family == AF_INET || a->sa.sa_family == AF_INET6 ||
	       a->sa.sa_family == AF_IB;
}

/* The 16 bytes of an IPv6 address or a GID. */
static const uint8_t *long_address(const union control_cm_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? a->in6.sin6_addr.s6_addr : a->ib.sib_addr.sib_raw;
}

bool cm_addr_is_zero(const union control_cm_addr *a)
{
	static const uint8_t zero[16];

	if (a->sa.sa_family == AF_INET)
		return be32toh(a->in.sin_addr.s_addr) >> 24 == 0;
	return !memcmp(long_address(a), zero, sizeof(zero));
}

static const uint8_t long_loopback[16] = { [15] = 1 };

bool cm_addr_is_loopback(const union control_cm_addr *a)
{
	if (a->sa.sa_family == AF_INET)
		return be32toh(a->in.sin_addr.s_addr) >> 24 == 127;
	return !memcmp(long_address(a), long_loopback, sizeof(long_loopback));
}

bool cm_addr_is_any(const union control_cm_addr *a)
{
	return cm_addr_is_zero(a) || cm_addr_is_loopback(a);
}

bool cm_addr_is_mcast(const union control_cm_addr *a)
{
	if (a->sa.sa_family == AF_INET)
		return be32toh(a->in.sin_addr.s_addr) >> 28 == 0xE;
	return long_address(a)[0] == 0xFF;
}

bool cm_addr_is_link_local(const union control_cm_addr *a)
{
	return a->sa.sa_family == AF_INET6 && a->in6.sin6_addr.s6_addr[0] == 0xFE &&
	       (a->in6.sin6_addr.s6_addr[1] & 0xC0) == 0x80;
}

bool cm_addr_equal(const union control_cm_addr *a, const union control_cm_addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return !memcmp(long_address(a), long_address(b), 16);
}

uint16_t cm_addr_port(const union control_cm_addr *a)
{
	switch (a->sa.sa_family) {
	case AF_INET:
		return be16toh(a->in.sin_port);
	case AF_INET6:
		return be16toh(a->in6.sin6_port);
	default:
		return (uint16_t)be64toh(a->ib.sib_sid & a->ib.sib_sid_mask);
	}
}

/* ---- ports of hosts ---- */

int cm_port_host(const struct cm *cm, const struct fabric_port *port)
{
	return (int)shm_hca_at(cm->f->region, port->node->hca)->host_index;
}

void cm_roce_gid(const union control_cm_addr *a, struct ib_gid *gid)
{
	if (a->sa.sa_family == AF_INET)
		*gid = wire_gid_from_ipv4(a->in.sin_addr.s_addr);
	else if (a->sa.sa_family == AF_INET6)
		memcpy(gid->raw, a->in6.sin6_addr.s6_addr, sizeof(gid->raw));
	else
		memcpy(gid->raw, a->ib.sib_addr.sib_raw, sizeof(gid->raw));
}

bool cm_roce_has_addr(const struct shm_port *p, const union control_cm_addr *a)
{
	struct ib_gid gid;

	cm_roce_gid(a, &gid);
	for (int i = 0; i < p->n_gids; i++)
		if (ib_gid_equal(&p->gid[i], &gid))
			return true;
	return false;
}

static bool port_has(const struct shm_port *p, const union control_cm_addr *a)
{
	if (p->link_layer == IBV_LINK_LAYER_ETHERNET)
		return cm_roce_has_addr(p, a);
	if (a->sa.sa_family == AF_INET)
		return p->ipv4 && p->ipv4 == a->in.sin_addr.s_addr;
	if (a->sa.sa_family == AF_INET6 && !memcmp(p->ipv6, long_address(a), 16))
		return true;
	return !memcmp(p->gid[0].raw, long_address(a), 16);
}

uint64_t cm_ipv4_hash(uint32_t ipv4)
{
	return base_hash_of(&ipv4, sizeof(ipv4), 0);
}

/* A port of InfiniBand, whichever host's. */
static struct fabric_port *find_by_ipv4(const struct cm *cm, const union control_cm_addr *a)
{
	struct base_hash_node *n =
	        base_hash_first(&cm->by_ipv4, cm_ipv4_hash(a->in.sin_addr.s_addr));
	struct fabric_port *found = NULL;

	for (; n; n = base_hash_next(n)) {
		struct fabric_port *p = container_of(n, struct cm_port, by_ipv4)->port;

		if (port_has(shm_port_at(cm->f->region, p->index), a) &&
		    (!found || p->index < found->index))
			found = p;
	}
	return found;
}

struct fabric_port *cm_addr_find(const struct cm *cm, int host, const union control_cm_addr *a)
{
	const struct fabric *f = cm->f;
	unsigned first = a->sa.sa_family == AF_INET ? f->n_ib_ports : 0;
	struct fabric_port *found;

	if (host != CM_ALL_HOSTS) {
		for (const struct cm_port *p = cm->of_host[host]; p; p = p->of_host)
			if (port_has(shm_port_at(f->region, p->port->index), a))
				return p->port;
		return NULL;
	}
	found = first ? find_by_ipv4(cm, a) : NULL;
	for (unsigned i = first; i < f->n_hca_ports && !found; i++)
		if (port_has(shm_port_at(f->region, f->hca_port[i]->index), a))
			found = f->hca_port[i];
	return found;
}

static bool is_better(const struct fabric_port *p, const struct fabric_port *than, bool ethernet)
{
	return ethernet == (p->ethernet != NULL) &&
	       (!than || (than->state != IB_PORT_ACTIVE && p->state == IB_PORT_ACTIVE));
}

struct fabric_port *cm_addr_default_port(const struct cm *cm, int host, bool ethernet)
{
	struct fabric_port *best = NULL;

	if (host != CM_ALL_HOSTS) {
		for (const struct cm_port *p = cm->of_host[host]; p; p = p->of_host)
			if (is_better(p->port, best, ethernet))
				best = p->port;
		return best;
	}
	for (unsigned i = 0; i < cm->f->n_hca_ports; i++) {
		if (is_better(cm->f->hca_port[i], best, ethernet))
			best = cm->f->hca_port[i];
		if (best && best->state == IB_PORT_ACTIVE)
			break;
	}
	return best;
}

void cm_port_gid(const struct cm *cm, const struct fabric_port *port, struct ib_gid *gid)
{
	*gid = shm_port_at(cm->f->region, port->index)->gid[0];
}

void cm_addr_from_port(const struct cm *cm, const struct fabric_port *port, bool link_local,
                       union control_cm_addr *a)
{
	const struct shm_port *p = shm_port_at(cm->f->region, port->index);

	switch (a->sa.sa_family) {
	case AF_INET:
		a->in.sin_addr.s_addr = p->ipv4;
		break;
	case AF_INET6:
		memcpy(a->in6.sin6_addr.s6_addr, link_local ? p->gid[0].raw : p->ipv6, 16);
		break;
	default:
		memcpy(a->ib.sib_addr.sib_raw, p->gid[0].raw, 16);
		break;
	}
}

void cm_addr_source(const struct cm *cm, const struct fabric_port *port,
                    const union control_cm_addr *dst, union control_cm_addr *src)
{
	if (src->sa.sa_family == AF_IB || !cm_addr_is_loopback(dst))
		cm_addr_from_port(cm, port, cm_addr_is_link_local(dst), src);
	else if (src->sa.sa_family == AF_INET)
		src->in.sin_addr.s_addr = htobe32(INADDR_LOOPBACK);
	else
		memcpy(src->in6.sin6_addr.s6_addr, long_loopback, sizeof(long_loopback));
}

/* ---- groups ---- */

void cm_addr_to_mgid(const union control_cm_addr *a, uint16_t pkey, bool udp, struct ib_gid *mgid)
{
	if (cm_addr_is_any(a))
		memset(mgid, 0, sizeof(*mgid));
	else if (a->sa.sa_family == AF_INET)
		wire_mgid_from_ipv4(mgid, a->in.sin_addr.s_addr, pkey, udp);
	else if (a->sa.sa_family == AF_INET6)
		wire_mgid_from_ipv6(mgid, &a->in6.sin6_addr, pkey, udp);
	else
		memcpy(mgid->raw, a->ib.sib_addr.sib_raw, sizeof(mgid->raw));
}

/* ---- in requests ---- */

static void put_ip(const union control_cm_addr *a, uint8_t ip[static 16])
{
	memset(ip, 0, 16);
	if (a->sa.sa_family == AF_INET)
		memcpy(ip + 12, &a->in.sin_addr, 4);
	else
		memcpy(ip, &a->in6.sin6_addr, 16);
}

void cm_addr_put_private(const struct cm_id *id, const struct control_cm_connect *from,
                         uint8_t *data)
{
	struct wire_cm_ip ip = { .version = CM_IP_VERSION,
		                 .ip_version = id->dst.sa.sa_family == AF_INET ? 4 : 6,
		                 .src_port = cm_addr_port(&id->src) };

	if (id->dst.sa.sa_family != AF_IB) {
		put_ip(&id->src, ip.src);
		put_ip(&id->dst, ip.dst);
		wire_cm_ip_encode(&ip, data);
		data += wire_cm_ip_bytes;
	}
	memcpy(data, from->private_data, from->bytes);
}

static void get_ip(uint8_t version, const uint8_t ip[static 16], uint16_t port,
                   union control_cm_addr *a)
{
	memset(a, 0, sizeof(*a));
	if (version == 4) {
		a->in.sin_family = AF_INET;
		a->in.sin_port = htobe16(port);
		memcpy(&a->in.sin_addr, ip + 12, 4);
	} else {
		a->in6.sin6_family = AF_INET6;
		a->in6.sin6_port = htobe16(port);
		memcpy(&a->in6.sin6_addr, ip, 16);
	}
}

bool cm_addr_from_wire(const struct wire_cm_ip *ip, uint16_t dst_port, union control_cm_addr *src,
                       union control_cm_addr *dst)
{
	if (ip->version != CM_IP_VERSION || (ip->ip_version != 4 && ip->ip_version != 6))
		return false;
	get_ip(ip->ip_version, ip->src, ip->src_port, src);
	get_ip(ip->ip_version, ip->dst, dst_port, dst);
	return true;
}
