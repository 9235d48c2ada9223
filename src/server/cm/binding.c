/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Port spaces: which identifiers use which port numbers, on which hosts. The rules are
 * the kernel's: an address and port belong to one identifier, unless all identifiers that share
 * them allow it and none listens; a wildcard conflicts with every address. Those that serve, as
 * datagram rsockets do, share them as UDP sockets: the last one has the requests.
 *
 * A port number of a port space is a service ID. Beyond the kernel's, an identifier of RDMA_PS_IB
 * may have any other service ID as well, by AF_IB: there is no ib_cm here, by which programs of the
 * kernel listen at those.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "base/reason.h"
#include "base/util.h"
#include "cm/state.h"

#define EPHEMERAL_FIRST 32768
#define EPHEMERAL_LAST  60999

static uint64_t service_of(uint16_t ps, uint16_t port)
{
	return (uint64_t)ps << 16 | port;
}

static struct cm_binding *binding_find(const struct cm *cm, uint64_t service)
{
	struct cm_binding *b;

	BASE_HASH_FOREACH(b, &cm->bindings, service, node)
		if (b->service == service)
			return b;
	return NULL;
}

static struct cm_binding *binding_get(struct cm *cm, uint64_t service)
{
	struct cm_binding *b = binding_find(cm, service);

	if (b)
		return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->service = service;
	LIST_INIT(&b->owners);
	if (base_hash_add(&cm->bindings, &b->node, service)) {
		free(b);
		return NULL;
	}
	return b;
}

static bool same_host(const struct cm_id *a, const struct cm_id *b)
{
	return a->scope == CM_ALL_HOSTS || b->scope == CM_ALL_HOSTS || a->scope == b->scope;
}

/* Its process has ended, as a parent that has waited for it knows, but its identifiers have not
 * yet. */
static bool is_over(const struct cm_id *id)
{
	return id->channel->doomed || id->client->cm->ops.outbox_closed(id->channel->box);
}

/* Whether @id may be one of the owners. */
static int check_owners(const struct cm_binding *b, const struct cm_id *id, bool reuse)
{
	const struct cm_channel *over = NULL; /* the kernel is asked once for those of a channel */
	const struct cm_id *o;

	LIST_FOREACH(o, &b->owners, of_binding)
	{
		if (o == id || o->channel == over || !same_host(o, id))
			continue;
		if ((o->state != CM_LISTEN || o->serves) && reuse && o->reuse_addr)
			continue;
		if (id->af_only && o->af_only && id->src.sa.sa_family != o->src.sa.sa_family)
			continue;
		if (!cm_addr_is_any(&id->src) && !cm_addr_is_any(&o->src) &&
		    !cm_addr_equal(&id->src, &o->src))
			continue;
		if (is_over(o)) {
			over = o->channel;
			continue;
		}
		if (cm_addr_is_any(&id->src) || cm_addr_is_any(&o->src))
			return base_because(-EADDRNOTAVAIL,
			                    "another identifier of this host has that port");
		return base_because(-EADDRINUSE,
		                    "another identifier of this host has that address and port");
	}
	return 0;
}

static bool is_free(const struct cm_binding *b, const struct cm_id *id)
{
	const struct cm_id *o;

	LIST_FOREACH(o, &b->owners, of_binding)
	if (same_host(o, id))
		return false;
	return true;
}

/* A port number that nobody on the identifier's host uses; 0: none left. */
static uint16_t choose_port(struct cm *cm, const struct cm_id *id, uint16_t ps)
{
	for (unsigned tries = EPHEMERAL_LAST - EPHEMERAL_FIRST + 1; tries; tries--) {
		const struct cm_binding *b;

		if (cm->last_port < EPHEMERAL_FIRST || cm->last_port >= EPHEMERAL_LAST)
			cm->last_port = EPHEMERAL_FIRST;
		else
			cm->last_port++;
		b = binding_find(cm, service_of(ps, cm->last_port));
		if (!b || is_free(b, id))
			return cm->last_port;
	}
	return 0;
}

/* ---- port spaces ---- */

/* The port space that a service ID lies in, of those that @ps may use; 0: none. */
static uint16_t ps_of_service(uint16_t ps, uint64_t sid, uint64_t mask)
{
	static const uint16_t spaces[] = { RDMA_PS_IB, RDMA_PS_TCP, RDMA_PS_UDP };

	mask &= RDMA_IB_IP_PS_MASK;
	for (unsigned i = 0; i < ARRAY_SIZE(spaces); i++) {
		if (ps != RDMA_PS_IB && ps != spaces[i])
			continue;
		if ((sid & mask) == ((uint64_t)spaces[i] << 16 & mask))
			return spaces[i];
	}
	return 0;
}

