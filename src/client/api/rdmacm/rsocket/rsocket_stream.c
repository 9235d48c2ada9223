/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stream rsockets: how they are made, bound and closed, and how their calls wait. See
 * rsocket_stream.h.
 */
#define _GNU_SOURCE /* POLLRDHUP */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rsocket/rsocket_stream.h"

#define SPIN_NS         10000 /* that a call looks before it sleeps */
#define DEFAULT_BACKLOG 1

/* ---- life ---- */

static struct rsocket *stream_alloc(void)
{
	struct rsocket_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->backlog = DEFAULT_BACKLOG;
	TAILQ_INIT(&s->accepting);
	TAILQ_INIT(&s->accepted);
	TAILQ_INIT(&s->maps);
	return &s->rs;
}

static void stream_free(struct rsocket *rs)
{
	struct rsocket_stream *s = rsocket_stream(rs);

	rsocket_stream_unlisten(s);
	rsocket_stream_close(s);
	if (rs->id)
		rdma_destroy_id(rs->id);
	free(s->is_mapped);
	free(s->route);
	free(s);
}

/* ---- waiting ---- */

void rsocket_stream_break(struct rsocket_stream *s, int error)
{
	if (s->state == RSOCKET_CONNECTED)
		s->state = RSOCKET_DISCONNECTED;
	else if (rsocket_stream_is_opening(s))
		s->state = RSOCKET_FAILED;
	else
		return;
	s->error = error;
	s->rs.news++;
	rsocket_changed(&s->rs);
}

int rsocket_stream_why(struct rsocket_stream *s)
{
	int error = s->error;

	if (error && !s->rs.dead)
		rsocket_stream_progress(
		        &s->rs); /* what ended the queue pair may be the daemon's end */
	if (s->rs.dead)
		return -EIO;
	if (!s->is_fault)
		return 0;
	s->error = 0;
	s->is_fault = false;
	return -error;
}

/* Sends a keepalive if one is due. When the next one is; UINT64_MAX: never. */
static uint64_t keep_alive(struct rsocket_stream *s)
{
	uint64_t now;

	if (!s->rs.options.keepalive || s->state != RSOCKET_CONNECTED)
		return UINT64_MAX;
	now = rsocket_now_ms();
	if (s->keepalive_ms && now < s->keepalive_ms)
		return s->keepalive_ms;
	if (s->keepalive_ms)
		rsocket_stream_control(s, RSOCKET_KEEPALIVE);
	s->keepalive_ms = now + 1000ull * (unsigned)rsocket_stream_keep_idle(s);
	return s->keepalive_ms;
}

static bool spin(struct rsocket_stream *s, rsocket_stream_test *test)
{
	uint64_t until = base_now_ns() + SPIN_NS;

	do {
		rsocket_stream_poll(s);
		if (test(s))
			return true;
	} while (base_now_ns() < until);
	return false;
}

/* 0; -ETIMEDOUT: @until_ms is past, not only the next keepalive. */
static int sleep_until(struct rsocket_stream *s, uint64_t until_ms)
{
	uint64_t due = keep_alive(s);
	int ret = rsocket_sleep(&s->rs, due < until_ms ? due : until_ms);

	return ret == -ETIMEDOUT && due < until_ms ? 0 : ret;
}

/* A program that never sleeps is to hear now and then of events that are no completions. */
static int look_again(struct rsocket_stream *s, rsocket_stream_test *test)
{
	uint64_t now = rsocket_now_ms();

	if (s->state == RSOCKET_CONNECTED && now == s->drained_ms)
		return -EAGAIN;
	s->drained_ms = now;
	keep_alive(s);
	rsocket_drain(&s->rs);
	rsocket_stream_poll(s);
	if (test(s))
		return 0;
	return s->rs.dead ? -EIO : -EAGAIN;
}

