/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stream rsockets that listen. A request is accepted when it is seen; the new rsocket is ours alone
 * until the peer says that it is ready, too, and raccept() gives it to the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "api/rdmacm/rsocket/rsocket_stream.h"

#define MOST_ACCEPTING 128 /* whose peers have not answered yet: each takes descriptors */
#define MOST_ACCEPTED  128 /* more of the backlog wait in the daemon */

/* ---- accepting ---- */

/* While too many wait for raccept(), requests are left with the daemon, which has the backlog. */
static void set_full(struct rsocket_stream *listener)
{
	const bool full = listener->n_accepted >= (unsigned)listener->backlog ||
	                  listener->n_accepting >= MOST_ACCEPTING;

	if (full == listener->is_full)
		return;
	listener->is_full = full;
	if (full)
		rsocket_unwatch(&listener->rs, listener->rs.events->fd);
	else
		rsocket_watch(&listener->rs, listener->rs.events->fd, &listener->rs.events);
}

static void drop(struct rsocket_stream *listener, struct rsocket_stream *s)
{
	rsocket_unwatch(&listener->rs, s->rs.events->fd);
	TAILQ_REMOVE(&listener->accepting, s, entry);
	listener->n_accepting--;
	rsocket_free(&s->rs);
}

static int inherit(struct rsocket_stream *s, const struct rsocket_stream *listener)
{
	s->rs.options = listener->rs.options;
	s->rs.options.nonblocking = false; /* as with accept(2) */
	s->no_delay = listener->no_delay;
	s->keep_idle = listener->keep_idle;
	s->n_mappings = listener->n_mappings;
	return rdma_migrate_id(s->rs.id, s->rs.events) ? -errno : 0;
}

static int answer(struct rsocket_stream *s, const struct rdma_conn_param *request)
{
	const uint8_t skip = s->rs.domain == AF_IB ? RSOCKET_IP_BYTES : 0;
	struct rdma_conn_param param = *request;
	struct rsocket_hello hello;
	int ret = rsocket_stream_open(s);

	if (!ret && request->private_data_len < skip)
		ret = -EPROTO;
	if (!ret)
		ret = rsocket_hello_parse(s, (const uint8_t *)request->private_data + skip,
		                          request->private_data_len - skip);
	if (ret)
		return ret;
	rsocket_hello_format(s, &hello);
	param.private_data = &hello;
	param.private_data_len = sizeof(hello);
	s->state = RSOCKET_ACCEPTING;
	return rdma_accept(s->rs.id, &param) ? -errno : 0;
}

/* A new rsocket of the request's identifier; the peer is told that it is accepted. */
static int accept_request(struct rsocket_stream *listener, struct rsocket_stream *s,
                          const struct rdma_cm_event *e)
{
	int ret;

	s->rs.id = e->id;
	ret = inherit(s, listener);
	if (!ret)
		ret = answer(s, &e->param.conn);
	if (!ret)
		ret = rsocket_watch(&listener->rs, s->rs.events->fd, s);
	return ret;
}

void rsocket_stream_request(struct rsocket_stream *listener, struct rdma_cm_event *e)
{
	const bool cloexec = fcntl(listener->rs.fd, F_GETFD) & FD_CLOEXEC;
	struct rsocket_stream *s;
	struct rsocket *rs;

	if (rsocket_new(&rsocket_stream_type, listener->rs.domain, cloexec, &rs)) {
		rdma_reject(e->id, NULL, 0);
		rdma_destroy_id(e->id);
		return;
	}
	s = rsocket_stream(rs);
	if (accept_request(listener, s, e)) {
		rdma_reject(e->id, NULL, 0);
		rsocket_free(rs);
		return;
	}
	TAILQ_INSERT_TAIL(&listener->accepting, s, entry);
	listener->n_accepting++;
	set_full(listener);
}

void rsocket_stream_proceed(struct rsocket_stream *listener, struct rsocket_stream *s)
{
	rsocket_stream_progress(&s->rs);
	if (s->state == RSOCKET_ACCEPTING && !s->rs.dead)
		return;
	if (s->state >= RSOCKET_CONNECTED) {
		rsocket_unwatch(&listener->rs, s->rs.events->fd);
		TAILQ_REMOVE(&listener->accepting, s, entry);
		listener->n_accepting--;
		TAILQ_INSERT_TAIL(&listener->accepted, s, entry);
		listener->n_accepted++;
		listener->rs.news++;
		rsocket_changed(&listener->rs);
	} else {
		drop(listener, s);
	}
	set_full(listener);
}

/* ---- the calls ---- */

int rsocket_stream_listen(struct rsocket *rs, int backlog)
{
	union control_cm_addr any = { .sa = { .sa_family = (sa_family_t)rs->domain } };
	struct rsocket_stream *s = rsocket_stream(rs);
	const bool first = s->state == RSOCKET_IDLE;
	int ret = 0;

	if (!first && s->state != RSOCKET_LISTENING)
		return -EINVAL;
	s->backlog = backlog < 1 ? 1 : backlog < MOST_ACCEPTED ? backlog : MOST_ACCEPTED;
	if (!first) {
		set_full(s);
		return 0;
	}
	if (!rs->id)
		ret = rs->type->bind(rs, &any);
	if (!ret && rdma_listen(rs->id, backlog))
		ret = -errno;
	if (ret)
		return ret;
	s->state = RSOCKET_LISTENING;
	ret = rsocket_leave_to_all(rs);
	if (ret)
		s->state = RSOCKET_IDLE;
	return ret;
}

static bool has_accepted(const struct rsocket_stream *s)
{
	return s->n_accepted;
}

/* Its descriptor gets a number as if it were new: librspreload's select() takes those of rsockets
 * to be higher than those that it opens before. */
static int renumber(struct rsocket *rs)
{
	const bool cloexec = fcntl(rs->fd, F_GETFD) & FD_CLOEXEC;
	int fd = fcntl(rs->fd, cloexec ? F_DUPFD_CLOEXEC : F_DUPFD, 0);

	if (fd < 0)
		return -errno;
	close(rs->fd);
	rs->fd = fd;
	return 0;
}

int rsocket_stream_accept(struct rsocket *rs, struct rsocket **accepted)
{
	struct rsocket_stream *s = rsocket_stream(rs), *first;
	int ret;

	if (s->state != RSOCKET_LISTENING)
		return -EINVAL;
	ret = rsocket_stream_wait(s, !rs->options.nonblocking, UINT64_MAX, has_accepted);
	if (ret)
		return ret;
	first = TAILQ_FIRST(&s->accepted);
	ret = renumber(&first->rs);
	if (!ret)
		ret = rdmacm_session_rsocket_add(&first->rs);
	if (ret)
		return ret;
	TAILQ_REMOVE(&s->accepted, first, entry);
	s->n_accepted--;
	set_full(s);
	*accepted = &first->rs;
	return 0;
}

void rsocket_stream_unlisten(struct rsocket_stream *s)
{
	struct rsocket_stream *other;

	while ((other = TAILQ_FIRST(&s->accepting)))
		drop(s, other);
	while ((other = TAILQ_FIRST(&s->accepted))) {
		TAILQ_REMOVE(&s->accepted, other, entry);
		rsocket_free(&other->rs);
	}
}