static uint16_t select_ps(const struct cm_id *id)
{
	if (id->src.sa.sa_family != AF_IB)
		return id->ps;
	return ps_of_service(id->ps, be64toh(id->src.ib.sib_sid), be64toh(id->src.ib.sib_sid_mask));
}

static void write_port(struct cm_id *id, uint16_t ps, uint16_t port)
{
	switch (id->src.sa.sa_family) {
	case AF_INET:
		id->src.in.sin_port = htobe16(port);
		break;
	case AF_INET6:
		id->src.in6.sin6_port = htobe16(port);
		break;
	default:
		id->src.ib.sib_sid = htobe64((uint64_t)ps << 16 | port);
		id->src.ib.sib_sid_mask = UINT64_MAX;
		break;
	}
}

/* Whether it is bound to one service ID that is in no port space. */
static bool has_own_service(const struct cm_id *id)
{
	return id->ps == RDMA_PS_IB && id->src.sa.sa_family == AF_IB &&
	       id->src.ib.sib_sid_mask == UINT64_MAX && be64toh(id->src.ib.sib_sid) >> 32;
}

/* The service ID that @id is bound to, and has in @id->src after this. 0, -EPROTONOSUPPORT or
 * -EADDRNOTAVAIL. */
static int choose_service(struct cm *cm, struct cm_id *id, uint64_t *service)
{
	uint16_t ps, port;

	if (has_own_service(id)) {
		*service = be64toh(id->src.ib.sib_sid);
		return 0;
	}
	ps = select_ps(id);
	if (!ps)
		return base_because(-EPROTONOSUPPORT, "the service ID is of another port space");
	port = cm_addr_port(&id->src);
	if (!port)
		port = choose_port(cm, id, ps);
	if (!port)
		return base_because(-EADDRNOTAVAIL, "no port is free");
	write_port(id, ps, port);
	*service = service_of(ps, port);
	return 0;
}

int cm_binding_reserve(struct cm *cm, struct cm_id *id)
{
	struct cm_binding *b;
	uint64_t service;
	int ret;

	id->scope = id->port ? cm_port_host(cm, id->port) : id->client->host;
	ret = choose_service(cm, id, &service);
	if (ret)
		return ret;
	b = binding_find(cm, service);
	ret = b ? check_owners(b, id, id->reuse_addr) : 0;
	if (ret)
		return ret;
	b = binding_get(cm, service);
	if (!b)
		return -ENOMEM;
	LIST_INSERT_HEAD(&b->owners, id, of_binding);
	id->binding = b;
	return 0;
}

void cm_binding_release(struct cm *cm, struct cm_id *id)
{
	struct cm_binding *b = id->binding;

	if (!b)
		return;
	LIST_REMOVE(id, of_binding);
	id->binding = NULL;
	if (!LIST_EMPTY(&b->owners))
		return;
	base_hash_remove(&cm->bindings, &b->node);
	free(b);
}

/* ---- listening ---- */

int cm_binding_may_listen(const struct cm_id *id)
{
	return id->reuse_addr ? check_owners(id->binding, id, id->serves) : 0;
}

static bool listens_for(const struct cm_id *l, const struct cm *cm, const struct fabric_port *port,
                        const union control_cm_addr *dst)
{
	if (l->state != CM_LISTEN || l->channel->doomed)
		return false;
	if (l->port ? l->port != port
	            : l->scope != CM_ALL_HOSTS && l->scope != cm_port_host(cm, port))
		return false;
	if (l->src.sa.sa_family == AF_IB || (cm_addr_is_any(&l->src) && !l->af_only))
		return true;
	if (l->src.sa.sa_family != dst->sa.sa_family)
		return false;
	return cm_addr_is_any(&l->src) || cm_addr_equal(&l->src, dst);
}

struct cm_id *cm_binding_listener(const struct cm *cm, const struct fabric_port *port,
                                  uint64_t service_id, const union control_cm_addr *dst)
{
	struct cm_binding *b = binding_find(cm, service_id);
	struct cm_id *l;

	if (!b)
		return NULL;
	LIST_FOREACH(l, &b->owners, of_binding)
	if (listens_for(l, cm, port, dst))
		return l;
	return NULL;
}
