/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options of datagram rsockets: those that rsocket(7) names. What has no meaning for datagrams is
 * kept and given back, or refused with ENOTSUP if there is nothing to keep.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>

#include "api/rdmacm/rsocket.h"

#define MAX_DEPTH 32768

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

	if (bytes < RSOCKET_BUFFER)
		return RSOCKET_BUFFER;
	return bytes < INT_MAX ? (uint32_t)bytes : INT_MAX;
}

static int set_socket(struct rsocket *rs, int name, int value)
{
	switch (name) {
	case SO_REUSEADDR:
		rs->reuse_addr = value;
		return 0;
	case SO_RCVBUF: /* for ends that are still to be made */
		rs->rcvbuf = buffer(value);
		return 0;
	case SO_SNDBUF:
		rs->sndbuf = buffer(value);
		return 0;
	case SO_KEEPALIVE:
		rs->keepalive = value;
		return 0;
	case SO_OOBINLINE:
		rs->oob_inline = value;
		return 0;
	case SO_LINGER: /* of struct linger the first int says whether */
		rs->linger = value;
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int set_rdma(struct rsocket *rs, int name, int value)
{
	if (!TAILQ_EMPTY(&rs->ends))
		return -EINVAL;
	switch (name) {
	case RDMA_SQSIZE:
		rs->n_send = depth(value);
		return 0;
	case RDMA_RQSIZE:
		rs->n_recv = depth(value);
		return 0;
	case RDMA_INLINE:
		rs->inline_bytes = value > 0 ? (uint32_t)value : 0;
		return 0;
	default: /* RDMA_IOMAPSIZE, RDMA_ROUTE: of streams */
		return -ENOTSUP;
	}
}

static int set(struct rsocket *rs, int level, int name, int value)
{
	if (level == SOL_SOCKET)
		return set_socket(rs, name, value);
	if (level == SOL_RDMA)
		return set_rdma(rs, name, value);
	if (level != IPPROTO_IPV6 || name != IPV6_V6ONLY)
		return -ENOTSUP;
	if (rs->id || rs->domain != AF_INET6)
		return -EINVAL;
	rs->v6_only = value;
	return 0;
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct rsocket *rs = rsocket_enter(socket);
	int value, ret = -EINVAL;

	if (!rs)
		return -1;
	if (optval && optlen >= sizeof(value)) {
		memcpy(&value, optval, sizeof(value));
		ret = set(rs, level, optname, value);
	}
	return (int)rsocket_leave(rs, ret);
}

/* ---- getting ---- */

static int clear_error(struct rsocket *rs)
{
	int error = 0;

	if (rs->dead)
		return EIO;
	if (rs->connected) {
		error = -rs->connected->error;
		rs->connected->error = 0;
	}
	return error;
}

static int get_socket(struct rsocket *rs, int name, int *value)
{
	switch (name) {
	case SO_REUSEADDR:
		*value = rs->reuse_addr;
		return 0;
	case SO_RCVBUF:
		*value = (int)rs->rcvbuf;
		return 0;
	case SO_SNDBUF:
		*value = (int)rs->sndbuf;
		return 0;
	case SO_KEEPALIVE:
		*value = rs->keepalive;
		return 0;
	case SO_OOBINLINE:
		*value = rs->oob_inline;
		return 0;
	case SO_LINGER:
		*value = rs->linger;
		return 0;
	case SO_ERROR:
		*value = clear_error(rs);
		return 0;
	case SO_TYPE:
		*value = SOCK_DGRAM;
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
		*value = (int)rs->n_send;
		return 0;
	case RDMA_RQSIZE:
		*value = (int)rs->n_recv;
		return 0;
	case RDMA_INLINE:
		*value = (int)rs->inline_bytes;
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
	*value = rs->v6_only;
	return 0;
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	const bool linger = level == SOL_SOCKET && optname == SO_LINGER;
	struct rsocket *rs = rsocket_enter(socket);
	socklen_t bytes = linger ? sizeof(struct linger) : sizeof(int);
	int value[2] = { 0 }, ret = -EINVAL;

	if (!rs)
		return -1;
	if (optval && optlen && *optlen >= bytes)
		ret = get(rs, level, optname, value);
	if (!ret) {
		memcpy(optval, value, bytes);
		*optlen = bytes;
	}
	return (int)rsocket_leave(rs, ret);
}

/* ---- flags ---- */

static int control(struct rsocket *rs, int cmd, long arg)
{
	int ret;

	switch (cmd) {
	case F_GETFL:
		return O_RDWR | (rs->nonblocking ? O_NONBLOCK : 0);
	case F_SETFL:
		rs->nonblocking = arg & O_NONBLOCK;
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
