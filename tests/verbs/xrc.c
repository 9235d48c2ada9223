/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XRC: domains, shared receive queues, targets, and requesters that send to them. Requesters are on
 * h1, targets on h2, where another process may share them.
 * On RoCE, too.
 */
#include "xrc_lab.h"

#define BYTES XRC_LAB_BYTES
#define SRQS  2

struct fixture {
	/* h1 */
	struct ibv_context *from;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *sender;
	struct ibv_mr *mr;
	char *memory;
	/* h2 */
	struct ibv_context *to;
	struct ibv_xrcd *xrcd;
	struct xrc_lab_queue queue[SRQS];
	struct ibv_qp *target;
};

static void make(struct fixture *f, int fd)
{
	f->from = lab_open(1);
	f->pd = lab_pd(f->from);
	f->cq = lab_cq(f->from, 64, NULL);
	f->memory = xrc_lab_memory(f->pd, &f->mr);
	f->sender = xrc_lab_sender(f->pd, f->cq);
	f->to = lab_open(2);
	f->xrcd = xrc_lab_domain(f->to, fd);
	for (int i = 0; i < SRQS; i++)
		xrc_lab_queue(&f->queue[i], f->to, f->xrcd);
	f->target = xrc_lab_target(f->to, f->xrcd);
	xrc_lab_connect(f->target, f->sender->qp_num, f->from);
	xrc_lab_connect(f->sender, f->target->qp_num, f->to);
}

static void post(struct fixture *f, enum ibv_wr_opcode opcode, uint32_t srqn, uint32_t length,
                 const struct xrc_lab_queue *remote)
{
	struct ibv_sge sge = { (uintptr_t)f->memory, length, f->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 3,
		                  .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = opcode,
		                  .imm_data = 77,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .qp_type.xrc.remote_srqn = srqn },
	                   *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote->memory;
		wr.wr.atomic.rkey = remote->mr->rkey;
		wr.wr.atomic.compare_add = 1;
	} else if (remote) {
		wr.wr.rdma.remote_addr = (uintptr_t)remote->memory;
		wr.wr.rdma.rkey = remote->mr->rkey;
	}
	assert_int_equal(ibv_post_send(f->sender, &wr, &bad), 0);
}

static void fill(char *memory, uint32_t length, char seed)
{
	for (uint32_t i = 0; i < length; i++)
		memory[i] = (char)(seed + (char)(i % 101));
}

static void expect_filled(const char *memory, uint32_t length, char seed)
{
	for (uint32_t i = 0; i < length; i++)
		if (memory[i] != (char)(seed + (char)(i % 101)))
			fail_msg("byte %u of %u differs", i, length);
}

/* The message that queue @q receives next, by the target. */
static struct ibv_wc expect_received(struct fixture *f, struct xrc_lab_queue *q, uint64_t wr_id,
                                     uint32_t length)
{
	struct ibv_wc wc = lab_complete(q->cq, IBV_WC_SUCCESS);

	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.byte_len, length);
	assert_int_equal(wc.qp_num, f->target->qp_num);
	return wc;
}

/* ---- domains ---- */

LAB_CASE(a_file_stands_for_a_domain)
{
	char name[] = "/tmp/umbel-xrc-XXXXXX";
	int fd = mkstemp(name), other = open(name, O_RDONLY);
	struct ibv_context *context = lab_open(2);
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1 };
	struct ibv_xrcd *own;

	unlink(name);
	assert_true(fd >= 0 && other >= 0);
	assert_null(xrc_lab_open(context, fd, 0));
	assert_int_equal(errno, EAGAIN);
	xrc_lab_domain(context, fd);
	xrc_lab_domain(context, other);
	assert_null(xrc_lab_open(context, fd, O_CREAT | O_EXCL));
	assert_int_equal(errno, EINVAL);
	assert_non_null(xrc_lab_open(lab_open(1), fd, O_CREAT | O_EXCL)); /* another device's */
	close(fd);
	close(other);
	assert_null(xrc_lab_open(context, fd, O_CREAT));
	assert_int_equal(errno, EBADF);
	own = xrc_lab_open(context, -1, O_CREAT | O_RDWR); /* the kernel looks at two flags only */
	assert_non_null(own);
	assert_int_equal(ibv_close_xrcd(own), 0);
	assert_null(ibv_open_xrcd(context, &init));
	assert_int_equal(errno, EINVAL);
}

