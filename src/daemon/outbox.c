/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An outbox: events on their way to one process, by a socket pair of which the
 * process has the other end. What the socket does not take now waits here, in
 * order, and goes when there is room. A process that closes its end, or dies, just
 * gets no more; one that has hundreds of thousands wait for it neither.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/state.h"

struct message {
	STAILQ_ENTRY(message) entry;
	size_t bytes;
	int fd; /* goes with it; -1: none */
	char data[];
};

struct cm_outbox {
	struct daemon *d;
	int fd;
	sd_event_source *source; /* NULL while nothing waits */
	STAILQ_HEAD(, message) waiting;
	unsigned n_waiting;
};

static void message_free(struct message *m)
{
	if (m->fd >= 0)
		close(m->fd);
	free(m);
}

static void drop_waiting(struct cm_outbox *box)
{
	struct message *m;

	while ((m = STAILQ_FIRST(&box->waiting))) {
		STAILQ_REMOVE_HEAD(&box->waiting, entry);
		message_free(m);
	}
	box->n_waiting = 0;
	box->source = sd_event_source_disable_unref(box->source);
}

/* 0 if it went or never will; -EAGAIN. */
static int push(struct cm_outbox *box, const void *data, size_t bytes, int fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = bytes };
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
		if (push(box, m->data, m->bytes, m->fd))
			return 0;
		STAILQ_REMOVE_HEAD(&box->waiting, entry);
		box->n_waiting--;
		message_free(m);
	}
	drop_waiting(box);
	return 0;
}

int daemon_outbox_open(void *daemon, struct cm_outbox **out, int *process_fd)
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
	box->d = daemon;
	box->fd = pair[0];
	STAILQ_INIT(&box->waiting);
	*process_fd = pair[1];
	*out = box;
	return 0;
}

/* Keeps it until there is room. -ENOMEM, or -ENOBUFS: too much waits already. */
static int keep(struct cm_outbox *box, const void *event, size_t bytes, int fd)
{
	struct message *m;

	if (box->n_waiting >= DAEMON_OUTBOX_ROOM)
		return -ENOBUFS;
	m = malloc(sizeof(*m) + bytes);
	if (!m) {
		base_log("out of memory: an event is lost");
		return -ENOMEM;
	}
	m->fd = fd;
	m->bytes = bytes;
	memcpy(m->data, event, bytes);
	STAILQ_INSERT_TAIL(&box->waiting, m, entry);
	box->n_waiting++;
	if (!box->source &&
	    sd_event_add_io(box->d->loop, &box->source, box->fd, EPOLLOUT, on_room, box) < 0)
		base_log("cannot wait for room: events are delayed");
	return 0;
}

void daemon_outbox_send_fd(struct cm_outbox *box, const void *event, size_t bytes, int fd)
{
	bool gone = STAILQ_EMPTY(&box->waiting) && !push(box, event, bytes, fd);

	if (!gone && !keep(box, event, bytes, fd))
		return;
	if (fd >= 0)
		close(fd);
}

void daemon_outbox_send(struct cm_outbox *box, const void *event, size_t bytes)
{
	daemon_outbox_send_fd(box, event, bytes, -1);
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
