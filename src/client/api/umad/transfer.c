/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sending and receiving: datagrams on the port's socket, as umad_message.h has them.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "api/umad/umad.h"
#include "base/file.h"
#include "base/reason.h"
#include "base/signals.h"
#include "wire/rmpp.h"
#include "wire/smp.h"

#define HEADER_BYTES  sizeof(struct ib_user_mad)
#define MAD_HEADER    24
#define MIN_SEND      36 /* what the kernel wants to see of a MAD */
#define DIRECTION_BIT 0x80

union one_fd {
	struct cmsghdr align;
	char space[CMSG_SPACE(sizeof(int))];
};

/* ---- waiting ---- */

int umad_poll(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n;

	TRACE("fd %d timeout %d", fd, timeout_ms);
	n = poll(&p, 1, timeout_ms);
	if (n == 1)
		return 0;
	return n == 0 ? -ETIMEDOUT : umad_result(-EIO);
}

/* ---- sending ---- */

/*
 * The first hop of a directed route, or of the returning path, is by this port, or it leads
 * nowhere: unless that part of the path is by LID.
 */
static bool is_route_from(const uint8_t *mad, uint8_t port_num)
{
	uint8_t pointer = mad[SMP_AT_HOP_POINTER], count = mad[SMP_AT_HOP_COUNT];
	bool is_response = mad[SMP_AT_STATUS] & DIRECTION_BIT;
	const uint8_t *begin = mad + (is_response ? SMP_AT_DR_DLID : SMP_AT_DR_SLID);

	if (count > SMP_MAX_HOPS)
		return false;
	if (begin[0] != 0xFF || begin[1] != 0xFF)
		return true;
	if (!is_response)
		return !count || (!pointer && mad[SMP_AT_INITIAL_PATH + 1] == port_num);
	return !count || (pointer == count + 1 && mad[SMP_AT_RETURN_PATH + count] == port_num);
}

/* The errors of a MAD that the kernel finds at once. 0 or -errno. */
static int check_send(int fd, uint32_t agent, const uint8_t *mad, size_t bytes)
{
	uint8_t mgmt_class = mad[1];
	unsigned data_at = wire_rmpp_data_at(mgmt_class);
	bool registered = false, reassembles = false;
	struct umad_open *port;
	uint8_t port_num = 0;
	int cancel_state;

	umad_lock(&cancel_state);
	port = umad_open_find(fd);
	if (port && agent < UMAD_CA_MAX_AGENTS) {
		registered = port->agent[agent].registered;
		reassembles = port->agent[agent].reassembles;
		port_num = port->port_num;
	}
	umad_unlock(cancel_state);
	if (!port)
		return base_because(-EBADF, "descriptor %d is not one of umad_open_port()", fd);
	if (agent >= UMAD_CA_MAX_AGENTS || !registered)
		return base_because(agent >= UMAD_CA_MAX_AGENTS ? -EINVAL : -EIO,
		                    "agent %u is not registered at descriptor %d", agent, fd);
	if (bytes < (data_at ? data_at : MAD_HEADER) || bytes > CONTROL_UMAD_MAX_BYTES)
		return base_because(-EINVAL, "%zu bytes are too few or too many for class 0x%02x",
		                    bytes, mgmt_class);
	if (bytes > UMAD_MAD_BYTES && !(reassembles && wire_rmpp_is_active(mad)))
		return base_because(-EINVAL,
		                    "%zu bytes are more than one MAD: the agent or the MAD does "
		                    "not use RMPP",
		                    bytes);
	if (mgmt_class == MAD_CLASS_SUBN_DIRECTED &&
	    (bytes < UMAD_MAD_BYTES || !is_route_from(mad, port_num)))
		return base_because(-EINVAL, "the directed route does not begin at port %u",
		                    port_num);
	return 0;
}

