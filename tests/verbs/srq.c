/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared receive queues: ibv_create_srq(3) and on. Two RC queue pairs on h2 share one; their peers
 * are on h1.
 *
 * umbel: --set exact_sizes=1
 * On RoCE, too.
 */
#include "lab.h"

#include "base/pause.h"
#include "attributes.h"

#define QPS     2
#define MAX_WR  16
#define MESSAGE 8192 /* bytes of a receive, in two entries */

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp[QPS];
	struct ibv_mr *mr;
	char *memory; /* MAX_WR messages */
};

struct fixture {
	struct side a, b;
	struct ibv_srq *srq;
};

static void undo_srq(void *srq)
{
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static struct ibv_srq *make_srq(struct ibv_pd *pd, uint32_t limit)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = MAX_WR, .max_sge = 2, .srq_limit = limit }
	};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	assert_non_null(srq);
	lab_undo(undo_srq, srq);
	return srq;
}

static struct ibv_qp *make_qp(const struct side *s, struct ibv_srq *srq, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.srq = srq,
		.qp_type = type,
		.cap = { .max_send_wr = MAX_WR, .max_send_sge = 1, .max_inline_data = 64 }
	};

	return lab_qp(s->pd, &init);
}

static void make_side(struct side *s, int host, int cqe)
{
	s->context = lab_open(host);
	s->pd = lab_pd(s->context);
	s->send_cq = lab_cq(s->context, QPS * MAX_WR, NULL);
	s->recv_cq = lab_cq(s->context, cqe, NULL);
	s->memory = calloc(MAX_WR, MESSAGE);
	lab_undo(free, s->memory);
	s->mr = lab_mr(s->pd, s->memory, (size_t)MAX_WR * MESSAGE);
}

/* @cqe: of the receives' completion queues. */
static void make_of(struct fixture *f, uint32_t limit, int cqe, enum ibv_qp_type type)
{
	make_side(&f->a, 1, cqe);
	make_side(&f->b, 2, cqe);
	f->srq = make_srq(f->b.pd, limit);
	for (int i = 0; i < QPS; i++) {
		f->a.qp[i] = make_qp(&f->a, NULL, type);
		f->b.qp[i] = make_qp(&f->b, f->srq, type);
		lab_connect(f->a.qp[i], f->b.qp[i]->qp_num, f->b.context, 0);
		lab_connect(f->b.qp[i], f->a.qp[i]->qp_num, f->a.context, 0);
	}
}

static void make_with(struct fixture *f, uint32_t limit, int cqe)
{
	make_of(f, limit, cqe, IBV_QPT_RC);
}

static void make(struct fixture *f, uint32_t limit)
{
	make_with(f, limit, QPS * MAX_WR);
}

/* Posts a receive in slot @i of the memory, in two entries. */
static int post(struct fixture *f, unsigned i)
{
	char *at = f->b.memory + (size_t)i * MESSAGE;
	struct ibv_sge sge[2] = {
		{ .addr = (uintptr_t)at, .length = 100, .lkey = f->b.mr->lkey },
		{ .addr = (uintptr_t)at + 100, .length = MESSAGE - 100, .lkey = f->b.mr->lkey }
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = sge, .num_sge = 2 }, *bad = NULL;
	int ret = ibv_post_srq_recv(f->srq, &wr, &bad);

	assert_ptr_equal(bad, ret ? &wr : NULL);
	return ret;
}

/* The same of so many bytes. */
static int post_short(struct fixture *f, unsigned i, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)f->b.memory + (size_t)i * MESSAGE, bytes, f->b.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(f->srq, &wr, &bad);
}

static void send_by(struct fixture *f, int qp, uint32_t bytes, char c)
{
	struct ibv_sge sge = { (uintptr_t)f->a.memory, bytes, f->a.mr->lkey };
	struct ibv_send_wr wr = request_of(&sge, IBV_WR_SEND, IBV_SEND_SIGNALED);
	struct ibv_send_wr *bad;

	memset(f->a.memory, c, bytes);
	assert_int_equal(ibv_post_send(f->a.qp[qp], &wr, &bad), 0);
}

