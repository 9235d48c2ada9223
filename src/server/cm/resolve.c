/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From addresses to ports and from ports to paths: what bind_addr, resolve_addr and
 * resolve_route do. The daemon knows which port of InfiniBand has an address, so it is resolved at
 * once, though the outcome is an event. On Ethernet somebody has to answer there. Paths are asked
 * of the SA.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "cm/mad.h"
#include "cm/state.h"

/* ---- source ---- */

/* From where an identifier sends. */
struct source {
	struct fabric_port *port;
	struct ib_gid sgid;
	int scope;
	uint16_t pkey;
	union control_cm_addr src;
};

static struct source source_of(const struct cm_id *id)
{
	return (struct source){ .port = id->port,
		                .sgid = id->sgid,
		                .scope = id->scope,
		                .pkey = id->pkey,
		                .src = id->src };
}

static void set_source(struct cm_id *id, const struct source *s)
{
	cm_id_set_source(id, s->port, &s->sgid);
	id->scope = s->scope;
	id->pkey = s->pkey;
	id->src = s->src;
}

/* AF_IB names the partition as well; 0: the default one. */
static void use_pkey(struct cm_id *id, const union control_cm_addr *addr)
{
	if (addr->sa.sa_family == AF_IB && addr->ib.sib_pkey)
		id->pkey = be16toh(addr->ib.sib_pkey);
}

static int find_device(struct cm_id *id, const union control_cm_addr *addr)
{
	struct fabric_port *port = cm_addr_find(id->client->cm, id->client->host, addr);

	if (addr->sa.sa_family == AF_IB && (!port || port->ethernet))
		return base_because(-ENODEV,
		                    "no InfiniBand port of this host has that GID"); /* as Linux */
	if (!port)
		return base_because(
		        -EADDRNOTAVAIL,
		        "no port of this host has that address; 'umbel show hosts' lists "
		        "those there are");
	if (port->ethernet && id->ps == RDMA_PS_IPOIB)
		return base_because(-EINVAL, "RDMA_PS_IPOIB is not for RoCE");
	cm_id_use_port(id, port);
	use_pkey(id, addr);
	return 0;
}

int cm_resolve_bind_id(struct cm_id *id, const union control_cm_addr *addr)
{
	const struct source before = source_of(id);
	const bool af_only = id->af_only;
	int ret;

	if (id->state != CM_IDLE)
		return base_because(-EINVAL, "the identifier is bound already");
	if (!cm_addr_known(addr))
		return base_because(-EAFNOSUPPORT,
		                    "the address is of no family that rdma_cm knows");
	ret = cm_addr_is_any(addr) ? 0 : find_device(id, addr);
	if (ret)
		return ret;
	id->src = *addr;
	if (!id->af_only_set)
		id->af_only = addr->sa.sa_family == AF_INET;
	ret = cm_binding_reserve(id->client->cm, id);
	if (ret) {
		set_source(id, &before);
		id->af_only = af_only;
		return ret;
	}
	cm_roce_use_source(id);
	id->dst.sa.sa_family = addr->sa.sa_family;
	id->state = CM_ADDR_BOUND;
	return 0;
}

int cm_resolve_bind(struct cm_call *call)
{
	const struct control_cm_bind_addr *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);
	int ret;

	if (!id)
		return -EINVAL;
	ret = cm_resolve_bind_id(id, &request->addr);
	if (ret)
		return ret;
	cm_id_describe(id, call->reply);
	call->reply_bytes = sizeof(struct control_cm_id_reply);
	return 0;
}

/* Binds to the source that was given, or to a wildcard of the destination's family. */
static int bind_source(struct cm_id *id, const struct control_cm_resolve_addr *request)
{
	union control_cm_addr any = { 0 };

	if (request->src.sa.sa_family)
		return cm_resolve_bind_id(id, &request->src);
	any.sa.sa_family = request->dst.sa.sa_family;
	if (any.sa.sa_family == AF_IB)
		any.ib.sib_pkey = request->dst.ib.sib_pkey;
	return cm_resolve_bind_id(id, &any);
}

/* Whether it is on the client's host and in the partition that @dst names. */
static bool may_lead_to(const struct cm_id *id, const struct fabric_port *port,
                        const struct sockaddr_ib *dst)
{
	const struct cm_client *client = id->client;
	uint16_t index;

	if (port->ethernet ||
	    (client->host != CM_ALL_HOSTS && client->host != cm_port_host(client->cm, port)))
		return false;
	return !dst->sib_pkey || !cm_port_pkey_index(port, be16toh(dst->sib_pkey), &index);
}

