/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP sockets of the program, when they are bound or connected: see sockets.h. A socket
 * becomes an rsocket if some port of the fabric has the address, or if there is no address at all.
 *
 * Servers listen, and then fork the processes that accept. An rsocket is the process's that made
 * it. So one that listens, and was never asked for connections, is given up before fork(), and made
 * again by the first process that asks. A child that connects to it before that tries again for a
 * while, as TCP would keep its connection for any process that asks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "sockets/sockets.h"

#define RESOLVE_MS 1000 /* of an address: the daemon knows them */

/* Of a connection to a listener that no process has asked since a fork(); of one that is not to
 * wait, or from a process that could listen there itself; between two tries. */
#define PATIENCE_MS   10000
#define IMPATIENCE_MS 1000
#define AGAIN_MS      5

static pthread_mutex_t listening = PTHREAD_MUTEX_INITIALIZER; /* held to begin */
static atomic_uint n_left;                                    /* that another process has */
static atomic_bool gave_up; /* one before a fork(), ever; also a parent of this process */

static int fail(int error)
{
	errno = error;
	return -1;
}

/* ---- the environment ---- */

#define N_VARIABLES 4

static const char *const variable[N_VARIABLES] = { "UMBEL_FABRIC", "UMBEL_HOST",
	                                           "UMBEL_RUNTIME_DIR", "UMBEL_HOST_IS_NAME" };
static char *value_of[N_VARIABLES];

__attribute__((constructor)) static void note_environment(void)
{
	const char *value;

	for (unsigned i = 0; i < N_VARIABLES; i++) {
		value = getenv(variable[i]);
		value_of[i] = value ? strdup(value) : NULL;
	}
}

/* Programs, such as nginx, clear their environment, and each process has to find the fabric. */
static void set_environment(void)
{
	if (!value_of[0] || getenv(variable[0]))
		return;
	for (unsigned i = 0; i < N_VARIABLES; i++)
		if (value_of[i])
			setenv(variable[i], value_of[i], 0);
}

/* ---- addresses ---- */

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* IPv4 that is mapped in IPv6 becomes IPv4. False: it is no address of these families. */
static bool read_address(const struct sockaddr *from, socklen_t bytes, union address *to)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	memset(to, 0, sizeof(*to));
	if (!from || bytes < sizeof(in))
		return false;
	memcpy(to, from, bytes < sizeof(*to) ? bytes : sizeof(*to));
	if (to->sa.sa_family == AF_INET6 && bytes >= sizeof(to->in6)) {
		if (!IN6_IS_ADDR_V4MAPPED(&to->in6.sin6_addr))
			return true;
		in.sin_port = to->in6.sin6_port;
		memcpy(&in.sin_addr, to->in6.sin6_addr.s6_addr + 12, sizeof(in.sin_addr));
		to->in = in;
	}
	return to->sa.sa_family == AF_INET;
}

static bool is_loopback(const union address *a)
{
	if (a->sa.sa_family == AF_INET)
		return ntohl(a->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
}

/* Whether the fabric leads there. */
static bool is_reached(union address *a)
{
	struct rdma_cm_id *id;
	bool yes;

	set_environment();
	if (is_loopback(a) || SOCKETS_INSIDE(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP)))
		return false;
	yes = !SOCKETS_INSIDE(rdma_resolve_addr(id, NULL, &a->sa, RESOLVE_MS));
	SOCKETS_INSIDE(rdma_destroy_id(id));
	return yes;
}

/* ---- an rsocket in place of the kernel's socket ---- */

/* Copies an option that was set. The kernel's socket also keeps options that rsockets have no use
 * for. */
static void copy_option(int fd, int rs, int level, int name)
{
	int value;
	socklen_t bytes = sizeof(value);

	if (!sockets_real()->getsockopt(fd, level, name, &value, &bytes) && value)
		SOCKETS_INSIDE(rsetsockopt(rs, level, name, &value, bytes));
}

