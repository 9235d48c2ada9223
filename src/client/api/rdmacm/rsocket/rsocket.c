/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rsocket API: rsockets are made, bound, connected and closed by the calls here, each of which
 * goes to the table of the rsocket's type. See rsocket.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/rdmacm/rsocket/rsocket.h"
#include "base/reason.h"

#define DEFAULT_DEPTH  384 /* of queues; bytes of buffers: as the original's defaults */
#define DEFAULT_BUFFER 131072
#define DEFAULT_INLINE 64

/* ---- entering and leaving ---- */

struct rsocket *rsocket_enter_call(const char *call, int fd)
{
	struct rsocket *rs;

	rsocket_begin_call();
	rsocket_serve_in_passing();
	rs = rdmacm_session_rsocket(fd);
	if (!rs) {
		rsocket_end_call();
		rdmacm_return_of(call, base_because(-EBADF, "descriptor %d is no rsocket", fd));
		return NULL;
	}
	pthread_mutex_lock(&rs->lock);
	return rs;
}

ssize_t rsocket_leave_call(const char *call, struct rsocket *rs, ssize_t ret)
{
	/* if that fails, the next call on it tries again */
	rsocket_leave_to_all(rs);
	pthread_mutex_unlock(&rs->lock);
	rdmacm_session_rsocket_put(rs);
	rsocket_end_call();
	return ret < 0 ? rdmacm_return_of(call, (int)ret) : ret;
}

/* ---- life ---- */

void rsocket_free(struct rsocket *rs)
{
	struct rdma_event_channel *events = rs->events;
	int fd = rs->fd, kick = rs->kick;

	if (rs->is_served)
		rdmacm_session_serve_remove(fd);
	pthread_mutex_destroy(&rs->lock);
	pthread_cond_destroy(&rs->changed);
	rs->type->free(rs);
	if (events)
		rdma_destroy_event_channel(events);
	if (kick >= 0)
		close(kick);
	if (fd >= 0)
		close(fd);
}

int rsocket_watch(const struct rsocket *rs, int fd, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	return epoll_ctl(rs->fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void rsocket_unwatch(const struct rsocket *rs, int fd)
{
	epoll_ctl(rs->fd, EPOLL_CTL_DEL, fd, NULL);
}

static int open_descriptors(struct rsocket *rs, bool cloexec)
{
	int ret;

	rs->fd = epoll_create1(cloexec ? EPOLL_CLOEXEC : 0);
	rs->kick = rs->fd < 0 ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (rs->kick < 0)
		return -errno;
	rs->events = rdma_create_event_channel();
	if (!rs->events || fcntl(rs->events->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	ret = rsocket_watch(rs, rs->kick, &rs->kick);
	return ret ? ret : rsocket_watch(rs, rs->events->fd, &rs->events);
}

static void init_lock(struct rsocket *rs)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&rs->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&rs->changed, &attr);
	pthread_condattr_destroy(&attr);
}

int rsocket_new(const struct rsocket_type *type, int domain, bool cloexec, struct rsocket **out)
{
	struct rsocket *rs = type->alloc();
	int ret;

	if (!rs)
		return -ENOMEM;
	rs->type = type;
	rs->fd = rs->kick = -1;
	rs->domain = domain;
	rs->options = (struct rsocket_options){ .rcvbuf = DEFAULT_BUFFER,
		                                .sndbuf = DEFAULT_BUFFER,
		                                .n_recv = DEFAULT_DEPTH,
		                                .n_send = DEFAULT_DEPTH,
		                                .inline_bytes = DEFAULT_INLINE };
	init_lock(rs);
	ret = open_descriptors(rs, cloexec);
	if (ret) {
		rsocket_free(rs);
		return ret;
	}
	*out = rs;
	return 0;
}

static bool is_domain(int domain, const struct rsocket_type *t)
{
	return domain == AF_INET || domain == AF_INET6 || (domain == AF_IB && t->by_gid);
}

static int find_type(int type, int protocol, const struct rsocket_type **out)
{
	static const struct rsocket_type *const types[] = { &rsocket_stream_type,
		                                            &rsocket_dgram_type };

	for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
		if (types[i]->type != type)
			continue;
		*out = types[i];
		return protocol && protocol != types[i]->protocol ? -EPROTONOSUPPORT : 0;
	}
	return -EOPNOTSUPP;
}

/* Its descriptor, or -errno. */
static int make(int domain, int type, int protocol)
{
	const int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
	const struct rsocket_type *t;
	struct rsocket *rs;
	int ret = find_type(type & ~flags, protocol, &t);

	if (!ret && !is_domain(domain, t))
		ret = -EAFNOSUPPORT;
	if (!ret)
		ret = rsocket_new(t, domain, type & SOCK_CLOEXEC, &rs);
	if (ret)
		return ret;
	rs->options.nonblocking = type & SOCK_NONBLOCK;
	ret = rdmacm_session_rsocket_add(rs);
	if (ret) {
		rsocket_free(rs);
		return ret;
	}
	return rs->fd;
}

int rsocket(int domain, int type, int protocol)
{
	int ret;

	rsocket_begin_call();
	ret = make(domain, type, protocol);
	rsocket_end_call();
	return ret < 0 ? rdmacm_return(ret) : ret;
}

int rclose(int socket)
{
	struct rsocket *rs = rsocket_enter(socket);
	bool inherited = false;
	int ret;

	if (rs) {
		rs->type->flush(rs);
		ret = rdmacm_session_rsocket_remove(socket, &inherited);
		rs->closed = true;
		rsocket_wake(rs);
		return (int)rsocket_leave(rs, ret);
	}
	rsocket_begin_call();
	ret = rdmacm_session_rsocket_remove(socket, &inherited);
	if (inherited)
		close(socket); /* the parent's goes on */
	rsocket_end_call();
	return rdmacm_return(ret);
}

/* ---- binding and connecting ---- */

static int switch_on(struct rsocket *rs, int name)
{
	int on = 1;

	return rdma_set_option(rs->id, RDMA_OPTION_ID, name, &on, sizeof(on)) ? -errno : 0;
}

int rsocket_set_tos(struct rsocket *rs)
{
	uint8_t tos = (uint8_t)rs->options.tos;

	return rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos))
	               ? -errno
	               : 0;
}

