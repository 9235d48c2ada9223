/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The peers of a datagram rsocket: addresses, and the queue pairs that they turn out to be. A
 * resolution is an rdma_cm identifier that goes through address, route and service; its events are
 * served whenever a thread is in a call. See rsocket_dgram.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rsocket/rsocket_dgram.h"
#include "wire/ib.h"

#define RETRY_MS  10    /* between two requests to a peer that was not there */
#define SILENT_MS 1000  /* without a datagram from it, a peer is resolved anew */
#define IDLE_MS   60000 /* neither heard nor asked for that long: it may be forgotten */
#define SWEEP_MS  1000
#define MANY      1024 /* peers from which on idle ones are forgotten */
#define MAX_PEERS 65536

static uint64_t hash_of(const union control_cm_addr *addr)
{
	return base_hash_of(addr, sizeof(*addr), 0);
}

struct rsocket_peer *rsocket_peer_find(const struct rsocket_dgram *d,
                                       const union control_cm_addr *addr)
{
	struct rsocket_peer *peer;

	BASE_HASH_FOREACH(peer, &d->peers, hash_of(addr), node)
		if (!memcmp(&peer->addr, addr, sizeof(*addr)))
			return peer;
	return NULL;
}

/* ---- life ---- */

static void drop_queued(struct rsocket_peer *peer)
{
	struct rsocket_datagram *d = STAILQ_FIRST(&peer->queued);

	STAILQ_REMOVE_HEAD(&peer->queued, entry);
	peer->n_queued--;
	free(d);
}

static void end_resolution(struct rsocket_dgram *d, struct rsocket_peer *peer)
{
	if (!peer->id)
		return;
	rdma_destroy_id(peer->id);
	peer->id = NULL;
	d->n_resolving--;
}

static void peer_free(struct rsocket_dgram *d, struct rsocket_peer *peer)
{
	end_resolution(d, peer);
	while (peer->n_queued)
		drop_queued(peer);
	if (peer->ah)
		ibv_destroy_ah(peer->ah);
	base_hash_remove(&d->peers, &peer->node);
	free(peer);
}

void rsocket_peers_free(struct rsocket_dgram *d)
{
	struct base_hash_node *n;

	d->connected = NULL;
	while ((n = base_hash_walk(&d->peers, NULL)))
		peer_free(d, container_of(n, struct rsocket_peer, node));
	base_hash_fini(&d->peers);
}

/* Clients come and go, each with another port number: forgets those that have gone. */
static void sweep(struct rsocket_dgram *d)
{
	struct base_hash_node *n, *next;
	uint64_t now = rsocket_now_ms();

	if (d->peers.n < MANY || now - d->swept_ms < SWEEP_MS)
		return;
	d->swept_ms = now;
	for (n = base_hash_walk(&d->peers, NULL); n; n = next) {
		struct rsocket_peer *peer = container_of(n, struct rsocket_peer, node);

		next = base_hash_walk(&d->peers, n);
		if (peer != d->connected && !peer->id && now - peer->heard_ms > IDLE_MS &&
		    now - peer->asked_ms > IDLE_MS)
			peer_free(d, peer);
	}
}

int rsocket_peer_get(struct rsocket_dgram *d, const union control_cm_addr *addr,
                     struct rsocket_peer **out)
{
	struct rsocket_peer *peer = rsocket_peer_find(d, addr);

	*out = peer;
	if (peer)
		return 0;
	sweep(d);
	if (d->peers.n >= MAX_PEERS)
		return -ENOBUFS;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return -ENOMEM;
	peer->addr = *addr;
	STAILQ_INIT(&peer->queued);
	if (base_hash_add(&d->peers, &peer->node, hash_of(addr))) {
		free(peer);
		return -ENOMEM;
	}
	*out = peer;
	return 0;
}

/* ---- datagrams that wait ---- */

