/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sending and receiving by rsockets: send(2), recv(2) and their relatives, each of which becomes a
 * struct rsocket_message for the rsocket's type. See rsocket.h.
 */
#define _GNU_SOURCE /* IOV_MAX */
#include <errno.h>
#include <limits.h>

#include "api/rdmacm/rsocket/rsocket.h"

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

/* ---- sending ---- */

static ssize_t send_on(int socket, struct rsocket_message *m)
{
	struct rsocket *rs = rsocket_enter(socket);
	ssize_t ret;

	if (!rs)
		return -1;
	ret = rsocket_iov_bytes(m->iov, m->n_iov);
	if (ret >= 0) {
		m->bytes = (size_t)ret;
		ret = rs->type->send(rs, m);
	}
	return rsocket_leave(rs, ret);
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
                const struct sockaddr *dest_addr, socklen_t addrlen)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return send_on(socket, &(struct rsocket_message){ .iov = &iov,
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
	if (msg->msg_control && msg->msg_controllen)
		return rdmacm_return(-EOPNOTSUPP);
	return send_on(socket, &(struct rsocket_message){ .iov = msg->msg_iov,
	                                                  .n_iov = msg->msg_iovlen,
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

/* ---- receiving ---- */

static ssize_t receive(struct rsocket *rs, struct rsocket_message *m)
{
	ssize_t bytes = rsocket_iov_bytes(m->iov, m->n_iov);

	if (bytes < 0)
		return bytes;
	m->bytes = (size_t)bytes;
	return rs->type->receive(rs, m);
}

ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
                  socklen_t *addrlen)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct rsocket_message m = { .iov = &iov, .n_iov = 1, .flags = flags };
	struct rsocket *rs = rsocket_enter(socket);
	ssize_t ret;

	if (!rs)
		return -1;
	ret = receive(rs, &m);
	if (ret >= 0 && src_addr && addrlen) {
		if (m.src.sa.sa_family)
			rsocket_addr_put(rs, m.src, src_addr, addrlen);
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
	struct rsocket_message m = { .iov = msg->msg_iov,
		                     .n_iov = msg->msg_iovlen,
		                     .flags = flags };
	struct rsocket *rs = rsocket_enter(socket);
	ssize_t ret;

	if (!rs)
		return -1;
	ret = receive(rs, &m);
	if (ret < 0)
		return rsocket_leave(rs, ret);
	msg->msg_flags = m.truncated ? MSG_TRUNC : 0;
	msg->msg_controllen = 0;
	if (msg->msg_name && m.src.sa.sa_family)
		rsocket_addr_put(rs, m.src, msg->msg_name, &msg->msg_namelen);
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