/* A list of @n short messages, of which message i is of 10 + i bytes of 'a' + i. */
static void send_list(struct fixture *f, int qp, unsigned n)
{
	struct ibv_send_wr wr[MAX_WR], *bad;
	struct ibv_sge sge[MAX_WR];
	char data[MAX_WR][64];

	for (unsigned i = 0; i < n; i++) {
		memset(data[i], 'a' + (int)i, sizeof(data[i]));
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)data[i], .length = 10 + i };
		wr[i] = (struct ibv_send_wr){ .next = i + 1 < n ? &wr[i + 1] : NULL,
			                      .sg_list = &sge[i],
			                      .num_sge = 1,
			                      .opcode = IBV_WR_SEND,
			                      .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE };
	}
	assert_int_equal(ibv_post_send(f->a.qp[qp], wr, &bad), 0);
}

static struct ibv_wc poll_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	lab_poll(cq, 1, &wc);
	return wc;
}

static void expect_message(struct fixture *f, int qp, uint32_t bytes, char c)
{
	struct ibv_wc wc = poll_one(f->b.recv_cq);
	const char *at;

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.qp_num, f->b.qp[qp]->qp_num);
	assert_int_equal(wc.byte_len, bytes);
	assert_true(wc.wr_id < MAX_WR);
	at = f->b.memory + wc.wr_id * MESSAGE;
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(at[i], c);
}

LAB_CASE(queue_pairs_share_receives)
{
	static const uint32_t bytes[] = { 1, 64, 65, 100, 101, 4096, 4097, MESSAGE };
	struct fixture f;

	make(&f, 0);
	for (unsigned i = 0; i < LAB_ARRAY(bytes); i++)
		assert_int_equal(post(&f, i), 0);
	for (unsigned i = 0; i < LAB_ARRAY(bytes); i++) {
		send_by(&f, (int)i % QPS, bytes[i], (char)('a' + i));
		assert_int_equal(poll_one(f.a.send_cq).status, IBV_WC_SUCCESS);
		expect_message(&f, (int)i % QPS, bytes[i], (char)('a' + i));
	}
}

/* Several are carried out at once. */
LAB_CASE(each_message_of_a_list_takes_a_receive)
{
	struct fixture f;

	make(&f, 0);
	for (int round = 0; round < 4; round++) {
		const int qp = round % QPS;

		for (unsigned i = 0; i < MAX_WR; i++)
			assert_int_equal(post(&f, i), 0);
		send_list(&f, qp, MAX_WR);
		for (unsigned i = 0; i < MAX_WR; i++) {
			assert_int_equal(poll_one(f.a.send_cq).status, IBV_WC_SUCCESS);
			expect_message(&f, qp, 10 + i, (char)('a' + i));
		}
	}
}

/* A receive fails in the midst of a list: what comes behind gets lost, and takes none. */
LAB_CASE(a_queue_pair_that_fails_leaves_receives_to_others)
{
	struct fixture f;

	make_of(&f, 0, QPS * MAX_WR, IBV_QPT_UC);
	for (int i = 0; i < QPS; i++) {
		assert_int_equal(post(&f, 0), 0);
		send_list(&f, i, 1);
		assert_int_equal(poll_one(f.a.send_cq).status, IBV_WC_SUCCESS);
		expect_message(&f, i, 10, 'a');
	}
	for (unsigned i = 0; i < MAX_WR; i++)
		assert_int_equal(i == 4 ? post_short(&f, i, 5) : post(&f, i), 0);
	send_list(&f, 0, MAX_WR);
	for (unsigned i = 0; i < MAX_WR; i++)
		assert_int_equal(poll_one(f.a.send_cq).status, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 4; i++)
		expect_message(&f, 0, 10 + i, (char)('a' + i));
	assert_int_equal(poll_one(f.b.recv_cq).status, IBV_WC_LOC_LEN_ERR);
	send_list(&f, 1, MAX_WR - 5);
	for (unsigned i = 0; i < MAX_WR - 5; i++) {
		assert_int_equal(poll_one(f.a.send_cq).status, IBV_WC_SUCCESS);
		expect_message(&f, 1, 10 + i, (char)('a' + i));
	}
}

