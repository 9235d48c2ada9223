/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs that a program makes in numbers: the daemon has reserved what they need, and is not
 * waited for. Nothing else is different: each is all that a queue pair is from the first call on.
 */
#include "lab.h"
#include "attributes.h"

#define MANY    60 /* more than are reserved at once */
#define THREADS 4
#define OF_EACH 200

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq; /* or NULL */
	struct ibv_mr *mr;
	char memory[MANY][64];
};

static struct side *side(int host)
{
	struct side *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	lab_undo(free, s);
	s->context = lab_open(host);
	s->pd = lab_pd(s->context);
	s->cq = lab_cq(s->context, 4 * MANY, NULL);
	s->mr = lab_mr(s->pd, s->memory, sizeof(s->memory));
	return s;
}

static struct ibv_qp_init_attr init_on(const struct side *s, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){ .send_cq = s->cq,
		                          .recv_cq = s->cq,
		                          .srq = s->srq,
		                          .cap = { 2, 2, 2, 2, 0 },
		                          .qp_type = type };
}

static struct ibv_qp *make(const struct side *s, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = init_on(s, type);

	return lab_qp(s->pd, &init);
}

static void destroy(struct ibv_qp *qp)
{
	lab_forget(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void expect_new(struct ibv_qp *qp, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RESET);
	assert_int_equal(attr.cap.max_send_wr, 2);
	assert_int_equal(init.qp_type, type);
	assert_ptr_equal(init.send_cq, qp->send_cq);
	assert_int_equal(ibv_destroy_cq(qp->recv_cq), EBUSY);
}

/* ---- each alone ---- */

static void send_number(struct ibv_qp *qp, unsigned number)
{
	struct ibv_sge sge = { (uintptr_t)&number, sizeof(number), 0 };
	struct ibv_send_wr wr = request_of(&sge, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(lab_complete(qp->send_cq, IBV_WC_SUCCESS).qp_num, qp->qp_num);
}

/* Of two entries: they lie in the memory that was reserved. */
static void post_receive(struct side *s, struct ibv_qp *qp, unsigned i)
{
	struct ibv_sge sge[] = { { (uintptr_t)s->memory[i], 2, s->mr->lkey },
		                 { (uintptr_t)s->memory[i] + 2, 62, s->mr->lkey } };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = sge, .num_sge = 2 }, *bad;

	assert_int_equal(
	        s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad), 0);
}

static void expect_number(struct side *s, uint32_t qpn, unsigned number)
{
	struct ibv_wc wc = lab_complete(s->cq, IBV_WC_SUCCESS);
	unsigned got;

	assert_int_equal(wc.qp_num, qpn);
	memcpy(&got, s->memory[wc.wr_id], sizeof(got));
	assert_int_equal(got, number);
}

static void expect_connections(struct side *a, struct side *b)
{
	struct ibv_qp *qa[MANY], *qb[MANY];

	for (unsigned i = 0; i < MANY; i++) {
		qa[i] = make(a, IBV_QPT_RC);
		qb[i] = make(b, IBV_QPT_RC);
		expect_new(qa[i], IBV_QPT_RC);
		lab_connect(qb[i], qa[i]->qp_num, a->context, 0);
		post_receive(b, qb[i], i);
		lab_connect(qa[i], qb[i]->qp_num, b->context, 0);
		send_number(qa[i], i);
		expect_number(b, qb[i]->qp_num, i);
	}
	for (unsigned i = 0; i < MANY; i++)
		for (unsigned k = 0; k < i; k++)
			assert_true(qa[i]->qp_num != qa[k]->qp_num &&
			            qb[i]->qp_num != qb[k]->qp_num &&
			            qa[i]->qp_num != qb[k]->qp_num);
	assert_int_equal(lab_status("qps"), 2 * MANY);
}

/* The first one, before this process has keys: the child's are the only ones. */
LAB_CASE(nothing_is_left_of_a_process_that_dies)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct side *s = side(1);

		for (unsigned i = 0; i < MANY; i++)
			make(s, i % 2 ? IBV_QPT_UD : IBV_QPT_RC);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	lab_await_status("qps", 0);
	lab_await_status("ring_bytes", 0);
	lab_await_status("payload_bytes", 0);
}

LAB_CASE(a_connection_of_each_carries_messages)
{
	expect_connections(side(1), side(2));
}

static void undo_srq(void *srq)
{
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

LAB_CASE(so_does_one_with_a_shared_receive_queue)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 2 } };
	struct side *a = side(1), *b = side(2);

	assert_non_null(b->srq = ibv_create_srq(b->pd, &init));
	lab_undo(undo_srq, b->srq);
	expect_connections(a, b);
}

LAB_CASE(a_request_waits_for_its_receive)
{
	struct side *a = side(1), *b = side(2);
	struct ibv_wc wc;

	for (unsigned i = 0; i < MANY; i++) {
		struct ibv_qp *from = make(a, IBV_QPT_RC), *to = make(b, IBV_QPT_RC);
		struct ibv_sge sge = { (uintptr_t)a->memory[i], 8, a->mr->lkey };
		struct ibv_send_wr wr = request_of(&sge, IBV_WR_SEND, IBV_SEND_SIGNALED), *bad;

		memcpy(a->memory[i], &i, sizeof(i));
		lab_connect(from, to->qp_num, b->context, 0);
		assert_int_equal(ibv_post_send(from, &wr, &bad), 0);
		lab_connect(to, from->qp_num, a->context, 0);
		assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 0);
		post_receive(b, to, i);
		assert_int_equal(lab_complete(a->cq, IBV_WC_SUCCESS).qp_num, from->qp_num);
		expect_number(b, to->qp_num, i);
	}
}

