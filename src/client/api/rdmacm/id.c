/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Identifiers: made, bound, resolved, moved, destroyed. Exported calls check what they
 * are given, ask the daemon, and bring the public struct up to date.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rdmacm.h"
#include "base/ack_wait.h"

#define SELECTOR_EXACTLY 2

/* ---- addresses ---- */

socklen_t rdmacm_addr_bytes(const struct sockaddr *addr)
{
	if (!addr)
		return 0;
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

int rdmacm_addr_copy(const struct sockaddr *addr, union control_cm_addr *copy)
{
	socklen_t bytes = rdmacm_addr_bytes(addr);

	if (!bytes)
		return -EINVAL;
	memset(copy, 0, sizeof(*copy));
	memcpy(copy, addr, bytes);
	return 0;
}

static __be16 addr_port(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)addr)->sin_port;
	case AF_INET6:
		return ((const struct sockaddr_in6 *)addr)->sin6_port;
	case AF_IB:
		return htobe16((uint16_t)be64toh(((const struct sockaddr_ib *)addr)->sib_sid));
	default:
		return 0;
	}
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return addr_port(&id->route.addr.src_addr);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return addr_port(&id->route.addr.dst_addr);
}

/* ---- life ---- */

int rdmacm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
                  enum ibv_qp_type qp_type, struct rdmacm_id **out)
{
	struct rdmacm_id *id = calloc(1, sizeof(*id));
	struct rdmacm_channel *own;
	int ret;

	if (!id)
		return -ENOMEM;
	if (!channel) {
		ret = rdmacm_channel_open(&own);
		if (ret) {
			free(id);
			return ret;
		}
		channel = &own->channel;
		id->sync = true;
	}
	id->handle = CONTROL_CM_ANNOUNCED; /* none of the process's own */
	id->session = container_of(channel, struct rdmacm_channel, channel)->session;
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = qp_type;
	pthread_mutex_init(&id->lock, NULL);
	pthread_cond_init(&id->acked_more, NULL);
	LIST_INIT(&id->joins);
	TAILQ_INIT(&id->kept);
	*out = id;
	return 0;
}

void rdmacm_id_free(struct rdmacm_id *id)
{
	struct rdmacm_join *j;

	while ((j = LIST_FIRST(&id->joins))) {
		LIST_REMOVE(j, entry);
		free(j);
	}
	rdmacm_device_release(id);
	if (!(id->handle & CONTROL_CM_ANNOUNCED))
		rdmacm_session_number_free(id->handle);
	if (id->sync)
		rdma_destroy_event_channel(id->id.channel);
	pthread_cond_destroy(&id->acked_more);
	pthread_mutex_destroy(&id->lock);
	free(id->id.route.path_rec);
	free(id->connect_data);
	free(id->qp_init_attr);
	free(id);
}

static bool is_port_space(enum rdma_port_space ps)
{
	return ps == RDMA_PS_TCP || ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB || ps == RDMA_PS_IB;
}

/* The daemon has it made when it is asked for something about it. */
int rdmacm_id_create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
                     enum ibv_qp_type qp_type, struct rdmacm_id **out)
{
	struct rdmacm_id *id;
	int ret;

	if (!is_port_space(ps))
		return -EINVAL;
	ret = rdmacm_id_new(channel, context, ps, qp_type, &id);
	if (ret)
		return ret;
	ret = rdmacm_session_number(id, &id->handle);
	if (ret) {
		rdmacm_id_free(id);
		return ret;
	}
	*out = id;
	return 0;
}

/* A thread that makes a request about the identifier may get an event of an earlier request. */
static void begin_stage(struct rdmacm_id *id, enum control_cm_type type)
{
	enum rdmacm_stage stage = RDMACM_UNKNOWN;

	if (type == CONTROL_CM_RESOLVE_ADDR)
		stage = RDMACM_RESOLVING_ADDR;
	else if (type == CONTROL_CM_RESOLVE_ROUTE)
		stage = RDMACM_RESOLVING_ROUTE;
	atomic_store_explicit(&id->stage, stage, memory_order_relaxed);
}

