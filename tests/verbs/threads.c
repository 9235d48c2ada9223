/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several threads on the same objects, as ibverbs promises that they may.
 *
 * Assertions are the main thread's; the others count what they see.
 */
#include "lab.h"

#include "base/pause.h"
#include "attributes.h"

#define THREADS  4
#define SENDERS  8
#define MESSAGES 2000 /* of each thread */
#define TOTAL    (SENDERS * MESSAGES)

struct message {
	uint32_t thread, number;
};

/* A receiver of many small messages: @n are posted at once. */
static struct lab_end *large_receiver(uint32_t n)
{
	struct lab_options o = { .host = 2, .cqe = (int)n, .cap.max_recv_wr = n };
	struct lab_end *e = lab_end_with(&o);
	const uint32_t bytes = LAB_GRH + sizeof(struct message);
	char *memory = calloc(n, bytes);
	struct ibv_mr *mr;

	assert_non_null(memory);
	lab_undo(free, memory);
	mr = lab_mr(e->pd, memory, (size_t)n * bytes);
	for (uint32_t i = 0; i < n; i++) {
		struct ibv_sge sge = { (uintptr_t)memory + (size_t)i * bytes, bytes, mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = sge.addr + LAB_GRH,
			                  .sg_list = &sge,
			                  .num_sge = 1 },
		                   *bad;

		assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
	}
	return e;
}

/* All messages of @n threads have come, each thread's in its order. */
static void expect_all(struct lab_end *e, unsigned n)
{
	uint32_t next[SENDERS] = { 0 };

	for (unsigned i = 0; i < n * MESSAGES; i++) {
		struct ibv_wc wc = lab_complete(e->cq, IBV_WC_SUCCESS);
		struct message m;

		memcpy(&m, (void *)(uintptr_t)wc.wr_id, sizeof(m));
		assert_in_range(m.thread, 0, n - 1);
		assert_int_equal(m.number, next[m.thread]);
		next[m.thread]++;
	}
	lab_quiet(e->cq);
}

struct poster {
	struct lab_end *from;
	struct ibv_ah *ah;
	uint32_t qpn, thread;
	unsigned refused; /* other than for want of room */
};

/* Sends them all, inline and signalled; waits while the queue is full. */
static void *post_messages(void *arg)
{
	struct poster *p = arg;
	struct ibv_send_wr *bad;
	struct lab_request r;
	struct message m = { .thread = p->thread };
	struct base_pause pause = { 0 };

	lab_request(p->from, &r, p->ah, p->qpn, NULL, sizeof(m));
	r.sge.addr = (uintptr_t)&m;
	r.wr.send_flags |= IBV_SEND_INLINE;
	while (m.number < MESSAGES) {
		int ret = ibv_post_send(p->from->qp, &r.wr, &bad);

		m.number += !ret;
		if (ret == ENOMEM) {
			base_pause(&pause);
		} else if (ret) {
			p->refused++;
			return NULL;
		} else {
			pause.looks = 0;
		}
	}
	return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	assert_int_equal(pthread_create(thread, NULL, run, arg), 0);
}

LAB_CASE(threads_that_post_to_one_qp_lose_nothing)
{
	struct lab_end *a = lab_end(1), *b = large_receiver(THREADS * MESSAGES);
	struct poster p[THREADS];
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		p[i] = (struct poster){ a, lab_ah_to(a, b), b->qp->qp_num, i, 0 };
		start(&thread[i], post_messages, &p[i]);
	}
	for (unsigned i = 0; i < THREADS * MESSAGES; i++)
		lab_complete(a->send_cq, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(p[i].refused, 0);
	}
	lab_quiet(a->send_cq);
	expect_all(b, THREADS);
}

/* ---- eight senders to one receiver ---- */

