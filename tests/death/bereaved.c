/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program whose fabric ends under it: bereaved. It says "ready" when it has receives
 * posted and three threads sleep, for an asynchronous event, a completion event and an
 * rdma_cm event. Then the script that runs this ends the fabric. All that waits has to return,
 * receives have to complete, and calls have to fail, with the right error. At the end of its input
 * it opens the fabric anew, which by then is up again, and connects there by rdma_cm. Objects of
 * rdma_cm that it kept from the first fabric do no harm then, though new objects have the same
 * numbers.
 */
#include "posix.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>

#include "base/pause.h"
#include "attributes.h"

#define RECEIVES 10
#define SLOT     256
#define SECONDS  120
#define QKEY     0x1234
#define PORT     7471

static int failures;

#define CHECK(what)                                                                       \
	do {                                                                              \
		if (!(what)) {                                                            \
			fprintf(stderr, "bereaved: line %d: not so: %s (errno %d, %s)\n", \
			        __LINE__, #what, errno, strerror(errno));                 \
			failures++;                                                       \
		}                                                                         \
	} while (0)

#define NEED(what)                                                                      \
	do {                                                                            \
		if (!(what)) {                                                          \
			fprintf(stderr, "bereaved: line %d: %s: %s\n", __LINE__, #what, \
			        strerror(errno));                                       \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct {
	struct ibv_device **list;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *quiet_cq; /* nothing ever completes in the quiet one */
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct rdma_event_channel *events, *kept_events;
	struct rdma_cm_id *id, *kept;
	struct sockaddr_in group;
	char memory[(RECEIVES + 1) * SLOT];
} p;

/* ---- before ---- */

static void open_verbs(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 4, RECEIVES, 1, 1, 0 } };
	struct ibv_ah_attr to = { .port_num = 1 };
	struct ibv_port_attr port;

	NEED(p.list = ibv_get_device_list(NULL));
	NEED(p.list[0] && (p.ctx = ibv_open_device(p.list[0])));
	NEED(p.pd = ibv_alloc_pd(p.ctx));
	NEED(p.mr = ibv_reg_mr(p.pd, p.memory, sizeof(p.memory), IBV_ACCESS_LOCAL_WRITE));
	NEED(p.channel = ibv_create_comp_channel(p.ctx));
	NEED(p.cq = ibv_create_cq(p.ctx, 64, NULL, NULL, 0));
	NEED(p.quiet_cq = ibv_create_cq(p.ctx, 4, NULL, p.channel, 0));
	NEED(!ibv_req_notify_cq(p.quiet_cq, 0));
	init.send_cq = init.recv_cq = p.cq;
	NEED(p.qp = ibv_create_qp(p.pd, &init));
	NEED(!ibv_query_port(p.ctx, 1, &port));
	to.dlid = port.lid;
	NEED(p.ah = ibv_create_ah(p.pd, &to));
}

static int move(enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1, .qkey = QKEY };

	return ibv_modify_qp(p.qp, &attr, IBV_QP_STATE | mask);
}