static void copy_options(const struct sockets_socket *s, int fd, int rs)
{
	struct linger linger;
	socklen_t bytes = sizeof(linger);

	copy_option(fd, rs, SOL_SOCKET, SO_REUSEADDR);
	copy_option(fd, rs, SOL_SOCKET, SO_KEEPALIVE);
	copy_option(fd, rs, IPPROTO_TCP, TCP_NODELAY);
	copy_option(fd, rs, IPPROTO_TCP, TCP_KEEPIDLE);
	if (s->domain == AF_INET6)
		copy_option(fd, rs, IPPROTO_IPV6, IPV6_V6ONLY);
	if (!sockets_real()->getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &bytes) &&
	    linger.l_onoff)
		SOCKETS_INSIDE(rsetsockopt(rs, SOL_SOCKET, SO_LINGER, &linger, bytes));
	if (s->rcvbuf)
		SOCKETS_INSIDE(
		        rsetsockopt(rs, SOL_SOCKET, SO_RCVBUF, &s->rcvbuf, sizeof(s->rcvbuf)));
	if (s->sndbuf)
		SOCKETS_INSIDE(
		        rsetsockopt(rs, SOL_SOCKET, SO_SNDBUF, &s->sndbuf, sizeof(s->sndbuf)));
	if (sockets_real()->fcntl(fd, F_GETFL) & O_NONBLOCK)
		SOCKETS_INSIDE(rfcntl(rs, F_SETFL, (long)O_NONBLOCK));
}

/* Its descriptor, or -1. */
static int make(const struct sockets_socket *s, int fd)
{
	int rs;

	set_environment();
	rs = SOCKETS_INSIDE(rsocket(s->domain, SOCK_STREAM | SOCK_CLOEXEC, 0));

	if (rs >= 0)
		copy_options(s, fd, rs);
	return rs;
}

static int abandon(int rs)
{
	const int saved = errno;

	SOCKETS_INSIDE(rclose(rs));
	errno = saved;
	return -1;
}

static void become(struct sockets_socket *s, int rs)
{
	s->rs = rs;
	sockets_epoll_adopt(s);
}

static int leave_to_kernel(struct sockets_socket *s)
{
	sockets_forget(s);
	return SOCKETS_KERNEL;
}

/* ---- bind ---- */

int sockets_bind(struct sockets_socket *s, int fd, const struct sockaddr *addr, socklen_t bytes)
{
	union address a;
	int rs;

	if (s->is_relayed)
		return fail(EINVAL);
	if (s->rs >= 0)
		return SOCKETS_INSIDE(rbind(s->rs, addr, bytes));
	if (!read_address(addr, bytes, &a))
		return SOCKETS_KERNEL;
	if (is_loopback(&a))
		return leave_to_kernel(s);
	rs = make(s, fd);
	if (rs < 0)
		return leave_to_kernel(s);
	if (!SOCKETS_INSIDE(rbind(rs, addr, bytes))) {
		s->name_bytes = bytes < sizeof(s->name) ? bytes : sizeof(s->name);
		memcpy(&s->name, addr, s->name_bytes);
		become(s, rs);
		return 0;
	}
	abandon(rs);
	return errno == EADDRINUSE || errno == EACCES ? -1 : leave_to_kernel(s);
}

/* ---- connect ---- */

/* One that was bound to any address is to go where the fabric does not lead. */
static int back_to_kernel(struct sockets_socket *s, int fd)
{
	int rs = s->rs;

	sockets_epoll_leave(s, true);
	s->rs = -1;
	SOCKETS_INSIDE(rclose(rs));
	if (sockets_real()->bind(fd, (struct sockaddr *)&s->name, s->name_bytes))
		return -1;
	return leave_to_kernel(s);
}

static bool is_connected(const struct sockets_socket *s)
{
	struct sockaddr_storage name;
	socklen_t bytes = sizeof(name);

	return !SOCKETS_INSIDE(rgetpeername(s->rs, (struct sockaddr *)&name, &bytes));
}

/* rconnect() that is asked again says how it is going, the kernel's says that it was asked. */
static int connect_again(const struct sockets_socket *s, const struct sockaddr *addr,
                         socklen_t bytes)
{
	if (is_connected(s))
		return fail(EISCONN);
	if (!SOCKETS_INSIDE(rconnect(s->rs, addr, bytes)))
		return 0;
	return errno == EINPROGRESS ? fail(EALREADY) : -1;
}

static in_port_t port_of(const struct sockaddr *a)
{
	return a->sa_family == AF_INET ? ((const struct sockaddr_in *)a)->sin_port
	                               : ((const struct sockaddr_in6 *)a)->sin6_port;
}

/* ---- connect to what listened before a fork() ---- */

/* One of ours that listened at a port before a fork(), and does not here since. */
static __thread struct {
	in_port_t port;
	bool is_there, is_own; /* own: this process made it */
} left;

static bool is_sought(const struct sockets_socket *s)
{
	return s->listens && (s->rs < 0 || s->is_parents) &&
	       port_of((const struct sockaddr *)&s->name) == left.port;
}

static void look(struct sockets_socket *s)
{
	if (!is_sought(s))
		return;
	left.is_there = true;
	left.is_own |= !s->is_inherited;
}

