/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The private data of REQ and REP, by which both sides of a stream describe themselves when they
 * connect.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "api/rdmacm/rsocket/rsocket_stream.h"

#define SMALL 128 /* numbers to this are themselves */

static bool is_big_endian(void)
{
	return __BYTE_ORDER == __BIG_ENDIAN;
}

uint8_t rsocket_scale_down(uint32_t value)
{
	uint32_t high = value >> 8;

	if (value <= SMALL)
		return (uint8_t)value;
	return (uint8_t)(SMALL | (high < SMALL ? high : SMALL - 1));
}

uint32_t rsocket_scale_up(uint8_t value)
{
	return value <= SMALL ? value : (value & (SMALL - 1u)) << 8;
}

static struct rsocket_be_place place(const void *addr, uint32_t key, uint32_t length)
{
	return (struct rsocket_be_place){ .addr = htobe64((uintptr_t)addr),
		                          .key = htobe32(key),
		                          .length = htobe32(length) };
}

void rsocket_hello_format(const struct rsocket_stream *s, struct rsocket_hello *hello)
{
	*hello = (struct rsocket_hello){
		.version = RSOCKET_VERSION,
		.flags = RSOCKET_FLAG_MAPPINGS | (is_big_endian() ? RSOCKET_FLAG_BIG_ENDIAN : 0),
		.credits = htobe16((uint16_t)s->in.credits),
		.n_mappings = rsocket_scale_down(s->n_mappings),
		.targets = place(s->targets, s->targets_mr->rkey, RSOCKET_N_TARGETS),
		.buffer = place(s->in.ring, s->in.mr->rkey, s->in.window),
	};
}

static struct rsocket_place host_place(const struct rsocket_be_place *p)
{
	return (struct rsocket_place){ .addr = be64toh(p->addr),
		                       .key = be32toh(p->key),
		                       .length = be32toh(p->length) };
}

int rsocket_hello_parse(struct rsocket_stream *s, const void *data, size_t bytes)
{
	struct rsocket_hello hello;

	if (!data || bytes < sizeof(hello))
		return -EPROTO;
	memcpy(&hello, data, sizeof(hello));
	if (hello.version != RSOCKET_VERSION)
		return -EPROTO;
	s->swap = is_big_endian() != !!(hello.flags & RSOCKET_FLAG_BIG_ENDIAN);
	s->peer_targets = host_place(&hello.targets);
	if (!s->peer_targets.length)
		return -EPROTO;
	s->at_peer_target = 1 % s->peer_targets.length; /* the first one is in use */
	if (hello.flags & RSOCKET_FLAG_MAPPINGS) {
		s->peer_mappings = s->peer_targets.addr +
		                   s->peer_targets.length * sizeof(struct rsocket_place);
		s->n_peer_mappings = rsocket_scale_up(hello.n_mappings);
	}
	s->out.target[0] = host_place(&hello.buffer);
	s->out.may_send = be16toh(hello.credits);
	return 0;
}