void rdmacm_id_end_stage(struct rdmacm_id *id, enum rdmacm_stage stage, enum rdmacm_stage next)
{
	/* relaxed: the daemon, and the channel's lock, order what was asked before its event */
	atomic_compare_exchange_strong_explicit(&id->stage, &stage, next, memory_order_relaxed,
	                                        memory_order_relaxed);
}

/* In a batch with what is asked about it. */
static int post_create(struct rdmacm_id *id)
{
	struct control_cm_create_id create = { .uid = (uintptr_t)id,
		                               .id = id->handle,
		                               .ps = (uint16_t)id->id.ps,
		                               .qp_type = (uint16_t)id->id.qp_type };

	create.channel = container_of(id->id.channel, struct rdmacm_channel, channel)->handle;
	id->may_be_made = true;
	return rdmacm_session_post(id->session, CONTROL_CM_CREATE_ID, &create, sizeof(create));
}

static int ask(struct rdmacm_id *id, enum control_cm_type type, const void *request, uint32_t bytes,
               void *reply, uint32_t reply_bytes)
{
	struct rdmacm_batch batch;
	int ret;

	if (id->is_made)
		return rdmacm_session_call(id->session, type, request, bytes, reply, reply_bytes);
	rdmacm_batch_begin(id->session, &batch);
	ret = post_create(id);
	if (!ret)
		ret = rdmacm_session_call(id->session, type, request, bytes, reply, reply_bytes);
	rdmacm_batch_end(&batch);
	id->is_made = !ret;
	return ret;
}

static int post(struct rdmacm_id *id, enum control_cm_type type, const void *request,
                uint32_t bytes)
{
	struct rdmacm_batch batch;
	int ret, sent;

	if (id->is_made)
		return rdmacm_session_post(id->session, type, request, bytes);
	rdmacm_batch_begin(id->session, &batch);
	ret = post_create(id);
	if (!ret)
		ret = rdmacm_session_post(id->session, type, request, bytes);
	sent = rdmacm_batch_end(&batch);
	id->is_made = !ret && !sent;
	return ret ? ret : sent;
}

int rdmacm_id_call(struct rdmacm_id *id, enum control_cm_type type, const void *request,
                   uint32_t bytes, void *reply, uint32_t reply_bytes)
{
	int ret;

	begin_stage(id, type);
	if (type == CONTROL_CM_BIND_ADDR || type == CONTROL_CM_LISTEN || type == CONTROL_CM_SERVE)
		id->holds_port = true;
	ret = ask(id, type, request, bytes, reply, reply_bytes);
	if (ret)
		atomic_store_explicit(&id->stage, RDMACM_UNKNOWN, memory_order_relaxed);
	return ret;
}

bool rdmacm_id_is_at(const struct rdmacm_id *id, enum rdmacm_stage stage)
{
	return atomic_load_explicit(&id->stage, memory_order_relaxed) == stage;
}

int rdmacm_id_begin(struct rdmacm_id *id, bool cannot_fail, enum control_cm_type type,
                    const void *request, uint32_t bytes)
{
	if (!cannot_fail || rdmacm_session_is_parents(id->session))
		return rdmacm_id_call(id, type, request, bytes, NULL, 0);
	begin_stage(id, type);
	return post(id, type, request, bytes);
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space ps)
{
	bool datagram = ps == RDMA_PS_IPOIB || ps == RDMA_PS_UDP;
	struct rdmacm_id *made;
	int ret;

	if (!id)
		return rdmacm_return(-EINVAL);
	ret = rdmacm_id_create(channel, context, ps, datagram ? IBV_QPT_UD : IBV_QPT_RC, &made);
	if (!ret)
		*id = &made->id;
	return rdmacm_return(ret);
}

void rdmacm_id_ack(struct rdmacm_id *id, struct rdmacm_join *join)
{
	pthread_mutex_lock(&id->lock);
	if (join)
		join->acked++;
	id->acked++;
	pthread_cond_broadcast(&id->acked_more);
	pthread_mutex_unlock(&id->lock);
}