/* The region ends in the middle of the last receive. */
LAB_CASE(a_receive_may_reach_beyond_its_region)
{
	const uint32_t lengths[] = { 50, MESSAGE };
	struct fixture f;

	make(&f, 0);
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc;

		assert_int_equal(post_short(&f, MAX_WR - 1, MESSAGE + 44), 0);
		send_by(&f, i, lengths[i], (char)('a' + i));
		lab_complete(f.a.send_cq, IBV_WC_SUCCESS);
		wc = lab_complete(f.b.recv_cq, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, lengths[i]);
		assert_int_equal(f.b.memory[(size_t)(MAX_WR - 1) * MESSAGE + lengths[i] - 1],
		                 'a' + i);
	}
	assert_int_equal(post_short(&f, MAX_WR - 1, MESSAGE + 44), 0);
	send_by(&f, 0, MESSAGE + 1, 'c');
	lab_complete(f.a.send_cq, IBV_WC_REM_OP_ERR);
	lab_complete(f.b.recv_cq, IBV_WC_LOC_PROT_ERR);
}

LAB_CASE(a_send_waits_for_a_receive)
{
	struct fixture f;
	struct ibv_wc wc;

	make(&f, 0);
	for (int i = 0; i < QPS; i++)
		send_by(&f, i, 10, 'x');
	assert_int_equal(ibv_poll_cq(f.a.send_cq, 1, &wc), 0);
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(post(&f, i), 0);
	for (int i = 0; i < QPS; i++) {
		assert_int_equal(poll_one(f.a.send_cq).status, IBV_WC_SUCCESS);
		assert_int_equal(poll_one(f.b.recv_cq).status, IBV_WC_SUCCESS);
	}
}

LAB_CASE(there_is_room_for_max_wr_and_no_more)
{
	struct fixture f;

	make(&f, 0);
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned i = 0; i < MAX_WR; i++)
			assert_int_equal(post(&f, i), 0);
		assert_int_equal(post(&f, 0), ENOMEM);
		for (unsigned i = 0; i < MAX_WR; i++) {
			send_by(&f, (int)i % QPS, 1, 'r');
			assert_int_equal(poll_one(f.a.send_cq).status, IBV_WC_SUCCESS);
		}
		/* a receive is the queue's again when its completion is polled */
		assert_int_equal(post(&f, 0), ENOMEM);
		for (unsigned i = 0; i < MAX_WR; i++)
			assert_int_equal(poll_one(f.b.recv_cq).status, IBV_WC_SUCCESS);
	}
}