static void *post_and_poll(void *arg)
{
	struct poster *p = arg;
	struct ibv_send_wr *bad;
	struct lab_request r;
	struct message m = { .thread = p->thread };
	struct ibv_wc wc;

	lab_request(p->from, &r, p->ah, p->qpn, NULL, sizeof(m));
	r.sge.addr = (uintptr_t)&m;
	r.wr.send_flags |= IBV_SEND_INLINE;
	for (; m.number < MESSAGES; m.number++) {
		if (ibv_post_send(p->from->qp, &r.wr, &bad) ||
		    ibv_poll_cq(p->from->send_cq, 1, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
			p->refused++;
	}
	return NULL;
}

static void run_senders(struct lab_end *to, struct poster p[SENDERS])
{
	pthread_t thread[SENDERS];

	for (unsigned i = 0; i < SENDERS; i++)
		start(&thread[i], post_and_poll, &p[i]);
	expect_all(to, SENDERS);
	for (unsigned i = 0; i < SENDERS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(p[i].refused, 0);
	}
}

LAB_CASE(eight_senders_to_one_receiver_lose_nothing)
{
	struct lab_end *b = large_receiver(TOTAL);
	struct poster p[SENDERS];

	for (unsigned i = 0; i < SENDERS; i++) {
		struct lab_end *a = lab_end((int)(i % 4) + 1);

		p[i] = (struct poster){ a, lab_ah_to(a, b), b->qp->qp_num, i, 0 };
	}
	run_senders(b, p);
}

LAB_CASE(eight_senders_to_one_group_lose_nothing)
{
	struct lab_group *g = lab_join(2, "239.8.0.1");
	struct lab_end *b = large_receiver(TOTAL);
	struct poster p[SENDERS];

	lab_attach(b->qp, &g->mgid, g->mlid);
	for (unsigned i = 0; i < SENDERS; i++) {
		struct lab_end *a = lab_end((int)(i % 4) + 1);

		p[i] = (struct poster){ a, lab_ah_group(a, g), LAB_MCAST, i, 0 };
	}
	run_senders(b, p);
}

/* ---- several threads poll one CQ ---- */

struct poller {
	struct ibv_cq *cq;
	_Atomic unsigned *left;
	_Atomic uint8_t *seen; /* by message */
	unsigned wrong;
	time_t deadline;
};

static void *poll_messages(void *arg)
{
	struct poller *p = arg;
	struct base_pause pause = { 0 };
	struct ibv_wc wc[8];

	while (atomic_load(p->left) && time(NULL) < p->deadline) {
		int n = ibv_poll_cq(p->cq, 8, wc);

		for (int i = 0; i < n; i++) {
			struct message m;

			memcpy(&m, (void *)(uintptr_t)wc[i].wr_id, sizeof(m));
			if (wc[i].status != IBV_WC_SUCCESS || m.number >= MESSAGES ||
			    atomic_fetch_add(&p->seen[m.number], 1))
				p->wrong++;
			atomic_fetch_sub(p->left, 1);
		}
		p->wrong += n < 0;
		if (n <= 0)
			base_pause(&pause);
		else
			pause.looks = 0;
	}
	return NULL;
}

LAB_CASE(threads_that_poll_one_cq_share_its_completions)
{
	static _Atomic uint8_t seen[MESSAGES];
	struct lab_end *a = lab_end(1), *b = large_receiver(MESSAGES);
	struct poster p = { a, lab_ah_to(a, b), b->qp->qp_num, 0, 0 };
	_Atomic unsigned left = MESSAGES;
	struct poller q[THREADS];
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		q[i] = (struct poller){ b->cq, &left, seen, 0, time(NULL) + LAB_SECONDS };
		start(&thread[i], poll_messages, &q[i]);
	}
	post_and_poll(&p);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(q[i].wrong, 0);
	}
	assert_int_equal(p.refused, 0);
	assert_int_equal(left, 0);
	for (unsigned i = 0; i < MESSAGES; i++)
		assert_int_equal(seen[i], 1);
}

/* ---- objects ---- */

struct maker {
	struct lab_end *e;
	unsigned number, failures;
	_Atomic unsigned *left; /* threads that are at it */
};

static void *make_objects(void *arg)
{
	struct maker *m = arg;
	union ibv_gid mgid = lab_mgid(m->number);
	char memory[256];

	for (int i = 0; i < 200; i++) {
		struct ibv_ah_attr attr = { .dlid = 1, .port_num = 1 };
		struct ibv_mr *mr = ibv_reg_mr(m->e->pd, memory, sizeof(memory), 0);
		struct ibv_ah *ah = ibv_create_ah(m->e->pd, &attr);
		struct ibv_cq *cq = ibv_create_cq(m->e->context, 16, NULL, NULL, 0);

		m->failures += ibv_attach_mcast(m->e->qp, &mgid, 0xC200) != 0;
		m->failures += ibv_detach_mcast(m->e->qp, &mgid, 0xC200) != 0;
		m->failures += !cq || ibv_destroy_cq(cq);
		m->failures += !ah || ibv_destroy_ah(ah);
		m->failures += !mr || ibv_dereg_mr(mr);
	}
	atomic_fetch_sub(m->left, 1);
	return NULL;
}