static void wait_acked(struct rdmacm_id *id, uint32_t reported, const char *call)
{
	struct base_ack_wait w = { .part = BASE_LOG_PART_rdmacm,
		                   .call = call,
		                   .acknowledge = "rdma_ack_cm_event" };

	pthread_mutex_lock(&id->lock);
	while ((w.missing = (int)(reported - id->acked)) > 0)
		base_ack_wait(&w, &id->acked_more, &id->lock);
	pthread_mutex_unlock(&id->lock);
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	uint32_t got;
	int ret;

	if (!id)
		return rdmacm_return(-EINVAL);
	ret = rdmacm_channel_destroy_id(rdmacm_id(id), &got);
	if (ret)
		return rdmacm_return(ret);
	if (id->event)
		rdma_ack_cm_event(id->event);
	wait_acked(rdmacm_id(id), got, "rdma_destroy_id");
	rdmacm_id_free(rdmacm_id(id));
	return 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	struct rdma_event_channel *from;
	struct rdmacm_channel *own = NULL;
	uint32_t got;
	int ret = 0;

	if (!id || (rdmacm_id(id)->sync && !channel))
		return rdmacm_return(-EINVAL);
	if (!channel)
		ret = rdmacm_channel_open(&own);
	if (ret)
		return rdmacm_return(ret);
	if (own)
		channel = &own->channel;
	from = id->channel;
	ret = rdmacm_channel_migrate_id(rdmacm_id(id), channel, &got);
	if (ret) {
		if (own)
			rdmacm_channel_close(own);
		return rdmacm_return(ret);
	}
	if (rdmacm_id(id)->sync) {
		if (id->event)
			rdma_ack_cm_event(id->event);
		id->event = NULL;
		rdma_destroy_event_channel(from);
	}
	rdmacm_id(id)->sync = own;
	wait_acked(rdmacm_id(id), got, "rdma_migrate_id");
	return 0;
}

/* ---- what the daemon knows ---- */

static int set_path(struct rdma_cm_id *id, const struct control_cm_path *path)
{
	struct ibv_sa_path_rec *rec = id->route.path_rec;

	if (!rec) {
		rec = calloc(1, sizeof(*rec));
		if (!rec)
			return -ENOMEM;
		id->route.path_rec = rec;
	}
	*rec = (struct ibv_sa_path_rec){
		.dlid = htobe16(path->dlid),
		.slid = htobe16(path->slid),
		.flow_label = htobe32(path->flow_label),
		.hop_limit = path->hop_limit,
		.traffic_class = path->traffic_class,
		.reversible = 1,
		.numb_path = 1,
		.pkey = htobe16(path->pkey),
		.sl = path->sl,
		.mtu_selector = SELECTOR_EXACTLY,
		.mtu = path->mtu,
		.rate_selector = SELECTOR_EXACTLY,
		.rate = path->rate,
		.packet_life_time_selector = SELECTOR_EXACTLY,
		.packet_life_time = path->life,
		.preference =
		        IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL,
	};
	memcpy(rec->sgid.raw, path->sgid.raw, sizeof(rec->sgid.raw));
	memcpy(rec->dgid.raw, path->dgid.raw, sizeof(rec->dgid.raw));
	id->route.num_paths = 1;
	return 0;
}

int rdmacm_id_update(struct rdmacm_id *id, const struct control_cm_id_reply *info)
{
	struct rdma_addr *addr = &id->id.route.addr;
	int ret;

	memcpy(&addr->src_storage, &info->src, rdmacm_addr_bytes(&info->src.sa));
	memcpy(&addr->dst_storage, &info->dst, rdmacm_addr_bytes(&info->dst.sa));
	if (!info->hca[0])
		return 0;
	if (!id->device) {
		ret = rdmacm_device_use(id, info->hca);
		if (ret)
			return ret;
		id->id.port_num = info->port_num;
	}
	memcpy(addr->addr.ibaddr.sgid.raw, info->sgid.raw, sizeof(info->sgid.raw));
	memcpy(addr->addr.ibaddr.dgid.raw, info->dgid.raw, sizeof(info->dgid.raw));
	addr->addr.ibaddr.pkey = htobe16(info->pkey);
	return info->num_paths ? set_path(&id->id, &info->path) : 0;
}

/* ---- synchronous identifiers ---- */