LAB_CASE(the_limit_event_fires_once)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	struct ibv_async_event event;
	struct fixture f;

	make(&f, 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(post(&f, i), 0);
	assert_int_equal(ibv_modify_srq(f.srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(f.srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 3);
	for (int i = 0; i < 3; i++)
		send_by(&f, 0, 1, 'l');
	event = lab_async_event(f.b.context, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, f.srq);
	assert_int_equal(ibv_query_srq(f.srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
}

LAB_CASE(a_queue_pair_in_error_tells_that_it_takes_no_more)
{
	struct ibv_async_event event;
	struct fixture f;

	make(&f, 0);
	lab_to(f.b.qp[0], IBV_QPS_ERR);
	event = lab_async_event(f.b.context, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, f.b.qp[0]);
	assert_int_equal(post(&f, 0), 0); /* for the other one */
	send_by(&f, 1, 5, 'o');
	expect_message(&f, 1, 5, 'o');
}

struct poller {
	struct ibv_cq *cq;
	atomic_bool ends;
};

static void *poll_nothing(void *arg)
{
	struct poller *p = arg;
	struct ibv_wc wc;
	int n = 0;

	while (!n && !atomic_load(&p->ends))
		n = ibv_poll_cq(p->cq, 1, &wc);
	return n ? p : NULL;
}

/* That it is in ERR is no error that somebody else has found, and told once. */
LAB_CASE(a_queue_pair_is_moved_to_error_while_a_thread_polls)
{
	struct pollfd p = { .events = POLLIN };
	struct poller poller = { 0 };
	struct fixture f;
	pthread_t thread;
	void *polled;

	make(&f, 0);
	poller.cq = f.b.recv_cq;
	assert_int_equal(pthread_create(&thread, NULL, poll_nothing, &poller), 0);
	for (int i = 0; i < 100; i++) {
		lab_to(f.b.qp[0], IBV_QPS_ERR);
		lab_async_event(f.b.context, IBV_EVENT_QP_LAST_WQE_REACHED);
		lab_to(f.b.qp[0], IBV_QPS_RESET);
		lab_connect(f.b.qp[0], f.a.qp[0]->qp_num, f.a.context, 0);
	}
	atomic_store(&poller.ends, true);
	assert_int_equal(pthread_join(thread, &polled), 0);
	assert_null(polled);
	p.fd = f.b.context->async_fd;
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(post(&f, 0), 0);
	send_by(&f, 0, 5, 'e');
	expect_message(&f, 0, 5, 'e');
}

LAB_CASE(receives_of_unread_messages_come_back)
{
	struct fixture f;

	make(&f, 0);
	for (unsigned i = 0; i < MAX_WR; i++)
		assert_int_equal(post(&f, i), 0);
	for (unsigned i = 0; i < MAX_WR; i++)
		send_by(&f, 0, 1, 'u');
	lab_to(f.b.qp[0], IBV_QPS_RESET);
	for (unsigned i = 0; i < MAX_WR; i++)
		assert_int_equal(post(&f, i), 0);
}

LAB_CASE(datagrams_take_receives_of_it_too)
{
	struct lab_end *from = lab_end(1), *to = lab_end(2);
	struct ibv_srq *srq = make_srq(to->pd, 0);
	struct ibv_qp_init_attr init = { .send_cq = to->send_cq,
		                         .recv_cq = to->cq,
		                         .srq = srq,
		                         .qp_type = IBV_QPT_UD,
		                         .cap = { .max_send_wr = 1 } };
	struct ibv_qp *qp[QPS];
	struct ibv_ah *ah = lab_ah_to(from, to);
	struct ibv_recv_wr *bad;

	for (int i = 0; i < QPS; i++) {
		qp[i] = lab_qp(to->pd, &init);
		lab_start(qp[i], LAB_QKEY);
	}
	for (uint64_t i = 0; i < 2; i++) {
		struct ibv_sge sge = { (uintptr_t)to->slot + i * LAB_SLOT, LAB_SLOT, to->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };

		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	}
	for (int i = 0; i < 3; i++) /* the last one finds no receive */
		lab_send_text(from, ah, qp[i % QPS]->qp_num, "datagram");
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = lab_complete(to->cq, IBV_WC_SUCCESS);

		assert_int_equal(wc.byte_len, LAB_GRH + strlen("datagram"));
		assert_memory_equal(to->slot + wc.wr_id * LAB_SLOT + LAB_GRH, "datagram",
		                    strlen("datagram"));
	}
	lab_quiet(to->cq);
}

/* ---- size ---- */

static void never_retry(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .rnr_retry = 0 };

	lab_to(qp, IBV_QPS_SQD);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_RNR_RETRY), 0);
	lab_to(qp, IBV_QPS_RTS);
}