LAB_CASE(a_domain_in_use_is_busy)
{
	struct fixture f;

	make(&f, -1);
	assert_int_equal(ibv_close_xrcd(f.xrcd), EBUSY);
	assert_int_equal(ibv_destroy_cq(f.queue[0].cq), EBUSY);
}

LAB_CASE(incomplete_objects_are_refused)
{
	struct ibv_srq_init_attr_ex srq = { .attr = { .max_wr = XRC_LAB_WR, .max_sge = 1 },
		                            .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
		                                         IBV_SRQ_INIT_ATTR_PD |
		                                         IBV_SRQ_INIT_ATTR_XRCD,
		                            .srq_type = IBV_SRQT_XRC };
	struct ibv_qp_init_attr_ex target = { .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
		                                      IBV_QP_OPEN_ATTR_TYPE,
		                         .qp_type = IBV_QPT_XRC_RECV };
	struct fixture f;

	make(&f, -1);
	srq.pd = f.queue[0].pd;
	srq.xrcd = open.xrcd = f.xrcd;
	errno = 0;
	assert_null(ibv_create_srq_ex(f.to, &srq));
	assert_int_equal(errno, EINVAL);
	srq.srq_type = (enum ibv_srq_type)(IBV_SRQT_TM + 1);
	errno = 0;
	assert_null(ibv_create_srq_ex(f.to, &srq));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(ibv_create_qp_ex(f.to, &target));
	assert_int_equal(errno, EINVAL);
	open.qp_num = f.sender->qp_num;
	errno = 0;
	assert_null(ibv_open_qp(f.to, &open));
	assert_int_equal(errno, EINVAL);
	open.qp_num = f.target->qp_num;
	open.xrcd = xrc_lab_domain(f.to, -1); /* of another domain */
	assert_null(ibv_open_qp(f.to, &open));
	assert_int_equal(errno, EINVAL);
}

/* Whatever else they lack; as libibverbs says it. */
LAB_CASE(what_newer_programs_may_ask_for_is_not_supported)
{
	struct ibv_xrcd_init_attr domain = { .comp_mask = IBV_XRCD_INIT_ATTR_RESERVED };
	struct ibv_srq_init_attr_ex srq = { .attr = { .max_wr = XRC_LAB_WR, .max_sge = 1 },
		                            .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
		                                         IBV_SRQ_INIT_ATTR_RESERVED,
		                            .srq_type = IBV_SRQT_XRC };
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_RESERVED };
	struct fixture f;

	make(&f, -1);
	for (int whole = 0; whole < 2; whole++) {
		errno = 0;
		assert_null(ibv_open_xrcd(f.to, &domain));
		assert_int_equal(errno, EOPNOTSUPP);
		errno = 0;
		assert_null(ibv_create_srq_ex(f.to, &srq));
		assert_int_equal(errno, EOPNOTSUPP);
		errno = 0;
		assert_null(ibv_open_qp(f.to, &open));
		assert_int_equal(errno, EOPNOTSUPP);
		domain = (struct ibv_xrcd_init_attr){ .comp_mask = domain.comp_mask |
			                                           IBV_XRCD_INIT_ATTR_FD |
			                                           IBV_XRCD_INIT_ATTR_OFLAGS,
			                              .fd = -1,
			                              .oflags = O_CREAT };
		srq.comp_mask |=
		        IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		srq.pd = f.queue[0].pd;
		srq.cq = f.queue[0].cq;
		srq.xrcd = open.xrcd = f.xrcd;
		open.comp_mask |=
		        IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
		open.qp_type = IBV_QPT_XRC_RECV;
		open.qp_num = f.target->qp_num;
	}
}

