/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests that repeat the request before them: nothing is looked up for them. So each test first
 * sends several that are the same, then changes one thing, and looks at the next request.
 *
 * umbel: --set exact_sizes=1
 */
#include "lab.h"

#define WARM  4 /* requests that are the same */
#define MCAST "239.255.7.1"

static const char bytes[LAB_MTU] =
        "what is sent again and again, 64 bytes of it if not said otherwise";

/* A request of one end to the other, which changes between its posts. */
struct talk {
	struct lab_end *a, *b;
	struct lab_request r;
};

static struct talk begin_with(const struct lab_options *options)
{
	struct talk t = { .a = lab_end_with(options), .b = lab_end(2) };

	lab_post(t.b, LAB_SLOTS / 2);
	lab_request(t.a, &t.r, lab_ah_to(t.a, t.b), t.b->qp->qp_num, bytes, 64);
	return t;
}

static int post(struct talk *t)
{
	struct ibv_send_wr *bad = NULL;
	int ret;

	t->r.wr.sg_list = &t->r.sge; /* the struct was copied */
	ret = ibv_post_send(t->a->qp, &t->r.wr, &bad);
	if (ret)
		assert_ptr_equal(bad, &t->r.wr);
	return ret;
}

static void send_one(struct talk *t)
{
	assert_int_equal(post(t), 0);
	lab_complete(t->a->send_cq, IBV_WC_SUCCESS);
}

/* It is sent and arrives. */
static struct lab_message pass(struct talk *t)
{
	struct lab_message m;

	send_one(t);
	m = lab_receive(t->b);
	assert_int_equal(m.length, t->r.sge.length);
	assert_memory_equal(m.data, (const void *)(uintptr_t)t->r.sge.addr, m.length);
	assert_int_equal(m.wc.src_qp, t->a->qp->qp_num);
	return m;
}

static void warm_up(struct talk *t)
{
	for (int i = 0; i < WARM; i++)
		pass(t);
}

static struct talk begin(void)
{
	struct talk t = begin_with(&(struct lab_options){ .host = 1 });

	warm_up(&t);
	return t;
}

/* It is sent, and the port of that host counts it as lost for this reason. */
static void lose(struct talk *t, int host, const char *why)
{
	uint64_t before = lab_counter(host, why);

	send_one(t);
	lab_quiet(t->b->cq);
	assert_int_equal(lab_counter(host, why), before + 1);
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

static void run(const char *command)
{
	assert_int_equal(system(command), 0);
}

/* ---- the request ---- */

LAB_CASE(its_length_may_change)
{
	static const uint32_t length[] = { 64, 0, 1, 7, 31, 33, 64, 65, 64, 2000, LAB_MTU, 3, 0 };
	struct talk t = begin();

	for (size_t i = 0; i < 2 * LAB_ARRAY(length); i++) {
		t.r.sge.length = length[i / 2];
		memset(t.a->out, (int)i, t.r.sge.length);
		pass(&t);
	}
}

LAB_CASE(its_bytes_may_change)
{
	struct talk t = begin();

	for (int i = 0; i < 256; i++) {
		memset(t.a->out, i, 64);
		pass(&t);
		lab_post(t.b, 1);
	}
}

LAB_CASE(it_may_be_larger_than_the_mtu)
{
	struct talk t = begin();

	t.r.sge.length = LAB_MTU + 1;
	lose(&t, 1, "xmit_discards");
	t.r.sge.length = 64;
	pass(&t);
	/* what is not sent says nothing of those that follow */
	t.r.sge.length = LAB_MTU + 1;
	t.r.wr.opcode = IBV_WR_SEND_WITH_IMM;
	t.r.wr.imm_data = htobe32(7);
	lose(&t, 1, "xmit_discards");
	t.r.sge.length = 64;
	assert_true(pass(&t).wc.wc_flags & IBV_WC_WITH_IMM);
}

LAB_CASE(inline_data_may_go_beyond_the_limit)
{
	struct talk t = begin_with(&(struct lab_options){ .host = 1 });
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(t.a->qp, &attr, IBV_QP_CAP, &init), 0);
	t.r.wr.send_flags |= IBV_SEND_INLINE;
	t.r.sge.lkey = ~0u;
	t.r.sge.length = attr.cap.max_inline_data;
	warm_up(&t);
	t.r.sge.length++;
	assert_int_equal(post(&t), EINVAL);
	t.r.sge.length--;
	pass(&t);
}

