/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asynchronous events, ibv_get_async_event(3), and the one that says that the device is
 * dead: its daemon was killed.
 */
#include "lab.h"

static void drain(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
}

LAB_CASE(without_event_a_nonblocking_context_says_eagain)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_async_event event;

	lab_set_nonblocking(context->async_fd);
	assert_int_equal(ibv_get_async_event(context, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

LAB_CASE(the_descriptor_shows_that_an_event_is_there)
{
	struct lab_end *e = lab_end(1);
	struct pollfd p = { .fd = e->context->async_fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 0), 0);
	drain(e->qp);
	lab_async_event(e->context, IBV_EVENT_SQ_DRAINED);
	assert_int_equal(poll(&p, 1, 0), 0);
}

/* An event goes to the context that its object was made in. */
LAB_CASE(another_context_of_the_device_hears_nothing)
{
	struct ibv_context *other = lab_open(1);
	struct lab_end *e = lab_end(1);
	struct ibv_async_event event;

	lab_set_nonblocking(other->async_fd);
	drain(e->qp);
	lab_async_event(e->context, IBV_EVENT_SQ_DRAINED);
	assert_int_equal(ibv_get_async_event(other, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

LAB_CASE(events_come_in_their_order)
{
	struct lab_end *a = lab_end(1), *b = lab_end_with(&(struct lab_options){ .neighbour = a });

	drain(b->qp);
	drain(a->qp);
	assert_ptr_equal(lab_async_event(a->context, IBV_EVENT_SQ_DRAINED).element.qp, b->qp);
	assert_ptr_equal(lab_async_event(a->context, IBV_EVENT_SQ_DRAINED).element.qp, a->qp);
}

/* The event of an object that has gone is not delivered to anybody. */
LAB_CASE(a_destroyed_qp_takes_its_events_along)
{
	struct lab_end *e = lab_end(1);
	struct ibv_async_event event;

	lab_set_nonblocking(e->context->async_fd);
	drain(e->qp);
	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	lab_forget(e->qp);
	assert_false(poll(&(struct pollfd){ .fd = e->context->async_fd, .events = POLLIN }, 1, 0));
	assert_int_equal(ibv_get_async_event(e->context, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* More events than the descriptor holds at once: each third queue pair is destroyed with its own;
 * those of the others come in their order, and there is no event too many. */
LAB_CASE(events_of_others_stay_and_keep_their_order)
{
	enum { N = 900 };
	struct lab_end *e = lab_end(1);
	struct ibv_async_event event;
	struct ibv_qp *qp[N];

	for (int i = 0; i < N; i++) {
		qp[i] = ibv_create_qp(e->pd, &(struct ibv_qp_init_attr){ .qp_type = IBV_QPT_UD,
		                                                         .send_cq = e->send_cq,
		                                                         .recv_cq = e->cq });
		assert_non_null(qp[i]);
		lab_start(qp[i], LAB_QKEY);
		drain(qp[i]);
	}
	for (int i = N - 1; i >= 0; i -= 3)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	drain(e->qp);
	for (int i = 0; i < N; i++) {
		if (i % 3 == 2)
			continue;
		event = lab_async_event(e->context, IBV_EVENT_SQ_DRAINED);
		assert_ptr_equal(event.element.qp, qp[i]);
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	}
	assert_ptr_equal(lab_async_event(e->context, IBV_EVENT_SQ_DRAINED).element.qp, e->qp);
	assert_false(is_readable(e->context->async_fd));
}

/* A completion queue's and a shared receive queue's, with one of each between two that stay. */
LAB_CASE(any_object_takes_its_events_along)
{
	struct lab_end *e = lab_end(1);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(e->pd, &init);
	struct ibv_srq_attr limit = { .srq_limit = 3 };
	struct ibv_cq *cq = ibv_create_cq(e->context, 1, NULL, NULL, 0);
	struct ibv_qp *qp;
	struct ibv_send_wr *bad;
	struct lab_request r;

	assert_non_null(srq);
	assert_non_null(cq);
	qp = ibv_create_qp(e->pd, &(struct ibv_qp_init_attr){
	                                  .qp_type = IBV_QPT_UD,
	                                  .send_cq = cq,
	                                  .recv_cq = cq,
	                                  .cap = { .max_send_wr = 64, .max_send_sge = 1 } });
	assert_non_null(qp);
	lab_start(qp, LAB_QKEY);
	drain(e->qp);
	assert_int_equal(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0); /* it has none at all */
	lab_request(e, &r, lab_ah_to(e, e), e->qp->qp_num, "", 0);
	for (int i = 0; i <= cq->cqe; i++)
		assert_int_equal(ibv_post_send(qp, &r.wr, &bad), 0);
	lab_to(e->qp, IBV_QPS_RTS);
	drain(e->qp);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	for (int i = 0; i < 2; i++)
		assert_ptr_equal(lab_async_event(e->context, IBV_EVENT_SQ_DRAINED).element.qp,
		                 e->qp);
	assert_false(is_readable(e->context->async_fd));
}

struct destroyer {
	struct ibv_qp *qp;
	_Atomic bool acked;
	bool was_acked;
	int ret;
};

static void *destroy_qp(void *arg)
{
	struct destroyer *d = arg;

	d->ret = ibv_destroy_qp(d->qp);
	d->was_acked = atomic_load(&d->acked);
	return NULL;
}

LAB_CASE(destroying_waits_until_events_are_acknowledged)
{
	struct lab_end *e = lab_end(1);
	struct destroyer d = { .qp = e->qp };
	struct ibv_async_event event;
	pthread_t thread;

	drain(e->qp);
	lab_await(e->context->async_fd);
	assert_int_equal(ibv_get_async_event(e->context, &event), 0);
	lab_forget(e->qp);
	assert_int_equal(pthread_create(&thread, NULL, destroy_qp, &d), 0);
	atomic_store(&d.acked, true);
	ibv_ack_async_event(&event);
	pthread_join(thread, NULL);
	assert_int_equal(d.ret, 0);
	assert_true(d.was_acked);
}

struct waiter {
	struct ibv_context *context;
	struct ibv_async_event event;
	_Atomic pid_t tid;
	int ret;
};

static void *wait_for_event(void *arg)
{
	struct waiter *w = arg;

	atomic_store(&w->tid, gettid());
	w->ret = ibv_get_async_event(w->context, &w->event);
	if (!w->ret)
		ibv_ack_async_event(&w->event);
	return NULL;
}

LAB_CASE(a_blocked_thread_is_woken)
{
	struct lab_end *e = lab_end(1);
	struct waiter w = { .context = e->context };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, wait_for_event, &w), 0);
	lab_await_sleep(&w.tid);
	drain(e->qp);
	pthread_join(thread, NULL);
	assert_int_equal(w.ret, 0);
	assert_int_equal(w.event.event_type, IBV_EVENT_SQ_DRAINED);
}

/* ---- the daemon is killed: in a fabric within, as `umbel run` then fails ---- */

static void kill_daemon(void)
{
	pid_t daemon = (pid_t)lab_status("pid");

	assert_true(daemon > 1);
	assert_int_equal(kill(daemon, SIGKILL), 0);
}

static void expect_fatal(struct ibv_context *context)
{
	struct ibv_async_event event;

	lab_async_event(context, IBV_EVENT_DEVICE_FATAL);
	/* once; then there is nothing to wait for */
	assert_int_equal(ibv_get_async_event(context, &event), -1);
	assert_int_equal(errno, EIO);
}

static void after_a_fatal_event_every_call_ends(void **state)
{
	struct lab_options o = { .host = 2, .channel = true };
	struct lab_end *a = lab_end(1), *b = lab_end_with(&o);
	union ibv_gid mgid = lab_mgid(1);
	struct ibv_send_wr *bad;
	struct lab_request r;
	struct ibv_cq *cq;
	void *context;

	(void)state;
	lab_post(b, 6);
	lab_request(a, &r, lab_ah_to(a, b), b->qp->qp_num, "x", 1);
	lab_attach(b->qp, &mgid, 0xC001);
	for (int i = 0; i < 4; i++) {
		lab_send_request(a, &r);
		lab_expect(b, "x", 1);
	}
	kill_daemon();
	expect_fatal(a->context);
	expect_fatal(b->context);
	assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), EIO);
	assert_int_equal(lab_try_post(b, 5), EIO);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), EIO);
	assert_int_equal(ibv_attach_mcast(a->qp, &mgid, 0xC001), EIO);
	assert_null(ibv_create_cq(a->context, 4, NULL, NULL, 0));
	assert_int_equal(errno, EIO);
	assert_int_equal(ibv_get_cq_event(b->channel, &cq, &context), -1);
	assert_int_equal(errno, EIO);
	/* none of the receives is lost */
	assert_int_equal(lab_complete(b->cq, IBV_WC_WR_FLUSH_ERR).wr_id, 4);
	assert_int_equal(lab_complete(b->cq, IBV_WC_WR_FLUSH_ERR).wr_id, 5);
	lab_quiet(b->cq);
}

static int run_within(void)
{
	const struct CMUnitTest tests[] = { LAB_TEST(after_a_fatal_event_every_call_ends) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

LAB_CASE(a_killed_daemon_is_a_fatal_event)
{
	char self[4096], byte = 0, number[16];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int result[2], status;
	pid_t child;

	assert_true(n > 0);
	self[n] = 0;
	assert_int_equal(pipe(result), 0);
	snprintf(number, sizeof(number), "%d", result[1]);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		execlp("umbel", "umbel", "run", "--hosts", "2", "--", self, number, NULL);
		_exit(127);
	}
	close(result[1]);
	assert_int_equal(read(result[0], &byte, 1), 1); /* the inner program's status */
	close(result[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(byte, '0');
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		char result = run_within() ? '1' : '0';

		return write(atoi(argv[1]), &result, 1) != 1;
	}
	return harness_run(NULL, NULL);
}