/* ---- requests ---- */

LAB_CASE(each_request_names_its_queue)
{
	static const uint32_t sizes[] = { 0, 1, 64, 65, 4096, 4097, BYTES };
	struct fixture f;
	struct ibv_wc wc;

	make(&f, -1);
	for (unsigned i = 0; i < 2 * LAB_ARRAY(sizes); i++) {
		struct xrc_lab_queue *q = &f.queue[i % 2];
		uint32_t n = sizes[i / 2];

		fill(f.memory, n, (char)i);
		assert_int_equal(xrc_lab_receive(q, i, BYTES), 0);
		post(&f, i % 4 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, q->number, n, NULL);
		lab_complete(f.cq, IBV_WC_SUCCESS);
		wc = expect_received(&f, q, i, n);
		assert_int_equal(wc.wc_flags, i % 4 ? 0 : IBV_WC_WITH_IMM);
		expect_filled(q->memory, n, (char)i);
	}
}

LAB_CASE(a_message_waits_for_a_receive)
{
	struct fixture f;

	make(&f, -1);
	fill(f.memory, 5000, 9);
	post(&f, IBV_WR_SEND, f.queue[1].number, 5000, NULL);
	post(&f, IBV_WR_SEND, f.queue[0].number, 8, NULL);
	assert_int_equal(xrc_lab_receive(&f.queue[0], 1, 100), 0);
	lab_quiet(f.cq);
	assert_int_equal(xrc_lab_receive(&f.queue[1], 2, 5000), 0);
	lab_complete(f.cq, IBV_WC_SUCCESS);
	lab_complete(f.cq, IBV_WC_SUCCESS);
	expect_received(&f, &f.queue[1], 2, 5000);
	expect_received(&f, &f.queue[0], 1, 8);
	expect_filled(f.queue[1].memory, 5000, 9);
}

/* The requester sleeps on the queue of its completions, or on another one; nobody polls for it. */
LAB_CASE(a_requester_that_sleeps_goes_on)
{
	for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
		struct fixture f;
		struct ibv_comp_channel *channel;
		struct ibv_cq *cq, *of_sends;
		void *context;

		make(&f, -1);
		channel = lab_channel(f.from);
		cq = lab_cq(f.from, 16, channel);
		of_sends = elsewhere ? f.cq : cq;
		f.sender = xrc_lab_sender(f.pd, of_sends);
		f.target = xrc_lab_target(f.to, f.xrcd);
		xrc_lab_connect(f.target, f.sender->qp_num, f.from);
		xrc_lab_connect(f.sender, f.target->qp_num, f.to);
		post(&f, IBV_WR_SEND, f.queue[0].number, 8, NULL);
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		lab_quiet(cq);
		assert_int_equal(xrc_lab_receive(&f.queue[0], 1, 100), 0);
		do {
			lab_await(channel->fd);
			assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
			ibv_ack_cq_events(cq, 1);
			assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		} while (!ibv_poll_cq(f.queue[0].cq, 1, &(struct ibv_wc){ 0 }));
		lab_complete(of_sends, IBV_WC_SUCCESS);
		lab_clean_up(NULL);
	}
}

/* Each receive has entries of its own in the queue, which has as many for it as it was made with.
 */
LAB_CASE(a_receive_may_have_two_entries)
{
	struct fixture f;

	make(&f, -1);
	for (unsigned i = 0; i < 3; i++) {
		struct xrc_lab_queue *q = &f.queue[0];
		char *first = q->memory + 100 * i, *second = q->memory + 1000 + 100 * i;
		struct ibv_sge sge[] = {
			{ .addr = (uintptr_t)first, .length = 10, .lkey = q->mr->lkey },
			{ .addr = (uintptr_t)second, .length = 90, .lkey = q->mr->lkey }
		};
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = sge, .num_sge = 2 }, *bad;

		fill(f.memory, 100, (char)i);
		assert_int_equal(ibv_post_srq_recv(q->srq, &wr, &bad), 0);
		post(&f, IBV_WR_SEND, q->number, 100, NULL);
		lab_complete(f.cq, IBV_WC_SUCCESS);
		assert_int_equal(lab_complete(q->cq, IBV_WC_SUCCESS).byte_len, 100);
		assert_memory_equal(first, f.memory, 10);
		assert_memory_equal(second, f.memory + 10, 90);
	}
}