static void use_own(struct sockets_socket *s)
{
	if (is_sought(s) && !s->is_inherited)
		sockets_use(s, s->fd);
}

/* Whether a port of this host has the address: the same port of another one is none of ours. */
static bool is_here(union address a)
{
	struct rdma_cm_id *id;
	bool yes;

	if (a.sa.sa_family == AF_INET)
		a.in.sin_port = 0;
	else
		a.in6.sin6_port = 0;
	if (SOCKETS_INSIDE(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP)))
		return false;
	yes = !SOCKETS_INSIDE(rdma_bind_addr(id, &a.sa));
	SOCKETS_INSIDE(rdma_destroy_id(id));
	return yes;
}

static bool may_be_left(const union address *a)
{
	if (!gave_up) /* as nearly always: there may be many sockets to look at */
		return false;
	left.port = port_of(&a->sa);
	left.is_there = left.is_own = false;
	sockets_each(look);
	return left.is_there && is_here(*a);
}

/* Waits, whatever the socket is set to. */
static int connect_waiting(int rs, const union address *a)
{
	const socklen_t bytes = a->sa.sa_family == AF_INET ? sizeof(a->in) : sizeof(a->in6);
	const int flags = SOCKETS_INSIDE(rfcntl(rs, F_GETFL));
	int ret;

	SOCKETS_INSIDE(rfcntl(rs, F_SETFL, (long)(flags & ~O_NONBLOCK)));
	ret = SOCKETS_INSIDE(rconnect(rs, &a->sa, bytes));
	if (!ret)
		SOCKETS_INSIDE(rfcntl(rs, F_SETFL, (long)flags));
	return ret;
}

/* Connects to what may_be_left(), until somebody has asked it. The rsocket, or -1. If nobody does
 * for a while, and it is ours, we listen ourselves. */
static int connect_patiently(const struct sockets_socket *s, int fd, const union address *a)
{
	const bool waits = !(sockets_real()->fcntl(fd, F_GETFL) & O_NONBLOCK);
	const unsigned ms = waits && !left.is_own ? PATIENCE_MS : IMPATIENCE_MS;
	const uint64_t until = base_now_ns() + ms * 1000000ull;
	bool is_last = false;

	for (;;) {
		int rs = make(s, fd);

		if (rs < 0 || !connect_waiting(rs, a))
			return rs;
		abandon(rs);
		if (errno != ECONNREFUSED || is_last)
			return -1;
		is_last = base_now_ns() >= until;
		if (is_last)
			sockets_each(use_own);
		else if (sockets_real()->poll(NULL, 0, AGAIN_MS) < 0)
			return -1;
	}
}

/* SO_SNDTIMEO is that of connect(2), too; then it goes on by itself. */
static int connect_limited(const struct sockets_socket *s, const struct sockaddr *addr,
                           socklen_t bytes)
{
	const int flags = s->snd_ms ? SOCKETS_INSIDE(rfcntl(s->rs, F_GETFL)) : O_NONBLOCK;
	int ret, saved;

	if (flags & O_NONBLOCK)
		return SOCKETS_INSIDE(rconnect(s->rs, addr, bytes));
	SOCKETS_INSIDE(rfcntl(s->rs, F_SETFL, (long)(flags | O_NONBLOCK)));
	ret = SOCKETS_INSIDE(rconnect(s->rs, addr, bytes));
	if (ret && errno == EINPROGRESS) {
		if (!sockets_await(s, POLLOUT, sockets_end_of(s->snd_ms)))
			ret = SOCKETS_INSIDE(rconnect(s->rs, addr, bytes));
		else if (errno == EAGAIN)
			errno = EINPROGRESS;
	}
	saved = errno;
	SOCKETS_INSIDE(rfcntl(s->rs, F_SETFL, (long)flags));
	errno = saved;
	return ret;
}

int sockets_connect(struct sockets_socket *s, int fd, const struct sockaddr *addr, socklen_t bytes)
{
	union address a;
	bool is_there = false;
	int rs;

	if (s->listens || s->is_relayed)
		return fail(EISCONN);
	if (s->connects)
		return connect_again(s, addr, bytes);
	if (!read_address(addr, bytes, &a))
		return s->rs < 0 ? SOCKETS_KERNEL : fail(EAFNOSUPPORT);
	if (!is_reached(&a))
		return s->rs < 0 ? leave_to_kernel(s) : back_to_kernel(s, fd);
	if (s->rs < 0) {
		is_there = may_be_left(&a);
		rs = is_there ? connect_patiently(s, fd, &a) : make(s, fd);
		if (rs < 0)
			return is_there ? -1 : leave_to_kernel(s);
		become(s, rs);
	}
	s->connects = true;
	return is_there ? 0 : connect_limited(s, addr, bytes);
}

