/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receiving by a stream rsocket: the peer has written to our ring; here it is copied out. Data that
 * has arrived before the end of a connection can still be received.
 */
#include <errno.h>
#include <string.h>

#include "api/rdmacm/rsocket/rsocket_stream.h"

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- the ring ---- */

/* Copies @n bytes that begin @skip after the next one; there are so many. */
static void copy_ring(const struct rsocket_in *in, uint32_t skip, uint8_t *to, uint32_t n)
{
	uint32_t at = (in->at + skip) % in->bytes;
	uint32_t first = (uint32_t)smaller(n, in->bytes - at);

	memcpy(to, in->ring + at, first);
	memcpy(to + first, in->ring, n - first);
}

/* Room in the program's buffers that is left, and where it is. */
struct room {
	const struct iovec *iov;
	size_t offset, left;
};

/* Copies the readable data, as far as there is room. Returns the number of bytes. */
static uint32_t copy_out(const struct rsocket_in *in, struct room *room)
{
	uint32_t all = (uint32_t)smaller(in->readable, room->left), done = 0, n;

	while (done < all) {
		n = (uint32_t)smaller(all - done, room->iov->iov_len - room->offset);
		if (n)
			copy_ring(in, done, (uint8_t *)room->iov->iov_base + room->offset, n);
		done += n;
		room->offset += n;
		if (room->offset == room->iov->iov_len) {
			room->iov++;
			room->offset = 0;
		}
	}
	room->left -= all;
	return all;
}

static void consume(struct rsocket_stream *s, uint32_t n)
{
	s->in.at = (s->in.at + n) % s->in.bytes;
	s->in.readable -= n;
	s->in.freed += n;
	rsocket_stream_tell_credits(s);
}

/* ---- rrecv() ---- */

static bool is_over(const struct rsocket_stream *s)
{
	return s->peer_done || s->rs.no_read || s->state != RSOCKET_CONNECTED;
}

static bool may_try(const struct rsocket_stream *s)
{
	return s->in.readable || is_over(s);
}

static int await_bytes(struct rsocket_stream *s, bool block)
{
	int ret;

	if (s->in.readable)
		return 0;
	ret = rsocket_stream_wait(s, block, UINT64_MAX, may_try);
	return !ret && s->rs.closed ? -EBADF : ret;
}

/* A connection that broke off is not the end of what the peer sends: 0, or the error, told once. */
static int why_broken(struct rsocket_stream *s)
{
	if (s->peer_done || s->rs.no_read)
		return 0;
	return rsocket_stream_why(s);
}

ssize_t rsocket_stream_receive(struct rsocket *rs, struct rsocket_message *m)
{
	struct room room = { .iov = m->iov, .left = m->bytes };
	struct rsocket_stream *s = rsocket_stream(rs);
	const bool block = rsocket_may_block(rs, m);
	int ret = rsocket_stream_settle(s, block);

	if (m->flags & MSG_OOB)
		return -EINVAL;
	while (!ret && room.left) {
		uint32_t n;

		ret = await_bytes(s, block);
		if (!ret && !s->in.readable && room.left == m->bytes)
			ret = why_broken(s);
		if (ret || !s->in.readable)
			break;
		n = copy_out(&s->in, &room);
		if (m->flags & MSG_PEEK)
			break;
		consume(s, n);
		if (!(m->flags & MSG_WAITALL) || (is_over(s) && !s->in.readable))
			break;
	}
	if (ret && room.left == m->bytes)
		return ret;
	if (rs->id)
		memcpy(&m->src, &rs->id->route.addr.dst_storage,
		       rdmacm_addr_bytes(&rs->id->route.addr.dst_addr));
	return (ssize_t)(m->bytes - room.left);
}
