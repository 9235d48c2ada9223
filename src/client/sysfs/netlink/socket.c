/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets of RDMA netlink: see socket.h. A socket is known by its inode, as descriptors are
 * duplicated, closed and used again. The one registry of them is here: those that were opened last.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pause.h"
#include "sysfs/netlink/nldev.h"
#include "sysfs/netlink/socket.h"
#include "sysfs/real.h"

#define SOCKETS 64

/* Of a datagram, unless one message is longer: programs have room for a page. */
#define DATAGRAM 3584

/* Of a request: the kernel takes no longer ones either (net.core.wmem_default). */
#define REQUEST (64 << 10)

struct sysfs_netlink {
	_Atomic uint64_t inode; /* 0: none */
	atomic_bool busy;       /* a thread uses what is below */
	_Atomic pid_t pid;      /* of the process that asked */
	uint32_t port;          /* the socket's address */
	struct netlink_answer answer;
};

atomic_bool sysfs_netlink_any;

static struct sysfs_netlink sockets[SOCKETS];
static atomic_uint next_socket;

/* ---- the registry */

/* 0: it is no socket. */
static uint64_t inode_of(int fd)
{
	int error = errno;
	struct stat st;
	bool found = !sysfs_real()->fstat(fd, &st) && S_ISSOCK(st.st_mode);

	errno = error;
	return found ? st.st_ino : 0;
}

struct sysfs_netlink *sysfs_netlink_search(int fd)
{
	uint64_t inode = inode_of(fd);

	for (unsigned i = 0; inode && i < SOCKETS; i++)
		if (atomic_load_explicit(&sockets[i].inode, memory_order_acquire) == inode)
			return &sockets[i];
	return NULL;
}

/* False: another thread uses it and will have done what is to be done. A child has nothing of what
 * its parent was about to do. */
static bool try_lock(struct sysfs_netlink *n)
{
	bool free = false;

	if (atomic_compare_exchange_strong(&n->busy, &free, true))
		return true;
	if (n->pid == getpid())
		return false;
	n->pid = getpid();
	n->answer = (struct netlink_answer){ 0 }; /* its parent was about to change it */
	return true;
}

static void lock(struct sysfs_netlink *n)
{
	struct base_pause pause = { 0 };

	while (!try_lock(n))
		base_pause(&pause);
	if (n->pid == getpid())
		return;
	n->pid = getpid();
	netlink_free(&n->answer);
}

static void unlock(struct sysfs_netlink *n)
{
	atomic_store(&n->busy, false);
}

int sysfs_netlink_open(int type)
{
	int fd = sysfs_real()->socket(AF_NETLINK, type, NETLINK_USERSOCK);
	struct sysfs_netlink *n;

	if (fd < 0)
		return -1;
	n = &sockets[atomic_fetch_add(&next_socket, 1) % SOCKETS];
	lock(n);
	netlink_free(&n->answer);
	atomic_store_explicit(&n->inode, inode_of(fd), memory_order_release);
	unlock(n);
	atomic_store(&sysfs_netlink_any, true);
	return fd;
}

/* ---- answers */

/* The socket that requests go to and answers come from; *@port: its address. -1 and errno. */
static int open_other_end(uint32_t *port)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	socklen_t bytes = sizeof(address);
	int fd = sysfs_real()->socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
	                              NETLINK_USERSOCK);

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    getsockname(fd, (struct sockaddr *)&address, &bytes)) {
		close(fd);
		return -1;
	}
	*port = address.nl_pid;
	return fd;
}

/* Sends as much of the answer as fits the queue of the receiver. */
static void go_on(struct sysfs_netlink *n, int other_end)
{
	const struct sockaddr_nl to = { .nl_family = AF_NETLINK, .nl_pid = n->port };
	struct netlink_answer *a = &n->answer;
	size_t bytes;

	while ((bytes = netlink_next(a, DATAGRAM))) {
		ssize_t sent = sysfs_real()->sendto(other_end, a->data + a->sent, bytes,
		                                    MSG_DONTWAIT | MSG_NOSIGNAL,
		                                    (const struct sockaddr *)&to, sizeof(to));

		if (sent < 0 && errno == EAGAIN)
			return;
		a->sent += bytes; /* if nobody is there any more, nobody misses it */
	}
	netlink_free(a);
}

/* To what has come from the program. 0; ENOMEM. */
static int answer(struct sysfs_netlink *n, int other_end)
{
	struct sockaddr_nl from = { .nl_family = AF_NETLINK };
	socklen_t bytes = sizeof(from);
	void *request = malloc(REQUEST);
	ssize_t length = !request
	                         ? -1
	                         : sysfs_real()->recvfrom(other_end, request, REQUEST, MSG_DONTWAIT,
	                                                  (struct sockaddr *)&from, &bytes);

	if (length > 0) {
		n->port = from.nl_pid;
		sysfs_nldev_answer(request, (size_t)length, n->port, &n->answer);
	}
	free(request);
	if (!request || n->answer.failed) {
		netlink_free(&n->answer);
		return ENOMEM;
	}
	go_on(n, other_end);
	return 0;
}

ssize_t sysfs_netlink_send(struct sysfs_netlink *n, int fd, const struct msghdr *msg, int flags)
{
	struct sockaddr_nl to = { .nl_family = AF_NETLINK };
	struct msghdr other = *msg;
	int other_end, error;
	ssize_t sent;

	other_end = open_other_end(&to.nl_pid);
	if (other_end < 0)
		return -1;
	other.msg_name = &to;
	other.msg_namelen = sizeof(to);
	lock(n);
	sent = sysfs_real()->sendmsg(fd, &other, flags);
	error = sent < 0 ? errno : 0;
	if (sent >= 0)
		error = answer(n, other_end);
	unlock(n);
	close(other_end);
	errno = error;
	return error ? -1 : sent;
}

void sysfs_netlink_received(struct sysfs_netlink *n, struct sockaddr *from, socklen_t bytes)
{
	int error = errno, other_end;
	uint32_t unused;

	if (from && bytes >= sizeof(struct sockaddr_nl) && from->sa_family == AF_NETLINK)
		((struct sockaddr_nl *)from)->nl_pid = 0;
	if (!try_lock(n))
		return;
	if (n->answer.bytes && n->pid == getpid()) {
		other_end = open_other_end(&unused);
		if (other_end >= 0) {
			go_on(n, other_end);
			close(other_end);
		}
	}
	unlock(n);
	errno = error;
}
