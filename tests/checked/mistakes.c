/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Small programs that are wrong, each with its right twin, for checked.sh.
 *
 * checked.mistakes --list: a line each, the name and the rule that it breaks.
 * checked.mistakes NAME wrong|right
 */
#include "checked/mistakes.h"
#include "verbs/xrc_lab.h"
#include "attributes.h"

static char memory[1 << 20] __attribute__((aligned(4096)));

/* ---- pieces ---- */

static void post_send(struct lab_end *e, struct ibv_ah *ah, const struct lab_end *to, void *at,
                      uint32_t bytes, struct ibv_mr *mr, unsigned flags)
{
	struct ibv_sge sge = { (uintptr_t)at, bytes, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 7,
		                  .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_SEND,
		                  .send_flags = flags },
	                   *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = to->qp->qp_num;
	wr.wr.ud.remote_qkey = to->qkey;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
}

static void post_receive(struct lab_end *e, void *at, uint32_t bytes, struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)at, bytes, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 8, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
}

static struct lab_end *pair(struct lab_end **to)
{
	struct lab_end *from = lab_end(1);

	*to = lab_end(2);
	lab_post(*to, 16);
	return from;
}

/* The queue pair lets go of its receives, so that what they name can be destroyed. */
static void settle(struct lab_end *e)
{
	lab_to(e->qp, IBV_QPS_RESET);
}

/* ---- memory that the card owns ---- */

static void send_buffer_changed(bool wrong, uint32_t bytes)
{
	struct lab_end *to, *e = pair(&to);
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));

	post_send(e, lab_ah_to(e, to), to, memory, bytes, mr, IBV_SEND_SIGNALED);
	if (wrong)
		memory[bytes - 1]++;
	lab_complete(e->send_cq, IBV_WC_SUCCESS);
	memory[bytes - 1]++;
}

static void short_send_buffer_changed(bool wrong)
{
	send_buffer_changed(wrong, 64);
}

static void long_send_buffer_changed(bool wrong)
{
	send_buffer_changed(wrong, LAB_MTU);
}

/* The completion of the second send is that of the first one, too. */
static void unsignaled_buffer_changed(bool wrong)
{
	struct lab_end *to, *e = pair(&to);
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));
	struct ibv_ah *ah = lab_ah_to(e, to);

	post_send(e, ah, to, memory, 64, mr, 0);
	if (wrong)
		memory[3]++;
	post_send(e, ah, to, memory + 64, 64, mr, IBV_SEND_SIGNALED);
	lab_complete(e->send_cq, IBV_WC_SUCCESS);
	memory[3]++;
}

static void inline_buffer_changed(bool wrong)
{
	struct lab_end *to, *e = pair(&to);
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));

	post_send(e, lab_ah_to(e, to), to, memory, 32, mr,
	          IBV_SEND_SIGNALED | (wrong ? 0 : IBV_SEND_INLINE));
	memory[0]++;
	lab_complete(e->send_cq, IBV_WC_SUCCESS);
}

/* Behind the message, which is shorter: of what is in front of its end nobody can say. */
static void receive_written(bool wrong)
{
	struct lab_end *e = lab_end(1), *to = lab_end(2);
	struct ibv_mr *mr = lab_mr(to->pd, memory, sizeof(memory));

	for (uint32_t bytes = 60; bytes < 4000; bytes *= 8) {
		post_receive(to, memory, LAB_GRH + bytes, mr);
		lab_send(e, lab_ah_to(e, to), to->qp->qp_num, "x", 1);
		if (wrong)
			memory[LAB_GRH + bytes - 1]++;
		lab_complete(to->cq, IBV_WC_SUCCESS);
		memset(memory, 7, LAB_GRH + bytes);
	}
}

/* Peers that may write there are no mistake of this program. */
static void shared_receive_written(bool wrong)
{
	struct lab_end *e = lab_end(1), *to = lab_end_with(&(struct lab_options){ .host = 2 });
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 2 } };
	struct ibv_srq *srq = ibv_create_srq(to->pd, &attr);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
		                         .send_cq = to->cq,
		                         .recv_cq = to->cq,
		                         .srq = srq,
		                         .cap = { 1, 0, 1, 0, 0 } };
	struct ibv_qp *qp = srq ? ibv_create_qp(to->pd, &init) : NULL;
	struct ibv_mr *mr =
	        ibv_reg_mr(to->pd, memory, 4096,
	                   IBV_ACCESS_LOCAL_WRITE | (wrong ? 0 : IBV_ACCESS_REMOTE_WRITE));
	struct ibv_sge sge[2] = { { (uintptr_t)memory, 100, mr->lkey },
		                  { (uintptr_t)memory + 2000, 100, mr->lkey } };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 2 }, *bad;

	assert_true(mr && qp);
	lab_start(qp, LAB_QKEY);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	lab_send(e, lab_ah_to(e, to), qp->qp_num, memory + 3000, 90);
	memory[2031]++; /* 30 bytes of the message are there */
	lab_complete(to->cq, IBV_WC_SUCCESS);
	ibv_destroy_qp(qp);
	ibv_destroy_srq(srq);
	ibv_dereg_mr(mr);
}

