/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagram rsockets: how they are made, bound, connected and closed. See rsocket_dgram.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rsocket/rsocket_dgram.h"

#define MAX_ENDS 64

/* ---- life ---- */

static struct rsocket *dgram_alloc(void)
{
	struct rsocket_dgram *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	TAILQ_INIT(&d->ends);
	return &d->rs;
}

static void free_ends(struct rsocket_dgram *d)
{
	struct rsocket_end *end;

	while ((end = TAILQ_FIRST(&d->ends))) {
		TAILQ_REMOVE(&d->ends, end, entry);
		rsocket_end_free(d, end);
	}
}

static void dgram_free(struct rsocket *rs)
{
	struct rsocket_dgram *d = rsocket_dgram(rs);

	rsocket_peers_free(d);
	if (rs->id)
		rdma_destroy_id(rs->id);
	free_ends(d);
	free(d);
}

/* Datagrams that wait for their peer have a second to leave. */
static void dgram_flush(struct rsocket *rs)
{
	struct rsocket_dgram *d = rsocket_dgram(rs);
	uint64_t until = rsocket_now_ms() + RSOCKET_RESOLVE_MS;
	int ret = 0;

	rsocket_peers_progress(d);
	while (!ret && !rs->dead && rsocket_peers_have_queued(d))
		ret = rsocket_sleep(rs, until);
}

/* ---- binding ---- */

/* An end on each port: at any of them somebody may ask for us. */
static int open_all_ends(struct rsocket_dgram *d)
{
	struct ibv_device_attr attr;
	struct rsocket_end *end;
	int n, n_ends = 0, ret = 0;
	struct ibv_context **list = rdma_get_devices(&n);

	if (!list)
		return -errno;
	for (int i = 0; !ret && i < n; i++) {
		ret = -ibv_query_device(list[i], &attr);
		for (uint8_t port = 1; !ret && port <= attr.phys_port_cnt; port++)
			ret = n_ends++ < MAX_ENDS ? rsocket_end_get(d, list[i], port, &end)
			                          : -ENOBUFS;
	}
	rdma_free_devices(list);
	return ret;
}

/* Why rdma_bind_addr() has failed, as bind(2) says it: rdma_cm says EADDRNOTAVAIL not only of an
 * address that is not ours, but also where somebody has the port at any address, or we want it so.
 */
static int why_not_bound(struct rsocket_dgram *d, union control_cm_addr addr, int error)
{
	in_port_t *port = addr.sa.sa_family == AF_INET ? &addr.in.sin_port : &addr.in6.sin6_port;
	struct rdma_cm_id *id;

	if (error != -EADDRNOTAVAIL || !*port)
		return error;
	*port = 0;
	if (rdma_create_id(d->rs.events, &id, NULL, RDMA_PS_UDP))
		return error;
	if (!rdma_bind_addr(id, &addr.sa))
		error = -EADDRINUSE;
	rdma_destroy_id(id);
	return error;
}

int rsocket_dgram_bind(struct rsocket_dgram *d, const union control_cm_addr *addr)
{
	union control_cm_addr at = { .sa = { .sa_family = (sa_family_t)d->rs.domain } };
	struct rsocket_end *end;
	int ret;

	if (d->rs.id)
		return addr ? -EINVAL : 0;
	ret = rsocket_make_id(&d->rs, RDMA_PS_UDP);
	if (ret)
		return ret;
	if (addr)
		at = *addr;
	if (rdma_bind_addr(d->rs.id, &at.sa))
		ret = why_not_bound(d, at, -errno);
	if (!ret && d->rs.id->verbs)
		ret = rsocket_end_get(d, d->rs.id->verbs, d->rs.id->port_num, &end);
	else if (!ret && addr)
		ret = open_all_ends(d);
	if (ret) {
		rdma_destroy_id(d->rs.id);
		d->rs.id = NULL;
		free_ends(d);
	}
	return ret;
}

static int dgram_bind(struct rsocket *rs, const union control_cm_addr *addr)
{
	return rsocket_dgram_bind(rsocket_dgram(rs), addr);
}

/* ---- connecting ---- */