LAB_CASE(a_datagram_reaches_each_and_each_joins)
{
	struct lab_end *from = lab_end(1);
	struct side *s = side(2);
	struct ibv_port_attr port;
	struct ibv_ah *ah;

	assert_int_equal(ibv_query_port(s->context, 1, &port), 0);
	ah = lab_ah(from->pd, &(struct ibv_ah_attr){ .dlid = port.lid, .port_num = 1 });
	for (unsigned i = 0; i < MANY; i++) {
		union ibv_gid group = lab_mgid(i % 5);
		struct ibv_qp *qp = make(s, IBV_QPT_UD);
		struct ibv_wc wc;

		expect_new(qp, IBV_QPT_UD);
		lab_start(qp, LAB_QKEY);
		lab_attach(qp, &group, 0xC001);
		post_receive(s, qp, i);
		lab_send(from, ah, qp->qp_num, &i, sizeof(i));
		wc = lab_complete(s->cq, IBV_WC_SUCCESS);
		assert_int_equal(wc.qp_num, qp->qp_num);
		assert_memory_equal(s->memory[i] + LAB_GRH, &i, sizeof(i));
		assert_int_equal(ibv_destroy_qp(qp), EBUSY);
		lab_detach(qp, &group, 0xC001);
	}
}

LAB_CASE(one_that_goes_at_once_is_gone)
{
	struct side *s = side(1);

	for (unsigned i = 0; i < 4 * MANY; i++) {
		struct ibv_qp *qp = make(s, i % 3 ? IBV_QPT_RC : IBV_QPT_UC);

		if (i % 4 == 1) {
			lab_connect(qp, qp->qp_num, s->context, 0);
			lab_to(qp, IBV_QPS_ERR);
		} else if (i % 4 == 2) {
			lab_to(qp, IBV_QPS_RESET);
		}
		destroy(qp);
	}
	assert_int_equal(lab_status("qps"), 0);
	lab_forget(s->cq);
	assert_int_equal(ibv_destroy_cq(s->cq), 0);
}

LAB_CASE(those_of_many_sizes_are_what_they_were_asked_to_be)
{
	struct side *s = side(1);

	for (unsigned i = 0; i < 6 * MANY; i++) {
		struct ibv_qp_init_attr init = init_on(s, i % 2 ? IBV_QPT_RC : IBV_QPT_UD);
		struct ibv_qp *qp;

		init.cap.max_recv_wr = 1 + i % 7;
		init.cap.max_recv_sge = 2 + i % 2;
		qp = lab_qp(s->pd, &init);
		if (init.qp_type == IBV_QPT_RC)
			lab_connect(qp, qp->qp_num, s->context, 0);
		else
			lab_to_init(qp, LAB_QKEY);
		for (unsigned n = 0; n < init.cap.max_recv_wr; n++)
			post_receive(s, qp, 0);
		destroy(qp);
	}
}

/* ---- several threads, several processes ---- */

struct thread {
	const struct side *side;
	pthread_t id;
	struct ibv_qp *qp[OF_EACH];
	unsigned failed;
};

static void *make_many(void *arg)
{
	const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	struct thread *t = arg;

	for (unsigned i = 0; i < OF_EACH; i++) {
		struct ibv_qp_init_attr init = init_on(t->side, IBV_QPT_UD);
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

		t->qp[i] = ibv_create_qp(t->side->pd, &init);
		t->failed += !t->qp[i] || ibv_modify_qp(t->qp[i], &attr, mask);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

LAB_CASE(threads_that_make_them_at_once_get_their_own)
{
	static struct thread thread[THREADS];
	static uint32_t qpn[THREADS * OF_EACH];
	struct side *s = side(1);
	unsigned n = 0;

	s->cq = lab_cq(s->context, 4 * THREADS * OF_EACH, NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		thread[i] = (struct thread){ .side = s };
		assert_int_equal(pthread_create(&thread[i].id, NULL, make_many, &thread[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i].id, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(thread[i].failed, 0);
		for (unsigned k = 0; k < OF_EACH; k++)
			qpn[n++] = thread[i].qp[k]->qp_num;
	}
	assert_int_equal(lab_status("qps"), n);
	qsort(qpn, n, sizeof(*qpn), compare);
	for (unsigned i = 1; i < n; i++)
		assert_true(qpn[i] != qpn[i - 1]);
	for (unsigned i = 0; i < THREADS; i++)
		for (unsigned k = 0; k < OF_EACH; k++)
			assert_int_equal(ibv_destroy_qp(thread[i].qp[k]), 0);
}

/* A child uses the parent's objects while the parent waits: it must not use what lies reserved for
 * the parent. */
LAB_CASE(a_child_takes_nothing_of_its_parents)
{
	struct side *s = side(1);
	pid_t pid;

	for (unsigned i = 0; i < MANY / 2; i++)
		make(s, IBV_QPT_UD);
	pid = fork();
	if (!pid) {
		for (unsigned i = 0; i < 3; i++)
			lab_to_init(make(s, IBV_QPT_UD), LAB_QKEY);
		_exit(0);
	}
	harness_expect_success(pid);
	for (unsigned i = 0; i < MANY / 2; i++)
		lab_to_init(make(s, IBV_QPT_UD), LAB_QKEY);
	assert_int_equal(lab_status("qps"), MANY + 3);
}
