/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signals and cancellation in the calls that wait, as the originals have them, which are one
 * read(), write() or poll() of a device file: ibv_get_cq_event(), ibv_get_async_event() and
 * rdma_get_cm_event() end with EINTR after a handler without SA_RESTART and go on after one with
 * it, and so do calls on rsockets, which wait by those; umad_recv(), which polls, ends with EINTR
 * after both. All are cancellation points, and a thread that is cancelled in one leaves nothing
 * behind. Calls that ask the daemon are none.
 */
#include "verbs/lab.h"

#include <infiniband/umad.h>
#include <rdma/rsocket.h>

#include "base/pause.h"

#define STREAMS   7400
#define DATAGRAMS 7401

static struct {
	struct lab_end *end, *from;
	struct ibv_ah *ah;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	int port;
	void *umad;
	int listener, client, server; /* of stream rsockets */
	int datagrams;
	_Atomic pid_t tid; /* of the thread that waits */
	_Atomic int handled;
	_Atomic int error; /* of the call; 0: it has got its event; -1: it waits */
} w;

/* ---- the calls, and what ends them ---- */

static int wait_cq(void)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(w.end->channel, &cq, &context))
		return errno;
	ibv_ack_cq_events(cq, 1);
	return 0;
}

static void end_cq(void)
{
	lab_post(w.end, 1);
	assert_int_equal(ibv_req_notify_cq(w.end->cq, 0), 0);
	lab_send_text(w.from, w.ah, w.end->qp->qp_num, "wake");
}

static int wait_async(void)
{
	struct ibv_async_event event;

	if (ibv_get_async_event(w.end->context, &event))
		return errno;
	ibv_ack_async_event(&event);
	return 0;
}

static void end_async(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	assert_int_equal(ibv_modify_qp(w.end->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
	                 0);
}

static int wait_cm(void)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(w.channel, &event))
		return errno;
	rdma_ack_cm_event(event);
	return 0;
}

static void end_cm(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0A000002) };

	assert_int_equal(rdma_resolve_addr(w.id, NULL, (struct sockaddr *)&to, 1000), 0);
}

static int wait_umad(void)
{
	int length = 256, ret = umad_recv(w.port, w.umad, &length, -1);

	return ret < 0 ? errno : 0;
}

/* It goes to an agent that is not there, and comes back as timed out. */
static void end_umad(void)
{
	uint8_t *mad = umad_get_mad(w.umad);
	int agent = umad_register(w.port, 0x32, 1, 0, NULL);

	assert_true(agent >= 0);
	memset(mad, 0, 256);
	mad[0] = 1;
	mad[1] = 0x32;
	mad[2] = 1;
	mad[3] = 1;
	umad_set_addr(w.umad, lab_attr_to(w.end).dlid, 1, 0, 0x80010000);
	assert_int_equal(umad_send(w.port, agent, w.umad, 256, 1, 0), 0);
}

static struct sockaddr_in at_port(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
		                     .sin_port = htons(port),
		                     .sin_addr.s_addr = htonl(0x0A000001) };
}

static int error_of(ssize_t ret)
{
	return ret < 0 ? errno : 0;
}

static int wait_rrecv(void)
{
	char byte;

	return error_of(rrecv(w.server, &byte, 1, 0));
}

static void end_rrecv(void)
{
	assert_int_equal(rsend(w.client, "x", 1, 0), 1);
}

static int wait_rrecvfrom(void)
{
	char byte;

	return error_of(rrecvfrom(w.datagrams, &byte, 1, 0, NULL, NULL));
}

static void end_rrecvfrom(void)
{
	struct sockaddr_in to = at_port(DATAGRAMS);
	int rs = rsocket(AF_INET, SOCK_DGRAM, 0);

	assert_true(rs >= 0);
	assert_int_equal(rsendto(rs, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), 1);
	assert_int_equal(rclose(rs), 0);
}

static int wait_raccept(void)
{
	int rs = raccept(w.listener, NULL, NULL);

	return rs < 0 ? errno : rclose(rs);
}

static int connect_stream(void)
{
	struct sockaddr_in to = at_port(STREAMS);
	int rs = rsocket(AF_INET, SOCK_STREAM, 0);

	assert_true(rs >= 0);
	assert_int_equal(rconnect(rs, (struct sockaddr *)&to, sizeof(to)), 0);
	return rs;
}

