/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connection of two routers' ports: see link.h.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "daemon/router/link.h"

#define AT_ONCE 64                     /* messages, before others have a turn; */
#define TURN_NS (2 * DAEMON_NS_PER_MS) /* likewise: a new way into the subnet takes longer */

/* One that the socket had no room for. */
struct router_waiting {
	TAILQ_ENTRY(router_waiting) entry;
	size_t bytes;
	uint8_t message[];
};

/* The parts of a message. */
struct parts {
	const void *head, *tail;
	size_t head_bytes, tail_bytes;
};

static ssize_t put(const struct router_link *l, const struct parts *p)
{
	struct iovec iov[2] = { { (void *)p->head, p->head_bytes },
		                { (void *)p->tail, p->tail_bytes } };
	const struct msghdr msg = { .msg_iov = iov, .msg_iovlen = p->tail_bytes ? 2 : 1 };
	ssize_t n;

	do
		n = sendmsg(l->source.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n;
}

static bool keep(struct router_link *l, const struct parts *p)
{
	struct router_waiting *w = malloc(sizeof(*w) + p->head_bytes + p->tail_bytes);

	if (!w)
		return false;
	w->bytes = p->head_bytes + p->tail_bytes;
	memcpy(w->message, p->head, p->head_bytes);
	if (p->tail_bytes)
		memcpy(w->message + p->head_bytes, p->tail, p->tail_bytes);
	if (TAILQ_EMPTY(&l->waiting))
		daemon_source_change(&l->source, EPOLLIN | EPOLLOUT);
	TAILQ_INSERT_TAIL(&l->waiting, w, entry);
	l->waiting_bytes += sizeof(*w) + w->bytes;
	return true;
}

static void drop_first(struct router_link *l)
{
	struct router_waiting *w = TAILQ_FIRST(&l->waiting);

	TAILQ_REMOVE(&l->waiting, w, entry);
	l->waiting_bytes -= sizeof(*w) + w->bytes;
	free(w);
}

/* If the other end is gone, the message is lost: the source hears of that. */
static bool send_parts(struct router_link *l, const struct parts *p)
{
	if (TAILQ_EMPTY(&l->waiting) && (put(l, p) >= 0 || (errno != EAGAIN && errno != ENOBUFS)))
		return true;
	return keep(l, p);
}

static size_t bytes_of(uint64_t type)
{
	static const size_t bytes[] = { [ROUTER_HELLO] = sizeof(struct router_hello),
		                        [ROUTER_ROUTES] = sizeof(struct router_routes),
		                        [ROUTER_GROUP] = sizeof(struct router_group),
		                        [ROUTER_PACKET] = sizeof(struct router_packet) };

	return type <= ROUTER_PACKET ? offsetof(struct router_message, hello) + bytes[type] : 0;
}

bool router_link_send(struct router_link *l, const struct router_message *m)
{
	return send_parts(l, &(struct parts){ .head = m, .head_bytes = bytes_of(m->type) });
}

bool router_link_send_packet(struct router_link *l, const struct router_packet *p,
                             const void *payload)
{
	struct {
		uint64_t type;
		struct router_packet packet;
	} head = { ROUTER_PACKET, *p };

	static_assert(sizeof(head) == offsetof(struct router_message, payload), "the message's");
	return send_parts(l, &(struct parts){ &head, payload, sizeof(head), p->payload_bytes });
}

/* ---- receiving ---- */

static bool is_sound(const struct router_message *m, size_t bytes)
{
	size_t want;

	if (bytes < sizeof(m->type))
		return false;
	want = bytes_of(m->type);
	if (!want || bytes < want)
		return false;
	if (m->type == ROUTER_PACKET && m->packet.payload_bytes <= sizeof(m->payload))
		want += m->packet.payload_bytes;
	return bytes == want;
}

static void send_waiting(struct router_link *l)
{
	bool sent = false;

	for (unsigned n = 0; n < AT_ONCE && !TAILQ_EMPTY(&l->waiting); n++) {
		const struct router_waiting *w = TAILQ_FIRST(&l->waiting);

		if (put(l, &(struct parts){ .head = w->message, .head_bytes = w->bytes }) < 0 &&
		    (errno == EAGAIN || errno == ENOBUFS))
			break;
		drop_first(l);
		sent = true;
	}
	if (TAILQ_EMPTY(&l->waiting))
		daemon_source_change(&l->source, EPOLLIN);
	if (sent)
		l->drained(l);
}

/* Reads one message. False: there is none, or the link has ended. */
static bool receive_one(struct router_link *l)
{
	static struct {
		struct router_message m;
		uint8_t beyond;
	} in; /* the daemon has one thread */
	ssize_t n = recv(l->source.fd, &in, sizeof(in), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n > 0 && is_sound(&in.m, (size_t)n) && l->receive(l, &in.m))
		return true;
	l->ended(l);
	return false;
}

static void on_ready(struct daemon_source *s, uint32_t events)
{
	struct router_link *l = container_of(s, struct router_link, source);
	const uint64_t began = base_now_ns();

	if (events & EPOLLOUT)
		send_waiting(l);
	for (unsigned n = 0; n < AT_ONCE && !l->is_busy(l) && base_now_ns() - began < TURN_NS; n++)
		if (!receive_one(l))
			return;
}

int router_link_open(struct router_link *l, int fd)
{
	l->source = (struct daemon_source){ .ready = on_ready };
	TAILQ_INIT(&l->waiting);
	l->waiting_bytes = 0;
	return daemon_source_watch(l->loop, &l->source, fd, EPOLLIN);
}

void router_link_close(struct router_link *l)
{
	const int fd = l->source.fd;

	if (!router_link_is_open(l))
		return;
	daemon_source_stop(&l->source);
	daemon_loop_close(l->loop, fd);
	while (!TAILQ_EMPTY(&l->waiting))
		drop_first(l);
}