static int resize(struct fixture *f, uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return ibv_modify_srq(f->srq, &attr, IBV_SRQ_MAX_WR);
}

static void expect_size(struct fixture *f, uint32_t max_wr)
{
	struct ibv_srq_attr attr;

	assert_int_equal(ibv_query_srq(f->srq, &attr), 0);
	assert_int_equal(attr.max_wr, max_wr);
	assert_int_equal(attr.max_sge, 2);
}

/* Sends by both queue pairs in turn, and takes what arrives. */
static void expect_receives(struct fixture *f, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		send_by(f, (int)i % QPS, 1 + i, (char)i);
		assert_int_equal(poll_one(f->a.send_cq).status, IBV_WC_SUCCESS);
		expect_message(f, (int)i % QPS, 1 + i, (char)i);
	}
}

/* Receives that were posted before stay, in slots of the memory that may be used twice. */
LAB_CASE(a_queue_grows_with_its_receives)
{
	static const uint32_t sizes[] = { MAX_WR + 1, 100, 101, 1000 };
	struct fixture f;
	unsigned n = 0;

	make(&f, 0);
	for (; n < MAX_WR; n++)
		assert_int_equal(post(&f, n), 0);
	expect_receives(&f, 5);
	n -= 5;
	for (unsigned i = 0; i < LAB_ARRAY(sizes); i++) {
		assert_int_equal(resize(&f, sizes[i]), 0);
		expect_size(&f, sizes[i]);
		for (; n < sizes[i]; n++)
			assert_int_equal(post(&f, n % MAX_WR), 0);
		assert_int_equal(post(&f, 0), ENOMEM);
		expect_receives(&f, 10);
		n -= 10;
	}
	expect_receives(&f, n);
	send_by(&f, 0, 10, 'w'); /* none is left: it waits, and is helped by the new ring */
	assert_int_equal(ibv_poll_cq(f.a.send_cq, 1, &(struct ibv_wc){ 0 }), 0);
	assert_int_equal(post(&f, 3), 0);
	assert_int_equal(poll_one(f.a.send_cq).status, IBV_WC_SUCCESS);
	expect_message(&f, 0, 10, 'w');
}

static void undo_qp(void *qp)
{
	ibv_destroy_qp(qp);
}