static void receives_overlap(bool wrong)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));

	post_receive(e, memory, 1024, mr);
	post_receive(e, memory + (wrong ? 1023 : 1024), 1024, mr);
	settle(e);
}

static void receive_overlaps_send(bool wrong)
{
	struct lab_end *to, *e = pair(&to);
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));

	post_receive(e, memory, 1024, mr);
	post_send(e, lab_ah_to(e, to), to, memory + (wrong ? 512 : 1024), 64, mr,
	          IBV_SEND_SIGNALED);
	lab_complete(e->send_cq, IBV_WC_SUCCESS);
	settle(e);
}

static void region_deregistered(bool wrong)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = ibv_reg_mr(e->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	post_receive(e, memory, 1024, mr);
	if (!wrong)
		lab_to(e->qp, IBV_QPS_ERR);
	ibv_dereg_mr(mr);
}

static void region_changed(bool wrong)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = lab_mr(e->pd, memory, 8192);

	post_receive(e, memory, 1024, mr);
	if (!wrong)
		lab_to(e->qp, IBV_QPS_RESET);
	assert_int_equal(
	        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + 8192, 8192, 0), 0);
}

/* ---- queues ---- */

static void never_signaled(bool wrong)
{
	struct lab_end *to, *e = pair(&to);
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));
	struct ibv_ah *ah = lab_ah_to(e, to);

	for (unsigned i = 0; i < 3 * LAB_SLOTS; i++) {
		bool signal = !wrong && i % LAB_SLOTS == LAB_SLOTS - 1;
		struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge,
			                  .num_sge = 1,
			                  .opcode = IBV_WR_SEND,
			                  .send_flags = signal ? IBV_SEND_SIGNALED : 0,
			                  .wr.ud = { ah, to->qp->qp_num, to->qkey } },
		                   *bad;

		assert_int_equal(ibv_post_send(e->qp, &wr, &bad),
		                 wrong && i >= LAB_SLOTS ? ENOMEM : 0);
		if (signal)
			lab_complete(e->send_cq, IBV_WC_SUCCESS);
	}
	settle(e);
}

/* One that grows in time is large enough. */
static void queue_grown(bool wrong)
{
	struct lab_end *e = lab_end_with(&(struct lab_options){ .cqe = 4 });
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));

	if (!wrong)
		assert_int_equal(ibv_resize_cq(e->cq, 16), 0);
	for (unsigned i = 0; i < 16; i++)
		post_receive(e, memory + i * 1024ul, 1024, mr);
	settle(e);
}

/* Completions that are in the queue when its queue pair is in ERR are polled later, and the memory
 * is the program's. */
static void changed_after_error(bool wrong)
{
	struct lab_end *to, *e = pair(&to);
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));

	post_send(e, lab_ah_to(e, to), to, memory, 64, mr, IBV_SEND_SIGNALED);
	if (!wrong)
		lab_to(e->qp, IBV_QPS_ERR);
	memory[0]++;
	lab_complete(e->send_cq, IBV_WC_SUCCESS);
}

static void queue_small(bool wrong)
{
	struct lab_end *e = lab_end_with(&(struct lab_options){ .cqe = wrong ? 4 : 16 });
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));

	for (unsigned i = 0; i < 16; i++)
		post_receive(e, memory + i * 1024ul, 1024, mr);
	settle(e);
}

static unsigned late_us; /* for how long a thread leaves another one waiting */

/* Meanwhile ibv_destroy_cq() waits. */
static void *acknowledge_late(void *cq)
{
	usleep(late_us);
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

/* Another thread may acknowledge while the queue is destroyed: that is no mistake. */
static void events_left(bool wrong)
{
	struct lab_end *to = lab_end_with(&(struct lab_options){ .host = 2, .channel = true });
	struct lab_end *e = lab_end(1);
	struct ibv_cq *cq;
	pthread_t thread;
	void *context;

	lab_post(to, 1);
	assert_int_equal(ibv_req_notify_cq(to->cq, 0), 0);
	lab_send(e, lab_ah_to(e, to), to->qp->qp_num, "x", 1);
	assert_int_equal(ibv_get_cq_event(to->channel, &cq, &context), 0);
	late_us = wrong ? 1300000 : 100000;
	assert_int_equal(pthread_create(&thread, NULL, acknowledge_late, cq), 0);
}

/* ---- waiting for what cannot come ---- */

static void poll_for_a_while(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < 40; i++) {
		assert_true(ibv_poll_cq(cq, 1, &wc) >= 0);
		usleep(10000);
	}
}