/* The port that has the GID @dst, or else one that is ACTIVE in its subnet; NULL: none. */
static struct fabric_port *port_towards(const struct cm_id *id, const struct sockaddr_ib *dst)
{
	const struct cm *cm = id->client->cm;
	struct fabric_port *near = NULL;

	for (unsigned i = 0; i < cm->f->n_hca_ports; i++) {
		struct fabric_port *port = cm->f->hca_port[i];
		struct ib_gid gid;

		if (!may_lead_to(id, port, dst))
			continue;
		cm_port_gid(cm, port, &gid);
		if (!memcmp(gid.raw, dst->sib_addr.sib_raw, sizeof(gid.raw)))
			return port;
		if (!near && port->state == IB_PORT_ACTIVE &&
		    !memcmp(gid.raw, dst->sib_addr.sib_raw, sizeof(gid.raw) / 2))
			near = port;
	}
	return near;
}

/* By AF_IB the destination says from which port it is reached, if the program has not. 0 or
 * -ENODEV. */
static int choose_source_by_gid(struct cm_id *id)
{
	struct fabric_port *port;

	if (id->port || id->dst.sa.sa_family != AF_IB || cm_addr_is_any(&id->dst) ||
	    cm_addr_is_mcast(&id->dst))
		return 0;
	port = port_towards(id, &id->dst.ib);
	if (!port)
		return base_because(-ENODEV, "no port of this host is in the destination's subnet");
	cm_id_use_port(id, port);
	use_pkey(id, &id->src);
	return 0;
}

/* ---- destination ---- */

/* The id has a device after this, and one of its addresses as the source. */
static int use_some_device(struct cm_id *id)
{
	struct cm *cm = id->client->cm;
	struct fabric_port *port = id->port;

	if (!port) {
		port = cm_addr_default_port(cm, id->client->host, false);
		if (!port)
			return base_because(-ENODEV, "this host has no port that is active");
		cm_id_use_port(id, port);
	}
	if (cm_addr_is_any(&id->src))
		cm_addr_source(cm, port, &id->dst, &id->src);
	return 0;
}

/* Whether it is the address of some port, or needs none. AF_IB is not asked: see resolve_route. */
static bool is_somewhere(const struct cm *cm, const union control_cm_addr *dst)
{
	return cm_addr_is_any(dst) || cm_addr_is_mcast(dst) || dst->sa.sa_family == AF_IB ||
	       cm_addr_find(cm, CM_ALL_HOSTS, dst);
}

/* The GID that the destination is reached at. */
static void find_dgid(struct cm_id *id)
{
	struct cm *cm = id->client->cm;

	if (cm_addr_is_any(&id->dst))
		id->dgid = id->sgid;
	else if (cm_addr_is_mcast(&id->dst))
		cm_addr_to_mgid(&id->dst, id->pkey, false, &id->dgid);
	else if (id->dst.sa.sa_family == AF_IB)
		memcpy(id->dgid.raw, id->dst.ib.sib_addr.sib_raw, sizeof(id->dgid.raw));
	else
		cm_port_gid(cm, cm_addr_find(cm, CM_ALL_HOSTS, &id->dst), &id->dgid);
}

/* The id has a device, a source address and both GIDs after this. @from: see cm_roce_resolve(). */
static int find_ends(struct cm_id *id, union control_cm_addr *from)
{
	int ret;

	if (cm_roce(id))
		return cm_roce_resolve(id, from);
	ret = is_somewhere(id->client->cm, &id->dst) ? use_some_device(id) : -EHOSTUNREACH;
	if (!ret)
		find_dgid(id);
	return ret;
}

/* The event tells what is known of the destination, if need be once somebody there has answered. */
struct cm_resolving {
	struct source before; /* as it is again if nobody answers */
	struct cm_event *event;
	struct cm_search *search; /* NULL: nobody is searched for */
};

