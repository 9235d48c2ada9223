/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * riomap(), riounmap() and riowrite(): memory of the program that the peer writes to directly. A
 * mapping is told the peer before the next bytes that are sent.
 */
#include <byteswap.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "api/rdmacm/rsocket/rsocket_stream.h"

/* ---- ours ---- */

/* A free entry in the peer's table; -ENOMEM: it is full. */
static int take_index(struct rsocket_stream *s)
{
	if (!s->is_mapped)
		s->is_mapped = calloc(s->n_peer_mappings + 1, sizeof(*s->is_mapped));
	for (uint32_t i = 0; s->is_mapped && i < s->n_peer_mappings; i++) {
		if (s->is_mapped[i])
			continue;
		s->is_mapped[i] = true;
		return (int)i;
	}
	return -ENOMEM;
}

static void free_map(struct rsocket_stream *s, struct rsocket_map *map)
{
	if (map->index >= 0)
		s->is_mapped[map->index] = false;
	if (map->mr)
		ibv_dereg_mr(map->mr);
	map->mr = NULL;
	if (!map->n_tellers)
		free(map);
}

int rsocket_stream_map(struct rsocket *rs, void *addr, size_t bytes, int prot, off_t *offset)
{
	struct rsocket_stream *s = rsocket_stream(rs);
	const bool remote = prot & PROT_WRITE;
	struct rsocket_map *map;
	int ret;

	if (!s->cq || prot & ~PROT_WRITE || bytes > UINT32_MAX)
		return -EINVAL;
	if (s->state < RSOCKET_CONNECTED) /* how many the peer has room for is not known */
		return -ENOTCONN;
	map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	map->index = remote ? take_index(s) : -1;
	ret = remote && map->index < 0 ? map->index : 0;
	if (!ret)
		map->mr =
		        ibv_reg_mr(rs->id->pd, addr, bytes,
		                   IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_WRITE : 0));
	if (!ret && !map->mr)
		ret = -errno;
	if (ret) {
		free_map(s, map);
		return ret;
	}
	if (*offset == -1)
		*offset = (off_t)(uintptr_t)addr;
	map->offset = (uint64_t)*offset;
	map->is_told = !remote;
	s->has_untold |= remote;
	TAILQ_INSERT_TAIL(&s->maps, map, entry);
	return 0;
}

int rsocket_stream_unmap(struct rsocket *rs, void *addr, size_t bytes)
{
	struct rsocket_stream *s = rsocket_stream(rs);
	struct rsocket_map *map;

	TAILQ_FOREACH(map, &s->maps, entry)
	if (map->mr->addr == addr && map->mr->length == bytes)
		break;
	if (!map)
		return -EINVAL;
	TAILQ_REMOVE(&s->maps, map, entry);
	free_map(s, map);
	return 0;
}

void rsocket_stream_free_maps(struct rsocket_stream *s)
{
	struct rsocket_map *map;

	while ((map = TAILQ_FIRST(&s->maps))) {
		TAILQ_REMOVE(&s->maps, map, entry);
		free_map(s, map);
	}
}

/* ---- telling the peer ---- */

static struct rsocket_mapping mapping_of(const struct rsocket_stream *s,
                                         const struct rsocket_map *map)
{
	struct rsocket_mapping m = { .offset = map->offset,
		                     .place = { .addr = (uintptr_t)map->mr->addr,
		                                .key = map->mr->rkey,
		                                .length = (uint32_t)map->mr->length } };

	if (s->swap)
		m = (struct rsocket_mapping){ .offset = bswap_64(m.offset),
			                      .place = { .addr = bswap_64(m.place.addr),
			                                 .key = bswap_32(m.place.key),
			                                 .length = bswap_32(m.place.length) } };
	return m;
}

static int tell_piece(struct rsocket_stream *s, struct rsocket_cursor *from, uint32_t n, void *arg)
{
	const struct rsocket_map *map = arg;
	const uint32_t imm = (uint32_t)RSOCKET_OP_MAP << RSOCKET_OP_SHIFT | (uint32_t)map->index;
	struct rsocket_place to = { .addr = s->peer_mappings +
		                            (uint64_t)map->index * sizeof(struct rsocket_mapping),
		                    .key = s->peer_targets.key };
	uint8_t small[RSOCKET_MAX_INLINE];
	int ret;

	if (!map->mr) /* another mapping may have its place by now */
		return 0;
	ret = rsocket_stream_write(s, rsocket_stream_gather(s, from, n, small), n, &to, &imm);
	return ret ? ret : (int)n;
}

/* While it waits, another thread may unmap it: then it need not be told. */
static int tell(struct rsocket_stream *s, struct rsocket_map *map, bool block)
{
	struct rsocket_mapping m = mapping_of(s, map);
	struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
	const struct rsocket_message message = {
		.iov = &iov, .n_iov = 1, .bytes = sizeof(m), .flags = block ? 0 : MSG_DONTWAIT
	};
	ssize_t ret;

	map->n_tellers++;
	ret = rsocket_stream_pieces(s, &message, tell_piece, map);
	map->n_tellers--;
	if (map->mr) {
		map->is_told = ret >= 0;
		return ret < 0 ? (int)ret : 0;
	}
	if (!map->n_tellers)
		free(map);
	return 0;
}

static struct rsocket_map *first_untold(struct rsocket_stream *s)
{
	struct rsocket_map *map;

	TAILQ_FOREACH(map, &s->maps, entry)
	if (!map->is_told)
		break;
	return map;
}

int rsocket_stream_tell_maps(struct rsocket_stream *s, bool block)
{
	struct rsocket_map *map;
	int ret;

	s->has_untold = false; /* also because sending asks */
	while ((map = first_untold(s))) {
		ret = tell(s, map, block);
		if (ret) {
			s->has_untold = true;
			return ret;
		}
	}
	return 0;
}

/* ---- the peer's ---- */

/* Where the peer has mapped @offset, as far as it reaches; length 0: nowhere. */
static struct rsocket_place find(const struct rsocket_stream *s, uint64_t offset)
{
	for (uint32_t i = 0; i < s->n_mappings; i++) {
		struct rsocket_mapping m = s->mappings[i]; /* the peer may write there now */
		uint64_t skip = offset - m.offset;

		if (offset < m.offset || skip >= m.place.length)
			continue;
		return (struct rsocket_place){ .addr = m.place.addr + skip,
			                       .key = m.place.key,
			                       .length = m.place.length - (uint32_t)skip };
	}
	return (struct rsocket_place){ 0 };
}

static int write_piece(struct rsocket_stream *s, struct rsocket_cursor *from, uint32_t n, void *arg)
{
	uint64_t *offset = arg;
	struct rsocket_place to = find(s, *offset);
	uint8_t small[RSOCKET_MAX_INLINE];
	int ret;

	if (n > to.length)
		n = to.length;
	if (!n)
		return 0;
	ret = rsocket_stream_write(s, rsocket_stream_gather(s, from, n, small), n, &to, NULL);
	if (ret)
		return ret;
	*offset += n;
	return (int)n;
}

ssize_t rsocket_stream_write_mapped(struct rsocket *rs, const struct rsocket_message *m,
                                    off_t offset)
{
	uint64_t at = (uint64_t)offset;

	return rsocket_stream_pieces(rsocket_stream(rs), m, write_piece, &at);
}
