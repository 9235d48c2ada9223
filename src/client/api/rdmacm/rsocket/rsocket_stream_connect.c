/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a stream rsocket becomes connected, and how its connection ends: the events of rdma_cm. They
 * are served by calls on the rsocket, and until it is connected by those on any other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rsocket/rsocket_stream.h"

#define FIRST_TIMEOUT_MS 1000 /* each is twice as long as the one before */
#define MOST_TRIES       6

/* ---- the active side ---- */

static int resolve_addr(struct rsocket_stream *s)
{
	int timeout = FIRST_TIMEOUT_MS << s->tries++;

	s->state = RSOCKET_RESOLVING;
	return rdma_resolve_addr(s->rs.id, NULL, &s->peer.sa, timeout) ? -errno : 0;
}

static int resolve_route(struct rsocket_stream *s)
{
	int timeout = FIRST_TIMEOUT_MS << s->tries++;

	s->state = RSOCKET_ROUTING;
	if (!s->route)
		return rdma_resolve_route(s->rs.id, timeout) ? -errno : 0;
	if (rdma_set_option(s->rs.id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, s->route,
	                    s->route_bytes))
		return -errno;
	return 0;
}

static int ask(struct rsocket_stream *s)
{
	const uint8_t skip = s->rs.domain == AF_IB ? RSOCKET_IP_BYTES : 0;
	uint8_t data[RSOCKET_IP_BYTES + sizeof(struct rsocket_hello)] = { 0 };
	struct rdma_conn_param param = { .private_data = data,
		                         .private_data_len = skip + sizeof(struct rsocket_hello),
		                         .flow_control = 1,
		                         .retry_count = 7,
		                         .rnr_retry_count = 7 };
	struct rsocket_hello hello;
	int ret = rsocket_stream_open(s);

	if (ret)
		return ret;
	rsocket_hello_format(s, &hello);
	memcpy(data + skip, &hello, sizeof(hello));
	s->state = RSOCKET_CONNECTING;
	return rdma_connect(s->rs.id, &param) ? -errno : 0;
}

/* ---- events ---- */

struct news {
	enum rdma_cm_event_type event;
	int status;
	uint8_t data[sizeof(struct rsocket_hello)];
	size_t bytes;
};

/* The other side is connected. */
static int on_established(struct rsocket_stream *s, const struct news *news)
{
	int ret = 0;

	if (s->state == RSOCKET_CONNECTING)
		ret = rsocket_hello_parse(s, news->data, news->bytes);
	else if (s->state != RSOCKET_ACCEPTING)
		return 0;
	if (ret)
		return ret;
	s->state = RSOCKET_CONNECTED;
	s->rs.news++;
	rsocket_changed(&s->rs);
	return 0;
}

/* A step has failed: again, if it only took too long. */
static int retry(struct rsocket_stream *s, const struct news *news,
                 int (*step)(struct rsocket_stream *s))
{
	int error = news->status < 0 ? news->status : -EHOSTUNREACH;

	if (error == -ETIMEDOUT && s->tries <= MOST_TRIES)
		return step(s);
	return error == -ENODEV ? -ENETUNREACH : error;
}

/* Data that completed before can still be read. A peer that we have accepted may end before its
 * answer comes, or without one: it was connected, and raccept() gives it to the program. */
static void on_disconnected(struct rsocket_stream *s, const struct news *news)
{
	if (s->state == RSOCKET_ACCEPTING)
		on_established(s, news);
	rsocket_stream_poll(s);
	rsocket_stream_break(s, rsocket_stream_is_opening(s) ? ECONNRESET : 0);
}

/* 0; -errno: it cannot be connected. */
static int serve(struct rsocket_stream *s, const struct news *news)
{
	switch (news->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		s->tries = 0;
		return resolve_route(s);
	case RDMA_CM_EVENT_ADDR_ERROR:
		return retry(s, news, resolve_addr);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return ask(s);
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return retry(s, news, resolve_route);
	case RDMA_CM_EVENT_ESTABLISHED:
		return on_established(s, news);
	case RDMA_CM_EVENT_REJECTED:
		return -ECONNREFUSED;
	case RDMA_CM_EVENT_UNREACHABLE:
		return -ETIMEDOUT;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return news->status < 0 ? news->status : -ECONNABORTED;
	case RDMA_CM_EVENT_DISCONNECTED:
		on_disconnected(s, news);
		return 0;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -EIO;
	default:
		return 0;
	}
}

static struct news read_event(const struct rdma_cm_event *e)
{
	struct news news = { .event = e->event, .status = e->status };

	if (e->param.conn.private_data && e->param.conn.private_data_len >= sizeof(news.data)) {
		news.bytes = sizeof(news.data);
		memcpy(news.data, e->param.conn.private_data, news.bytes);
	}
	return news;
}

/* Messages that arrived before count: after an orderly end there is no error. */
static void end(struct rsocket_stream *s, int error)
{
	rsocket_stream_poll(s);
	rsocket_stream_break(s, error);
}

void rsocket_stream_progress(struct rsocket *rs)
{
	struct rsocket_stream *s = rsocket_stream(rs);
	struct rdma_cm_event *e;
	struct news news;
	int ret;

	while (!s->is_full && !rdma_get_cm_event(rs->events, &e)) {
		if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			rsocket_stream_request(s, e);
			rdma_ack_cm_event(e);
			continue;
		}
		news = read_event(e);
		rdma_ack_cm_event(e);
		ret = serve(s, &news);
		if (ret)
			end(s, -ret);
	}
	if (!s->is_full && errno != EAGAIN && errno != EINTR) {
		rs->dead = true;
		end(s, EIO);
	}
}

/* ---- rconnect() ---- */

static bool is_decided(const struct rsocket_stream *s)
{
	return !rsocket_stream_is_opening(s);
}

/* Until it is decided, if it may wait. */
static int await_decision(struct rsocket_stream *s)
{
	int ret = rsocket_stream_wait(s, !s->rs.options.nonblocking, UINT64_MAX, is_decided);

	if (ret)
		return ret == -EAGAIN ? -EINPROGRESS : ret;
	if (s->state >= RSOCKET_CONNECTED)
		return 0;
	ret = s->error ? -s->error : -ENOTCONN;
	s->error = 0;
	return ret;
}

static int begin(struct rsocket_stream *s, const union control_cm_addr *addr)
{
	int ret = s->rs.id ? 0 : rsocket_make_id(&s->rs, RDMA_PS_TCP);

	if (ret)
		return ret;
	s->peer = *addr;
	ret = resolve_addr(s);
	if (ret)
		s->state = RSOCKET_IDLE;
	return ret;
}

int rsocket_stream_connect(struct rsocket *rs, const union control_cm_addr *addr)
{
	struct rsocket_stream *s = rsocket_stream(rs);
	int ret = 0;

	if (rsocket_is_group(addr))
		return -ENETUNREACH;
	if (s->state == RSOCKET_LISTENING)
		return -EINVAL;
	if (s->state == RSOCKET_IDLE) {
		ret = begin(s, addr);
		if (!ret && rs->options.nonblocking)
			ret = -EINPROGRESS;
	}
	return ret ? ret : await_decision(s);
}
