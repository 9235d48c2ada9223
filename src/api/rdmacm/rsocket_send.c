/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sending by a datagram rsocket: send(2) and its relatives. The first datagram to a peer waits
 * until its queue pair is known: in the call if that may block, in the peer's queue otherwise. A
 * peer that is not there is no error, as with UDP. See rsocket.h.
 */
#include <errno.h>
#include <string.h>

#include "api/rdmacm/rsocket.h"

#define KNOWN_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CONFIRM)

struct send {
	const struct iovec *iov;
	int n_iov;
	int flags;
	const struct sockaddr *to;
	socklen_t to_bytes;
};

static bool may_block(const struct rsocket *rs, const struct send *s)
{
	return !rs->nonblocking && !(s->flags & MSG_DONTWAIT);
}

/* Where it goes. 0 or -errno. */
static int find_peer(struct rsocket *rs, const struct send *s, struct rsocket_peer **peer)
{
	union control_cm_addr to;
	int ret;

	*peer = rs->connected;
	if (!s->to)
		return *peer ? 0 : -EDESTADDRREQ;
	ret = rsocket_addr_get(rs, s->to, s->to_bytes, &to);
	if (!ret && rsocket_is_group(&to))
		ret = -EOPNOTSUPP;
	if (!ret)
		ret = rsocket_bind(rs, NULL);
	return ret ? ret : rsocket_peer_get(rs, &to, peer);
}

/* If @wait, until the peer's resolution is over, or a second has passed. 0, or its error. */
static int await_resolved(struct rsocket *rs, struct rsocket_peer *peer, bool wait)
{
	uint64_t until = rsocket_now_ms() + RSOCKET_RESOLVE_MS;
	int ret = 0;

	rsocket_peers_progress(rs);
	while (wait && !ret && peer->id && !peer->ah && !rs->dead && !rs->closed)
		ret = rsocket_sleep(rs, until);
	ret = peer->error;
	peer->error = 0;
	return ret;
}

/* Until a send slot is free. */
static int wait_slot(struct rsocket *rs, struct rsocket_end *end)
{
	int ret = 0;

	while (!ret && !rs->dead && !rs->closed) {
		rsocket_arm(rs);
		if (rsocket_end_can_send(end))
			return 0;
		ret = rsocket_sleep(rs, UINT64_MAX);
	}
	return ret ? ret : -EIO;
}

static int send_now(struct rsocket *rs, const struct send *s, struct rsocket_peer *peer)
{
	int ret;

	do
		ret = rsocket_end_send(rs, peer, s->iov, s->n_iov);
	while (ret == -EAGAIN && may_block(rs, s) && !(ret = wait_slot(rs, peer->end)));
	return ret;
}

static int send_to(struct rsocket *rs, const struct send *s)
{
	struct rsocket_peer *peer;
	int ret = find_peer(rs, s, &peer);

	if (ret)
		return ret;
	ret = rsocket_peer_resolve(rs, peer);
	if (!ret && peer->id)
		ret = await_resolved(rs, peer, may_block(rs, s));
	if (ret)
		return ret;
	if (peer->ah)
		return send_now(rs, s, peer);
	return peer->id ? rsocket_peer_queue(peer, s->iov, s->n_iov) : 0;
}

static ssize_t check(const struct rsocket *rs, const struct send *s)
{
	ssize_t bytes = rsocket_iov_bytes(s->iov, (size_t)s->n_iov);

	if (s->flags & ~KNOWN_FLAGS)
		return -EOPNOTSUPP;
	if (rs->dead)
		return -EIO;
	if (rs->no_write)
		return -EPIPE;
	/* no path has a larger MTU */
	return bytes > RSOCKET_MAX_BYTES ? -EMSGSIZE : bytes;
}

static ssize_t send_on(int socket, const struct send *s)
{
	struct rsocket *rs = rsocket_enter(socket);
	ssize_t bytes;
	int ret = 0;

	if (!rs)
		return -1;
	bytes = check(rs, s);
	if (bytes >= 0)
		ret = send_to(rs, s);
	return rsocket_leave(rs, ret ? ret : bytes);
}

/* ---- the calls ---- */

ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
                const struct sockaddr *dest_addr, socklen_t addrlen)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return send_on(socket, &(struct send){ .iov = &iov,
	                                       .n_iov = 1,
	                                       .flags = flags,
	                                       .to = dest_addr,
	                                       .to_bytes = addrlen });
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return rsendto(socket, buf, len, flags, NULL, 0);
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return rsendto(socket, buf, count, 0, NULL, 0);
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	if (msg->msg_controllen)
		return rdmacm_return(-EOPNOTSUPP);
	if (msg->msg_iovlen > INT32_MAX)
		return rdmacm_return(-EMSGSIZE);
	return send_on(socket, &(struct send){ .iov = msg->msg_iov,
	                                       .n_iov = (int)msg->msg_iovlen,
	                                       .flags = flags,
	                                       .to = msg->msg_name,
	                                       .to_bytes = msg->msg_namelen });
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)iovcnt };

	if (iovcnt < 0)
		return rdmacm_return(-EINVAL);
	return rsendmsg(socket, &msg, 0);
}
