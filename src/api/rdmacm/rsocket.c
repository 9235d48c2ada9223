/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rsocket API for datagrams: rsockets are made, bound, connected and closed here. See
 * rsocket.h. Streams would need reliable connected queue pairs, which the device lacks:
 * rsocket() says EOPNOTSUPP, and so do the calls that only streams have.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/rdmacm/rsocket.h"

#define DEFAULT_DEPTH  384 /* of queues; bytes of buffers: as the original's defaults */
#define DEFAULT_BUFFER 131072
#define DEFAULT_INLINE 64
#define MAX_ENDS       64

/* ---- entering and leaving ---- */

struct rsocket *rsocket_enter(int fd)
{
	struct rsocket *rs = rdmacm_session_rsocket(fd);

	if (!rs) {
		errno = EBADF;
		return NULL;
	}
	pthread_mutex_lock(&rs->lock);
	return rs;
}

ssize_t rsocket_leave(struct rsocket *rs, ssize_t ret)
{
	pthread_mutex_unlock(&rs->lock);
	rdmacm_session_rsocket_put(rs);
	return ret < 0 ? rdmacm_return((int)ret) : ret;
}

/* ---- addresses ---- */

static void unmap(union control_cm_addr *a)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = a->in6.sin6_port };

	if (a->sa.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr))
		return;
	memcpy(&in.sin_addr, &a->in6.sin6_addr.s6_addr[12], 4);
	memset(a, 0, sizeof(*a));
	a->in = in;
}

static void map(union control_cm_addr *a)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = a->in.sin_port };

	if (a->sa.sa_family != AF_INET)
		return;
	in6.sin6_addr.s6_addr[10] = in6.sin6_addr.s6_addr[11] = 0xFF;
	memcpy(&in6.sin6_addr.s6_addr[12], &a->in.sin_addr, 4);
	memset(a, 0, sizeof(*a));
	a->in6 = in6;
}

int rsocket_addr_get(const struct rsocket *rs, const struct sockaddr *addr, socklen_t bytes,
                     union control_cm_addr *out)
{
	memset(out, 0, sizeof(*out));
	if (!addr || bytes < sizeof(addr->sa_family))
		return -EINVAL;
	if (addr->sa_family != rs->domain)
		return -EAFNOSUPPORT;
	if (bytes < rdmacm_addr_bytes(addr))
		return -EINVAL;
	if (addr->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

		out->in.sin_family = AF_INET;
		out->in.sin_port = in->sin_port;
		out->in.sin_addr = in->sin_addr;
	} else {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;

		out->in6.sin6_family = AF_INET6;
		out->in6.sin6_port = in6->sin6_port;
		out->in6.sin6_addr = in6->sin6_addr;
		if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
			out->in6.sin6_scope_id = in6->sin6_scope_id;
		unmap(out);
	}
	return 0;
}

void rsocket_addr_put(const struct rsocket *rs, union control_cm_addr addr, void *to,
                      socklen_t *bytes)
{
	socklen_t all;

	if (rs->domain == AF_INET6)
		map(&addr);
	all = rdmacm_addr_bytes(&addr.sa);
	memcpy(to, &addr, *bytes < all ? *bytes : all);
	*bytes = all;
}

bool rsocket_is_group(const union control_cm_addr *a)
{
	if (a->sa.sa_family == AF_INET)
		return IN_MULTICAST(ntohl(a->in.sin_addr.s_addr));
	return IN6_IS_ADDR_MULTICAST(&a->in6.sin6_addr);
}

/* ---- life ---- */

void rsocket_free(struct rsocket *rs)
{
	struct rsocket_end *end;

	rsocket_peers_free(rs);
	if (rs->id)
		rdma_destroy_id(rs->id);
	while ((end = TAILQ_FIRST(&rs->ends))) {
		TAILQ_REMOVE(&rs->ends, end, entry);
		rsocket_end_free(rs, end);
	}
	if (rs->events)
		rdma_destroy_event_channel(rs->events);
	if (rs->kick >= 0)
		close(rs->kick);
	if (rs->fd >= 0)
		close(rs->fd);
	pthread_mutex_destroy(&rs->lock);
	free(rs);
}