/* ---- listen and accept ---- */

int sockets_listen(struct sockets_socket *s, int fd, int backlog)
{
	socklen_t bytes = sizeof(s->name);
	int rs;

	if (s->is_relayed)
		return fail(EINVAL);
	if (s->rs < 0 && s->listens)
		return 0; /* another process does, or will */
	if (s->rs < 0) {
		rs = make(s, fd);
		if (rs < 0)
			return leave_to_kernel(s);
		become(s, rs);
	}
	if (SOCKETS_INSIDE(rlisten(s->rs, backlog)) ||
	    SOCKETS_INSIDE(rgetsockname(s->rs, (struct sockaddr *)&s->name, &bytes)))
		return -1;
	s->name_bytes = bytes;
	s->backlog = backlog;
	s->listens = true;
	return 0;
}

void sockets_leave_listener(struct sockets_socket *s)
{
	int rs = s->rs;

	if (!s->listens || s->is_used || rs < 0)
		return;
	gave_up = true;
	s->rs = -1;
	SOCKETS_INSIDE(rclose(rs));
}

static bool listen_again(struct sockets_socket *s, int fd)
{
	int rs = s->rs, mine = make(s, fd);

	if (mine < 0)
		return false;
	if (SOCKETS_INSIDE(rbind(mine, (struct sockaddr *)&s->name, s->name_bytes)) ||
	    SOCKETS_INSIDE(rlisten(mine, s->backlog))) {
		abandon(mine);
		return false;
	}
	if (rs >= 0)
		SOCKETS_INSIDE(rclose(rs)); /* our copy of the parent's */
	s->is_parents = false;
	become(s, mine);
	return true;
}

bool sockets_use(struct sockets_socket *s, int fd)
{
	bool mine = true;

	if (!s->listens)
		return true;
	pthread_mutex_lock(&listening);
	if (s->rs < 0 || s->is_parents)
		mine = listen_again(s, fd);
	s->is_used = mine;
	sockets_set_left(s, !mine);
	pthread_mutex_unlock(&listening);
	return mine;
}

void sockets_set_left(struct sockets_socket *s, bool left)
{
	if (left != s->is_left)
		n_left += left ? 1u : -1u;
	s->is_left = left;
}

bool sockets_are_left(void)
{
	return n_left;
}

static void use_again(struct sockets_socket *s)
{
	if (s->is_left)
		sockets_use(s, s->fd);
}

void sockets_use_all(void)
{
	const int saved = errno;

	sockets_each(use_again);
	errno = saved;
}

/* The kernel's socket that gives it a number of the program's. That number, or -1. */
static int number(const struct sockets_socket *listener, int rs, int flags)
{
	struct sockets_socket *s;
	int fd = sockets_real()->socket(listener->domain,
	                                SOCK_STREAM | (flags & (SOCK_CLOEXEC | SOCK_NONBLOCK)), 0);

	if (fd < 0)
		return abandon(rs);
	if (flags & SOCK_NONBLOCK)
		SOCKETS_INSIDE(rfcntl(rs, F_SETFL, (long)O_NONBLOCK));
	s = sockets_new(fd, listener->domain, rs);
	if (!s) {
		sockets_real()->close(fd);
		errno = EMFILE;
		return abandon(rs);
	}
	s->connects = true;
	s->rcv_ms = atomic_load(&listener->rcv_ms);
	s->snd_ms = atomic_load(&listener->snd_ms);
	sockets_put(s);
	return fd;
}

int sockets_accept(struct sockets_socket *s, int fd, struct sockaddr *addr, socklen_t *bytes,
                   int flags)
{
	const bool waits = !(sockets_real()->fcntl(fd, F_GETFL) & O_NONBLOCK);
	const bool is_limited = waits && s->rcv_ms;
	const uint64_t until = is_limited ? sockets_end_of(s->rcv_ms) : UINT64_MAX;
	int rs;

	if (flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK))
		return fail(EINVAL);
	while (!sockets_use(s, fd)) {
		if (!waits || base_now_ns() >= until)
			return fail(EAGAIN);
		if (sockets_real()->poll(NULL, 0, SOCKETS_RETRY_MS) < 0)
			return -1;
	}
	if (is_limited && sockets_await(s, POLLIN, until))
		return -1;
	rs = SOCKETS_INSIDE(raccept(s->rs, addr, bytes));
	return rs < 0 ? -1 : number(s, rs, flags);
}
