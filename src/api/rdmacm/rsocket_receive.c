/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receiving by a datagram rsocket: recv(2) and its relatives. See rsocket.h.
 */
#define _GNU_SOURCE /* IOV_MAX, POLLRDHUP */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "api/rdmacm/rsocket.h"

#define LOOKS       1024
#define KNOWN_FLAGS (MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC | MSG_NOSIGNAL | MSG_WAITALL)

ssize_t rsocket_iov_bytes(const struct iovec *iov, size_t n)
{
	size_t bytes = 0;

	if (n > IOV_MAX)
		return -EMSGSIZE;
	for (size_t i = 0; i < n; i++) {
		if (iov[i].iov_len > SSIZE_MAX - bytes)
			return -EINVAL;
		bytes += iov[i].iov_len;
	}
	return (ssize_t)bytes;
}

/* ---- what has arrived ---- */

static void get_source(const uint8_t *header, union control_cm_addr *src)
{
	memset(src, 0, sizeof(*src));
	if (header[0] == 4) {
		src->in.sin_family = AF_INET;
		memcpy(&src->in.sin_port, header + 2, 2);
		memcpy(&src->in.sin_addr, header + 4, 4);
	} else {
		src->in6.sin6_family = AF_INET6;
		memcpy(&src->in6.sin6_port, header + 2, 2);
		memcpy(&src->in6.sin6_addr, header + 8, 16);
	}
}

/* Whether the program is to have the datagram; its sender is known to live. */
static bool accept_from(struct rsocket *rs, const uint8_t *header)
{
	struct rsocket_peer *peer;
	union control_cm_addr src;

	get_source(header, &src);
	peer = rsocket_peer_find(rs, &src);
	if (peer)
		peer->heard_ms = rsocket_now_ms();
	return !rs->connected || peer == rs->connected;
}

static bool end_has_next(struct rsocket *rs, struct rsocket_end *end)
{
	const uint8_t *d;
	uint32_t bytes;

	if (end->has_arrival)
		return true;
	while ((d = rsocket_end_peek(end, &bytes))) {
		if (accept_from(rs, d))
			return true;
		rsocket_end_pop(end);
	}
	return false;
}

struct rsocket_end *rsocket_next(struct rsocket *rs)
{
	struct rsocket_end *end;

	TAILQ_FOREACH(end, &rs->ends, entry)
	if (end_has_next(rs, end))
		return end;
	return NULL;
}

short rsocket_events(struct rsocket *rs)
{
	struct rsocket_end *end;
	bool writable = TAILQ_EMPTY(&rs->ends) || rs->no_write;
	short events = 0;

	if (rsocket_next(rs))
		events |= POLLIN | POLLRDNORM;
	if (rs->no_read)
		events |= POLLIN | POLLRDNORM | POLLRDHUP;
	TAILQ_FOREACH(end, &rs->ends, entry)
	if (rsocket_end_can_send(end))
		writable = true;
	if (writable)
		events |= POLLOUT | POLLWRNORM;
	if (rs->no_read && rs->no_write)
		events |= POLLHUP;
	if (rs->connected && rs->connected->error)
		events |= POLLERR;
	if (rs->dead || rs->closed)
		events |= POLLERR | POLLHUP;
	return events;
}

/* ---- the calls ---- */

/* What a call has room for, and how much of that it used. */
struct receive {
	const struct iovec *iov;
	size_t n_iov;
	int flags;
	bool truncated;
	union control_cm_addr src;
};

/* Where it would be said that the rsocket has an error, or is at its end. 1: neither. */
static int state_of(struct rsocket *rs)
{
	int error = 0;

	if (rs->closed)
		return -EBADF;
	if (rs->dead)
		return -EIO;
	if (rs->connected) {
		error = rs->connected->error;
		rs->connected->error = 0;
	}
	if (error)
		return error;
	return rs->no_read ? 0 : 1;
}