int rsocket_peer_queue(struct rsocket_peer *peer, const struct iovec *iov, size_t n)
{
	ssize_t bytes = rsocket_iov_bytes(iov, n);
	struct rsocket_datagram *d;

	if (bytes < 0)
		return (int)bytes;
	d = malloc(sizeof(*d) + (size_t)bytes);
	if (!d)
		return -ENOMEM;
	d->bytes = 0;
	for (size_t i = 0; i < n; i++) {
		if (iov[i].iov_len)
			memcpy(d->data + d->bytes, iov[i].iov_base, iov[i].iov_len);
		d->bytes += iov[i].iov_len;
	}
	if (peer->n_queued == RSOCKET_MAX_QUEUED)
		drop_queued(peer);
	STAILQ_INSERT_TAIL(&peer->queued, d, entry);
	peer->n_queued++;
	return 0;
}

static void send_queued(struct rsocket_dgram *d, struct rsocket_peer *peer)
{
	while (peer->n_queued) {
		struct rsocket_datagram *first = STAILQ_FIRST(&peer->queued);
		struct iovec iov = { .iov_base = first->data, .iov_len = first->bytes };

		/* one that is too long for the path, or for the queue, is lost */
		rsocket_end_send(d, peer, &iov, 1);
		drop_queued(peer);
	}
}

bool rsocket_peers_have_queued(const struct rsocket_dgram *d)
{
	struct base_hash_node *n;

	for (n = base_hash_walk(&d->peers, NULL); n; n = base_hash_walk(&d->peers, n))
		if (container_of(n, struct rsocket_peer, node)->n_queued)
			return true;
	return false;
}

/* ---- resolution ---- */

/* The address that the rsocket is bound to, without its port number; NULL: any. */
static struct sockaddr *source(const struct rsocket_dgram *d, union control_cm_addr *src)
{
	if (!d->rs.id->verbs)
		return NULL;
	memset(src, 0, sizeof(*src));
	memcpy(src, &d->rs.id->route.addr.src_storage,
	       rdmacm_addr_bytes(&d->rs.id->route.addr.src_addr));
	if (src->sa.sa_family == AF_INET)
		src->in.sin_port = 0;
	else
		src->in6.sin6_port = 0;
	return &src->sa;
}

/* The queue pair is not there, or cannot be reached. @error: 0 if the program need not know. */
static void fail(struct rsocket_dgram *d, struct rsocket_peer *peer, int error)
{
	end_resolution(d, peer);
	peer->error = error;
	if (error)
		peer->asked_ms = 0; /* a call that hears of it may try again at once */
	if (peer->ah)
		ibv_destroy_ah(peer->ah);
	peer->ah = NULL;
	while (peer->n_queued)
		drop_queued(peer);
}

static int begin(struct rsocket_dgram *d, struct rsocket_peer *peer)
{
	union control_cm_addr src;

	peer->asked_ms = rsocket_now_ms();
	if (rdma_create_id(d->rs.events, &peer->id, peer, RDMA_PS_UDP))
		return -errno;
	d->n_resolving++;
	if (!rdma_resolve_addr(peer->id, source(d, &src), &peer->addr.sa, RSOCKET_RESOLVE_MS))
		return 0;
	fail(d, peer, -errno);
	return 0;
}

int rsocket_peer_resolve(struct rsocket_dgram *d, struct rsocket_peer *peer)
{
	uint64_t now = rsocket_now_ms();
	int ret = 0;

	if (peer->id && now - peer->asked_ms > RSOCKET_RESOLVE_MS)
		end_resolution(d, peer);
	if (!peer->id && now - peer->asked_ms >= (peer->ah ? SILENT_MS : RETRY_MS) &&
	    now - peer->heard_ms >= (peer->ah ? SILENT_MS : 0))
		ret = begin(d, peer);
	if (!ret && peer->error) {
		ret = peer->error;
		peer->error = 0;
	}
	return ret;
}