static void end_raccept(void)
{
	assert_int_equal(rclose(connect_stream()), 0);
}

struct call {
	int (*wait)(void);
	void (*end)(void);
	bool restarts;
};
static const struct call calls[] = {
	{ wait_cq, end_cq, true },           { wait_async, end_async, true },
	{ wait_cm, end_cm, true },           { wait_umad, end_umad, false },
	{ wait_rrecv, end_rrecv, true },     { wait_rrecvfrom, end_rrecvfrom, true },
	{ wait_raccept, end_raccept, true },
};

/* ---- the lab ---- */

static void on_signal(int number)
{
	(void)number;
	w.handled++;
}

static void handle(int flags)
{
	const struct sigaction act = { .sa_handler = on_signal, .sa_flags = flags };

	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
}

static int bound(int type, uint16_t port)
{
	struct sockaddr_in at = at_port(port);
	int rs = rsocket(AF_INET, type, 0);

	assert_true(rs >= 0);
	assert_int_equal(rbind(rs, (struct sockaddr *)&at, sizeof(at)), 0);
	return rs;
}

static void open_rsockets(void)
{
	w.datagrams = bound(SOCK_DGRAM, DATAGRAMS);
	w.listener = bound(SOCK_STREAM, STREAMS);
	assert_int_equal(rlisten(w.listener, 4), 0);
	w.client = connect_stream();
	w.server = raccept(w.listener, NULL, NULL);
	assert_true(w.server >= 0);
}

static void close_rsockets(void)
{
	rclose(w.client);
	rclose(w.server);
	rclose(w.listener);
	rclose(w.datagrams);
}

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.end = lab_end_with(&(struct lab_options){ .channel = true });
	w.from = lab_end(2);
	w.ah = lab_ah_to(w.from, w.end);
	assert_non_null(w.channel = rdma_create_event_channel());
	assert_int_equal(rdma_create_id(w.channel, &w.id, NULL, RDMA_PS_UDP), 0);
	w.port = umad_open_port("umbel_h1_0", 1);
	assert_true(w.port >= 0);
	w.umad = umad_alloc(1, umad_size() + 256);
	open_rsockets();
	return 0;
}

static int tear_down(void **state)
{
	close_rsockets();
	umad_close_port(w.port);
	umad_free(w.umad);
	rdma_destroy_id(w.id);
	rdma_destroy_event_channel(w.channel);
	return lab_clean_up(state);
}

static void *run(void *arg)
{
	const struct call *call = arg;

	w.tid = gettid();
	w.error = call->wait();
	return NULL;
}

/* A thread that sleeps in the call. */
static pthread_t start(const struct call *call)
{
	pthread_t thread;

	w.tid = 0;
	w.handled = 0;
	w.error = -1;
	assert_int_equal(pthread_create(&thread, NULL, run, (void *)call), 0);
	lab_await_sleep(&w.tid);
	return thread;
}

static void interrupt_it(pthread_t thread)
{
	const int before = w.handled;
	struct base_pause pause = { 0 };

	assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
	while (w.handled == before && w.error < 0)
		base_pause(&pause);
}

/* ---- signals ---- */

CASE_WITH(a_handler_without_sa_restart_ends_the_wait, set_up, tear_down)
{
	handle(0);
	for (size_t i = 0; i < LAB_ARRAY(calls); i++) {
		pthread_t thread = start(&calls[i]);

		/* one that comes between two waits of an rsocket ends neither */
		while (w.error < 0)
			interrupt_it(thread);
		pthread_join(thread, NULL);
		assert_int_equal(w.error, EINTR);
	}
}

CASE_WITH(a_handler_with_sa_restart_does_not, set_up, tear_down)
{
	handle(SA_RESTART);
	for (size_t i = 0; i < LAB_ARRAY(calls); i++) {
		pthread_t thread = start(&calls[i]);

		for (int n = 0; calls[i].restarts ? n < 10 : w.error < 0; n++) {
			interrupt_it(thread);
			if (calls[i].restarts)
				lab_await_sleep(&w.tid);
		}
		if (calls[i].restarts)
			calls[i].end();
		pthread_join(thread, NULL);
		assert_int_equal(w.error, calls[i].restarts ? 0 : EINTR);
	}
}