LAB_CASE(threads_make_objects_of_one_context)
{
	struct lab_end *e = lab_end(1);
	_Atomic unsigned left = THREADS;
	pthread_t thread[THREADS];
	struct maker m[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		m[i] = (struct maker){ e, i, 0, &left };
		start(&thread[i], make_objects, &m[i]);
	}
	while (atomic_load(&left)) /* this one polls meanwhile */
		lab_quiet(e->cq);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(m[i].failures, 0);
	}
	/* nothing holds the PD but the end's own QP and region */
	assert_int_equal(ibv_dealloc_pd(e->pd), EBUSY);
	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	lab_forget(e->qp);
	assert_int_equal(ibv_dereg_mr(e->mr), 0);
	lab_forget(e->mr);
	assert_int_equal(ibv_dealloc_pd(e->pd), 0);
	lab_forget(e->pd);
}

struct shared {
	struct lab_end *e;
	struct ibv_cq *cq;
	pthread_barrier_t begin;
	_Atomic unsigned failures;
};

#define QPS 8 /* of each thread */

/* Makes queue pairs as the other threads do, moves and destroys them. */
static void *make_qps(void *arg)
{
	struct shared *s = arg;
	struct ibv_qp_init_attr attr = init_of(IBV_QPT_UD, s->cq, 1, 1);
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };
	const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	struct ibv_qp *qp[QPS];

	pthread_barrier_wait(&s->begin);
	for (int i = 0; i < QPS; i++) {
		qp[i] = ibv_create_qp(s->e->pd, &attr);
		s->failures += !qp[i] || ibv_modify_qp(qp[i], &init, mask);
	}
	for (int i = 0; i < QPS; i++)
		s->failures += !qp[i] || ibv_destroy_qp(qp[i]);
	return NULL;
}

/* A queue that may overrun has arrivals counted: one of the threads sees to that while the others
 * make, change and destroy theirs. */
LAB_CASE(threads_make_qps_on_one_small_cq)
{
	struct shared s = { .e = lab_end(1) };
	pthread_t thread[THREADS];

	assert_int_equal(pthread_barrier_init(&s.begin, NULL, THREADS), 0);
	for (int round = 0; round < 200; round++) {
		assert_non_null(s.cq = ibv_create_cq(s.e->context, 1, NULL, NULL, 0));
		for (unsigned i = 0; i < THREADS; i++)
			start(&thread[i], make_qps, &s);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		assert_int_equal(ibv_destroy_cq(s.cq), 0);
	}
	assert_int_equal(s.failures, 0);
}

/* ---- ERR while others post ---- */

struct flood {
	struct lab_end *e;
	struct ibv_ah *ah;
	unsigned posted, refused;
};

static void *flood_until_full(void *arg)
{
	struct flood *f = arg;
	struct ibv_send_wr *bad;
	struct lab_request r;

	lab_request(f->e, &r, f->ah, f->e->qp->qp_num, NULL, 0);
	for (int i = 0; i < 1000; i++) {
		int ret = ibv_post_send(f->e->qp, &r.wr, &bad);

		f->posted += !ret;
		f->refused += ret && ret != ENOMEM;
	}
	return NULL;
}

LAB_CASE(what_is_posted_while_the_qp_fails_completes)
{
	struct lab_options o = { .cqe = 4096, .cap.max_send_wr = 4096 };
	struct lab_end *e = lab_end_with(&o);
	pthread_t thread[THREADS];
	struct flood f[THREADS];
	unsigned posted = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		f[i] = (struct flood){ e, lab_ah_to(e, e), 0, 0 };
		start(&thread[i], flood_until_full, &f[i]);
	}
	lab_to(e->qp, IBV_QPS_ERR);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(f[i].refused, 0);
		posted += f[i].posted;
	}
	for (bool flushed = false; posted--;) {
		struct ibv_wc wc;

		lab_poll(e->send_cq, 1, &wc);
		flushed |= wc.status == IBV_WC_WR_FLUSH_ERR;
		/* once it flushes it goes on flushing */
		assert_int_equal(wc.status, flushed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
	}
	lab_quiet(e->send_cq);
}

static void *sleep_until_told(void *arg)
{
	pthread_barrier_wait(arg);
	return NULL;
}

/* Its locks are taken, as there is a second thread; each of them is released. */
LAB_CASE(a_resized_cq_and_its_queues_can_be_used_on)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	pthread_barrier_t end;
	pthread_t thread;

	pthread_barrier_init(&end, NULL, 2);
	start(&thread, sleep_until_told, &end);
	lab_post(b, 2);
	for (int i = 0; i < 2; i++) {
		lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "before it is resized");
		assert_int_equal(ibv_resize_cq(b->cq, b->cq->cqe / 2), 0);
		assert_int_equal(ibv_resize_cq(a->send_cq, a->send_cq->cqe * 2), 0);
		lab_post(b, 1);
		lab_expect_text(b, "before it is resized");
		lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "behind that");
		lab_expect_text(b, "behind that");
	}
	pthread_barrier_wait(&end);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&end);
}
