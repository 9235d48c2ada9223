/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Outboxes: see outbox.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon/core/outbox.h"
#include "daemon/core/pair.h"

/* A process that does not read gets no more once so many messages wait, or so many bytes; one
 * message always may. */
#define MAX_WAITING  (1u << 18)
#define MAX_BYTES    ((size_t)64 << 20)
#define BESIDE_BYTES ((size_t)8 << 20) /* on their way in memfds; one memfd always may be */

#define TURN     256  /* datagrams that are sent, before others have their turn */
#define DROP     4096 /* messages that are freed, likewise */
#define RETRY_MS 100  /* of a wait for room for which there was no memory */

/* So many rings wait, by their byte. */
struct rings {
	uint64_t n[DAEMON_OUTBOX_RINGS];
};

struct message {
	TAILQ_ENTRY(message) entry;
	size_t bytes, beside_bytes;
	struct rings behind; /* it, and before the next one */
	char data[];         /* what is beside it follows */
};
TAILQ_HEAD(messages, message);

struct cm_outbox {
	struct daemon_loop *loop;
	int fd;
	struct daemon_source source; /* watched while something waits */
	struct base_timer retry;
	struct rings ahead; /* of the first message */
	struct messages waiting;
	unsigned n_waiting;
	uint64_t n_rings;
	size_t bytes_waiting;
	size_t bytes_beside; /* in memfds that were sent since the socket was last seen empty */
};

static bool is_waiting(const struct cm_outbox *box)
{
	return box->n_rings || !TAILQ_EMPTY(&box->waiting);
}

/* True: none is left. */
static bool drop_messages(struct cm_outbox *box)
{
	struct message *m;
	unsigned left;

	for (left = DROP; left && (m = TAILQ_FIRST(&box->waiting)); left--) {
		TAILQ_REMOVE(&box->waiting, m, entry);
		box->n_waiting--;
		box->bytes_waiting -= m->bytes + m->beside_bytes;
		free(m);
	}
	return left;
}

static void on_drop(struct base_timer *t);

/* Nobody reads what waits. */
static void drop_waiting(struct cm_outbox *box)
{
	daemon_source_stop(&box->source);
	box->ahead = (struct rings){ 0 };
	box->n_rings = 0;
	if (drop_messages(box))
		base_timer_stop(&box->retry);
	else
		base_timer_set_in(&box->loop->timers, &box->retry, 0, on_drop);
}