static int status_of(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return -EIO;
	if (!event->status)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return event->status < 0 ? event->status : -event->status;
}

int rdmacm_id_complete(struct rdmacm_id *id)
{
	if (!id->sync)
		return 0;
	if (id->id.event)
		rdma_ack_cm_event(id->id.event);
	id->id.event = NULL;
	if (rdma_get_cm_event(id->id.channel, &id->id.event))
		return -errno;
	return status_of(id->id.event);
}

/* ---- addresses and routes ---- */

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct control_cm_bind_addr request = { 0 };
	struct control_cm_id_reply info;
	int ret;

	if (!id)
		return rdmacm_return(-EINVAL);
	ret = rdmacm_addr_copy(addr, &request.addr);
	if (ret)
		return rdmacm_return(ret);
	request.id = rdmacm_id(id)->handle;
	ret = rdmacm_id_call(rdmacm_id(id), CONTROL_CM_BIND_ADDR, &request, sizeof(request), &info,
	                     sizeof(info));
	if (!ret)
		ret = rdmacm_id_update(rdmacm_id(id), &info);
	return rdmacm_return(ret);
}

/* Whether nothing was asked about it that could matter, nor is a certain port asked for now. */
static bool is_afresh(const struct rdmacm_id *id, const struct control_cm_resolve_addr *request)
{
	return !id->may_be_made && !id->holds_port && request->dst.sa.sa_family != AF_IB &&
	       request->src.sa.sa_family != AF_IB;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
                      int timeout_ms)
{
	struct control_cm_resolve_addr request = { .timeout_ms = (uint32_t)timeout_ms };
	struct sockaddr_storage before;
	struct rdmacm_id *p;
	int ret;

	if (!id)
		return rdmacm_return(-EINVAL);
	p = rdmacm_id(id);
	ret = rdmacm_addr_copy(dst_addr, &request.dst);
	if (!ret && src_addr)
		ret = rdmacm_addr_copy(src_addr, &request.src);
	if (ret)
		return rdmacm_return(ret);
	if (src_addr && addr_port(src_addr))
		p->holds_port = true;
	request.id = p->handle;
	p->is_afresh = is_afresh(p, &request);
	p->asked = request;
	before = id->route.addr.dst_storage;
	/* the event may come to another thread before this one goes on, and brings the address */
	memcpy(&id->route.addr.dst_storage, dst_addr, rdmacm_addr_bytes(dst_addr));
	ret = rdmacm_id_begin(p, p->is_afresh && rdmacm_known(p, &request), CONTROL_CM_RESOLVE_ADDR,
	                      &request, sizeof(request));
	if (ret) {
		id->route.addr.dst_storage = before;
		return rdmacm_return(ret);
	}
	return rdmacm_return(rdmacm_id_complete(p));
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct control_cm_resolve_route request = { .timeout_ms = (uint32_t)timeout_ms };
	struct rdmacm_id *p;
	bool cannot_fail;
	int ret;

	if (!id)
		return rdmacm_return(-EINVAL);
	p = rdmacm_id(id);
	request.id = p->handle;
	cannot_fail = rdmacm_id_is_at(p, RDMACM_ADDR_RESOLVED) && rdmacm_device_is_ready(p);
	ret = rdmacm_id_begin(p, cannot_fail, CONTROL_CM_RESOLVE_ROUTE, &request, sizeof(request));
	if (!ret)
		ret = rdmacm_id_complete(p);
	return rdmacm_return(ret);
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	struct control_cm_set_option request = { .level = level, .name = optname };

	if (!id || (!optval && optlen) || optlen > sizeof(request.value))
		return rdmacm_return(-EINVAL);
	request.id = rdmacm_id(id)->handle;
	request.bytes = (uint32_t)optlen;
	rdmacm_id(id)->has_qp = false; /* it may change them */
	rdmacm_id(id)->has_options = true;
	if (optlen)
		memcpy(request.value, optval, optlen);
	return rdmacm_return(rdmacm_id_call(rdmacm_id(id), CONTROL_CM_SET_OPTION, &request,
	                                    sizeof(request), NULL, 0));
}