static void polled_in_vain(bool wrong)
{
	struct lab_end *to, *e = pair(&to);
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));

	post_send(e, lab_ah_to(e, to), to, memory, 64, mr, wrong ? 0 : IBV_SEND_SIGNALED);
	poll_for_a_while(e->send_cq);
	settle(e);
}

/* The completion is in the queue that nobody polls. */
static void other_queue_polled(bool wrong)
{
	struct lab_end *to, *e = pair(&to);
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));

	post_send(e, lab_ah_to(e, to), to, memory, 64, mr, IBV_SEND_SIGNALED);
	poll_for_a_while(wrong ? e->cq : e->send_cq);
	if (wrong)
		lab_complete(e->send_cq, IBV_WC_SUCCESS);
	settle(e);
}

struct awaited {
	struct lab_end *from, *to;
	bool is_armed;
};

static void *send_late(void *arg)
{
	struct awaited *a = arg;

	usleep(a->is_armed ? 100000 : 1300000);
	if (!a->is_armed)
		assert_int_equal(ibv_req_notify_cq(a->to->cq, 0), 0);
	lab_send(a->from, lab_ah_to(a->from, a->to), a->to->qp->qp_num, "x", 1);
	return NULL;
}

/* The other thread arms the queue, lest it waits for ever. */
static void not_armed(bool wrong)
{
	struct awaited a = { .is_armed = !wrong };
	struct ibv_cq *cq;
	pthread_t thread;
	void *context;

	a.to = lab_end_with(&(struct lab_options){ .host = 2, .channel = true });
	a.from = lab_end(1);
	lab_post(a.to, 1);
	if (!wrong)
		assert_int_equal(ibv_req_notify_cq(a.to->cq, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, send_late, &a), 0);
	assert_int_equal(ibv_get_cq_event(a.to->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Both queues have the channel. What is armed brings the event: a receive, or a send that asks for
 * no completion. */
static void armed_for_nothing(bool wrong)
{
	struct awaited a = { .from = lab_end(1) };
	struct lab_end like = *lab_end_with(&(struct lab_options){ .host = 2, .channel = true });
	struct ibv_cq *cq;
	pthread_t thread;
	void *context;

	like.send_cq = lab_cq(like.context, 16, like.channel);
	a.to = lab_end_with(&(struct lab_options){ .host = 2, .neighbour = &like });
	lab_post(a.from, 1);
	lab_post(a.to, 1);
	post_send(a.to, lab_ah_to(a.to, a.from), a.from, memory, 64,
	          lab_mr(a.to->pd, memory, sizeof(memory)), 0);
	assert_int_equal(ibv_req_notify_cq(wrong ? a.to->send_cq : a.to->cq, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, send_late, &a), 0);
	assert_int_equal(ibv_get_cq_event(a.to->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	settle(a.to);
}

struct shared_queue {
	struct ibv_cq_ex *cq;
	pthread_mutex_t *lock;
	_Atomic bool stop;
};

static void *poll_it(void *arg)
{
	struct shared_queue *q = arg;
	struct ibv_wc wc;

	while (!q->stop) {
		if (q->lock)
			pthread_mutex_lock(q->lock);
		ibv_poll_cq(ibv_cq_ex_to_cq(q->cq), 1, &wc);
		if (q->lock)
			pthread_mutex_unlock(q->lock);
	}
	return NULL;
}

static void queue_shared(bool wrong)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16,
		                            .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		                            .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED };
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct shared_queue q = { .cq = ibv_create_cq_ex(lab_open(1), &attr),
		                  .lock = wrong ? NULL : &lock };
	pthread_t thread[2];

	assert_non_null(q.cq);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, poll_it, &q), 0);
	usleep(300000);
	q.stop = true;
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	ibv_destroy_cq(ibv_cq_ex_to_cq(q.cq));
}

/* ---- XRC: completions of receives name the target, which is no queue pair of the receiver's ----
 */

static void xrc_sender_changed(bool wrong)
{
	struct ibv_context *here = lab_open(1), *there = lab_open(2);
	struct ibv_pd *pd = lab_pd(here);
	struct ibv_cq *cq = lab_cq(here, 16, NULL);
	struct ibv_mr *mr = lab_mr(pd, memory, sizeof(memory));
	struct ibv_qp *sender = xrc_lab_sender(pd, cq), *target;
	struct ibv_xrcd *domain = xrc_lab_domain(there, -1);
	struct ibv_sge sge = { (uintptr_t)memory, 64, mr->lkey };
	struct ibv_send_wr wr = request_of(&sge, IBV_WR_SEND, IBV_SEND_SIGNALED), *bad;
	struct xrc_lab_queue queue;

	xrc_lab_queue(&queue, there, domain);
	target = xrc_lab_target(there, domain);
	xrc_lab_connect(target, sender->qp_num, here);
	xrc_lab_connect(sender, target->qp_num, there);
	wr.qp_type.xrc.remote_srqn = queue.number;
	/* the same memory each time: no receive is outstanding when the next one is posted */
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(xrc_lab_receive(&queue, i, 64), 0);
		assert_int_equal(ibv_post_send(sender, &wr, &bad), 0);
		memory[0] += wrong;
		lab_complete(cq, IBV_WC_SUCCESS);
		assert_int_equal(lab_complete(queue.cq, IBV_WC_SUCCESS).wr_id, i);
		memory[0]++;
	}
}

