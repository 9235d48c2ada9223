/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many connections at once, each with a message both ways: as many as UMBEL_CONNECTIONS says, if it
 * is set.
 */
#include "common.h"
#include "attributes.h"

#define PORT     7190
#define UNDERWAY 200 /* connections that begin while others are not finished */
#define MANY     400

/* One end of all connections, on one host: what its queue pairs share. */
struct side {
	struct rdma_event_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint32_t *buffer;
	struct rdma_cm_id **id; /* of its connections, as they come */
	unsigned made, established, disconnected;
};

static unsigned many(void)
{
	const char *text = getenv("UMBEL_CONNECTIONS");

	return text ? (unsigned)atoi(text) : MANY;
}

static void side_open(struct side *s, unsigned n)
{
	memset(s, 0, sizeof(*s));
	assert_non_null(s->channel = rdma_create_event_channel());
	assert_int_equal(fcntl(s->channel->fd, F_SETFL, O_NONBLOCK), 0);
	s->id = calloc(n, sizeof(struct rdma_cm_id *));
	s->buffer = calloc(n, sizeof(*s->buffer));
	assert_non_null(s->id);
	assert_non_null(s->buffer);
}

/* A queue pair for @id, the side's @i-th, with a receive. */
static void side_qp(struct side *s, struct rdma_cm_id *id, unsigned i, unsigned n)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1
	};
	struct ibv_sge sge = { .addr = (uintptr_t)&s->buffer[i], .length = sizeof(uint32_t) };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (!s->cq) {
		s->pd = id->pd;
		s->cq = ibv_create_cq(id->verbs, 2 * (int)n, NULL, NULL, 0);
		s->mr = ibv_reg_mr(s->pd, s->buffer, n * sizeof(uint32_t), IBV_ACCESS_LOCAL_WRITE);
		assert_non_null(s->cq);
		assert_non_null(s->mr);
	}
	attr.send_cq = attr.recv_cq = s->cq;
	assert_int_equal(rdma_create_qp(id, s->pd, &attr), 0);
	sge.lkey = s->mr->lkey;
	assert_int_equal(ibv_post_recv(id->qp, &wr, &bad), 0);
	s->id[i] = id;
}

static void on_event(struct side *s, struct rdma_cm_event *e, unsigned n)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *id = e->id;

	switch (e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		assert_int_equal(rdma_resolve_route(id, 10000), 0);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		side_qp(s, id, s->made++, n);
		assert_int_equal(rdma_connect(id, &param), 0);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		side_qp(s, id, s->made++, n);
		assert_int_equal(rdma_accept(id, &param), 0);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		s->established++;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		s->disconnected++;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		fail_msg("%s, status %d", rdma_event_str(e->event), e->status);
	}
}

/* All that has happened. */
static void side_events(struct side *s, unsigned n)
{
	struct rdma_cm_event *e;

	while (!rdma_get_cm_event(s->channel, &e)) {
		on_event(s, e, n);
		rdma_ack_cm_event(e);
	}
	assert_int_equal(errno, EAGAIN);
}

static void wait_for_both(struct side side[2])
{
	struct pollfd p[2] = { { .fd = side[0].channel->fd, .events = POLLIN },
		               { .fd = side[1].channel->fd, .events = POLLIN } };

	assert_true(poll(p, 2, 120000) > 0);
}

static struct rdma_cm_id *listen_at(struct rdma_event_channel *channel, unsigned host)
{
	union address a = host_address(host, PORT);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, &a.sa), 0);
	assert_int_equal(rdma_listen(id, 0), 0);
	return id;
}

static void begin_to_connect(struct rdma_event_channel *channel, unsigned from, unsigned to)
{
	union address src = host_address(from, 0), dst = host_address(to, PORT);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, &src.sa, &dst.sa, 10000), 0);
}

static void side_poll(struct side *s, unsigned completions)
{
	for (unsigned got = 0; got < completions; got++)
		assert_int_equal(next_completion(s->cq).status, IBV_WC_SUCCESS);
}

/* A message by every connection: which one it was is in it. */
static void send_by_each(struct side *from, struct side *to, unsigned n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct ibv_sge sge = { .addr = (uintptr_t)&i, .length = sizeof(i) };
		struct ibv_send_wr wr = request_of(&sge, IBV_WR_SEND, IBV_SEND_INLINE), *bad;

		assert_int_equal(ibv_post_send(from->id[i]->qp, &wr, &bad), 0);
	}
	side_poll(from, n);
	side_poll(to, n);
	for (unsigned i = 0; i < n; i++)
		sum += to->buffer[i];
	assert_int_equal(sum, (uint64_t)n * (n - 1) / 2);
}

static void side_close(struct side *s)
{
	for (unsigned i = 0; i < s->made; i++) {
		rdma_destroy_qp(s->id[i]);
		assert_int_equal(rdma_destroy_id(s->id[i]), 0);
	}
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	assert_int_equal(ibv_destroy_cq(s->cq), 0);
	rdma_destroy_event_channel(s->channel);
	free(s->id);
	free(s->buffer);
}

CASE(many_connections_live_at_once)
{
	unsigned n = many(), begun = 0;
	struct rdma_cm_id *listener;
	struct side side[2];

	for (unsigned i = 0; i < 2; i++)
		side_open(&side[i], n);
	listener = listen_at(side[1].channel, 2);
	while (side[0].established < n || side[1].established < n) {
		for (; begun < n && begun < side[0].established + UNDERWAY; begun++)
			begin_to_connect(side[0].channel, 1, 2);
		wait_for_both(side);
		for (unsigned i = 0; i < 2; i++)
			side_events(&side[i], n);
	}
	send_by_each(&side[0], &side[1], n);
	send_by_each(&side[1], &side[0], n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(rdma_disconnect(side[0].id[i]), 0);
	while (side[0].disconnected < n || side[1].disconnected < n) {
		wait_for_both(side);
		for (unsigned i = 0; i < 2; i++)
			side_events(&side[i], n);
	}
	assert_int_equal(rdma_destroy_id(listener), 0);
	for (unsigned i = 0; i < 2; i++)
		side_close(&side[i]);
}