/* Queue pairs that no memory is left for, but for some small rings. */
static void use_up_memory(struct fixture *f)
{
	struct ibv_qp_init_attr init = {
		.send_cq = f->b.send_cq,
		.recv_cq = f->b.recv_cq,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	struct ibv_device_attr limits;
	struct ibv_qp *qp;

	assert_int_equal(ibv_query_device(f->b.context, &limits), 0);
	init.cap.max_recv_wr = (uint32_t)limits.max_qp_wr;
	while ((qp = ibv_create_qp(f->b.pd, &init)))
		lab_undo(undo_qp, qp);
	assert_int_equal(errno, ENOMEM);
}

/* The queue is as it was, and a sender that finds no receive hears of that. */
LAB_CASE(a_queue_that_cannot_grow_stays)
{
	struct ibv_device_attr limits;
	struct fixture f;

	make(&f, 0);
	assert_int_equal(ibv_query_device(f.b.context, &limits), 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(post(&f, i), 0);
	never_retry(f.a.qp[0]);
	use_up_memory(&f);
	assert_int_equal(resize(&f, (uint32_t)limits.max_srq_wr), ENOMEM);
	expect_size(&f, MAX_WR);
	expect_receives(&f, 5);
	send_by(&f, 0, 10, 'w');
	assert_int_equal(poll_one(f.a.send_cq).status, IBV_WC_RNR_RETRY_EXC_ERR);
}

LAB_CASE(a_queue_shrinks_to_what_is_posted)
{
	struct fixture f;

	make(&f, 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(post(&f, i), 0);
	assert_int_equal(resize(&f, 4), EINVAL);
	expect_size(&f, MAX_WR);
	assert_int_equal(resize(&f, 5), 0);
	expect_size(&f, 5);
	assert_int_equal(post(&f, 5), ENOMEM);
	expect_receives(&f, 3);
	assert_int_equal(resize(&f, 2), 0);
	assert_int_equal(post(&f, 5), ENOMEM);
	assert_int_equal(resize(&f, 0), EINVAL);
	assert_int_equal(resize(&f, MAX_WR), 0);
	for (unsigned i = 2; i < MAX_WR; i++)
		assert_int_equal(post(&f, i), 0);
	assert_int_equal(post(&f, 0), ENOMEM);
	expect_receives(&f, MAX_WR);
}

LAB_CASE(messages_that_are_not_polled_keep_their_receives)
{
	struct fixture f;

	make(&f, 0);
	for (unsigned i = 0; i < MAX_WR; i++)
		assert_int_equal(post(&f, i), 0);
	for (int i = 0; i < 4; i++)
		send_by(&f, i % QPS, 5000, (char)('p' + i));
	assert_int_equal(resize(&f, 4 * MAX_WR), 0);
	for (int i = 0; i < 4; i += QPS)
		expect_message(&f, 0, 5000, (char)('p' + i));
	/* those of the second one are the program's again */
	lab_to(f.b.qp[1], IBV_QPS_RESET);
	for (unsigned i = 0; i < 3 * MAX_WR + 4; i++)
		assert_int_equal(post(&f, i % MAX_WR), 0);
	assert_int_equal(post(&f, 0), ENOMEM);
	for (int i = 0; i < 4; i++)
		assert_int_equal(poll_one(f.a.send_cq).status, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 4 * MAX_WR; i++) {
		send_by(&f, 0, 8, 'q');
		assert_int_equal(poll_one(f.a.send_cq).status, IBV_WC_SUCCESS);
		expect_message(&f, 0, 8, 'q');
	}
}

LAB_CASE(the_limit_goes_along)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	struct fixture f;

	make(&f, 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(post(&f, i), 0);
	/* other bits of the mask mean nothing, as in Linux */
	assert_int_equal(ibv_modify_srq(f.srq, &attr, IBV_SRQ_LIMIT | 1 << 5), 0);
	assert_int_equal(resize(&f, 100), 0);
	assert_int_equal(ibv_query_srq(f.srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 3);
	expect_receives(&f, 2);
	lab_async_event(f.b.context, IBV_EVENT_SRQ_LIMIT_REACHED);
	/* both at once; the limit must fit the new size */
	attr = (struct ibv_srq_attr){ .max_wr = 300, .srq_limit = 200 };
	assert_int_equal(ibv_modify_srq(f.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	lab_async_event(f.b.context, IBV_EVENT_SRQ_LIMIT_REACHED);
	attr.srq_limit = 301;
	assert_int_equal(ibv_modify_srq(f.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	expect_size(&f, 300);
}

#define MANY 400

static _Atomic unsigned n_received;
static _Atomic bool has_failed;

/* A queue pair has room for as many messages that nobody has polled as its queue had receives when
 * it was made. */
static void *send_many(void *o)
{
	struct fixture *f = o;

	for (unsigned i = 0; i < MANY && !has_failed; i++) {
		struct base_pause pause = { 0 };

		while (i - n_received >= MAX_WR)
			base_pause(&pause);
		send_by(f, 0, 8, 'm');
		has_failed = poll_one(f->a.send_cq).status != IBV_WC_SUCCESS;
	}
	return NULL;
}

/* A requester that does not try again sees no moment without receives. */
LAB_CASE(who_sends_meanwhile_does_not_notice)
{
	struct fixture f;
	struct ibv_wc wc;
	pthread_t thread;

	n_received = 0;
	has_failed = false;
	make(&f, 0);
	never_retry(f.a.qp[0]);
	assert_int_equal(resize(&f, MANY), 0);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(post(&f, i % MAX_WR), 0);
	assert_int_equal(pthread_create(&thread, NULL, send_many, &f), 0);
	for (unsigned size = 2 * MANY; n_received < MANY && !has_failed;) {
		if (ibv_poll_cq(f.b.recv_cq, 1, &wc) == 1)
			n_received++;
		if (n_received > 20 && size < 16000 && !resize(&f, size))
			size *= 2;
	}
	pthread_join(thread, NULL);
	assert_false(has_failed);
}

/* One that fails has the completion queue look after all of them, those without a shared queue,
 * too. */
LAB_CASE(a_cq_may_have_queue_pairs_with_and_without_a_shared_queue)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		                         .cap = { .max_send_wr = 1,
		                                  .max_recv_wr = 1,
		                                  .max_send_sge = 1,
		                                  .max_recv_sge = 1,
		                                  .max_inline_data = 64 } };
	struct ibv_recv_wr receive = { .wr_id = 99, .num_sge = 1 }, *bad;
	struct ibv_sge sge = { .length = MESSAGE };
	struct ibv_qp *plain, *peer;
	struct fixture f;
	struct ibv_wc wc;

	make(&f, 0);
	init.send_cq = f.b.send_cq;
	init.recv_cq = f.b.recv_cq; /* behind those that share a queue */
	plain = lab_qp(f.b.pd, &init);
	peer = make_qp(&f.a, NULL, IBV_QPT_RC);
	lab_connect(peer, plain->qp_num, f.b.context, 0);
	lab_connect(plain, peer->qp_num, f.a.context, 0);
	sge.addr = (uintptr_t)f.b.memory;
	sge.lkey = f.b.mr->lkey;
	receive.sg_list = &sge;
	assert_int_equal(ibv_post_recv(plain, &receive, &bad), 0);
	assert_int_equal(post_short(&f, 1, 10), 0);
	send_by(&f, 0, 100, 'x'); /* is too long */
	assert_int_equal(poll_one(f.b.recv_cq).status, IBV_WC_LOC_LEN_ERR);
	f.a.qp[1] = peer;
	send_by(&f, 1, 100, 'y');
	wc = poll_one(f.b.recv_cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 99);
	assert_int_equal(wc.qp_num, plain->qp_num);
}

LAB_CASE(bad_input_is_refused)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1u << 30, .max_sge = 1 } };
	struct ibv_srq_attr attr = { .srq_limit = MAX_WR + 1 };
	struct ibv_recv_wr wr = { .num_sge = 3 }, *bad;
	struct fixture f;

	make(&f, 0);
	assert_null(ibv_create_srq(f.b.pd, &init));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_modify_srq(f.srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(ibv_modify_srq(f.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(resize(&f, 1u << 30), EINVAL);
	assert_int_equal(ibv_post_srq_recv(f.srq, &wr, &bad), EINVAL);
	wr.num_sge = 0;
	assert_int_equal(ibv_post_recv(f.b.qp[0], &wr, &bad), EINVAL);
	assert_int_equal(ibv_destroy_srq(f.srq), EBUSY);
}

LAB_CASE(the_queue_of_another_device_is_refused)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		                         .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
	struct side a = { 0 };
	struct fixture f;

	make(&f, 0);
	make_side(&a, 2, 1); /* opened once more */
	init.srq = f.srq;
	init.send_cq = init.recv_cq = f.a.send_cq;
	assert_null(ibv_create_qp(f.a.pd, &init));
	assert_int_equal(errno, EINVAL);
	init.send_cq = init.recv_cq = a.send_cq;
	assert_null(ibv_create_qp(a.pd, &init));
	assert_int_equal(errno, EINVAL);
}

/* ibv_create_srq(3) and ibv_create_qp(3) say that they are ignored. */
LAB_CASE(ignored_attributes_may_be_anything)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = MAX_WR, .max_sge = 1, .srq_limit = UINT32_MAX }
	};
	struct ibv_srq_attr attr;
	struct ibv_qp_init_attr junk = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = UINT32_MAX, .max_recv_sge = UINT32_MAX }
	};
	struct ibv_srq *srq;
	struct side s;

	make_side(&s, 1, MAX_WR);
	assert_non_null(srq = ibv_create_srq(s.pd, &init));
	lab_undo(undo_srq, srq);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	junk.send_cq = junk.recv_cq = s.recv_cq;
	junk.srq = srq;
	lab_qp(s.pd, &junk);
	junk.qp_type = IBV_QPT_UD;
	lab_qp(s.pd, &junk);
	junk.srq = NULL;
	assert_null(ibv_create_qp(s.pd, &junk));
	assert_int_equal(errno, EINVAL);
}