LAB_CASE(it_may_be_inline_no_more)
{
	struct talk t = begin_with(&(struct lab_options){ .host = 1 });

	t.r.wr.send_flags |= IBV_SEND_INLINE;
	t.r.sge.lkey = ~0u;
	warm_up(&t);
	t.r.wr.send_flags &= ~(unsigned)IBV_SEND_INLINE;
	assert_int_equal(post(&t), 0);
	lab_complete(t.a->send_cq, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(lab_state(t.a->qp), IBV_QPS_SQE);
}

LAB_CASE(its_key_may_become_wrong)
{
	struct talk t = begin();

	t.r.sge.lkey++;
	assert_int_equal(post(&t), 0);
	lab_complete(t.a->send_cq, IBV_WC_LOC_PROT_ERR);
	t.r.sge.lkey--;
	assert_int_equal(post(&t), 0); /* in SQE */
	lab_complete(t.a->send_cq, IBV_WC_WR_FLUSH_ERR);
	lab_quiet(t.b->cq);
	lab_to(t.a->qp, IBV_QPS_RTS);
	warm_up(&t);
}

LAB_CASE(its_entries_may_change)
{
	struct talk t = begin();
	struct ibv_sge two[2] = { t.r.sge, t.r.sge };
	struct ibv_send_wr wr = t.r.wr, *bad;
	struct lab_message m;

	two[0].length = two[1].length = 5;
	wr.sg_list = two;
	wr.num_sge = 2;
	assert_int_equal(ibv_post_send(t.a->qp, &wr, &bad), 0);
	m = lab_receive(t.b);
	assert_int_equal(m.length, 10);
	assert_memory_equal(m.data + 5, bytes, 5);
	wr.num_sge = 0;
	assert_int_equal(ibv_post_send(t.a->qp, &wr, &bad), 0);
	assert_int_equal(lab_receive(t.b).length, 0);
	wr.num_sge = -1;
	assert_int_equal(ibv_post_send(t.a->qp, &wr, &bad), EINVAL);
	wr.num_sge = 100;
	assert_int_equal(ibv_post_send(t.a->qp, &wr, &bad), EINVAL);
}

LAB_CASE(its_operation_may_become_another)
{
	struct talk t = begin();
	struct lab_message m;

	t.r.wr.opcode = IBV_WR_SEND_WITH_IMM;
	for (uint32_t i = 1; i < 2 * WARM; i++) {
		t.r.wr.imm_data = htobe32(i);
		m = pass(&t);
		assert_true(m.wc.wc_flags & IBV_WC_WITH_IMM);
		assert_int_equal(m.wc.imm_data, htobe32(i));
	}
	t.r.wr.opcode = IBV_WR_SEND;
	for (int i = 0; i < WARM; i++)
		assert_false(pass(&t).wc.wc_flags & IBV_WC_WITH_IMM);
	t.r.wr.opcode = IBV_WR_RDMA_WRITE;
	assert_int_equal(post(&t), EINVAL);
	t.r.wr.opcode = (enum ibv_wr_opcode)99;
	assert_int_equal(post(&t), EINVAL);
}

LAB_CASE(it_may_become_solicited)
{
	struct lab_options listens = { .host = 2, .channel = true };
	struct talk t = { .a = lab_end(1), .b = lab_end_with(&listens) };
	struct ibv_cq *cq;
	void *context;

	lab_post(t.b, 4 * WARM);
	lab_request(t.a, &t.r, lab_ah_to(t.a, t.b), t.b->qp->qp_num, bytes, 64);
	lab_set_nonblocking(t.b->channel->fd);
	warm_up(&t);
	assert_int_equal(ibv_req_notify_cq(t.b->cq, 1), 0);
	warm_up(&t);
	assert_int_equal(ibv_get_cq_event(t.b->channel, &cq, &context), -1);
	t.r.wr.send_flags |= IBV_SEND_SOLICITED;
	pass(&t);
	assert_int_equal(ibv_get_cq_event(t.b->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	/* and by one that repeats, of a queue that is armed for all */
	t.r.wr.send_flags &= ~(unsigned)IBV_SEND_SOLICITED;
	warm_up(&t);
	assert_int_equal(ibv_req_notify_cq(t.b->cq, 0), 0);
	pass(&t);
	assert_int_equal(ibv_get_cq_event(t.b->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
}

LAB_CASE(it_may_be_signalled_or_not)
{
	struct talk t = begin();

	for (int i = 0; i < 2 * WARM; i++) {
		t.r.wr.wr_id = (uint64_t)i;
		t.r.wr.send_flags ^= IBV_SEND_SIGNALED;
		assert_int_equal(post(&t), 0);
		lab_receive(t.b);
		if (t.r.wr.send_flags & IBV_SEND_SIGNALED)
			assert_int_equal(lab_complete(t.a->send_cq, IBV_WC_SUCCESS).wr_id, i);
		lab_quiet(t.a->send_cq);
	}
}

LAB_CASE(the_send_queue_fills)
{
	struct talk t = begin_with(&(struct lab_options){ .host = 1, .cap.max_send_wr = 4 });

	warm_up(&t);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post(&t), 0);
	assert_int_equal(post(&t), ENOMEM);
	lab_complete(t.a->send_cq, IBV_WC_SUCCESS);
	assert_int_equal(post(&t), 0);
	assert_int_equal(post(&t), ENOMEM);
}

LAB_CASE(a_list_may_have_a_bad_one_among_them)
{
	struct talk t = begin();
	struct lab_request r[8];
	struct ibv_send_wr *bad;

	for (int i = 0; i < 8; i++) {
		lab_request(t.a, &r[i], t.r.wr.wr.ud.ah, t.b->qp->qp_num, bytes, 64);
		r[i].wr.wr_id = (uint64_t)i;
		r[i].wr.next = i < 7 ? &r[i + 1].wr : NULL;
	}
	assert_int_equal(ibv_post_send(t.a->qp, &r[0].wr, &bad), 0);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(lab_complete(t.a->send_cq, IBV_WC_SUCCESS).wr_id, i);
		lab_expect(t.b, bytes, 64);
	}
	r[4].wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(ibv_post_send(t.a->qp, &r[0].wr, &bad), EINVAL);
	assert_ptr_equal(bad, &r[4].wr);
	for (int i = 0; i < 4; i++) {
		lab_complete(t.a->send_cq, IBV_WC_SUCCESS);
		lab_expect(t.b, bytes, 64);
	}
	lab_quiet(t.b->cq);
	warm_up(&t);
	/* what is wrong with the fifth shows when it is carried out; the rest is flushed */
	r[4].wr.opcode = IBV_WR_SEND;
	r[4].sge.lkey++;
	assert_int_equal(ibv_post_send(t.a->qp, &r[0].wr, &bad), 0);
	for (int i = 0; i < 8; i++)
		lab_complete(t.a->send_cq, i < 4    ? IBV_WC_SUCCESS
		                           : i == 4 ? IBV_WC_LOC_PROT_ERR
		                                    : IBV_WC_WR_FLUSH_ERR);
	for (int i = 0; i < 4; i++)
		lab_expect(t.b, bytes, 64);
	lab_quiet(t.b->cq);
}

/* ---- where it goes ---- */

LAB_CASE(it_may_go_to_another_queue_pair)
{
	struct talk t = begin();
	struct lab_options beside = { .host = 2, .neighbour = t.b };
	struct lab_end *first = t.b, *second = lab_end_with(&beside);

	for (int i = 0; i < WARM; i++) {
		t.b = i % 2 ? first : second;
		lab_post(t.b, 1);
		t.r.wr.wr.ud.remote_qpn = t.b->qp->qp_num;
		assert_int_equal(pass(&t).wc.qp_num, t.b->qp->qp_num);
		lab_post(t.b, 1);
		assert_int_equal(pass(&t).wc.qp_num, t.b->qp->qp_num);
	}
}

LAB_CASE(its_qkey_may_become_wrong)
{
	struct talk t = begin();

	t.r.wr.wr.ud.remote_qkey++;
	for (int i = 0; i < WARM; i++)
		lose(&t, 2, "bad_qkey");
	t.r.wr.wr.ud.remote_qkey--;
	warm_up(&t);
}

LAB_CASE(its_handle_may_be_destroyed)
{
	struct talk t = begin();
	struct ibv_ah *ah = t.r.wr.wr.ud.ah;

	lab_forget(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(post(&t), EINVAL);
	t.r.wr.wr.ud.ah = NULL;
	assert_int_equal(post(&t), EINVAL);
}

/* Handles are used again, so the new ones are at the places of the old ones. */
LAB_CASE(its_handle_may_become_another)
{
	struct talk t = begin();
	struct lab_end *other = lab_end(3);
	struct ibv_ah_attr attr = lab_attr_to(other);
	struct ibv_ah *ah = t.r.wr.wr.ud.ah, *new = NULL;

	lab_forget(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	for (int i = 0; i < 1000 && new != ah; i++)
		new = lab_ah(t.a->pd, &attr);
	assert_ptr_equal(new, ah);
	lose(&t, 3, "no_qp"); /* there is no such number on h3 */
}

LAB_CASE(no_request_begins_like_one_that_has_none)
{
	struct talk t = begin_with(&(struct lab_options){ .host = 1 });

	memset(&t.r.wr.wr, 0, sizeof(t.r.wr.wr));
	t.r.wr.send_flags = 0;
	assert_int_equal(post(&t), EINVAL);
}

/* ---- the queue pair ---- */

LAB_CASE(it_may_leave_rts)
{
	struct talk t = begin();

	lab_to(t.a->qp, IBV_QPS_SQD);
	assert_int_equal(post(&t), 0);
	lab_quiet(t.a->send_cq);
	lab_quiet(t.b->cq);
	lab_to(t.a->qp, IBV_QPS_RTS);
	lab_complete(t.a->send_cq, IBV_WC_SUCCESS);
	lab_expect(t.b, bytes, 64);
	warm_up(&t);
	lab_to(t.a->qp, IBV_QPS_ERR);
	assert_int_equal(post(&t), 0);
	lab_complete(t.a->send_cq, IBV_WC_WR_FLUSH_ERR);
	lab_quiet(t.b->cq);
	lab_to(t.a->qp, IBV_QPS_RESET);
	assert_int_equal(post(&t), EINVAL);
	lab_start(t.a->qp, LAB_QKEY);
	warm_up(&t);
}

/* A Q_Key with the highest bit set stands for the sender's own. */
LAB_CASE(its_own_qkey_may_change)
{
	struct talk t = begin();

	t.r.wr.wr.ud.remote_qkey = 1u << 31;
	warm_up(&t);
	modify(t.a->qp, (struct ibv_qp_attr){ .qkey = LAB_QKEY + 1 }, IBV_QP_QKEY);
	lose(&t, 2, "bad_qkey");
	modify(t.a->qp, (struct ibv_qp_attr){ .qkey = LAB_QKEY }, IBV_QP_QKEY);
	warm_up(&t);
}

/* ---- the receiver ---- */

LAB_CASE(the_receiver_s_qkey_may_change)
{
	struct talk t = begin();

	modify(t.b->qp, (struct ibv_qp_attr){ .qkey = LAB_QKEY + 1 }, IBV_QP_QKEY);
	lose(&t, 2, "bad_qkey");
	modify(t.b->qp, (struct ibv_qp_attr){ .qkey = LAB_QKEY }, IBV_QP_QKEY);
	warm_up(&t);
}

LAB_CASE(the_receiver_may_have_no_receive)
{
	struct talk t = begin();

	for (int i = 0; i < LAB_SLOTS / 2 - WARM; i++)
		pass(&t);
	lose(&t, 2, "no_receive");
	lab_post(t.b, WARM);
	warm_up(&t);
	lose(&t, 2, "no_receive");
}

LAB_CASE(the_receiver_may_fail)
{
	struct talk t = begin();

	lab_to(t.b->qp, IBV_QPS_ERR);
	for (int i = 0; i < LAB_SLOTS / 2 - WARM; i++)
		lab_complete(t.b->cq, IBV_WC_WR_FLUSH_ERR);
	lose(&t, 2, "no_qp");
	lab_to(t.b->qp, IBV_QPS_RESET);
	lose(&t, 2, "no_qp");
	lab_start(t.b->qp, LAB_QKEY);
	lab_post(t.b, WARM);
	warm_up(&t);
}

/* Its queue of completions overruns, which only the senders can notice. */
LAB_CASE(the_receiver_s_queue_may_become_too_small)
{
	struct lab_options few = { .host = 2, .cqe = 4, .cap = { .max_recv_wr = 4 } };
	struct talk t = { .a = lab_end(1), .b = lab_end_with(&few) };
	struct lab_options beside = { .host = 2, .neighbour = t.b, .cap = { .max_recv_wr = 4 } };
	struct lab_end *other;
	struct ibv_wc wc;

	lab_post(t.b, 4);
	lab_request(t.a, &t.r, lab_ah_to(t.a, t.b), t.b->qp->qp_num, bytes, 64);
	warm_up(&t);
	other = lab_end_with(&beside); /* more may arrive now than the CQ has room for */
	lab_post(t.b, 4);
	lab_post(other, 1);
	for (int i = 0; i < 4; i++)
		send_one(&t);
	t.r.wr.wr.ud.remote_qpn = other->qp->qp_num;
	send_one(&t);
	assert_true(ibv_poll_cq(t.b->cq, 1, &wc) < 0);
	lab_async_event(t.b->context, IBV_EVENT_CQ_ERR);
}

/* ---- where it is received ---- */

/* An end that has received several messages in one region, and the next request. */
static struct talk begin_with_receives(unsigned left)
{
	struct talk t = { .a = lab_end(1), .b = lab_end(2) };

	lab_post(t.b, WARM + left);
	lab_request(t.a, &t.r, lab_ah_to(t.a, t.b), t.b->qp->qp_num, bytes, 64);
	warm_up(&t);
	return t;
}

static void fail_to_receive(struct talk *t, enum ibv_wc_status status)
{
	send_one(t);
	lab_complete(t->b->cq, status);
	assert_int_equal(lab_state(t->b->qp), IBV_QPS_ERR);
}

static void post_at(struct lab_end *e, struct ibv_mr *mr, char *at, uint32_t length)
{
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = length, .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
}

LAB_CASE(the_region_may_be_deregistered)
{
	struct talk t = begin_with_receives(1);

	lab_forget(t.b->mr);
	assert_int_equal(ibv_dereg_mr(t.b->mr), 0);
	fail_to_receive(&t, IBV_WC_LOC_PROT_ERR);
}

/* It keeps its key. */
LAB_CASE(the_region_may_become_read_only)
{
	struct talk t = begin_with_receives(1);

	assert_int_equal(ibv_rereg_mr(t.b->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), 0);
	fail_to_receive(&t, IBV_WC_LOC_PROT_ERR);
}

/* Likewise. */
LAB_CASE(the_region_may_change_its_domain)
{
	struct talk t = begin_with_receives(1);
	struct ibv_pd *other = lab_pd(t.b->context);

	assert_int_equal(ibv_rereg_mr(t.b->mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	fail_to_receive(&t, IBV_WC_LOC_PROT_ERR);
	lab_forget(t.b->mr); /* before its domain */
	assert_int_equal(ibv_dereg_mr(t.b->mr), 0);
}

/* Receives by these entries of a region of two slots fail with a message of 64 bytes, as @status
 * says. */
static void receive_into(long offset, uint32_t length, enum ibv_wc_status status)
{
	struct talk t = { .a = lab_end(1), .b = lab_end(2) };
	char *at = t.b->slot + LAB_SLOT;
	struct ibv_mr *mr = lab_mr(t.b->pd, at, 2 * LAB_SLOT);

	lab_request(t.a, &t.r, lab_ah_to(t.a, t.b), t.b->qp->qp_num, bytes, 64);
	for (int i = 0; i < WARM; i++) {
		post_at(t.b, mr, at + i, 2 * LAB_SLOT - WARM);
		memset(at, 0, LAB_SLOT);
		send_one(&t);
		lab_complete(t.b->cq, IBV_WC_SUCCESS);
		assert_memory_equal(at + i + LAB_GRH, bytes, 64);
	}
	post_at(t.b, mr, at + offset, length);
	if (status != IBV_WC_SUCCESS) {
		fail_to_receive(&t, status);
		return;
	}
	send_one(&t);
	lab_complete(t.b->cq, IBV_WC_SUCCESS);
	assert_memory_equal(at + offset + LAB_GRH, bytes, 64);
}

LAB_CASE(an_entry_may_be_outside_of_the_region)
{
	receive_into(-1, 104, IBV_WC_LOC_PROT_ERR);
	receive_into(2 * LAB_SLOT - 103, 104, IBV_WC_LOC_PROT_ERR);
	receive_into(2 * LAB_SLOT + 1, 104, IBV_WC_LOC_PROT_ERR);
}

/* The bytes that are written lie in the region. */
LAB_CASE(an_entry_may_reach_beyond_the_region)
{
	receive_into(0, 2 * LAB_SLOT + 1, IBV_WC_SUCCESS);
	receive_into(0, UINT32_MAX, IBV_WC_SUCCESS);
}

LAB_CASE(an_entry_may_be_too_short)
{
	receive_into(0, 103, IBV_WC_LOC_LEN_ERR);
	receive_into(0, 39, IBV_WC_LOC_LEN_ERR);
	receive_into(0, 0, IBV_WC_LOC_LEN_ERR);
}

LAB_CASE(its_key_may_be_nobody_s)
{
	struct talk t = begin_with_receives(0);
	struct ibv_mr wrong = *t.b->mr;

	wrong.lkey++;
	post_at(t.b, &wrong, t.b->slot, LAB_SLOT);
	fail_to_receive(&t, IBV_WC_LOC_PROT_ERR);
}

LAB_CASE(regions_may_alternate)
{
	struct talk t = begin_with_receives(0);
	struct ibv_mr *mr[2] = { t.b->mr, lab_mr(t.b->pd, t.b->slot, LAB_SLOT) };

	for (int i = 0; i < 4 * WARM; i++) {
		char *at = t.b->slot + (i / 3 % 2 ? 0 : LAB_SLOT);

		memset(at, 0, LAB_SLOT);
		post_at(t.b, mr[i / 3 % 2], at, LAB_SLOT);
		send_one(&t);
		lab_complete(t.b->cq, IBV_WC_SUCCESS);
		assert_memory_equal(at + LAB_GRH, bytes, 64);
	}
}

/* ---- the way ---- */

LAB_CASE(a_port_may_go_down)
{
	struct talk t = begin();

	run("umbel link down h1:1");
	lose(&t, 1, "xmit_discards");
	run("umbel link up h1:1");
	warm_up(&t);
	run("umbel link down h2:1");
	send_one(&t);
	lab_quiet(t.b->cq);
	run("umbel link up h2:1");
	warm_up(&t);
}

LAB_CASE(a_group_may_get_members_and_lose_them)
{
	struct lab_group *g = lab_join_send_only(1, MCAST), *first = lab_join(2, MCAST), *second;
	struct lab_options to_group = { .host = 2, .qkey = first->qkey };
	struct talk t = { .a = lab_end(1), .b = lab_end_with(&to_group) };
	struct lab_end *other;

	lab_attach(t.b->qp, &first->mgid, first->mlid);
	lab_post(t.b, 6 * WARM);
	lab_request(t.a, &t.r, lab_ah_group(t.a, g), LAB_MCAST, bytes, 64);
	t.r.wr.wr.ud.remote_qkey = first->qkey;
	warm_up(&t);
	second = lab_join(3, MCAST);
	to_group.host = 3;
	other = lab_end_with(&to_group);
	lab_post(other, 2 * WARM);
	lab_attach(other->qp, &second->mgid, second->mlid);
	for (int i = 0; i < WARM; i++) {
		pass(&t);
		lab_expect(other, bytes, 64);
	}
	lab_detach(other->qp, &second->mgid, second->mlid);
	warm_up(&t);
	lab_quiet(other->cq);
	lab_detach(t.b->qp, &first->mgid, first->mlid);
	send_one(&t);
	lab_quiet(t.b->cq);
	/* a packet to a group has that number */
	lab_attach(t.b->qp, &first->mgid, first->mlid);
	warm_up(&t);
	t.r.wr.wr.ud.remote_qpn = t.b->qp->qp_num;
	for (int i = 0; i < WARM; i++)
		send_one(&t);
	lab_quiet(t.b->cq);
}