static struct cm_resolving *new_resolving(struct cm_id *id)
{
	struct cm_resolving *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->before = source_of(id);
	r->event = cm_event_new(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	if (r->event)
		return r;
	free(r);
	return NULL;
}

/* If it fails the program may try another address, by another port. */
static void on_resolved(void *arg, int status)
{
	struct cm_id *id = arg;
	struct cm_resolving *r = id->resolving;

	id->resolving = NULL;
	id->state = status ? CM_ADDR_BOUND : CM_ADDR_RESOLVED;
	if (status) {
		set_source(id, &r->before);
		r->event->data.type = RDMA_CM_EVENT_ADDR_ERROR;
		r->event->data.status = status;
	}
	cm_event_post(r->event);
	free(r);
}

/* On Ethernet the owner of the address has to answer. 0, -EINPROGRESS or -errno. */
static int search(struct cm_id *id, uint32_t timeout_ms)
{
	const struct cm *cm = id->client->cm;
	const struct cm_sought sought = { .port = id->port,
		                          .sgid = id->sgid,
		                          .dgid = id->dgid,
		                          .timeout_ms = timeout_ms,
		                          .done = on_resolved,
		                          .arg = id };

	if (!id->port->ethernet || !cm->ops.search || cm_addr_is_any(&id->dst) ||
	    cm_addr_is_mcast(&id->dst) || id->dst.sa.sa_family == AF_IB)
		return 0;
	return cm->ops.search(cm->ops.arg, &sought, &id->resolving->search);
}

/* As in Linux, a route that is missing fails the call; a later failure is an event. */
static int resolve_addr(struct cm_id *id, const struct control_cm_resolve_addr *request)
{
	const union control_cm_addr *dst = &request->dst;
	union control_cm_addr from = { 0 };
	int ret;

	if (id->state != CM_ADDR_BOUND)
		return base_because(-EINVAL, "the identifier has been resolved, listens or is "
		                             "connected already");
	if (id->src.sa.sa_family != dst->sa.sa_family)
		return base_because(-EINVAL, "source and destination are of different families");
	id->dst = *dst;
	ret = cm_roce(id) ? cm_roce_find_route(id, &from) : choose_source_by_gid(id);
	if (ret)
		return ret;
	id->resolving = new_resolving(id);
	if (!id->resolving)
		return -ENOMEM;
	id->state = CM_ADDR_QUERY;
	ret = find_ends(id, &from);
	if (!ret)
		ret = search(id, request->timeout_ms);
	if (ret != -EINPROGRESS)
		on_resolved(id, ret);
	return 0;
}

static int start_resolving(struct cm_id *id, const struct control_cm_resolve_addr *request)
{
	int ret = 0;

	if (!cm_addr_known(&request->dst) ||
	    (request->src.sa.sa_family && !cm_addr_known(&request->src)))
		return base_because(-EINVAL, "an address is of no family that rdma_cm knows");
	if (id->state == CM_IDLE)
		ret = bind_source(id, request);
	return ret ? ret : resolve_addr(id, request);
}

int cm_resolve_addr(struct cm_call *call)
{
	const struct control_cm_resolve_addr *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);

	if (!id)
		return -EINVAL;
	return cm_event_failure(call, id, RDMA_CM_EVENT_ADDR_ERROR, start_resolving(id, request));
}

/* ---- path ---- */

static void set_path(const struct wire_path_record *r, struct control_cm_path *path)
{
	*path = (struct control_cm_path){ .sgid = r->sgid,
		                          .dgid = r->dgid,
		                          .slid = r->slid,
		                          .dlid = r->dlid,
		                          .pkey = r->pkey,
		                          .sl = r->sl,
		                          .mtu = r->mtu,
		                          .rate = r->rate,
		                          .life = r->life,
		                          .traffic_class = r->tclass,
		                          .hop_limit = r->hop_limit,
		                          .flow_label = r->flow_label };
}

static void on_path(void *arg, int status, const struct fabric_mad *response)
{
	struct cm_id *id = arg;
	struct cm_event *e = id->route_event;
	struct wire_path_record path;

	id->path_query = NULL;
	id->route_event = NULL;
	if (status) {
		id->state = CM_ADDR_RESOLVED;
		e->data.type = RDMA_CM_EVENT_ROUTE_ERROR;
		e->data.status = status;
	} else {
		wire_path_record_decode(cm_sa_record(response), &path);
		set_path(&path, &id->path);
		id->has_path = true;
		id->state = CM_ROUTE_RESOLVED;
	}
	cm_event_post(e);
}

uint64_t cm_resolve_service_id(uint16_t ps, const union control_cm_addr *a)
{
	if (a->sa.sa_family == AF_IB)
		return be64toh(a->ib.sib_sid);
	return (uint64_t)ps << 16 | cm_addr_port(a);
}

/* Sets what the program may choose of a path. The components' bits. */
static uint64_t wish(const struct cm_id *id, struct wire_path_record *want)
{
	switch (id->src.sa.sa_family) {
	case AF_INET:
		want->qos_class = id->tos;
		return SA_PR(qos_class);
	case AF_INET6:
		want->tclass = (uint8_t)(be32toh(id->src.in6.sin6_flowinfo) >> 20);
		return SA_PR(tclass);
	default:
		want->tclass = (uint8_t)(be32toh(id->src.ib.sib_flowinfo) >> 20);
		return SA_PR(tclass);
	}
}