/* ---- its completion queue ---- */

/* Messages that are not polled. */
static void send_unread(struct fixture *f, int n)
{
	for (int i = 0; i < n; i++) {
		send_by(f, i % QPS, 10, 'x');
		assert_int_equal(poll_one(f->a.send_cq).status, IBV_WC_SUCCESS);
	}
}

static void expect_overrun(struct fixture *f)
{
	struct ibv_wc wc;

	assert_ptr_equal(lab_async_event(f->b.context, IBV_EVENT_CQ_ERR).element.cq, f->b.recv_cq);
	assert_true(ibv_poll_cq(f->b.recv_cq, 1, &wc) < 0);
}

LAB_CASE(too_many_messages_unpolled_kill_the_cq)
{
	struct fixture f;

	make_with(&f, 0, MAX_WR / 4);
	for (unsigned i = 0; i < MAX_WR; i++)
		assert_int_equal(post(&f, i), 0);
	send_unread(&f, MAX_WR / 4 + 1);
	expect_overrun(&f);
}

/* However many queue pairs share the receives, each receive completes once. */
LAB_CASE(a_cq_with_room_for_all_receives_is_never_overrun)
{
	struct fixture f;

	make_with(&f, 0, MAX_WR);
	for (int round = 0; round < 5; round++) {
		for (unsigned i = 0; i < MAX_WR; i++)
			assert_int_equal(post(&f, i), 0);
		send_unread(&f, MAX_WR);
		for (int i = 0; i < MAX_WR; i++)
			assert_int_equal(poll_one(f.b.recv_cq).status, IBV_WC_SUCCESS);
	}
}