/* It does not poll for completions before it has its answer. */
LAB_CASE(a_requester_that_polls_for_an_answer_goes_on)
{
	struct fixture f;
	struct ibv_cq *answers;

	make(&f, -1);
	answers = lab_cq(f.from, 16, NULL);
	post(&f, IBV_WR_SEND, f.queue[0].number, 8, NULL);
	assert_int_equal(xrc_lab_receive(&f.queue[0], 1, 100), 0);
	lab_quiet(answers);
	assert_int_equal(ibv_poll_cq(f.queue[0].cq, 1, &(struct ibv_wc){ 0 }), 1);
}

LAB_CASE(memory_is_that_of_the_queues_domain)
{
	struct fixture f;
	uint64_t word = 41;

	make(&f, -1);
	fill(f.memory, BYTES, 1);
	post(&f, IBV_WR_RDMA_WRITE, f.queue[0].number, BYTES, &f.queue[0]);
	lab_complete(f.cq, IBV_WC_SUCCESS);
	expect_filled(f.queue[0].memory, BYTES, 1);
	fill(f.queue[1].memory, BYTES, 2);
	post(&f, IBV_WR_RDMA_READ, f.queue[1].number, BYTES, &f.queue[1]);
	lab_complete(f.cq, IBV_WC_SUCCESS);
	expect_filled(f.memory, BYTES, 2);
	memcpy(f.queue[1].memory, &word, sizeof(word));
	post(&f, IBV_WR_ATOMIC_FETCH_AND_ADD, f.queue[1].number, 8, &f.queue[1]);
	lab_complete(f.cq, IBV_WC_SUCCESS);
	memcpy(&word, f.queue[1].memory, sizeof(word));
	assert_int_equal(word, 42);
	post(&f, IBV_WR_RDMA_WRITE, f.queue[1].number, 8, &f.queue[0]);
	lab_complete(f.cq, IBV_WC_REM_ACCESS_ERR);
	lab_async_event(f.to, IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(lab_state(f.target), IBV_QPS_ERR);
}

LAB_CASE(a_queue_that_is_not_there_is_an_invalid_request)
{
	struct fixture f;
	struct xrc_lab_queue other;

	make(&f, -1);
	xrc_lab_queue(&other, f.to, xrc_lab_domain(f.to, -1)); /* of another domain */
	assert_int_equal(xrc_lab_receive(&other, 1, BYTES), 0);
	post(&f, IBV_WR_SEND, other.number, 8, NULL);
	lab_complete(f.cq, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(lab_state(f.sender), IBV_QPS_ERR);
	lab_async_event(f.to, IBV_EVENT_QP_REQ_ERR);
	assert_int_equal(lab_state(f.target), IBV_QPS_ERR);
	lab_quiet(other.cq);
}

/* As over RC: where the two differ, a message is one packet for both, or none that is taken. */
LAB_CASE(packets_of_another_size_are_no_request)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
		                                      IBV_WR_RDMA_READ };

	for (unsigned i = 0; i < 2 * LAB_ARRAY(opcodes); i++) {
		const enum ibv_wr_opcode op = opcodes[i / 2];
		struct xrc_lab_queue *q;
		struct fixture f;

		make(&f, -1);
		q = &f.queue[0];
		lab_to(f.sender, IBV_QPS_RESET);
		lab_to(f.target, IBV_QPS_RESET);
		lab_connect_mtu(f.target, f.sender->qp_num, f.from, XRC_LAB_ACCESS,
		                i % 2 ? IBV_MTU_256 : IBV_MTU_4096);
		lab_connect_mtu(f.sender, f.target->qp_num, f.to, XRC_LAB_ACCESS,
		                i % 2 ? IBV_MTU_4096 : IBV_MTU_256);
		assert_int_equal(xrc_lab_receive(q, 1, BYTES), 0);
		assert_int_equal(xrc_lab_receive(q, 2, BYTES), 0);
		post(&f, op, q->number, 256, q);
		lab_complete(f.cq, IBV_WC_SUCCESS);
		post(&f, op, q->number, 257, q);
		lab_complete(f.cq,
		             op == IBV_WR_RDMA_READ ? IBV_WC_BAD_RESP_ERR : IBV_WC_REM_INV_REQ_ERR);
		assert_int_equal(lab_state(f.sender), IBV_QPS_ERR);
		if (op == IBV_WR_SEND)
			expect_received(&f, q, 1, 256);
		if (op == IBV_WR_RDMA_READ)
			continue;
		lab_async_event(f.to, IBV_EVENT_QP_REQ_ERR);
		assert_int_equal(lab_state(f.target), IBV_QPS_ERR);
		lab_quiet(q->cq);
	}
}