static int query_path(struct cm_id *id, uint32_t timeout_ms)
{
	struct wire_path_record want = { .service_id = cm_resolve_service_id(id->ps, &id->dst),
		                         .dgid = id->dgid,
		                         .sgid = id->sgid,
		                         .reversible = 1,
		                         .numb_path = 1,
		                         .pkey = id->pkey };
	struct cm_sa_request request = { .port = id->port,
		                         .method = MAD_GET,
		                         .attribute = SA_ATTR_PATH,
		                         .layout = &wire_path_record_layout,
		                         .record = &want,
		                         .timeout_ms = timeout_ms,
		                         .done = on_path,
		                         .arg = id };

	request.mask = SA_PR(service_id) | SA_PR(dgid) | SA_PR(sgid) | SA_PR(reversible) |
	               SA_PR(numb_path) | SA_PR(pkey) | wish(id, &want);
	return cm_sa_ask(id->client->cm, &request, &id->path_query);
}

static int resolve_route(struct cm_id *id, uint32_t timeout_ms)
{
	int ret;

	if (id->state != CM_ADDR_RESOLVED)
		return base_because(-EINVAL, "the address is not resolved: rdma_resolve_addr() "
		                             "first, and its event");
	if (id->port->ethernet)
		return cm_roce_route(id);
	if (id->port->state != IB_PORT_ACTIVE || !id->port->sm_lid) /* there is nobody to ask */
		return base_because(-EAGAIN,
		                    "port %u of %s is not active, or knows no subnet manager: does "
		                    "one run?",
		                    id->port->num, id->port->node->name);
	id->route_event = cm_event_new(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	if (!id->route_event)
		return -ENOMEM;
	ret = query_path(id, timeout_ms);
	if (ret) {
		cm_resolve_abandon(id);
		return ret;
	}
	id->state = CM_ROUTE_QUERY;
	return 0;
}

int cm_resolve_route(struct cm_call *call)
{
	const struct control_cm_resolve_route *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);

	if (!id)
		return -EINVAL;
	return cm_event_failure(call, id, RDMA_CM_EVENT_ROUTE_ERROR,
	                        resolve_route(id, request->timeout_ms));
}

static void abandon_search(struct cm_id *id)
{
	struct cm_resolving *r = id->resolving;

	if (!r)
		return;
	if (r->search)
		id->client->cm->ops.search_end(r->search);
	free(r->event);
	free(r);
	id->resolving = NULL;
}

void cm_resolve_abandon(struct cm_id *id)
{
	abandon_search(id);
	cm_mad_cancel(&id->path_query);
	free(id->route_event);
	id->route_event = NULL;
}

/* ---- a path that the program brings ---- */

static void path_from_record(const struct ibv_path_record *r, struct control_cm_path *path)
{
	uint32_t flow_hop = be32toh(r->flowlabel_hoplimit);

	memcpy(path->sgid.raw, r->sgid.raw, sizeof(path->sgid.raw));
	memcpy(path->dgid.raw, r->dgid.raw, sizeof(path->dgid.raw));
	path->slid = be16toh(r->slid);
	path->dlid = be16toh(r->dlid);
	path->pkey = be16toh(r->pkey);
	path->sl = be16toh(r->qosclass_sl) & 0xF;
	path->mtu = r->mtu & 0x3F;
	path->rate = r->rate & 0x3F;
	path->life = r->packetlifetime & 0x3F;
	path->traffic_class = r->tclass;
	path->hop_limit = (uint8_t)flow_hop;
	path->flow_label = flow_hop >> 8 & 0xFFFFF;
}

int cm_resolve_set_path(struct cm_id *id, const void *value, uint32_t bytes)
{
	const uint32_t usable =
	        IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	struct ibv_path_data data;

	if (bytes % sizeof(data) || id->state != CM_ADDR_RESOLVED)
		return -EINVAL;
	for (uint32_t at = 0; at < bytes; at += sizeof(data)) {
		memcpy(&data, (const char *)value + at, sizeof(data));
		if (data.flags != usable)
			continue;
		path_from_record(&data.path, &id->path);
		id->has_path = true;
		id->state = CM_ROUTE_RESOLVED;
		return cm_event_send(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	}
	return -EINVAL;
}