LAB_CASE(a_queue_that_has_grown_may_overrun_its_cq)
{
	struct ibv_srq_attr larger = { .max_wr = 2 * MAX_WR };
	struct fixture f;

	make_with(&f, 0, MAX_WR);
	assert_int_equal(ibv_modify_srq(f.srq, &larger, IBV_SRQ_MAX_WR), 0);
	for (unsigned i = 0; i < 2 * MAX_WR; i++)
		assert_int_equal(post(&f, i % MAX_WR), 0);
	send_unread(&f, MAX_WR + 1);
	expect_overrun(&f);
}

/* Messages that a queue pair had received take no room when it is gone, or was reset. */
LAB_CASE(unread_messages_that_are_gone_do_not_overrun)
{
	struct fixture f;

	make_with(&f, 0, MAX_WR / 2);
	for (unsigned i = 0; i < MAX_WR; i++)
		assert_int_equal(post(&f, i), 0);
	send_unread(&f, MAX_WR / 2);
	assert_int_equal(ibv_destroy_qp(f.b.qp[0]), 0);
	lab_forget(f.b.qp[0]);
	for (int i = 0; i < MAX_WR / 4; i++)
		send_by(&f, 1, 10, 'x');
	for (int i = 0; i < MAX_WR / 2; i++)
		assert_int_equal(poll_one(f.b.recv_cq).qp_num, f.b.qp[1]->qp_num);
}
