/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The usual alternative to a connected queue pair: a TCP connection, received from without
 * blocking, with all messages of a list in one call.
 */
#include "common/util.h"

#include <netinet/tcp.h>

#include "common/link.h"

#define LIST       32
#define FIRST_PORT 17800
#define PATIENCE   1000 /* tries to connect, a millisecond each */

struct tcp {
	int fd;
	uint32_t bytes, mask, received; /* messages */
	size_t part;                    /* of the next message, that has come */
	char *message, *buffer;
};

static int new_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	bench_must(fd >= 0, "socket");
	return fd;
}

static int accept_one(const struct sockaddr_in *at)
{
	int yes = 1, listener = new_socket(), fd;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	bench_must(!bind(listener, (const struct sockaddr *)at, sizeof(*at)) &&
	                   !listen(listener, 1),
	           "listen");
	fd = accept(listener, NULL, NULL);
	bench_must(fd >= 0, "accept");
	close(listener);
	return fd;
}

static int connect_to(const struct sockaddr_in *at)
{
	for (unsigned i = 0; i < PATIENCE; i++) {
		int fd = new_socket();

		if (!connect(fd, (const struct sockaddr *)at, sizeof(*at)))
			return fd;
		close(fd);
		usleep(1000);
	}
	bench_fail("connect");
}

static void *tcp_open(void *shared, const struct bench_spec *spec, int side)
{
	struct tcp *t = bench_alloc(sizeof(*t), 0);
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_port = htons((uint16_t)(FIRST_PORT + spec->index)) };
	int yes = 1;

	(void)shared;
	bench_must(inet_pton(AF_INET, spec->address[1], &at.sin_addr) == 1, "inet_pton");
	t->fd = side ? accept_one(&at) : connect_to(&at);
	setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	t->bytes = spec->bytes;
	t->mask = spec->depth - 1;
	t->message = bench_alloc((size_t)t->bytes * LIST, 0);
	t->buffer = bench_alloc((size_t)t->bytes * spec->depth, 0);
	return t;
}

static void tcp_send(void *link, unsigned n)
{
	struct tcp *t = link;

	for (size_t left = (size_t)n * t->bytes; left;) {
		ssize_t done = send(t->fd, t->message, left, 0);

		bench_must(done >= 0, "send");
		left -= (size_t)done;
	}
}

/* To the places of the next messages, up to the buffer's end. */
static unsigned tcp_receive(void *link, unsigned max)
{
	struct tcp *t = link;
	uint32_t first = t->received & t->mask, places = t->mask + 1 - first;
	size_t room = (size_t)(max < places ? max : places) * t->bytes - t->part;
	ssize_t got =
	        recv(t->fd, t->buffer + (size_t)first * t->bytes + t->part, room, MSG_DONTWAIT);
	unsigned n;

	if (got < 0 && errno != EAGAIN && errno != EINTR)
		bench_fail("recv");
	if (got <= 0)
		return 0;
	t->part += (size_t)got;
	n = (unsigned)(t->part / t->bytes);
	t->part %= t->bytes;
	t->received += n;
	return n;
}

static void tcp_settle(void *link)
{
	(void)link;
}

static void tcp_close(void *link)
{
	struct tcp *t = link;

	close(t->fd);
}

const struct bench_link_ops bench_tcp_ops = {
	.name = "tcp",
	.exchanges = 1000,
	.messages = 60000,
	.open = tcp_open,
	.send = tcp_send,
	.receive = tcp_receive,
	.settle = tcp_settle,
	.close = tcp_close,
};