/* The target and its requester fail, others that use the queue do not notice. */
LAB_CASE(a_receive_that_is_too_small_fails_one_target)
{
	struct fixture f;
	struct ibv_wc wc;

	make(&f, -1);
	assert_int_equal(xrc_lab_receive(&f.queue[0], 1, 10), 0);
	assert_int_equal(xrc_lab_receive(&f.queue[0], 2, 100), 0);
	post(&f, IBV_WR_SEND, f.queue[0].number, 11, NULL);
	lab_complete(f.cq, IBV_WC_REM_INV_REQ_ERR);
	wc = lab_complete(f.queue[0].cq, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.qp_num, f.target->qp_num);
	assert_int_equal(lab_state(f.target), IBV_QPS_ERR);
	f.sender = xrc_lab_sender(f.pd, f.cq);
	f.target = xrc_lab_target(f.to, f.xrcd);
	xrc_lab_connect(f.target, f.sender->qp_num, f.from);
	xrc_lab_connect(f.sender, f.target->qp_num, f.to);
	post(&f, IBV_WR_SEND, f.queue[0].number, 100, NULL);
	lab_complete(f.cq, IBV_WC_SUCCESS);
	expect_received(&f, &f.queue[0], 2, 100);
}

LAB_CASE(the_limit_event_fires)
{
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct fixture f;

	make(&f, -1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(xrc_lab_receive(&f.queue[0], i, 100), 0);
	assert_int_equal(ibv_modify_srq(f.queue[0].srq, &attr, IBV_SRQ_LIMIT), 0);
	post(&f, IBV_WR_SEND, f.queue[0].number, 1, NULL);
	lab_complete(f.cq, IBV_WC_SUCCESS);
	post(&f, IBV_WR_SEND, f.queue[0].number, 1, NULL);
	lab_complete(f.cq, IBV_WC_SUCCESS);
	assert_ptr_equal(lab_async_event(f.to, IBV_EVENT_SRQ_LIMIT_REACHED).element.srq,
	                 f.queue[0].srq);
	assert_int_equal(ibv_query_srq(f.queue[0].srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	assert_int_equal(attr.max_wr, XRC_LAB_WR);
}

LAB_CASE(there_is_room_for_max_wr_and_no_more)
{
	struct fixture f;

	make(&f, -1);
	for (unsigned i = 0; i < XRC_LAB_WR; i++)
		assert_int_equal(xrc_lab_receive(&f.queue[0], i, 100), 0);
	assert_int_equal(xrc_lab_receive(&f.queue[0], 0, 100), ENOMEM);
}

LAB_CASE(the_extended_calls_name_a_queue_too)
{
	struct fixture f;
	struct ibv_qp_ex *ex;

	make(&f, -1);
	ex = ibv_qp_to_qp_ex(f.sender);
	assert_int_equal(xrc_lab_receive(&f.queue[1], 4, 100), 0);
	fill(f.memory, 50, 3);
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, f.queue[1].number);
	ibv_wr_set_sge(ex, f.mr->lkey, (uintptr_t)f.memory, 50);
	assert_int_equal(ibv_wr_complete(ex), 0);
	lab_complete(f.cq, IBV_WC_SUCCESS);
	expect_received(&f, &f.queue[1], 4, 50);
	expect_filled(f.queue[1].memory, 50, 3);
}

/* ---- another process ---- */

static int neighbour = -1; /* a socket to it */

static void put(int fd, const void *data, size_t bytes)
{
	assert_int_equal(send(fd, data, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
}

static void get(int fd, void *data, size_t bytes)
{
	assert_int_equal(recv(fd, data, bytes, MSG_WAITALL), (ssize_t)bytes);
}

static int get_fd(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
		            .msg_iovlen = 1,
		            .msg_control = control,
		            .msg_controllen = sizeof(control) };
	int fd;

	if (recvmsg(socket, &m, 0) != 1)
		_exit(0); /* no test wants it */
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

static void put_fd(int socket, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
		            .msg_iovlen = 1,
		            .msg_control = control,
		            .msg_controllen = sizeof(control) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(int));
	assert_int_equal(sendmsg(socket, &m, MSG_NOSIGNAL), 1);
}

/* Has a queue in the domain of the file that comes, opens the target whose number comes, and says
 * what it receives. */
static void be_neighbour(void **state)
{
	int socket = (int)(intptr_t)*state, fd = get_fd(socket);
	struct ibv_context *context = lab_open(2);
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
		                                      IBV_QP_OPEN_ATTR_TYPE,
		                         .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp *target;
	struct xrc_lab_queue q;
	struct ibv_wc wc;

	assert_non_null(open.xrcd = xrc_lab_open(context, fd, 0));
	lab_undo(xrc_lab_close, open.xrcd);
	xrc_lab_queue(&q, context, open.xrcd);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(xrc_lab_receive(&q, i, BYTES), 0);
	put(socket, &q.number, sizeof(q.number));
	get(socket, &open.qp_num, sizeof(open.qp_num));
	assert_non_null(target = ibv_open_qp(context, &open));
	assert_int_equal(target->qp_num, open.qp_num);
	assert_int_equal(lab_state(target), IBV_QPS_RTS);
	lab_undo(xrc_lab_destroy, target);
	put(socket, "", 1);
	for (unsigned i = 0; i < 2; i++) {
		wc = lab_complete(q.cq, IBV_WC_SUCCESS);
		assert_int_equal(wc.qp_num, open.qp_num);
		expect_filled(q.memory, wc.byte_len, (char)(5 + i));
		put(socket, &wc.byte_len, sizeof(wc.byte_len));
	}
	get(socket, &fd, 1); /* until it is to end */
}

/* The first process's target serves another one's queue, and outlives it in the other. */
LAB_CASE(processes_share_a_domain_and_a_target)
{
	char name[] = "/tmp/umbel-xrc-XXXXXX", byte;
	int fd = mkstemp(name);
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
		                                      IBV_QP_OPEN_ATTR_TYPE,
		                         .qp_type = IBV_QPT_XRC_RECV };
	struct fixture f;
	struct ibv_qp *again;
	uint32_t number, got;
	int status;

	unlink(name);
	assert_true(fd >= 0);
	make(&f, fd);
	put_fd(neighbour, fd);
	close(fd);
	get(neighbour, &number, sizeof(number));
	put(neighbour, &f.target->qp_num, sizeof(number));
	get(neighbour, &byte, 1);
	fill(f.memory, 60, 5);
	post(&f, IBV_WR_SEND, number, 60, NULL);
	lab_complete(f.cq, IBV_WC_SUCCESS);
	get(neighbour, &got, sizeof(got));
	assert_int_equal(got, 60);
	lab_forget(f.target);
	open.qp_num = f.target->qp_num;
	assert_int_equal(ibv_destroy_qp(f.target), 0);
	fill(f.memory, BYTES, 6);
	post(&f, IBV_WR_SEND, number, BYTES, NULL);
	lab_complete(f.cq, IBV_WC_SUCCESS);
	get(neighbour, &got, sizeof(got));
	assert_int_equal(got, BYTES);
	/* and comes back when the other ends */
	open.xrcd = f.xrcd;
	assert_non_null(again = ibv_open_qp(f.to, &open));
	put(neighbour, "", 1);
	wait(&status);
	assert_int_equal(status, 0);
	assert_int_equal(lab_state(again), IBV_QPS_RTS);
	assert_int_equal(ibv_destroy_qp(again), 0);
}

static void expect_same(struct ibv_qp *a, struct ibv_qp *b)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr x, y;

	assert_int_equal(ibv_query_qp(a, &x, 0, &init), 0);
	assert_int_equal(ibv_query_qp(b, &y, 0, &init), 0);
	assert_int_equal(x.qp_state, y.qp_state);
	assert_int_equal(x.dest_qp_num, y.dest_qp_num);
	assert_int_equal(x.rq_psn, y.rq_psn);
	assert_int_equal(x.path_mtu, y.path_mtu);
	assert_int_equal(x.min_rnr_timer, y.min_rnr_timer);
	assert_int_equal(x.timeout, y.timeout);
	assert_int_equal(x.max_dest_rd_atomic, y.max_dest_rd_atomic);
	assert_int_equal(x.qp_access_flags, y.qp_access_flags);
	assert_int_equal(x.port_num, y.port_num);
	assert_memory_equal(&x.ah_attr, &y.ah_attr, sizeof(x.ah_attr));
}

/* Both are one queue pair. */
LAB_CASE(handles_of_a_target_have_the_same_attributes)
{
	char name[] = "/tmp/umbel-xrc-XXXXXX";
	int fd = mkstemp(name);
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
		                                      IBV_QP_OPEN_ATTR_TYPE,
		                         .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp_attr attr = { .min_rnr_timer = 7 };
	struct ibv_context *context;
	struct ibv_qp *second;
	struct fixture f;

	unlink(name);
	assert_true(fd >= 0);
	make(&f, fd);
	context = lab_open(2);
	open.xrcd = xrc_lab_domain(context, fd);
	close(fd);
	open.qp_num = f.target->qp_num;
	assert_non_null(second = ibv_open_qp(context, &open));
	lab_undo(xrc_lab_destroy, second);
	expect_same(f.target, second);
	/* the first one connects it to another requester, behind the back of the second */
	lab_to(f.target, IBV_QPS_RESET);
	f.sender = xrc_lab_sender(f.pd, f.cq);
	xrc_lab_connect(f.target, f.sender->qp_num, f.from);
	xrc_lab_connect(f.sender, f.target->qp_num, f.to);
	/* the second handle sets one attribute, and leaves the others */
	assert_int_equal(ibv_modify_qp(second, &attr, IBV_QP_MIN_RNR_TIMER), 0);
	expect_same(f.target, second);
	assert_int_equal(xrc_lab_receive(&f.queue[0], 1, 100), 0);
	post(&f, IBV_WR_SEND, f.queue[0].number, 8, NULL);
	lab_complete(f.cq, IBV_WC_SUCCESS);
	expect_received(&f, &f.queue[0], 1, 8);
	lab_to(second, IBV_QPS_RESET);
	expect_same(f.target, second);
}

/* It is forked before the library is used here. */
static void begin_neighbour(void)
{
	struct CMUnitTest one = { "neighbour", be_neighbour, NULL, lab_clean_up, NULL };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		abort();
	fflush(NULL);
	neighbour = pair[0];
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(pair[0]);
	harness_serve();
	one.initial_state = (void *)(intptr_t)pair[1];
	fclose(stdout);
	_exit(_cmocka_run_group_tests("neighbour", &one, 1, NULL, NULL));
}

int main(void)
{
	begin_neighbour();
	return harness_run(NULL, NULL);
}
