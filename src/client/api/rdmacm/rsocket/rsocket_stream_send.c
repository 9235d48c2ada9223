/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sending by a stream rsocket. Data is sent in pieces, small ones first, so that the receiver
 * copies one out while the next is written.
 */
#include <errno.h>
#include <string.h>

#include "api/rdmacm/rsocket/rsocket_stream.h"

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* ---- the program's bytes ---- */

static void take(struct rsocket_cursor *from, uint8_t *to, size_t n)
{
	while (n) {
		size_t here = from->iov->iov_len - from->offset;

		if (here > n)
			here = n;
		if (here)
			memcpy(to, (const uint8_t *)from->iov->iov_base + from->offset, here);
		to += here;
		n -= here;
		from->offset += here;
		if (from->offset == from->iov->iov_len) {
			from->iov++;
			from->offset = 0;
		}
	}
}

const void *rsocket_stream_gather(struct rsocket_stream *s, struct rsocket_cursor *from, uint32_t n,
                                  uint8_t small[RSOCKET_MAX_INLINE])
{
	struct rsocket_out *out = &s->out;
	uint32_t first = smaller(n, out->bytes - out->at);

	if (n <= s->rs.options.inline_bytes) {
		take(from, small, n);
		return small;
	}
	take(from, out->ring + out->at, first);
	take(from, out->ring, n - first);
	return NULL;
}

/* ---- pieces ---- */

static bool may_try(const struct rsocket_stream *s)
{
	return rsocket_stream_can_send(s) || s->rs.no_write || s->state != RSOCKET_CONNECTED;
}

static int why_broken(struct rsocket_stream *s)
{
	int ret = rsocket_stream_why(s);

	return ret ? ret : -ECONNRESET;
}

/* Until a piece may be posted. */
static int await_room(struct rsocket_stream *s, bool block)
{
	int ret = may_try(s) ? 0 : rsocket_stream_wait(s, block, UINT64_MAX, may_try);

	if (ret)
		return ret;
	if (s->rs.closed)
		return -EBADF;
	if (s->rs.no_write)
		return -EPIPE;
	return s->state == RSOCKET_CONNECTED ? 0 : why_broken(s);
}

ssize_t rsocket_stream_pieces(struct rsocket_stream *s, const struct rsocket_message *m,
                              int (*piece)(struct rsocket_stream *s, struct rsocket_cursor *from,
                                           uint32_t n, void *arg),
                              void *arg)
{
	const bool block = rsocket_may_block(&s->rs, m);
	struct rsocket_cursor from = { .iov = m->iov };
	uint32_t most = RSOCKET_FIRST_PIECE;
	size_t left = m->bytes;
	int ret = rsocket_stream_settle(s, block);

	if (!ret && s->has_untold)
		ret = rsocket_stream_tell_maps(s, block);
	while (!ret && left) {
		ret = await_room(s, block);
		if (ret)
			break;
		ret = piece(s, &from, smaller(left < most ? (uint32_t)left : most, s->out.free),
		            arg);
		if (ret <= 0)
			break;
		left -= (uint32_t)ret;
		ret = 0;
		if (most < RSOCKET_LAST_PIECE)
			most *= 2;
	}
	rsocket_stream_tell_credits(s);
	return ret && left == m->bytes ? ret : (ssize_t)(m->bytes - left);
}

/* ---- rsend() ---- */

static int send_piece(struct rsocket_stream *s, struct rsocket_cursor *from, uint32_t n, void *arg)
{
	struct rsocket_place *to = &s->out.target[s->out.at_target];
	uint8_t small[RSOCKET_MAX_INLINE];
	uint32_t imm;
	int ret;

	(void)arg;
	n = smaller(n, to->length);
	imm = (uint32_t)RSOCKET_OP_DATA << RSOCKET_OP_SHIFT | n;
	ret = rsocket_stream_write(s, rsocket_stream_gather(s, from, n, small), n, to, &imm);
	if (ret)
		return ret;
	to->addr += n;
	to->length -= n;
	if (!to->length)
		s->out.at_target = (s->out.at_target + 1) % RSOCKET_N_TARGETS;
	return (int)n;
}

ssize_t rsocket_stream_send(struct rsocket *rs, const struct rsocket_message *m)
{
	struct rsocket_stream *s = rsocket_stream(rs);

	if (m->flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (m->to || m->to_bytes)
		return -EISCONN;
	return rsocket_stream_pieces(s, m, send_piece, NULL);
}