/* Its address as datagrams name it: without a scope, and, where the program has given any address,
 * that of this host which leads there. */
static void learn_from(struct rsocket_peer *peer)
{
	const struct rdma_addr *a = &peer->id->route.addr;
	union control_cm_addr *from = &peer->from;

	memset(from, 0, sizeof(*from));
	from->sa.sa_family = a->dst_addr.sa_family;
	if (a->dst_addr.sa_family == AF_INET) {
		from->in.sin_port = a->dst_sin.sin_port;
		from->in.sin_addr = a->dst_sin.sin_addr.s_addr == htonl(INADDR_ANY)
		                            ? a->src_sin.sin_addr
		                            : a->dst_sin.sin_addr;
	} else if (a->dst_addr.sa_family == AF_INET6) {
		from->in6.sin6_port = a->dst_sin6.sin6_port;
		from->in6.sin6_addr = IN6_IS_ADDR_UNSPECIFIED(&a->dst_sin6.sin6_addr)
		                              ? a->src_sin6.sin6_addr
		                              : a->dst_sin6.sin6_addr;
	}
}

/* We know from which port it goes, and from which address. */
static int on_address(struct rsocket_dgram *d, struct rsocket_peer *peer)
{
	const struct rdma_cm_id *id = peer->id;
	struct rsocket_end *end;
	int ret = rsocket_end_get(d, id->verbs, id->port_num, &end);

	if (ret)
		return ret;
	if (peer->end != end && peer->ah) {
		ibv_destroy_ah(peer->ah);
		peer->ah = NULL;
	}
	peer->end = end;
	memset(&peer->src, 0, sizeof(peer->src));
	memcpy(&peer->src, &id->route.addr.src_storage,
	       rdmacm_addr_bytes(&id->route.addr.src_addr));
	learn_from(peer);
	return rdma_resolve_route(peer->id, RSOCKET_RESOLVE_MS) ? -errno : 0;
}

static int on_route(struct rsocket_peer *peer)
{
	uint32_t mtu = IB_MTU_BYTES(peer->id->route.path_rec->mtu);

	peer->mtu = mtu < peer->end->mtu ? mtu : peer->end->mtu;
	return rdma_connect(peer->id, NULL) ? -errno : 0;
}

static int on_found(struct rsocket_dgram *d, struct rsocket_peer *peer, struct rdma_ud_param *ud)
{
	struct ibv_ah *ah = ibv_create_ah(peer->end->pd, &ud->ah_attr);

	if (!ah)
		return -errno;
	if (peer->ah)
		ibv_destroy_ah(peer->ah);
	peer->ah = ah;
	peer->qpn = ud->qp_num;
	peer->qkey = ud->qkey;
	peer->heard_ms = rsocket_now_ms();
	end_resolution(d, peer);
	send_queued(d, peer);
	return 0;
}

static void serve(struct rsocket_dgram *d, struct rsocket_peer *peer, struct rdma_cm_event *e)
{
	int ret;

	switch (e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = on_address(d, peer);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = on_route(peer);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		ret = on_found(d, peer, &e->param.ud);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		ret = e->status < 0 ? e->status : -EHOSTUNREACH;
		break;
	default: /* nobody has that port number: as with UDP, the datagram is lost */
		fail(d, peer, 0);
		return;
	}
	if (ret)
		fail(d, peer, ret);
}

void rsocket_peers_progress(struct rsocket_dgram *d)
{
	struct rdma_cm_event *e;

	while (!rdma_get_cm_event(d->rs.events, &e)) {
		struct rdma_cm_event copy = *e;
		struct rsocket_peer *peer = e->id->context;

		/* acknowledged first: the identifier may go */
		rdma_ack_cm_event(e);
		if (peer && peer->id == copy.id)
			serve(d, peer, &copy);
	}
	if (errno != EAGAIN && errno != EINTR)
		d->rs.dead = true;
}
