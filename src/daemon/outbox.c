/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Outboxes: see outbox.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/outbox.h"

/* A process that does not read gets no more once so many messages wait, or so many bytes; one
 * message always may. */
#define MAX_WAITING  (1u << 18)
#define MAX_BYTES    ((size_t)64 << 20)
#define BESIDE_BYTES ((size_t)8 << 20) /* on their way in memfds; one memfd always may be */

struct message {
	STAILQ_ENTRY(message) entry;
	size_t bytes, beside_bytes;
	char data[]; /* what is beside it follows */
};

struct cm_outbox {
	struct daemon_loop *loop;
	int fd;
	sd_event_source *source; /* NULL while nothing waits */
	STAILQ_HEAD(, message) waiting;
	unsigned n_waiting;
	size_t bytes_waiting;
	size_t bytes_beside; /* in memfds that were sent since the socket was last seen empty */
};

static void drop_waiting(struct cm_outbox *box)
{
	struct message *m;

	while ((m = STAILQ_FIRST(&box->waiting))) {
		STAILQ_REMOVE_HEAD(&box->waiting, entry);
		free(m);
	}
	box->n_waiting = 0;
	box->bytes_waiting = 0;
	box->source = sd_event_source_disable_unref(box->source);
}

/* A memfd with what is too long for a datagram. It is made as late as possible: a backlog of
 * messages costs no descriptors. -1: no memory. */
static int make_memfd(const char *data, size_t bytes)
{
	int fd = memfd_create("umbel-message", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes)
		return fd;
	base_log_warning(daemon, "no memory for a message of %zu bytes: it is lost", bytes);
	if (fd >= 0)
		close(fd);
	return -1;
}

/* 0 if it was sent or never can be; -EAGAIN. */
static int push_with(struct cm_outbox *box, const struct daemon_datagram *g, int fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)g->data, .iov_len = g->bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.space);
	}
	do {
		n = sendmsg(box->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 && (errno == EAGAIN || errno == ENOBUFS) ? -EAGAIN : 0;
}

/* The socket counts a memfd as nothing. Whether there may be one more of so many bytes. */
static bool has_room_beside(struct cm_outbox *box, size_t bytes)
{
	int unread = 0;

	if (box->bytes_beside && box->bytes_beside + bytes > BESIDE_BYTES &&
	    !ioctl(box->fd, SIOCOUTQ, &unread) && !unread)
		box->bytes_beside = 0;
	return !box->bytes_beside || box->bytes_beside + bytes <= BESIDE_BYTES;
}

static int push(struct cm_outbox *box, const struct daemon_datagram *g)
{
	int fd, ret;

	if (!g->beside_bytes)
		return push_with(box, g, -1);
	if (!has_room_beside(box, g->beside_bytes))
		return -EAGAIN;
	fd = make_memfd(g->beside, g->beside_bytes);
	if (fd < 0)
		return 0;
	ret = push_with(box, g, fd);
	if (!ret)
		box->bytes_beside += g->beside_bytes;
	close(fd);
	return ret;
}

static int on_room(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct cm_outbox *box = arg;
	struct message *m;

	(void)s;
	(void)fd;
	if (revents & EPOLLHUP) {
		drop_waiting(box);
		return 0;
	}
	while ((m = STAILQ_FIRST(&box->waiting))) {
		const struct daemon_datagram g = { m->data, m->bytes, m->data + m->bytes,
			                           m->beside_bytes };

		if (push(box, &g))
			return 0;
		STAILQ_REMOVE_HEAD(&box->waiting, entry);
		box->n_waiting--;
		box->bytes_waiting -= m->bytes + m->beside_bytes;
		free(m);
	}
	drop_waiting(box);
	return 0;
}

int daemon_outbox_open(struct daemon_loop *loop, struct cm_outbox **out, int *process_fd)
{
	struct cm_outbox *box = calloc(1, sizeof(*box));
	int pair[2], ret;

	if (!box)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		ret = -errno;
		free(box);
		return ret;
	}
	box->loop = loop;
	box->fd = pair[0];
	STAILQ_INIT(&box->waiting);
	*process_fd = pair[1];
	*out = box;
	return 0;
}

/* Keeps it until there is room. -ENOMEM, or -ENOBUFS: too much waits already. */
static int keep(struct cm_outbox *box, const struct daemon_datagram *g)
{
	size_t bytes = g->bytes + g->beside_bytes;
	struct message *m;

	if (box->n_waiting >= MAX_WAITING ||
	    (box->n_waiting && bytes > MAX_BYTES - box->bytes_waiting))
		return -ENOBUFS;
	m = malloc(sizeof(*m) + bytes);
	if (!m) {
		base_log_warning(daemon, "out of memory: an event is lost");
		return -ENOMEM;
	}
	m->bytes = g->bytes;
	m->beside_bytes = g->beside_bytes;
	memcpy(m->data, g->data, g->bytes);
	if (g->beside_bytes)
		memcpy(m->data + g->bytes, g->beside, g->beside_bytes);
	STAILQ_INSERT_TAIL(&box->waiting, m, entry);
	box->n_waiting++;
	box->bytes_waiting += bytes;
	if (!box->source &&
	    /* edges: the reader has read something, though there was room for small datagrams */
	    sd_event_add_io(box->loop->events, &box->source, box->fd, EPOLLOUT | EPOLLET, on_room,
	                    box) < 0)
		base_log_warning(daemon, "cannot wait for room: events are delayed");
	return 0;
}

int daemon_outbox_send_datagram(struct cm_outbox *box, const struct daemon_datagram *g)
{
	return !STAILQ_EMPTY(&box->waiting) || push(box, g) ? keep(box, g) : 0;
}

int daemon_outbox_send(struct cm_outbox *box, const void *event, size_t bytes)
{
	return daemon_outbox_send_datagram(
	        box, &(struct daemon_datagram){ .data = event, .bytes = bytes });
}

unsigned daemon_outbox_waiting(const struct cm_outbox *box)
{
	return box->n_waiting;
}

int daemon_outbox_fd(const struct cm_outbox *box)
{
	return box->fd;
}

void daemon_outbox_close(struct cm_outbox *box)
{
	drop_waiting(box);
	close(box->fd);
	free(box);
}