static int watch(const struct rsocket *rs, int fd, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	return epoll_ctl(rs->fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
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
	ret = watch(rs, rs->kick, &rs->kick);
	return ret ? ret : watch(rs, rs->events->fd, &rs->events);
}

static struct rsocket *rsocket_new(int domain)
{
	struct rsocket *rs = calloc(1, sizeof(*rs));

	if (!rs)
		return NULL;
	*rs = (struct rsocket){ .fd = -1,
		                .kick = -1,
		                .domain = domain,
		                .rcvbuf = DEFAULT_BUFFER,
		                .sndbuf = DEFAULT_BUFFER,
		                .n_recv = DEFAULT_DEPTH,
		                .n_send = DEFAULT_DEPTH,
		                .inline_bytes = DEFAULT_INLINE };
	pthread_mutex_init(&rs->lock, NULL);
	TAILQ_INIT(&rs->ends);
	return rs;
}

int rsocket(int domain, int type, int protocol)
{
	const int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
	struct rsocket *rs;
	int ret;

	if (domain != AF_INET && domain != AF_INET6)
		return rdmacm_return(-EAFNOSUPPORT);
	if ((type & ~flags) != SOCK_DGRAM)
		return rdmacm_return(-EOPNOTSUPP);
	if (protocol && protocol != IPPROTO_UDP)
		return rdmacm_return(-EPROTONOSUPPORT);
	rs = rsocket_new(domain);
	if (!rs)
		return rdmacm_return(-ENOMEM);
	rs->nonblocking = type & SOCK_NONBLOCK;
	ret = open_descriptors(rs, type & SOCK_CLOEXEC);
	if (!ret)
		ret = rdmacm_session_rsocket_add(rs);
	if (ret) {
		rsocket_free(rs);
		return rdmacm_return(ret);
	}
	return rs->fd;
}

/* Datagrams that wait for their peer have a second to leave. */
static void flush(struct rsocket *rs)
{
	uint64_t until = rsocket_now_ms() + RSOCKET_RESOLVE_MS;
	int ret = 0;

	rsocket_peers_progress(rs);
	while (!ret && !rs->dead && rsocket_peers_have_queued(rs))
		ret = rsocket_sleep(rs, until);
}

int rclose(int socket)
{
	struct rsocket *rs = rsocket_enter(socket);
	bool inherited = false;
	int ret;

	if (rs) {
		flush(rs);
		ret = rdmacm_session_rsocket_remove(socket, &inherited);
		rs->closed = true;
		rsocket_wake(rs);
		return (int)rsocket_leave(rs, ret);
	}
	ret = rdmacm_session_rsocket_remove(socket, &inherited);
	if (inherited)
		close(socket); /* the parent's goes on */
	return rdmacm_return(ret);
}

/* ---- binding ---- */

/* An end on each port: at any of them somebody may ask for us. */
static int open_all_ends(struct rsocket *rs)
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
			ret = n_ends++ < MAX_ENDS ? rsocket_end_get(rs, list[i], port, &end)
			                          : -ENOBUFS;
	}
	rdma_free_devices(list);
	return ret;
}

static int set_id_options(struct rsocket *rs)
{
	int on = 1;

	if (rs->reuse_addr &&
	    rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)))
		return -errno;
	if (rs->v6_only &&
	    rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)))
		return -errno;
	return 0;
}

static void unbind(struct rsocket *rs)
{
	struct rsocket_end *end;

	rdma_destroy_id(rs->id);
	rs->id = NULL;
	while ((end = TAILQ_FIRST(&rs->ends))) {
		TAILQ_REMOVE(&rs->ends, end, entry);
		rsocket_end_free(rs, end);
	}
}

int rsocket_bind(struct rsocket *rs, const union control_cm_addr *addr)
{
	union control_cm_addr any = { .sa = { .sa_family = (sa_family_t)rs->domain } };
	struct rsocket_end *end;
	int ret;

	if (rs->id)
		return addr ? -EINVAL : 0;
	if (rdma_create_id(rs->events, &rs->id, NULL, RDMA_PS_UDP))
		return -errno;
	ret = set_id_options(rs);
	if (!ret && rdma_bind_addr(rs->id, addr ? (struct sockaddr *)&addr->sa : &any.sa))
		ret = -errno;
	if (!ret && rs->id->verbs)
		ret = rsocket_end_get(rs, rs->id->verbs, rs->id->port_num, &end);
	else if (!ret && addr)
		ret = open_all_ends(rs);
	if (ret)
		unbind(rs);
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
	return (int)rsocket_leave(rs, ret ? ret : rsocket_bind(rs, &a));
}

