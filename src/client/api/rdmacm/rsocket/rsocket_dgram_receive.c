/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receiving by a datagram rsocket. See rsocket_dgram.h.
 */
#define _GNU_SOURCE /* POLLRDHUP */
#include <errno.h>
#include <string.h>

#include "api/rdmacm/rsocket/rsocket_dgram.h"

#define LOOKS       1024
#define KNOWN_FLAGS (MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC | MSG_NOSIGNAL | MSG_WAITALL)

/* ---- what has arrived ---- */

static void get_source(const uint8_t *header, union control_cm_addr *src)
{
	memset(src, 0, sizeof(*src));
	if (header[0] == 4) {
		src->in.sin_family = AF_INET;
		memcpy(&src->in.sin_port, header + 2, 2);
		memcpy(&src->in.sin_addr, header + 4, 4);
	} else {
		src->in6.sin6_family = AF_INET6;
		memcpy(&src->in6.sin6_port, header + 2, 2);
		memcpy(&src->in6.sin6_addr, header + 8, 16);
	}
}

/* Whether the program is to have the datagram; its sender is known to live. */
static bool accept_from(struct rsocket_dgram *d, const uint8_t *header)
{
	struct rsocket_peer *peer;
	union control_cm_addr src;

	get_source(header, &src);
	if (d->connected && !memcmp(&d->connected->from, &src, sizeof(src)))
		peer = d->connected;
	else
		peer = rsocket_peer_find(d, &src);
	if (peer)
		peer->heard_ms = rsocket_now_ms();
	return !d->connected || peer == d->connected;
}

static bool end_has_next(struct rsocket_dgram *d, struct rsocket_end *end)
{
	const uint8_t *header;
	uint32_t bytes;

	if (end->has_arrival)
		return true;
	while ((header = rsocket_end_peek(end, &bytes))) {
		if (accept_from(d, header))
			return true;
		rsocket_end_pop(end);
	}
	return false;
}

static struct rsocket_end *next_end(struct rsocket_dgram *d)
{
	struct rsocket_end *end;

	TAILQ_FOREACH(end, &d->ends, entry)
	if (end_has_next(d, end))
		return end;
	return NULL;
}

short rsocket_dgram_events(struct rsocket *rs)
{
	struct rsocket_dgram *d = rsocket_dgram(rs);
	struct rsocket_end *end;
	bool writable = TAILQ_EMPTY(&d->ends) || rs->no_write;
	short events = 0;

	if (next_end(d))
		events |= POLLIN | POLLRDNORM;
	if (rs->no_read)
		events |= POLLIN | POLLRDNORM | POLLRDHUP;
	TAILQ_FOREACH(end, &d->ends, entry)
	if (rsocket_end_can_send(end))
		writable = true;
	if (writable)
		events |= POLLOUT | POLLWRNORM;
	if (rs->no_read && rs->no_write)
		events |= POLLHUP;
	if (d->connected && d->connected->error)
		events |= POLLERR;
	if (rs->dead || rs->closed)
		events |= POLLERR | POLLHUP;
	return events;
}

void rsocket_dgram_arm(struct rsocket *rs)
{
	struct rsocket_end *end;

	TAILQ_FOREACH(end, &rsocket_dgram(rs)->ends, entry)
	rsocket_end_arm(end);
}

/* ---- receiving ---- */

/* Where it would be said that the rsocket has an error, or is at its end. 1: neither. */
static int state_of(struct rsocket_dgram *d)
{
	int error = 0;

	if (d->rs.closed)
		return -EBADF;
	if (d->rs.dead)
		return -EIO;
	if (d->connected) {
		error = d->connected->error;
		d->connected->error = 0;
	}
	if (error)
		return error;
	return d->rs.no_read ? 0 : 1;
}

/* Waits for a datagram. 1: *@end has it; 0: reading was shut down; -errno. */
static int wait_next(struct rsocket_dgram *d, int flags, struct rsocket_end **end)
{
	bool armed = false;
	int ret;

	for (;;) {
		*end = next_end(d);
		if (*end)
			return 1;
		/* a program that never sleeps is to hear now and then that the daemon has gone */
		if (d->n_resolving || ++d->n_empty % LOOKS == 0)
			rsocket_peers_progress(d);
		ret = state_of(d);
		if (ret <= 0)
			return ret;
		if (d->rs.options.nonblocking || flags & MSG_DONTWAIT)
			return -EAGAIN;
		if (!armed) {
			rsocket_dgram_arm(&d->rs);
			armed = true;
			continue;
		}
		ret = rsocket_sleep(&d->rs, UINT64_MAX);
		if (ret)
			return ret;
		armed = false;
	}
}

static ssize_t copy_out(struct rsocket_message *m, const uint8_t *data, size_t bytes)
{
	size_t done = 0;

	for (size_t i = 0; i < m->n_iov && done < bytes; i++) {
		size_t n = m->iov[i].iov_len;

		if (n > bytes - done)
			n = bytes - done;
		if (n)
			memcpy(m->iov[i].iov_base, data + done, n);
		done += n;
	}
	m->truncated = done < bytes;
	return (ssize_t)(m->flags & MSG_TRUNC ? bytes : done);
}

ssize_t rsocket_dgram_receive(struct rsocket *rs, struct rsocket_message *m)
{
	struct rsocket_dgram *d = rsocket_dgram(rs);
	struct rsocket_end *end;
	const uint8_t *data;
	uint32_t bytes;
	ssize_t ret;

	if (m->flags & ~KNOWN_FLAGS)
		return -EOPNOTSUPP;
	ret = wait_next(d, m->flags, &end);
	if (ret <= 0)
		return ret;
	data = rsocket_end_peek(end, &bytes);
	get_source(data, &m->src);
	ret = copy_out(m, data + data[1], bytes - data[1]);
	if (!(m->flags & MSG_PEEK)) {
		rsocket_end_pop(end);
		/* the others' turn */
		TAILQ_REMOVE(&d->ends, end, entry);
		TAILQ_INSERT_TAIL(&d->ends, end, entry);
	}
	rsocket_pass_on(rs);
	return ret;
}