/* Until it is known from where datagrams to the peer leave. */
static int wait_source(struct rsocket_dgram *d, struct rsocket_peer *peer)
{
	uint64_t until = rsocket_now_ms() + RSOCKET_RESOLVE_MS;
	int ret = 0;

	rsocket_peers_progress(d);
	while (!ret && peer->id && !peer->end && !d->rs.dead)
		ret = rsocket_sleep(&d->rs, until);
	ret = peer->error;
	peer->error = 0;
	return ret;
}

static int dgram_connect(struct rsocket *rs, const union control_cm_addr *addr)
{
	struct rsocket_dgram *d = rsocket_dgram(rs);
	struct rsocket_peer *peer;
	int ret;

	if (rsocket_is_group(addr))
		return -EOPNOTSUPP;
	ret = rsocket_dgram_bind(d, NULL);
	if (!ret)
		ret = rsocket_peer_get(d, addr, &peer);
	if (!ret)
		ret = rsocket_peer_resolve(d, peer);
	if (!ret)
		ret = wait_source(d, peer);
	if (!ret)
		d->connected = peer;
	return ret;
}

static int dgram_disconnect(struct rsocket *rs)
{
	rsocket_dgram(rs)->connected = NULL;
	return 0;
}

static int dgram_shutdown(struct rsocket *rs, int how)
{
	if (!rsocket_dgram(rs)->connected)
		return -ENOTCONN;
	rs->no_read |= how != SHUT_WR;
	rs->no_write |= how != SHUT_RD;
	rsocket_wake(rs);
	return 0;
}

/* ---- names ---- */

static int dgram_peer_name(const struct rsocket *rs, union control_cm_addr *a)
{
	const struct rsocket_peer *connected = rsocket_dgram_const(rs)->connected;

	if (!connected)
		return -ENOTCONN;
	*a = connected->addr;
	return 0;
}

/* Of a connected rsocket the source of its datagrams, if it is bound to no other. */
static int dgram_own_name(const struct rsocket *rs, union control_cm_addr *a)
{
	const struct rsocket_peer *connected = rsocket_dgram_const(rs)->connected;

	memset(a, 0, sizeof(*a));
	a->sa.sa_family = (sa_family_t)rs->domain;
	if (!rs->id)
		return 0;
	memcpy(a, &rs->id->route.addr.src_storage, rdmacm_addr_bytes(&rs->id->route.addr.src_addr));
	if (!rs->id->verbs && connected && connected->end)
		*a = connected->src;
	if (a->sa.sa_family == AF_INET)
		a->in.sin_port = rdma_get_src_port(rs->id);
	else
		a->in6.sin6_port = rdma_get_src_port(rs->id);
	return 0;
}

/* ---- events and options ---- */

static void dgram_disarm(struct rsocket *rs, void *what)
{
	(void)rs;
	rsocket_end_disarm(what);
}

static void dgram_progress(struct rsocket *rs)
{
	rsocket_peers_progress(rsocket_dgram(rs));
}

static bool dgram_goes_on(const struct rsocket *rs)
{
	return rsocket_dgram_const(rs)->n_resolving;
}

static bool dgram_has_queues(const struct rsocket *rs)
{
	return !TAILQ_EMPTY(&rsocket_dgram_const(rs)->ends);
}

static int dgram_take_error(struct rsocket *rs)
{
	struct rsocket_peer *connected = rsocket_dgram(rs)->connected;
	int error = 0;

	if (rs->dead)
		return EIO;
	if (connected) {
		error = -connected->error;
		connected->error = 0;
	}
	return error;
}

const struct rsocket_type rsocket_dgram_type = {
	.type = SOCK_DGRAM,
	.protocol = IPPROTO_UDP,
	.alloc = dgram_alloc,
	.free = dgram_free,
	.flush = dgram_flush,
	.bind = dgram_bind,
	.connect = dgram_connect,
	.disconnect = dgram_disconnect,
	.shutdown = dgram_shutdown,
	.own_name = dgram_own_name,
	.peer_name = dgram_peer_name,
	.send = rsocket_dgram_send,
	.receive = rsocket_dgram_receive,
	.events = rsocket_dgram_events,
	.arm = rsocket_dgram_arm,
	.disarm = dgram_disarm,
	.progress = dgram_progress,
	.goes_on = dgram_goes_on,
	.has_queues = dgram_has_queues,
	.take_error = dgram_take_error,
};