int rsocket_stream_wait(struct rsocket_stream *s, bool block, uint64_t until_ms,
                        rsocket_stream_test *test)
{
	int ret = 0;

	rsocket_stream_poll(s);
	if (test(s))
		return 0;
	if (!block)
		return look_again(s, test);
	while (!ret && !spin(s, test)) {
		if (s->rs.closed)
			return -EBADF;
		if (s->rs.dead)
			return -EIO;
		rsocket_stream_arm(&s->rs);
		rsocket_stream_poll(s);
		if (test(s))
			return 0;
		ret = sleep_until(s, until_ms);
	}
	return ret;
}

static bool is_settled(const struct rsocket_stream *s)
{
	return !rsocket_stream_is_opening(s);
}

int rsocket_stream_settle(struct rsocket_stream *s, bool block)
{
	int ret = 0;

	if (rsocket_stream_is_opening(s))
		ret = rsocket_stream_wait(s, block, UINT64_MAX, is_settled);
	if (!ret && s->state < RSOCKET_CONNECTED)
		ret = -ENOTCONN;
	if (!ret && s->rs.closed)
		ret = -EBADF;
	return ret;
}

/* ---- binding ---- */

static int stream_bind(struct rsocket *rs, const union control_cm_addr *addr)
{
	int ret;

	if (rs->id)
		return -EINVAL;
	ret = rsocket_make_id(rs, RDMA_PS_TCP);
	if (ret || !rdma_bind_addr(rs->id, (struct sockaddr *)&addr->sa))
		return ret;
	ret = -errno;
	rdma_destroy_id(rs->id);
	rs->id = NULL;
	return ret;
}

static int stream_disconnect(struct rsocket *rs)
{
	(void)rs;
	return -EAFNOSUPPORT;
}

static int stream_own_name(const struct rsocket *rs, union control_cm_addr *a)
{
	memset(a, 0, sizeof(*a));
	a->sa.sa_family = (sa_family_t)rs->domain;
	if (rs->id && rs->id->route.addr.src_addr.sa_family)
		memcpy(a, &rs->id->route.addr.src_storage,
		       rdmacm_addr_bytes(&rs->id->route.addr.src_addr));
	return 0;
}

static int stream_peer_name(const struct rsocket *rs, union control_cm_addr *a)
{
	if (rsocket_stream_const(rs)->state < RSOCKET_CONNECTED)
		return -ENOTCONN;
	memset(a, 0, sizeof(*a));
	memcpy(a, &rs->id->route.addr.dst_storage, rdmacm_addr_bytes(&rs->id->route.addr.dst_addr));
	return 0;
}

/* ---- shutting down ---- */

static bool can_control(const struct rsocket_stream *s)
{
	return s->out.n_control || s->state != RSOCKET_CONNECTED;
}

/* The peer is told; all that was sent has arrived when it returns. */
static int tell(struct rsocket_stream *s, enum rsocket_control control, uint64_t until_ms)
{
	int ret = rsocket_stream_wait(s, true, until_ms, can_control);

	if (ret || s->state != RSOCKET_CONNECTED)
		return ret;
	rsocket_stream_control(s, control);
	return rsocket_stream_wait(s, true, until_ms, rsocket_stream_all_sent);
}

static int shut_down(struct rsocket_stream *s, int how, uint64_t until_ms)
{
	const bool was_over = s->rs.no_read && s->rs.no_write, could_write = !s->rs.no_write;
	int ret = 0;

	s->rs.no_read |= how != SHUT_WR;
	s->rs.no_write |= how != SHUT_RD;
	rsocket_wake(&s->rs);
	if (s->state != RSOCKET_CONNECTED || was_over || !s->rs.no_write)
		return 0;
	if (s->rs.no_read || s->peer_done)
		ret = tell(s, RSOCKET_DISCONNECT, until_ms);
	else if (could_write)
		ret = tell(s, RSOCKET_SHUTDOWN, until_ms);
	return ret;
}

static int stream_shutdown(struct rsocket *rs, int how)
{
	struct rsocket_stream *s = rsocket_stream(rs);

	if (s->state < RSOCKET_CONNECTED)
		return -ENOTCONN;
	return shut_down(s, how, UINT64_MAX);
}