/* ---- connecting ---- */

/* Until it is known from where datagrams to the peer leave. */
static int wait_source(struct rsocket *rs, struct rsocket_peer *peer)
{
	uint64_t until = rsocket_now_ms() + RSOCKET_RESOLVE_MS;
	int ret = 0;

	rsocket_peers_progress(rs);
	while (!ret && peer->id && !peer->end && !rs->dead)
		ret = rsocket_sleep(rs, until);
	ret = peer->error;
	peer->error = 0;
	return ret;
}

static int connect_to(struct rsocket *rs, const union control_cm_addr *addr)
{
	struct rsocket_peer *peer;
	int ret;

	if (rsocket_is_group(addr))
		return -EOPNOTSUPP;
	ret = rsocket_bind(rs, NULL);
	if (!ret)
		ret = rsocket_peer_get(rs, addr, &peer);
	if (!ret)
		ret = rsocket_peer_resolve(rs, peer);
	if (!ret)
		ret = wait_source(rs, peer);
	if (!ret)
		rs->connected = peer;
	return ret;
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rsocket *rs = rsocket_enter(socket);
	union control_cm_addr a;
	int ret;

	if (!rs)
		return -1;
	if (addr && addrlen >= sizeof(addr->sa_family) && addr->sa_family == AF_UNSPEC) {
		rs->connected = NULL;
		return (int)rsocket_leave(rs, 0);
	}
	ret = rsocket_addr_get(rs, addr, addrlen, &a);
	return (int)rsocket_leave(rs, ret ? ret : connect_to(rs, &a));
}

static int shut_down(struct rsocket *rs, int how)
{
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (!rs->connected)
		return -ENOTCONN;
	rs->no_read |= how != SHUT_WR;
	rs->no_write |= how != SHUT_RD;
	rsocket_wake(rs);
	return 0;
}

int rshutdown(int socket, int how)
{
	struct rsocket *rs = rsocket_enter(socket);

	return rs ? (int)rsocket_leave(rs, shut_down(rs, how)) : -1;
}

/* ---- names ---- */

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *rs = rsocket_enter(socket);

	if (!rs)
		return -1;
	if (!rs->connected)
		return (int)rsocket_leave(rs, -ENOTCONN);
	rsocket_addr_put(rs, rs->connected->addr, addr, addrlen);
	return (int)rsocket_leave(rs, 0);
}

/* Of a connected rsocket the source of its datagrams, if it is bound to no other. */
static void own_address(const struct rsocket *rs, union control_cm_addr *a)
{
	memset(a, 0, sizeof(*a));
	a->sa.sa_family = (sa_family_t)rs->domain;
	if (!rs->id)
		return;
	memcpy(a, &rs->id->route.addr.src_storage, rdmacm_addr_bytes(&rs->id->route.addr.src_addr));
	if (!rs->id->verbs && rs->connected && rs->connected->end)
		*a = rs->connected->src;
	if (a->sa.sa_family == AF_INET)
		a->in.sin_port = rdma_get_src_port(rs->id);
	else
		a->in6.sin6_port = rdma_get_src_port(rs->id);
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *rs = rsocket_enter(socket);
	union control_cm_addr a;

	if (!rs)
		return -1;
	own_address(rs, &a);
	rsocket_addr_put(rs, a, addr, addrlen);
	return (int)rsocket_leave(rs, 0);
}

/* ---- what only streams have ---- */

static int refuse(int socket)
{
	struct rsocket *rs = rsocket_enter(socket);

	return rs ? (int)rsocket_leave(rs, -EOPNOTSUPP) : -1;
}

int rlisten(int socket, int backlog)
{
	(void)backlog;
	return refuse(socket);
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	(void)addr;
	(void)addrlen;
	return refuse(socket);
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	(void)buf;
	(void)len;
	(void)prot;
	(void)flags;
	(void)offset;
	return refuse(socket);
}

int riounmap(int socket, void *buf, size_t len)
{
	(void)buf;
	(void)len;
	return refuse(socket);
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	(void)buf;
	(void)count;
	(void)offset;
	(void)flags;
	return (size_t)refuse(socket);
}
