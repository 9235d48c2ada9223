/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options of rsockets: those that rsocket(7) names. Here are the ones that all types have; others
 * are asked of the type. Options without a meaning are kept and given back, or refused with ENOTSUP
 * if there is nothing to keep.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>

#include "api/rdmacm/rsocket/rsocket.h"

#define MAX_DEPTH  32768
#define MIN_BUFFER 2048

/* ---- setting ---- */

static uint32_t depth(int value)
{
	if (value < 1)
		return 1;
	return value < MAX_DEPTH ? (uint32_t)value : MAX_DEPTH;
}

/* Twice what is asked for, as the kernel has it; at least one datagram. */
static uint32_t buffer(int value)
{
	uint64_t bytes = 2 * (uint64_t)(uint32_t)value;

	if (bytes < MIN_BUFFER)
		return MIN_BUFFER;
	return bytes < INT_MAX ? (uint32_t)bytes : INT_MAX - 1;
}

static int set_linger(struct rsocket *rs, const void *value, socklen_t bytes)
{
	struct linger linger = { 0 };

	memcpy(&linger, value, bytes < sizeof(linger) ? bytes : sizeof(linger));
	rs->options.linger = linger;
	return 0;
}

/* -ENOTSUP: it is no option of all types. */
static int set_socket(struct rsocket *rs, int name, int value)
{
	switch (name) {
	case SO_REUSEADDR:
		rs->options.reuse_addr = value;
		return 0;
	case SO_RCVBUF: /* those of queues that are made stay as they are */
		if (!rs->type->has_queues(rs))
			rs->options.rcvbuf = buffer(value);
		return 0;
	case SO_SNDBUF:
		if (!rs->type->has_queues(rs))
			rs->options.sndbuf = buffer(value);
		return 0;
	case SO_KEEPALIVE:
		rs->options.keepalive = value;
		rsocket_wake(rs); /* threads that wait are to wait until the next keepalive */
		return 0;
	case SO_OOBINLINE:
		rs->options.oob_inline = value;
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int set_rdma(struct rsocket *rs, int name, int value)
{
	if (rs->type->has_queues(rs))
		return -EINVAL;
	switch (name) {
	case RDMA_SQSIZE:
		rs->options.n_send = depth(value);
		return 0;
	case RDMA_RQSIZE:
		rs->options.n_recv = depth(value);
		return 0;
	case RDMA_INLINE:
		rs->options.inline_bytes = value > 0 ? (uint32_t)value : 0;
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int set_v6_only(struct rsocket *rs, int value)
{
	if (rs->id || rs->domain != AF_INET6)
		return -EINVAL;
	rs->options.v6_only = value;
	return 0;
}

static int set(struct rsocket *rs, int level, int name, int value)
{
	if (level == SOL_SOCKET)
		return set_socket(rs, name, value);
	if (level == SOL_RDMA)
		return set_rdma(rs, name, value);
	if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY)
		return set_v6_only(rs, value);
	return -ENOTSUP;
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct rsocket *rs = rsocket_enter(socket);
	int value, ret = -EINVAL;

	if (!rs)
		return -1;
	if (!optval || optlen < sizeof(value))
		return (int)rsocket_leave(rs, ret);
	memcpy(&value, optval, sizeof(value));
	if (level == SOL_SOCKET && optname == SO_LINGER)
		ret = set_linger(rs, optval, optlen);
	else
		ret = set(rs, level, optname, value);
	if (ret == -ENOTSUP && rs->type->set)
		ret = rs->type->set(rs, level, optname, optval, optlen);
	return (int)rsocket_leave(rs, ret);
}

/* ---- getting ---- */

static int get_socket(struct rsocket *rs, int name, int *value)
{
	switch (name) {
	case SO_REUSEADDR:
		*value = rs->options.reuse_addr;
		return 0;
	case SO_RCVBUF:
		*value = (int)rs->options.rcvbuf;
		return 0;
	case SO_SNDBUF:
		*value = (int)rs->options.sndbuf;
		return 0;
	case SO_KEEPALIVE:
		*value = rs->options.keepalive;
		return 0;
	case SO_OOBINLINE:
		*value = rs->options.oob_inline;
		return 0;
	case SO_ERROR:
		*value = rs->type->take_error(rs);
		return 0;
	case SO_TYPE:
		*value = rs->type->type;
		return 0;
	case SO_PROTOCOL:
		*value = rs->type->protocol;
		return 0;
	case SO_DOMAIN:
		*value = rs->domain;
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int get_rdma(const struct rsocket *rs, int name, int *value)
{
	switch (name) {
	case RDMA_SQSIZE:
		*value = (int)rs->options.n_send;
		return 0;
	case RDMA_RQSIZE:
		*value = (int)rs->options.n_recv;
		return 0;
	case RDMA_INLINE:
		*value = (int)rs->options.inline_bytes;
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int get(struct rsocket *rs, int level, int name, int *value)
{
	if (level == SOL_SOCKET)
		return get_socket(rs, name, value);
	if (level == SOL_RDMA)
		return get_rdma(rs, name, value);
	if (level != IPPROTO_IPV6 || name != IPV6_V6ONLY)
		return -ENOTSUP;
	*value = rs->options.v6_only;
	return 0;
}

/* The option's value and its length; all of it, or -EINVAL. */
static int put(void *to, socklen_t *bytes, const void *value, socklen_t n)
{
	if (*bytes < n)
		return -EINVAL;
	memcpy(to, value, n);
	*bytes = n;
	return 0;
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct rsocket *rs = rsocket_enter(socket);
	int value = 0, ret = -EINVAL;

	if (!rs)
		return -1;
	if (!optval || !optlen || *optlen < sizeof(value))
		return (int)rsocket_leave(rs, ret);
	if (level == SOL_SOCKET && optname == SO_LINGER) {
		ret = put(optval, optlen, &rs->options.linger, sizeof(rs->options.linger));
		return (int)rsocket_leave(rs, ret);
	}
	ret = get(rs, level, optname, &value);
	if (!ret)
		ret = put(optval, optlen, &value, sizeof(value));
	else if (ret == -ENOTSUP && rs->type->get)
		ret = rs->type->get(rs, level, optname, optval, optlen);
	return (int)rsocket_leave(rs, ret);
}

/* ---- flags ---- */

static int control(struct rsocket *rs, int cmd, long arg)
{
	int ret;

	switch (cmd) {
	case F_GETFL:
		return O_RDWR | (rs->options.nonblocking ? O_NONBLOCK : 0);
	case F_SETFL:
		rs->options.nonblocking = arg & O_NONBLOCK;
		return 0;
	case F_GETFD:
	case F_SETFD:
		ret = fcntl(rs->fd, cmd, arg);
		return ret < 0 ? -errno : ret;
	default:
		return -ENOTSUP;
	}
}

int rfcntl(int socket, int cmd, ...)
{
	struct rsocket *rs = rsocket_enter(socket);
	va_list args;
	long arg;

	if (!rs)
		return -1;
	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	return (int)rsocket_leave(rs, control(rs, cmd, arg));
}