/* ---- ends ---- */

static void handle_destroyed(bool wrong)
{
	struct lab_end *to, *e = pair(&to);
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));
	struct ibv_ah_attr attr = lab_attr_to(to);
	struct ibv_ah *ah = ibv_create_ah(e->pd, &attr);

	assert_non_null(ah);
	post_send(e, ah, to, memory, 64, mr, IBV_SEND_SIGNALED);
	if (wrong)
		ibv_destroy_ah(ah);
	lab_complete(e->send_cq, IBV_WC_SUCCESS);
	if (!wrong)
		ibv_destroy_ah(ah);
}

static void queue_pair_destroyed(bool wrong)
{
	struct lab_end *to, *e = pair(&to);
	struct ibv_ah *ah = lab_ah_to(e, to);
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));
	struct lab_end *gone = lab_end_with(&(struct lab_options){ .neighbour = e });

	post_send(gone, ah, to, memory, 64, mr, IBV_SEND_SIGNALED);
	if (!wrong)
		lab_complete(gone->send_cq, IBV_WC_SUCCESS);
}

static void objects_left(bool wrong)
{
	struct ibv_pd *pd = ibv_alloc_pd(lab_open(1));

	assert_non_null(pd);
	if (!wrong)
		ibv_dealloc_pd(pd);
}

static const struct mistake mistakes[] = {
	{ "short-send-buffer", "send-buffer-changed", short_send_buffer_changed },
	{ "long-send-buffer", "send-buffer-changed", long_send_buffer_changed },
	{ "unsignaled-buffer", "unsignaled-datagram-buffer", unsignaled_buffer_changed },
	{ "not-inline", "send-buffer-changed", inline_buffer_changed },
	{ "receive-written", "receive-buffer-written", receive_written },
	{ "shared-receive-written", "receive-buffer-written", shared_receive_written },
	{ "receives-overlap", "overlapping-buffers", receives_overlap },
	{ "receive-overlaps-send", "overlapping-buffers", receive_overlaps_send },
	{ "region-deregistered", "region-deregistered-in-use", region_deregistered },
	{ "region-changed", "region-deregistered-in-use", region_changed },
	{ "never-signaled", "send-queue-never-signaled", never_signaled },
	{ "queue-small", "completion-queue-small", queue_small },
	{ "queue-grown", "completion-queue-small", queue_grown },
	{ "changed-after-error", "send-buffer-changed", changed_after_error },
	{ "events-left", "events-not-acknowledged", events_left },
	{ "polled-in-vain", "waits-in-vain", polled_in_vain },
	{ "other-queue-polled", "waits-in-vain", other_queue_polled },
	{ "not-armed", "waits-in-vain", not_armed },
	{ "armed-for-nothing", "waits-in-vain", armed_for_nothing },
	{ "queue-shared", "single-threaded-queue-shared", queue_shared },
	{ "xrc-sender", "send-buffer-changed", xrc_sender_changed },
	{ "handle-destroyed", "address-handle-destroyed-in-use", handle_destroyed },
	{ "queue-pair-destroyed", "queue-pair-destroyed-busy", queue_pair_destroyed },
	{ "objects-left", "objects-left", objects_left },
	{ .name = NULL },
};

/* Whether the table has it. */
static bool make(const struct mistake *m, const char *name, bool wrong)
{
	while (m->name && strcmp(m->name, name))
		m++;
	if (m->name)
		m->make(wrong);
	return m->name;
}

int main(int argc, char **argv)
{
	const struct mistake *const tables[] = { mistakes, group_mistakes, card_mistakes };
	bool made = false;

	for (unsigned i = 0; i < LAB_ARRAY(tables); i++) {
		for (const struct mistake *m = tables[i]; argc == 2 && m->name; m++)
			if (m->rule)
				printf("%s %s\n", m->name, m->rule);
		if (argc == 3)
			made |= make(tables[i], argv[1], !strcmp(argv[2], "wrong"));
	}
	lab_clean_up(NULL);
	return argc == 2 || made ? 0 : 2;
}