static int post_receive(uint64_t i)
{
	struct ibv_sge sge = { (uintptr_t)p.memory + i * SLOT, SLOT, p.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(p.qp, &wr, &bad);
}

static int post_send(void)
{
	struct ibv_sge sge = { (uintptr_t)p.memory + RECEIVES * SLOT, 8, p.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_SEND,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .wr.ud = { p.ah, p.qp->qp_num, QKEY } },
	                   *bad;

	return ibv_post_send(p.qp, &wr, &bad);
}

static void start_queues(void)
{
	NEED(!move(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	NEED(!move(IBV_QPS_RTR, 0));
	NEED(!move(IBV_QPS_RTS, IBV_QP_SQ_PSN));
	for (uint64_t i = 0; i < RECEIVES; i++)
		NEED(!post_receive(i));
}

static struct sockaddr_in local_address(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	inet_pton(AF_INET, "10.0.0.1", &a.sin_addr);
	return a;
}

/* Makes objects that the program destroys only after the fabric is up again. */
static void open_kept(void)
{
	struct sockaddr_in local = local_address();

	NEED(p.kept_events = rdma_create_event_channel());
	NEED(!rdma_create_id(p.kept_events, &p.kept, NULL, RDMA_PS_TCP));
	NEED(!rdma_bind_addr(p.kept, (struct sockaddr *)&local));
}

static void open_cm(void)
{
	struct sockaddr_in local = local_address();
	struct rdma_cm_event *event;

	local.sin_port = 0;
	p.group = local;
	inet_pton(AF_INET, "239.1.2.3", &p.group.sin_addr);
	NEED(p.events = rdma_create_event_channel());
	NEED(!rdma_create_id(p.events, &p.id, NULL, RDMA_PS_UDP));
	NEED(!rdma_bind_addr(p.id, (struct sockaddr *)&local));
	NEED(!rdma_join_multicast(p.id, (struct sockaddr *)&p.group, NULL));
	NEED(!rdma_get_cm_event(p.events, &event));
	NEED(event->event == RDMA_CM_EVENT_MULTICAST_JOIN);
	rdma_ack_cm_event(event);
}

/* ---- who sleeps ---- */

struct sleeper {
	pthread_t thread;
	_Atomic pid_t tid;
	void (*sleep)(void);
};

static void sleep_for_async_event(void)
{
	struct ibv_async_event event;

	CHECK(!ibv_get_async_event(p.ctx, &event));
	CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	CHECK(ibv_get_async_event(p.ctx, &event) == -1 && errno == EIO);
}

static void sleep_for_completion_event(void)
{
	struct ibv_cq *cq;
	void *context;

	CHECK(ibv_get_cq_event(p.channel, &cq, &context) == -1 && errno == EIO);
	CHECK(ibv_get_cq_event(p.channel, &cq, &context) == -1 && errno == EIO);
}

static void sleep_for_cm_event(void)
{
	struct rdma_cm_event *event;

	CHECK(!rdma_get_cm_event(p.events, &event));
	CHECK(event->event == RDMA_CM_EVENT_DEVICE_REMOVAL && event->id == p.id);
	rdma_ack_cm_event(event);
	CHECK(rdma_get_cm_event(p.events, &event) == -1 && errno == EIO);
	CHECK(rdma_get_cm_event(p.events, &event) == -1 && errno == EIO);
}

static struct sleeper sleepers[] = {
	{ .sleep = sleep_for_async_event },
	{ .sleep = sleep_for_completion_event },
	{ .sleep = sleep_for_cm_event },
};

#define SLEEPERS (sizeof(sleepers) / sizeof(sleepers[0]))

static void *run_sleeper(void *arg)
{
	struct sleeper *s = arg;

	s->tid = gettid();
	s->sleep();
	return NULL;
}

static bool is_asleep(const struct sleeper *s)
{
	char path[64], text[256] = "";
	FILE *f;

	if (!s->tid)
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)s->tid);
	f = fopen(path, "r");
	if (f) {
		size_t n = fread(text, 1, sizeof(text) - 1, f);

		text[n] = '\0';
		fclose(f);
	}
	return strstr(text, ") S ");
}

static void start_sleepers(void)
{
	for (size_t i = 0; i < SLEEPERS; i++) {
		struct base_pause pause = { 0 };

		NEED(!pthread_create(&sleepers[i].thread, NULL, run_sleeper, &sleepers[i]));
		while (!is_asleep(&sleepers[i]))
			base_pause_sleep(&pause);
	}
}

static void join_sleepers(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += SECONDS;
	for (size_t i = 0; i < SLEEPERS; i++) {
		if (pthread_timedjoin_np(sleepers[i].thread, NULL, &end)) {
			fprintf(stderr, "bereaved: thread %zu does not wake\n", i);
			exit(1);
		}
	}
}

/* ---- after ---- */

static void check_flush(void)
{
	double end = now() + SECONDS;
	struct ibv_wc wc;

	for (uint64_t i = 0; i < RECEIVES;) {
		int n = ibv_poll_cq(p.cq, 1, &wc);

		CHECK(n >= 0);
		if (n < 0 || now() > end) {
			fprintf(stderr, "bereaved: %d receives have not completed\n",
			        (int)(RECEIVES - i));
			exit(1);
		}
		if (!n)
			continue;
		CHECK(wc.wr_id == i++);
		CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
	}
	CHECK(ibv_poll_cq(p.cq, 1, &wc) == 0);
}

static void check_descriptors(void)
{
	struct pollfd fds[] = { { .fd = p.ctx->async_fd, .events = POLLIN },
		                { .fd = p.events->fd, .events = POLLIN } };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		CHECK(poll(&fds[i], 1, SECONDS * 1000) == 1);
}

static void check_verbs(void)
{
	struct ibv_qp_init_attr init = init_of(IBV_QPT_UD, p.cq, 1, 1);
	union ibv_gid gid = { .raw = { 0xFF, 0x12, 0x40, 0x1B } };
	struct ibv_port_attr port;

	CHECK(post_receive(0) == EIO);
	CHECK(post_send() == EIO);
	CHECK(!ibv_create_cq(p.ctx, 4, NULL, NULL, 0) && errno == EIO);
	CHECK(!ibv_create_comp_channel(p.ctx) && errno == EIO);
	CHECK(!ibv_create_qp(p.pd, &init) && errno == EIO);
	CHECK(ibv_attach_mcast(p.qp, &gid, 0xC001) == EIO);
	CHECK(ibv_detach_mcast(p.qp, &gid, 0xC001) == EIO);
	CHECK(ibv_query_port(p.ctx, 1, &port) == EIO);
	CHECK(!ibv_open_device(p.list[0]) && errno == ENODEV);
	/* to start over from here must be in vain, too */
	move(IBV_QPS_RESET, 0);
	CHECK(move(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == EIO);
}

static void check_cm(void)
{
	struct sockaddr *group = (struct sockaddr *)&p.group;

	CHECK(rdma_join_multicast(p.id, group, NULL) == -1 && errno == EIO);
	CHECK(rdma_resolve_addr(p.id, NULL, group, 1000) == -1 && errno == EIO);
	CHECK(rdma_listen(p.id, 1) == -1 && errno == EIO);
}

/* The objects can be got rid of, whatever these calls say. */
static void clean_up(void)
{
	if (p.id) {
		rdma_leave_multicast(p.id, (struct sockaddr *)&p.group);
		CHECK(!rdma_destroy_id(p.id));
		rdma_destroy_event_channel(p.events);
		p.id = NULL;
	}
	ibv_destroy_ah(p.ah);
	ibv_destroy_qp(p.qp);
	ibv_destroy_cq(p.cq);
	ibv_destroy_cq(p.quiet_cq);
	ibv_destroy_comp_channel(p.channel);
	ibv_dereg_mr(p.mr);
	ibv_dealloc_pd(p.pd);
	ibv_close_device(p.ctx);
	ibv_free_device_list(p.list);
}

/* ---- again ---- */

/* The next event of that channel is of that type. Its identifier. */
static struct rdma_cm_id *expect_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct pollfd fd = { .fd = ch->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (poll(&fd, 1, SECONDS * 1000) != 1) {
		fprintf(stderr, "bereaved: no %s comes\n", rdma_event_str(type));
		exit(1);
	}
	NEED(!rdma_get_cm_event(ch, &event));
	if (event->event != type) {
		fprintf(stderr, "bereaved: %s, not %s\n", rdma_event_str(event->event),
		        rdma_event_str(type));
		exit(1);
	}
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };

	NEED(!rdma_create_qp(id, NULL, &init));
}

/* They have the numbers that those of the new fabric have, and do nothing there. */
static void check_kept(struct rdma_event_channel *now)
{
	struct rdma_cm_id *id;

	CHECK(rdma_listen(p.kept, 1) == -1 && errno == EIO);
	CHECK(rdma_create_id(p.kept_events, &id, NULL, RDMA_PS_TCP) == -1 && errno == EIO);
	CHECK(rdma_migrate_id(p.kept, now) == -1 && errno == EINVAL);
	CHECK(expect_event(p.kept_events, RDMA_CM_EVENT_DEVICE_REMOVAL) == p.kept);
	CHECK(!rdma_destroy_id(p.kept));
	rdma_destroy_event_channel(p.kept_events);
}

static void connect_again(void)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct sockaddr_in at = local_address();
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listener, *client, *server;

	NEED(ch = rdma_create_event_channel());
	NEED(!rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP));
	NEED(!rdma_bind_addr(listener, (struct sockaddr *)&at));
	NEED(!rdma_listen(listener, 1));
	check_kept(ch);
	NEED(!rdma_create_id(ch, &client, NULL, RDMA_PS_TCP));
	NEED(!rdma_resolve_addr(client, NULL, (struct sockaddr *)&at, 1000));
	expect_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	NEED(!rdma_resolve_route(client, 1000));
	expect_event(ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(client);
	NEED(!rdma_connect(client, &param));
	server = expect_event(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(server);
	NEED(!rdma_accept(server, &param));
	expect_event(ch, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(ch, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(!rdma_disconnect(client));
	rdma_destroy_qp(client);
	rdma_destroy_qp(server);
	CHECK(!rdma_destroy_id(client) && !rdma_destroy_id(server) && !rdma_destroy_id(listener));
	rdma_destroy_event_channel(ch);
}

static void connect_rsocket_again(void)
{
	struct sockaddr_in at = local_address();
	int listener, client, server;
	char byte = 0;

	NEED((listener = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
	NEED(!rbind(listener, (struct sockaddr *)&at, sizeof(at)));
	NEED(!rlisten(listener, 1));
	NEED((client = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
	NEED(!rconnect(client, (struct sockaddr *)&at, sizeof(at)));
	NEED((server = raccept(listener, NULL, NULL)) >= 0);
	CHECK(rsend(client, "x", 1, 0) == 1);
	CHECK(rrecv(server, &byte, 1, 0) == 1 && byte == 'x');
	CHECK(!rclose(client) && !rclose(server) && !rclose(listener));
}

int main(void)
{
	open_verbs();
	start_queues();
	open_kept();
	open_cm();
	start_sleepers();
	puts("ready");
	fflush(stdout);
	join_sleepers();
	check_flush();
	check_descriptors();
	check_verbs();
	check_cm();
	clean_up();
	puts(failures ? "wrong" : "right");
	fflush(stdout);
	while (getchar() != EOF)
		;
	open_verbs();
	start_queues();
	NEED(!post_send());
	connect_again();
	connect_rsocket_again();
	clean_up();
	puts("again");
	return failures ? 1 : 0;
}
