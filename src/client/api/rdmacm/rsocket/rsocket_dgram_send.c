/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sending by a datagram rsocket. The first datagram to a peer waits
 * until its queue pair is known: in the call if that may block, in the peer's queue otherwise. A
 * peer that is not there is no error, as with UDP. See rsocket_dgram.h.
 */
#include <errno.h>

#include "api/rdmacm/rsocket/rsocket_dgram.h"

#define KNOWN_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CONFIRM)

/* Where it goes. 0 or -errno. */
static int find_peer(struct rsocket_dgram *d, const struct rsocket_message *m,
                     struct rsocket_peer **peer)
{
	union control_cm_addr to;
	int ret;

	*peer = d->connected;
	if (!m->to)
		return *peer ? 0 : -EDESTADDRREQ;
	ret = rsocket_addr_get(&d->rs, m->to, m->to_bytes, &to);
	if (!ret && rsocket_is_group(&to))
		ret = -EOPNOTSUPP;
	if (!ret)
		ret = rsocket_dgram_bind(d, NULL);
	return ret ? ret : rsocket_peer_get(d, &to, peer);
}

/* If @wait, until the peer's resolution is over, or a second has passed. 0, or its error. */
static int await_resolved(struct rsocket_dgram *d, struct rsocket_peer *peer, bool wait)
{
	uint64_t until = rsocket_now_ms() + RSOCKET_RESOLVE_MS;
	int ret = 0;

	rsocket_peers_progress(d);
	while (wait && !ret && peer->id && !peer->ah && !d->rs.dead && !d->rs.closed)
		ret = rsocket_sleep(&d->rs, until);
	ret = peer->error;
	peer->error = 0;
	return ret;
}

/* Until a send slot is free. */
static int wait_slot(struct rsocket_dgram *d, struct rsocket_end *end)
{
	int ret = 0;

	while (!ret && !d->rs.dead && !d->rs.closed) {
		rsocket_dgram_arm(&d->rs);
		if (rsocket_end_can_send(end))
			return 0;
		ret = rsocket_sleep(&d->rs, UINT64_MAX);
	}
	return ret ? ret : -EIO;
}

static int send_now(struct rsocket_dgram *d, const struct rsocket_message *m,
                    struct rsocket_peer *peer)
{
	int ret;

	do
		ret = rsocket_end_send(d, peer, m->iov, m->n_iov);
	while (ret == -EAGAIN && rsocket_may_block(&d->rs, m) && !(ret = wait_slot(d, peer->end)));
	return ret;
}

static int send_to(struct rsocket_dgram *d, const struct rsocket_message *m)
{
	struct rsocket_peer *peer;
	int ret = find_peer(d, m, &peer);

	if (ret)
		return ret;
	ret = rsocket_peer_resolve(d, peer);
	if (!ret && peer->id)
		ret = await_resolved(d, peer, rsocket_may_block(&d->rs, m));
	if (ret)
		return ret;
	if (peer->ah)
		return send_now(d, m, peer);
	return peer->id ? rsocket_peer_queue(peer, m->iov, m->n_iov) : 0;
}

ssize_t rsocket_dgram_send(struct rsocket *rs, const struct rsocket_message *m)
{
	int ret;

	if (m->flags & ~KNOWN_FLAGS)
		return -EOPNOTSUPP;
	if (rs->dead)
		return -EIO;
	if (rs->no_write)
		return -EPIPE;
	/* no path has a larger MTU */
	if (m->bytes > RSOCKET_MAX_BYTES)
		return -EMSGSIZE;
	ret = send_to(rsocket_dgram(rs), m);
	return ret ? ret : (ssize_t)m->bytes;
}