int rsocket_make_id(struct rsocket *rs, enum rdma_port_space ps)
{
	int ret = 0;

	if (rdma_create_id(rs->events, &rs->id, NULL, ps))
		return -errno;
	if (rs->options.reuse_addr)
		ret = switch_on(rs, RDMA_OPTION_ID_REUSEADDR);
	if (!ret && rs->options.v6_only)
		ret = switch_on(rs, RDMA_OPTION_ID_AFONLY);
	if (!ret && rs->options.tos)
		ret = rsocket_set_tos(rs);
	if (ret) {
		rdma_destroy_id(rs->id);
		rs->id = NULL;
	}
	return ret;
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rsocket *rs = rsocket_enter(socket);
	union control_cm_addr a;
	int ret;

	if (!rs)
		return -1;
	ret = rsocket_addr_get(rs, addr, addrlen, &a);
	return (int)rsocket_leave(rs, ret ? ret : rs->type->bind(rs, &a));
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rsocket *rs = rsocket_enter(socket);
	union control_cm_addr a;
	int ret;

	if (!rs)
		return -1;
	if (addr && addrlen >= sizeof(addr->sa_family) && addr->sa_family == AF_UNSPEC)
		return (int)rsocket_leave(rs, rs->type->disconnect(rs));
	ret = rsocket_addr_get(rs, addr, addrlen, &a);
	return (int)rsocket_leave(rs, ret ? ret : rs->type->connect(rs, &a));
}

int rshutdown(int socket, int how)
{
	struct rsocket *rs = rsocket_enter(socket);
	int ret = -EINVAL;

	if (!rs)
		return -1;
	if (how == SHUT_RD || how == SHUT_WR || how == SHUT_RDWR)
		ret = rs->type->shutdown(rs, how);
	return (int)rsocket_leave(rs, ret);
}

/* ---- names ---- */

static int get_name(int socket, bool peer, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *rs = rsocket_enter(socket);
	union control_cm_addr a;
	int ret;

	if (!rs)
		return -1;
	ret = peer ? rs->type->peer_name(rs, &a) : rs->type->own_name(rs, &a);
	if (!ret)
		rsocket_addr_put(rs, a, addr, addrlen);
	return (int)rsocket_leave(rs, ret);
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return get_name(socket, true, addr, addrlen);
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return get_name(socket, false, addr, addrlen);
}

/* ---- what only streams have ---- */

int rlisten(int socket, int backlog)
{
	struct rsocket *rs = rsocket_enter(socket);

	if (!rs)
		return -1;
	return (int)rsocket_leave(rs,
	                          rs->type->listen ? rs->type->listen(rs, backlog) : -EOPNOTSUPP);
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *rs = rsocket_enter(socket), *accepted = NULL;
	int fd, ret = -EOPNOTSUPP;
	union control_cm_addr a;

	if (!rs)
		return -1;
	if (rs->type->accept)
		ret = rs->type->accept(rs, &accepted);
	if (ret)
		return (int)rsocket_leave(rs, ret);
	fd = accepted->fd;
	if (addr && addrlen && !accepted->type->peer_name(accepted, &a))
		rsocket_addr_put(accepted, a, addr, addrlen);
	return (int)rsocket_leave(rs, fd);
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rsocket *rs = rsocket_enter(socket);
	int ret = -EOPNOTSUPP;

	(void)flags; /* there are none */
	if (!rs)
		return -1;
	if (rs->type->map)
		ret = rs->type->map(rs, buf, len, prot, &offset);
	return rsocket_leave(rs, ret) < 0 ? -1 : offset;
}

int riounmap(int socket, void *buf, size_t len)
{
	struct rsocket *rs = rsocket_enter(socket);

	if (!rs)
		return -1;
	return (int)rsocket_leave(rs,
	                          rs->type->unmap ? rs->type->unmap(rs, buf, len) : -EOPNOTSUPP);
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = count };
	struct rsocket_message m = { .iov = &iov, .n_iov = 1, .bytes = count, .flags = flags };
	struct rsocket *rs = rsocket_enter(socket);
	ssize_t ret = -EOPNOTSUPP;

	if (!rs)
		return (size_t)-1;
	if (rs->type->write_mapped)
		ret = count <= SSIZE_MAX ? rs->type->write_mapped(rs, &m, offset) : -EINVAL;
	return (size_t)rsocket_leave(rs, ret);
}