/* Waits for a datagram. 1: *@end has it; 0: reading was shut down; -errno. */
static int wait_next(struct rsocket *rs, int flags, struct rsocket_end **end)
{
	bool armed = false;
	int ret;

	for (;;) {
		*end = rsocket_next(rs);
		if (*end)
			return 1;
		/* who never sleeps is to hear now and then that the daemon has gone */
		if (rs->n_resolving || ++rs->n_empty % LOOKS == 0)
			rsocket_peers_progress(rs);
		ret = state_of(rs);
		if (ret <= 0)
			return ret;
		if (rs->nonblocking || flags & MSG_DONTWAIT)
			return -EAGAIN;
		if (!armed) {
			rsocket_arm(rs);
			armed = true;
			continue;
		}
		ret = rsocket_sleep(rs, UINT64_MAX);
		if (ret)
			return ret;
		armed = false;
	}
}

static ssize_t copy_out(struct receive *r, const uint8_t *data, size_t bytes)
{
	size_t done = 0;

	for (size_t i = 0; i < r->n_iov && done < bytes; i++) {
		size_t n = r->iov[i].iov_len;

		if (n > bytes - done)
			n = bytes - done;
		if (n)
			memcpy(r->iov[i].iov_base, data + done, n);
		done += n;
	}
	r->truncated = done < bytes;
	return (ssize_t)(r->flags & MSG_TRUNC ? bytes : done);
}

static ssize_t receive(struct rsocket *rs, struct receive *r)
{
	struct rsocket_end *end;
	const uint8_t *d;
	uint32_t bytes;
	ssize_t ret;

	if (r->flags & ~KNOWN_FLAGS)
		return -EOPNOTSUPP;
	ret = rsocket_iov_bytes(r->iov, r->n_iov);
	if (ret < 0)
		return ret;
	ret = wait_next(rs, r->flags, &end);
	if (ret <= 0)
		return ret;
	d = rsocket_end_peek(end, &bytes);
	get_source(d, &r->src);
	ret = copy_out(r, d + d[1], bytes - d[1]);
	if (!(r->flags & MSG_PEEK)) {
		rsocket_end_pop(end);
		/* the others' turn */
		TAILQ_REMOVE(&rs->ends, end, entry);
		TAILQ_INSERT_TAIL(&rs->ends, end, entry);
	}
	rsocket_pass_on(rs);
	return ret;
}

ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
                  socklen_t *addrlen)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct receive r = { .iov = &iov, .n_iov = 1, .flags = flags };
	struct rsocket *rs = rsocket_enter(socket);
	ssize_t ret;

	if (!rs)
		return -1;
	ret = receive(rs, &r);
	if (ret >= 0 && src_addr && addrlen) {
		if (r.src.sa.sa_family)
			rsocket_addr_put(rs, r.src, src_addr, addrlen);
		else
			*addrlen = 0; /* reading was shut down */
	}
	return rsocket_leave(rs, ret);
}

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return rrecvfrom(socket, buf, len, flags, NULL, NULL);
}

ssize_t rread(int socket, void *buf, size_t count)
{
	return rrecvfrom(socket, buf, count, 0, NULL, NULL);
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	struct receive r = { .iov = msg->msg_iov, .n_iov = msg->msg_iovlen, .flags = flags };
	struct rsocket *rs = rsocket_enter(socket);
	ssize_t ret;

	if (!rs)
		return -1;
	ret = receive(rs, &r);
	if (ret < 0)
		return rsocket_leave(rs, ret);
	msg->msg_flags = r.truncated ? MSG_TRUNC : 0;
	msg->msg_controllen = 0;
	if (msg->msg_name && r.src.sa.sa_family)
		rsocket_addr_put(rs, r.src, msg->msg_name, &msg->msg_namelen);
	else
		msg->msg_namelen = 0;
	return rsocket_leave(rs, ret);
}

ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)iovcnt };

	if (iovcnt < 0)
		return rdmacm_return(-EINVAL);
	return rrecvmsg(socket, &msg, 0);
}
