/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets with descriptors: see socket.h.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/socket.h"

/* Room for all descriptors that can come with a datagram (SCM_MAX_FD of Linux): without room, the
 * kernel closes them, here. */
#define FD_ROOM 253

/* Closes the descriptors that the caller does not get. */
struct discard {
	void (*fd)(void *arg, int fd);
	void *arg;
};

static_assert(offsetof(struct control_packet, body) == sizeof(struct control_header), "one piece");

int control_send(int sock, const struct control_packet *p)
{
	return control_send_behind(sock, NULL, 0, p);
}

int control_send_behind(int sock, const void *ahead, uint32_t bytes, const struct control_packet *p)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * CONTROL_MAX_FDS)];
	} ancillary;
	struct iovec iov[2] = { { .iov_base = (void *)ahead, .iov_len = bytes },
		                { .iov_base = (void *)p,
		                  .iov_len = sizeof(p->header) + p->header.bytes } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n;

	if (p->header.bytes > sizeof(p->body) || bytes > sizeof(p->body) - p->header.bytes ||
	    p->n_fds < 0 || p->n_fds > CONTROL_MAX_FDS)
		return -EMSGSIZE;
	if (p->n_fds) {
		struct cmsghdr *c = &ancillary.align;

		memset(&ancillary, 0, sizeof(ancillary));
		msg.msg_control = &ancillary;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * p->n_fds);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * p->n_fds);
		memcpy(CMSG_DATA(c), p->fd, sizeof(int) * p->n_fds);
	}
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	return 0;
}

static void close_fd(void *arg, int fd)
{
	(void)arg;
	close(fd);
}

static void read_fds(struct msghdr *msg, struct control_packet *p, const struct discard *discard)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		int fds[FD_ROOM], n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), sizeof(int) * n);
		for (int i = 0; i < n; i++) {
			if (p->n_fds < CONTROL_MAX_FDS)
				p->fd[p->n_fds++] = fds[i];
			else
				discard->fd(discard->arg, fds[i]);
		}
	}
}

/* Whether the @n bytes from the packet's header on are whole requests, or one reply. */
static bool is_whole(const struct control_packet *p, size_t n)
{
	const char *at = (const char *)p;
	struct control_header h;

	while (n >= sizeof(h)) {
		memcpy(&h, at, sizeof(h));
		if (h.status != CONTROL_FOLLOWED)
			return h.bytes == n - sizeof(h);
		if (control_followed_bytes(h.bytes) > n)
			return false;
		at += control_followed_bytes(h.bytes);
		n -= control_followed_bytes(h.bytes);
	}
	return false;
}

/* How many of the @n bytes from the packet's header on are behind its body. */
static uint32_t count_behind(const struct control_packet *p, size_t n)
{
	return p->header.status == CONTROL_FOLLOWED
	               ? (uint32_t)(n - control_followed_bytes(p->header.bytes))
	               : 0;
}

int control_packet_set(struct control_packet *p, size_t bytes)
{
	p->n_fds = 0;
	if (!is_whole(p, bytes))
		return -EPROTO;
	p->behind = count_behind(p, bytes);
	return 0;
}

bool control_packet_is_post(const struct control_packet *p)
{
	const char *at = (const char *)p;
	struct control_header h;

	do {
		memcpy(&h, at, sizeof(h));
		at += control_followed_bytes(h.bytes);
	} while (!h.serial && h.status == CONTROL_FOLLOWED);
	return !h.serial;
}

bool control_packet_next(struct control_packet *p)
{
	const uint32_t n = p->behind;
	const unsigned char *at = p->body + base_align_up(p->header.bytes, 8);

	if (!n)
		return false;
	memmove(p, at, n);
	p->behind = count_behind(p, n);
	return true;
}

static void discard_fds(struct control_packet *p, const struct discard *discard)
{
	while (p->n_fds)
		discard->fd(discard->arg, p->fd[--p->n_fds]);
}

int control_receive(int sock, struct control_packet *p)
{
	return control_receive_discarding(sock, p, close_fd, NULL);
}

int control_receive_discarding(int sock, struct control_packet *p,
                               void (*discard_fd)(void *arg, int fd), void *arg)
{
	const struct discard discard = { discard_fd, arg };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * FD_ROOM)];
	} ancillary;
	struct iovec iov = { .iov_base = p, .iov_len = sizeof(p->header) + sizeof(p->body) };
	struct msghdr msg = { .msg_iov = &iov,
		              .msg_iovlen = 1,
		              .msg_control = &ancillary,
		              .msg_controllen = sizeof(ancillary) };
	ssize_t n;

	p->n_fds = 0;
	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	read_fds(&msg, p, &discard);
	if (n == 0) {
		discard_fds(p, &discard);
		return -EPIPE;
	}
	if ((msg.msg_flags & MSG_TRUNC) || !is_whole(p, (size_t)n)) {
		discard_fds(p, &discard);
		return -EPROTO;
	}
	p->behind = count_behind(p, (size_t)n);
	if (msg.msg_flags & MSG_CTRUNC) {
		discard_fds(p, &discard);
		return -EMFILE;
	}
	return 0;
}

void control_close_fds(struct control_packet *p)
{
	discard_fds(p, &(struct discard){ close_fd, NULL });
}