/* With SO_LINGER it may take so many seconds; otherwise as long as the peer lives. */
static void stream_flush(struct rsocket *rs)
{
	struct rsocket_stream *s = rsocket_stream(rs);
	const struct linger *linger = &rs->options.linger;
	uint64_t until = UINT64_MAX;
	int ret;

	if (linger->l_onoff && linger->l_linger >= 0)
		until = rsocket_now_ms() + 1000ull * (unsigned)linger->l_linger;
	if (s->state != RSOCKET_CONNECTED || until <= rsocket_now_ms())
		return;
	ret = shut_down(s, SHUT_RDWR, until);
	while (ret == -EINTR) /* a signal is no reason to lose what was sent */
		ret = rsocket_stream_wait(s, true, until, rsocket_stream_all_sent);
}

/* ---- events ---- */

static void stream_disarm(struct rsocket *rs, void *what)
{
	struct rsocket_stream *s = rsocket_stream(rs);

	if (what == s->channel)
		rsocket_stream_disarm(s);
	else
		rsocket_stream_proceed(s, what);
}

static short connected_events(struct rsocket_stream *s)
{
	const bool over = s->state == RSOCKET_DISCONNECTED;
	short events = 0;

	if (s->in.readable || s->peer_done || s->rs.no_read || over)
		events |= POLLIN | POLLRDNORM;
	if (s->peer_done || s->rs.no_read || over)
		events |= POLLRDHUP;
	if (over || s->rs.no_write || rsocket_stream_can_send(s))
		events |= POLLOUT | POLLWRNORM;
	if (s->in.readable)
		return events; /* a program that ends at POLLHUP is to read it before */
	if (over || (s->rs.no_read && s->rs.no_write))
		events |= POLLHUP;
	if (s->error)
		events |= POLLERR;
	return events;
}

static short stream_events(struct rsocket *rs)
{
	struct rsocket_stream *s = rsocket_stream(rs);

	if (rs->closed || (rs->dead && !s->in.readable))
		return POLLERR | POLLHUP;
	keep_alive(s);
	rsocket_stream_poll(s);
	if (s->state >= RSOCKET_CONNECTED)
		return connected_events(s);
	if (s->state == RSOCKET_FAILED)
		return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM | POLLERR;
	return s->n_accepted ? POLLIN | POLLRDNORM : 0;
}

static bool stream_goes_on(const struct rsocket *rs)
{
	const struct rsocket_stream *s = rsocket_stream_const(rs);

	return s->state == RSOCKET_LISTENING || rsocket_stream_is_opening(s);
}

static bool stream_has_queues(const struct rsocket *rs)
{
	return rsocket_stream_const(rs)->cq;
}

static int stream_take_error(struct rsocket *rs)
{
	struct rsocket_stream *s = rsocket_stream(rs);
	int error = rs->dead ? EIO : s->error;

	s->error = 0;
	return error;
}

const struct rsocket_type rsocket_stream_type = {
	.type = SOCK_STREAM,
	.protocol = IPPROTO_TCP,
	.by_gid = true,
	.alloc = stream_alloc,
	.free = stream_free,
	.flush = stream_flush,
	.bind = stream_bind,
	.listen = rsocket_stream_listen,
	.accept = rsocket_stream_accept,
	.connect = rsocket_stream_connect,
	.disconnect = stream_disconnect,
	.shutdown = stream_shutdown,
	.own_name = stream_own_name,
	.peer_name = stream_peer_name,
	.send = rsocket_stream_send,
	.receive = rsocket_stream_receive,
	.events = stream_events,
	.arm = rsocket_stream_arm,
	.disarm = stream_disarm,
	.progress = rsocket_stream_progress,
	.goes_on = stream_goes_on,
	.set = rsocket_stream_set,
	.get = rsocket_stream_get,
	.has_queues = stream_has_queues,
	.take_error = stream_take_error,
	.map = rsocket_stream_map,
	.unmap = rsocket_stream_unmap,
	.write_mapped = rsocket_stream_write_mapped,
};