/* Puts @fd beside a datagram. */
static void attach_fd(struct msghdr *msg, union one_fd *control, int fd)
{
	struct cmsghdr *c = &control->align;

	memset(control, 0, sizeof(*control));
	msg->msg_control = control;
	msg->msg_controllen = sizeof(control->space);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
}

/* -EFBIG: the process may not write files of that size, and would get a signal. */
static int make_memfd(const uint8_t *data, size_t bytes)
{
	struct rlimit limit;
	int fd, cancel_state, ret;

	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < bytes)
		return -EFBIG;
	fd = memfd_create("umad", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	cancel_state = base_cancel_off();
	ret = base_write_all(fd, data, bytes) ? -ENOMEM : 0;
	if (ret)
		close(fd);
	base_cancel_restore(cancel_state);
	return ret ? ret : fd;
}

static void close_memfd(void *arg)
{
	const int *fd = arg;

	if (*fd >= 0)
		close(*fd);
}

/* The daemon receives the datagrams, so that there is room again soon. Cancellation point. */
static int send_datagram(int fd, const struct msghdr *msg)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	ssize_t n;

	while ((n = sendmsg(fd, msg, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0) {
		if (errno == EAGAIN || errno == ENOBUFS)
			poll(&p, 1, -1);
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int send_mad(int fd, const struct ib_user_mad *mad, size_t bytes)
{
	struct ib_user_mad header = *mad;
	struct iovec iov[] = { { &header, sizeof(header) }, { (void *)mad->data, bytes } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	union one_fd control;
	int memfd = -1, ret;

	header.length = (uint32_t)(sizeof(header) + bytes);
	if (header.length > CONTROL_UMAD_DATAGRAM) {
		memfd = make_memfd(mad->data, bytes);
		if (memfd < 0)
			return memfd;
		attach_fd(&msg, &control, memfd);
		iov[1].iov_len = UMAD_MAD_BYTES;
	}
	pthread_cleanup_push(close_memfd, &memfd);
	ret = send_datagram(fd, &msg);
	pthread_cleanup_pop(1);
	return ret;
}

/* 0, or -EIO with the reason in errno. */
int umad_send(int fd, int agentid, void *umad, int length, int timeout_ms, int retries)
{
	struct ib_user_mad *mad = umad;
	int ret;

	TRACE("fd %d agentid %d umad %p timeout %u", fd, agentid, umad, timeout_ms);
	mad->timeout_ms = (uint32_t)timeout_ms;
	mad->retries = (uint32_t)retries;
	mad->agent_id = (uint32_t)agentid;
	if (umad_debug_level() > 1)
		umad_dump(mad);
	ret = length < MIN_SEND
	              ? base_because(-EINVAL, "%d bytes: a MAD has at least %d", length, MIN_SEND)
	              : check_send(fd, mad->agent_id, mad->data, (size_t)length);
	if (!ret)
		ret = send_mad(fd, mad, (size_t)length);
	errno = -ret;
	return ret ? umad_failed(__func__, ret, -EIO) : 0;
}

/* ---- receiving ---- */

/* The next datagram stays; reads its beginning. 0 or -errno. */
static int peek(int fd, struct iovec *iov, size_t n_iov)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n_iov };
	ssize_t n = recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0)
		return errno == ECONNRESET ? -EIO : -errno;
	return (size_t)n < HEADER_BYTES ? -EIO : 0; /* 0: the daemon has gone */
}

static int read_memfd(int fd, uint8_t *to, size_t bytes)
{
	size_t at = 0;

	while (at < bytes) {
		ssize_t n = pread(fd, to + at, bytes - at, (off_t)at);

		if (n <= 0)
			return -EIO;
		at += (size_t)n;
	}
	return 0;
}

/* Takes the next datagram, which fits: @bytes of MAD. */
static int take(int fd, struct ib_user_mad *mad, size_t bytes)
{
	union one_fd control;
	struct iovec iov = { mad, HEADER_BYTES + bytes };
	struct msghdr msg = { .msg_iov = &iov,
		              .msg_iovlen = 1,
		              .msg_control = &control,
		              .msg_controllen = sizeof(control.space) };
	const struct cmsghdr *c;
	int memfd, ret;

	if (recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (!c)
		return 0;
	memcpy(&memfd, CMSG_DATA(c), sizeof(memfd));
	ret = read_memfd(memfd, mad->data, bytes);
	close(memfd);
	return ret;
}

/*
 * With the lock held. Of a message that is too long for @umad only the header and the first MAD are
 * read, while *@length says how long it is.
 */
static int receive(int fd, struct ib_user_mad *mad, int *length)
{
	struct ib_user_mad header;
	uint8_t first[UMAD_MAD_BYTES];
	struct iovec iov[] = { { &header, sizeof(header) }, { first, sizeof(first) } };
	int ret = peek(fd, iov, 2), bytes;

	if (ret)
		return ret;
	bytes = (int)(header.length - HEADER_BYTES);
	if (*length < bytes && *length < UMAD_MAD_BYTES)
		return base_because(-EINVAL, "%d bytes of room are less than a MAD has", *length);
	if (*length < bytes) {
		memcpy(mad, &header, sizeof(header));
		memcpy(mad->data, first, sizeof(first));
		*length = bytes;
		return base_because(-ENOSPC, "the message has %d bytes: make room, and call again",
		                    bytes);
	}
	*length = bytes;
	return take(fd, mad, (size_t)bytes);
}

static int receive_locked(int fd, struct ib_user_mad *mad, int *length)
{
	int cancel_state, ret;

	umad_lock(&cancel_state); /* between the look and the grasp nobody else takes it */
	ret = receive(fd, mad, length);
	umad_unlock(cancel_state);
	return ret;
}

/* A MAD of the program's comes back: nobody responded to it, or it could not be sent. */
static BASE_COLD void log_failed(const struct ib_user_mad *mad)
{
	const uint8_t *m = (const uint8_t *)mad->data;
	const struct base_failure f = {
		.part = BASE_LOG_PART_umad,
		.otherwise = mad->status == ETIMEDOUT
		                     ? "nobody responded in time: is a port with that LID up, and "
		                       "does a program there serve the class?"
		                     : "it could not be sent",
		.again = 1 + mad->status + ((uint64_t)m[1] << 32 | (uint64_t)m[17] << 40),
	};

	base_failure_log(&f,
	                 "MAD of class 0x%02x, method 0x%02x, attribute 0x%04x to LID %u comes "
	                 "back with %s",
	                 m[1], m[3], m[16] << 8 | m[17], be16toh(mad->addr.lid),
	                 base_error_name((int)mad->status));
}

/*
 * The agent's number. -errno, and errno: -ETIMEDOUT; -EWOULDBLOCK: nothing there and no time
 * to wait; -EINVAL: less room than for a MAD; -ENOSPC: *@length is needed; -EIO: it is over.
 */
int umad_recv(int fd, void *umad, int *length, int timeout_ms)
{
	struct ib_user_mad *mad = umad;
	int ret;

	errno = 0;
	TRACE("fd %d umad %p timeout %u", fd, umad, timeout_ms);
	if (!umad || !length) {
		errno = EINVAL;
		return umad_result(-EINVAL);
	}
	pthread_testcancel();
	ret = receive_locked(fd, mad, length);
	if (ret == -EWOULDBLOCK && timeout_ms) {
		errno = 0;
		ret = umad_poll(fd, timeout_ms);
		if (ret) {
			if (!errno)
				errno = -ret;
			return ret == -ETIMEDOUT ? ret : umad_result(ret);
		}
		ret = receive_locked(fd, mad, length);
	}
	if (ret) {
		errno = -ret;
		return umad_result(ret);
	}
	if (mad->status && base_log_on(umad, BASE_LOG_WARNING))
		log_failed(mad);
	TRACE("mad received by agent %d length %d", mad->agent_id, *length);
	return (int)mad->agent_id;
}