/* A handler that is blocked in the thread, or belongs to another signal, changes nothing. */
CASE_WITH(a_blocked_signal_says_nothing_about_restarting, set_up, tear_down)
{
	const struct sigaction ends = { .sa_handler = on_signal };
	sigset_t set, old;
	pthread_t thread;

	handle(SA_RESTART);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	assert_int_equal(sigaction(SIGUSR2, &ends, NULL), 0);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	thread = start(&calls[0]);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	interrupt_it(thread);
	lab_await_sleep(&w.tid);
	end_cq();
	pthread_join(thread, NULL);
	assert_int_equal(w.error, 0);
	signal(SIGUSR2, SIG_DFL);
}

/* Nor does a handler of a fault, as sanitizers and crash reporters have. */
CASE_WITH(a_handler_of_a_fault_says_nothing_about_restarting, set_up, tear_down)
{
	const struct sigaction ends = { .sa_handler = on_signal };
	struct sigaction before;
	pthread_t thread;

	handle(SA_RESTART);
	assert_int_equal(sigaction(SIGSEGV, &ends, &before), 0);
	thread = start(&calls[0]);
	interrupt_it(thread);
	lab_await_sleep(&w.tid);
	end_cq();
	pthread_join(thread, NULL);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	assert_int_equal(w.error, 0);
}

/* ---- cancellation ---- */

CASE_WITH(a_thread_that_waits_can_be_cancelled, set_up, tear_down)
{
	if (dlsym(RTLD_DEFAULT, "__asan_init"))
		skip(); /* it takes the stack of a thread that was cancelled for one in use */
	for (size_t i = 0; i < LAB_ARRAY(calls); i++) {
		unsigned fds = harness_descriptors();
		pthread_t thread = start(&calls[i]);
		void *result;

		pthread_cancel(thread);
		pthread_join(thread, &result);
		assert_ptr_equal(result, PTHREAD_CANCELED);
		assert_int_equal(harness_descriptors(), fds);
		/* and nothing is locked: the next one gets its event */
		calls[i].end();
		assert_int_equal(calls[i].wait(), 0);
	}
}

static void *make_and_destroy(void *arg)
{
	atomic_bool *stop = arg;

	while (!*stop) {
		struct ibv_cq *cq = ibv_create_cq(w.end->context, 8, NULL, NULL, 0);

		if (cq)
			ibv_destroy_cq(cq);
	}
	pthread_testcancel();
	return NULL;
}

/* These are ioctl() in the originals, which is no cancellation point. */
CASE_WITH(a_thread_that_asks_the_daemon_finishes_first, set_up, tear_down)
{
	for (int i = 0; i < 20; i++) {
		atomic_bool stop = false;
		struct ibv_cq *cq;
		pthread_t thread;
		void *result;

		assert_int_equal(pthread_create(&thread, NULL, make_and_destroy, &stop), 0);
		pthread_cancel(thread);
		assert_non_null(cq = ibv_create_cq(w.end->context, 8, NULL, NULL, 0));
		assert_int_equal(ibv_destroy_cq(cq), 0);
		stop = true;
		pthread_join(thread, &result);
		assert_ptr_equal(result, PTHREAD_CANCELED);
	}
}

/* The sender wakes a receiver by a write(), with a lock that it shares with other threads. */
static void *send_cancelled(void *arg)
{
	struct lab_request r;

	lab_request(w.from, &r, w.ah, w.end->qp->qp_num, "x", 1);
	pthread_cancel(pthread_self());
	*(int *)arg = ibv_post_send(w.from->qp, &r.wr, &(struct ibv_send_wr *){ NULL });
	return NULL;
}

CASE_WITH(sending_is_no_cancellation_point, set_up, tear_down)
{
	int posted = -1;
	pthread_t thread;
	struct ibv_wc wc;

	lab_post(w.end, 2);
	assert_int_equal(ibv_req_notify_cq(w.end->cq, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, send_cancelled, &posted), 0);
	pthread_join(thread, NULL);
	assert_int_equal(posted, 0);
	assert_int_equal(wait_cq(), 0);
	lab_poll(w.end->cq, 1, &wc);
	lab_poll(w.from->send_cq, 1, &wc);
	assert_int_equal(ibv_req_notify_cq(w.end->cq, 0), 0);
	lab_send_text(w.from, w.ah, w.end->qp->qp_num, "wake");
	assert_int_equal(wait_cq(), 0);
}
