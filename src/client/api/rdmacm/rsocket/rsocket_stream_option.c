/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options that only stream rsockets have. Options that TCP needs and a reliable connection does
 * not, such as TCP_NODELAY, are kept and given back.
 */
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rsocket/rsocket_stream.h"

#define DEFAULT_MSS  2048
#define DEFAULT_IDLE 7200 /* seconds */
#define MAX_ROUTE    4096 /* bytes */

/* ---- keepalives ---- */

/* The time of the network that the process is on. */
static int default_idle(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/tcp_keepalive_time", "re");
	char text[16] = "";
	long value = 0;

	if (f) {
		if (fgets(text, sizeof(text), f))
			value = strtol(text, NULL, 10);
		fclose(f);
	}
	return value > 0 && value <= INT_MAX ? (int)value : DEFAULT_IDLE;
}

int rsocket_stream_keep_idle(const struct rsocket_stream *s)
{
	return s->keep_idle ? s->keep_idle : default_idle();
}

/* ---- setting ---- */

static int set_tcp(struct rsocket_stream *s, int name, int value)
{
	switch (name) {
	case TCP_NODELAY:
		s->no_delay = value;
		return 0;
	case TCP_KEEPIDLE:
		if (value <= 0)
			return -EINVAL;
		s->keep_idle = value;
		s->keepalive_ms = 0;
		rsocket_wake(&s->rs);
		return 0;
	case TCP_KEEPCNT: /* the connection knows when to give up */
	case TCP_KEEPINTVL:
	case TCP_MAXSEG:
	case TCP_CONGESTION:
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int set_tos(struct rsocket_stream *s, int value)
{
	s->rs.options.tos = value;
	return s->rs.id && s->state == RSOCKET_IDLE ? rsocket_set_tos(&s->rs) : 0;
}

static int set_route(struct rsocket_stream *s, const void *value, socklen_t bytes)
{
	void *copy;

	if (bytes > MAX_ROUTE)
		return -EINVAL;
	copy = malloc(bytes);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, value, bytes);
	free(s->route);
	s->route = copy;
	s->route_bytes = bytes;
	return 0;
}

static int set_rdma(struct rsocket_stream *s, int name, const void *value, socklen_t bytes)
{
	int n;

	if (name == RDMA_ROUTE)
		return set_route(s, value, bytes);
	if (name != RDMA_IOMAPSIZE)
		return -ENOTSUP;
	memcpy(&n, value, sizeof(n));
	s->n_mappings = n > 0 ? rsocket_scale_up(rsocket_scale_down((uint32_t)n)) : 0;
	return 0;
}

int rsocket_stream_set(struct rsocket *rs, int level, int name, const void *value, socklen_t bytes)
{
	struct rsocket_stream *s = rsocket_stream(rs);
	int n;

	memcpy(&n, value, sizeof(n));
	if (level == IPPROTO_TCP)
		return set_tcp(s, name, n);
	if (level == IPPROTO_IP && name == IP_TOS)
		return set_tos(s, n);
	return level == SOL_RDMA ? set_rdma(s, name, value, bytes) : -ENOTSUP;
}

/* ---- getting ---- */

/* Bytes of a packet. */
static int segment_bytes(const struct rsocket_stream *s)
{
	if (!s->rs.id || !s->rs.id->route.num_paths)
		return DEFAULT_MSS;
	return 1 << (7 + s->rs.id->route.path_rec->mtu);
}

static int get_number(const struct rsocket_stream *s, int level, int name, int *value)
{
	if (level == SOL_SOCKET && name == SO_ACCEPTCONN)
		*value = s->state == RSOCKET_LISTENING;
	else if (level == IPPROTO_IP && name == IP_TOS)
		*value = s->rs.options.tos;
	else if (level == SOL_RDMA && name == RDMA_IOMAPSIZE)
		*value = (int)s->n_mappings;
	else if (level != IPPROTO_TCP)
		return -ENOTSUP;
	else if (name == TCP_NODELAY)
		*value = s->no_delay;
	else if (name == TCP_KEEPIDLE)
		*value = rsocket_stream_keep_idle(s);
	else if (name == TCP_MAXSEG)
		*value = segment_bytes(s);
	else if (name == TCP_KEEPCNT || name == TCP_KEEPINTVL || name == TCP_CONGESTION)
		*value = 1;
	else
		return -ENOTSUP;
	return 0;
}

static int get_tcp_info(const struct rsocket_stream *s, void *value, socklen_t *bytes)
{
	struct tcp_info info = { .tcpi_snd_cwnd = s->rs.options.n_send };

	info.tcpi_state = s->state == RSOCKET_CONNECTED   ? TCP_ESTABLISHED
	                  : s->state == RSOCKET_LISTENING ? TCP_LISTEN
	                                                  : TCP_CLOSE;
	info.tcpi_snd_mss = info.tcpi_rcv_mss = (uint32_t)segment_bytes(s);
	if (*bytes > sizeof(info))
		*bytes = sizeof(info);
	memcpy(value, &info, *bytes);
	return 0;
}

static uint8_t exactly(uint8_t value)
{
	return (uint8_t)(value | 2 << 6);
}

static int get_route(const struct rsocket_stream *s, void *value, socklen_t *bytes)
{
	struct ibv_path_data data = { 0 };
	const struct ibv_sa_path_rec *rec;

	if (s->route) {
		if (*bytes < s->route_bytes)
			return -EINVAL;
		memcpy(value, s->route, s->route_bytes);
		*bytes = (socklen_t)s->route_bytes;
		return 0;
	}
	if (*bytes < sizeof(data))
		return -EINVAL;
	*bytes = 0;
	if (!s->rs.id || !s->rs.id->route.num_paths)
		return 0;
	rec = s->rs.id->route.path_rec;
	data.flags = rec->preference;
	data.path.dgid = rec->dgid;
	data.path.sgid = rec->sgid;
	data.path.dlid = rec->dlid;
	data.path.slid = rec->slid;
	data.path.flowlabel_hoplimit = htobe32(be32toh(rec->flow_label) << 8 | rec->hop_limit);
	data.path.tclass = rec->traffic_class;
	data.path.reversible_numpath = (uint8_t)(rec->reversible << 7 | 1);
	data.path.pkey = rec->pkey;
	data.path.qosclass_sl = htobe16(rec->sl);
	data.path.mtu = exactly(rec->mtu);
	data.path.rate = exactly(rec->rate);
	data.path.packetlifetime = exactly(rec->packet_life_time);
	memcpy(value, &data, sizeof(data));
	*bytes = sizeof(data);
	return 0;
}

int rsocket_stream_get(struct rsocket *rs, int level, int name, void *value, socklen_t *bytes)
{
	const struct rsocket_stream *s = rsocket_stream_const(rs);
	int n = 0, ret;

	if (level == IPPROTO_TCP && name == TCP_INFO)
		return get_tcp_info(s, value, bytes);
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return get_route(s, value, bytes);
	ret = get_number(s, level, name, &n);
	if (ret)
		return ret;
	memcpy(value, &n, sizeof(n));
	*bytes = sizeof(n);
	return 0;
}