static void on_drop(struct base_timer *t)
{
	drop_waiting(container_of(t, struct cm_outbox, retry));
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

/* 0 if it was sent or never can be; -EAGAIN; -EPIPE: the process reads no more. */
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
	if (n >= 0)
		return 0;
	if (errno == EAGAIN || errno == ENOBUFS)
		return -EAGAIN;
	return errno == EPIPE || errno == ECONNRESET ? -EPIPE : 0;
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

static int push_ring(struct cm_outbox *box, uint8_t byte)
{
	return push(box, &(struct daemon_datagram){ .data = &byte, .bytes = sizeof(byte) });
}

/* Those ahead of the first message, as many as the turn has left. 0, -EAGAIN or -EPIPE. */
static int push_rings(struct cm_outbox *box, unsigned *left)
{
	int ret;

	for (uint8_t byte = 0; byte < DAEMON_OUTBOX_RINGS; byte++)
		for (; box->ahead.n[byte] && *left; box->ahead.n[byte]--, box->n_rings--, --*left) {
			ret = push_ring(box, byte);
			if (ret)
				return ret;
		}
	return 0;
}

static int push_first(struct cm_outbox *box, struct message *m)
{
	const struct daemon_datagram g = { m->data, m->bytes, m->data + m->bytes, m->beside_bytes };
	int ret = push(box, &g);

	if (ret)
		return ret;
	TAILQ_REMOVE(&box->waiting, m, entry);
	box->n_waiting--;
	box->bytes_waiting -= m->bytes + m->beside_bytes;
	box->ahead = m->behind;
	free(m);
	return 0;
}

/* A turn. 0: there is more to push; -EAGAIN: there is no room; -EPIPE: all is done, or in vain. */
static int push_waiting(struct cm_outbox *box)
{
	struct message *m;
	unsigned left;
	int ret = 0;

	for (left = TURN; left; left--) {
		ret = push_rings(box, &left);
		if (ret || !left)
			return ret;
		m = TAILQ_FIRST(&box->waiting);
		ret = m ? push_first(box, m) : -EPIPE;
		if (ret)
			return ret;
	}
	return 0;
}

static void on_retry(struct base_timer *t);

static void take_turn(struct cm_outbox *box)
{
	int ret = push_waiting(box);

	if (ret == -EPIPE)
		drop_waiting(box);
	else if (!ret) /* others come first */
		base_timer_set_in(&box->loop->timers, &box->retry, 0, on_retry);
}

static void on_room(struct daemon_source *s, uint32_t events)
{
	struct cm_outbox *box = container_of(s, struct cm_outbox, source);

	if (events & EPOLLHUP)
		drop_waiting(box);
	else if (!base_timer_is_set(&box->retry))
		take_turn(box);
}

static void wait_for_room(struct cm_outbox *box)
{
	if (daemon_source_is_watched(&box->source) || base_timer_is_set(&box->retry))
		return;
	/* edges: the reader has read something, though there was room for small datagrams */
	if (!daemon_source_watch(box->loop, &box->source, box->fd, EPOLLOUT | EPOLLET))
		return;
	base_log_warning(daemon, "cannot wait for room: events are delayed");
	base_timer_set_in(&box->loop->timers, &box->retry, RETRY_MS * DAEMON_NS_PER_MS, on_retry);
}

static void on_retry(struct base_timer *t)
{
	struct cm_outbox *box = container_of(t, struct cm_outbox, retry);

	if (daemon_source_is_watched(&box->source))
		take_turn(box);
	else
		wait_for_room(box);
}

int daemon_outbox_open(struct daemon_loop *loop, struct cm_outbox **out, int *process_fd)
{
	struct cm_outbox *box = calloc(1, sizeof(*box));
	int pair[2], ret;

	if (!box)
		return -ENOMEM;
	ret = daemon_pair(loop, SOCK_SEQPACKET, pair);
	if (ret) {
		free(box);
		return ret;
	}
	box->loop = loop;
	box->source.ready = on_room;
	box->source.patient = EPOLLHUP;
	box->fd = pair[0];
	TAILQ_INIT(&box->waiting);
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
	    (box->n_waiting && box->bytes_waiting + bytes > MAX_BYTES))
		return -ENOBUFS;
	m = malloc(sizeof(*m) + bytes);
	if (!m) {
		base_log_warning(daemon, "out of memory: a message to a process cannot wait");
		return -ENOMEM;
	}
	m->bytes = g->bytes;
	m->beside_bytes = g->beside_bytes;
	m->behind = (struct rings){ 0 };
	memcpy(m->data, g->data, g->bytes);
	if (g->beside_bytes)
		memcpy(m->data + g->bytes, g->beside, g->beside_bytes);
	TAILQ_INSERT_TAIL(&box->waiting, m, entry);
	box->n_waiting++;
	box->bytes_waiting += bytes;
	wait_for_room(box);
	return 0;
}

int daemon_outbox_send_datagram(struct cm_outbox *box, const struct daemon_datagram *g)
{
	return is_waiting(box) || push(box, g) == -EAGAIN ? keep(box, g) : 0;
}

int daemon_outbox_send(struct cm_outbox *box, const void *event, size_t bytes)
{
	return daemon_outbox_send_datagram(
	        box, &(struct daemon_datagram){ .data = event, .bytes = bytes });
}

void daemon_outbox_ring(struct cm_outbox *box, uint8_t byte)
{
	struct message *last = TAILQ_LAST(&box->waiting, messages);

	if (!is_waiting(box) && push_ring(box, byte) != -EAGAIN)
		return;
	(last ? &last->behind : &box->ahead)->n[byte]++;
	box->n_rings++;
	wait_for_room(box);
}

bool daemon_outbox_closed(const struct cm_outbox *box)
{
	struct pollfd fd = { .fd = box->fd };

	return poll(&fd, 1, 0) == 1 && (fd.revents & POLLHUP);
}

unsigned daemon_outbox_waiting(const struct cm_outbox *box)
{
	const uint64_t n = box->n_waiting + box->n_rings;

	return n < UINT_MAX ? (unsigned)n : UINT_MAX;
}

int daemon_outbox_fd(const struct cm_outbox *box)
{
	return box->fd;
}

/* Nobody uses the box any more: frees it, with the messages that wait, in turns. */
static void on_end(struct base_timer *t)
{
	struct cm_outbox *box = container_of(t, struct cm_outbox, retry);

	if (drop_messages(box))
		free(box);
	else
		base_timer_set_in(&box->loop->timers, &box->retry, 0, on_end);
}

void daemon_outbox_close(struct cm_outbox *box)
{
	base_timer_stop(&box->retry);
	daemon_source_stop(&box->source);
	daemon_loop_close_end(box->loop, box->fd);
	on_end(&box->retry);
}
