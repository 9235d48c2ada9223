/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Small programs that are wrong about groups, receives, events and ends, each with its right twin:
 * see mistakes.c.
 */
#include "checked/mistakes.h"

#define GROUP   "239.1.2.3"
#define LOST_US 2200000 /* after a loss a program has 2 s to join again */

static char memory[16384] __attribute__((aligned(4096)));

/* ---- pieces ---- */

/* An end whose port has joined the group, attached. */
static struct lab_end *member(int host, struct lab_group **g)
{
	struct lab_end *e;

	*g = lab_join(host, GROUP);
	e = lab_end_with(&(struct lab_options){ .host = host, .qkey = (*g)->qkey });
	lab_attach(e->qp, &(*g)->mgid, (*g)->mlid);
	return e;
}

/* An end that sends to a group of which host 2 is a member; its own port is none. */
static struct lab_end *stranger(struct lab_group **g)
{
	member(2, g);
	return lab_end_with(&(struct lab_options){ .qkey = (*g)->qkey });
}

/* One that has joined to send. */
static struct lab_end *sender(struct lab_group **g)
{
	member(2, g);
	lab_join_send_only(1, GROUP);
	return lab_end_with(&(struct lab_options){ .qkey = (*g)->qkey });
}

static void send_to(struct lab_end *e, const struct ibv_ah_attr *attr, uint32_t qpn, uint32_t qkey,
                    uint32_t bytes)
{
	struct lab_request r;

	lab_request(e, &r, lab_ah(e->pd, attr), qpn, NULL, bytes);
	r.wr.wr.ud.remote_qkey = qkey;
	lab_send_request(e, &r);
}

static void undo_id(void *id)
{
	struct rdma_event_channel *channel = ((struct rdma_cm_id *)id)->channel;

	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

/* The port with the address joins the group in a port space that says what kind of group it is. */
static struct rdma_cm_id *join_in(enum rdma_port_space space, const char *address,
                                  struct rdma_ud_param *joined)
{
	struct sockaddr_in from = { .sin_family = AF_INET }, to = { .sin_family = AF_INET };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(rdma_create_event_channel(), &id, NULL, space), 0);
	lab_undo(undo_id, id);
	assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&from), 0);
	assert_int_equal(inet_pton(AF_INET, GROUP, &to.sin_addr), 1);
	assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&to, NULL), 0);
	assert_int_equal(rdma_get_cm_event(id->channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	*joined = event->param.ud;
	rdma_ack_cm_event(event);
	return id;
}

/* ---- members ---- */

static void attached_not_joined(bool wrong)
{
	const union ibv_gid nobodys = lab_mgid(7);
	struct lab_group *g = wrong ? NULL : lab_join(1, GROUP);

	lab_attach(lab_end(1)->qp, wrong ? &nobodys : &g->mgid, wrong ? 0xC0DE : g->mlid);
}

/* A program may attach first, and join while it is attached. */
static void attached_first(bool wrong)
{
	struct lab_group *g = lab_join(2, GROUP);
	struct lab_end *e = lab_end(1), *two = lab_end(2);

	lab_attach(two->qp, &g->mgid, g->mlid);
	assert_int_equal(ibv_attach_mcast(e->qp, &g->mgid, g->mlid), 0);
	if (!wrong)
		lab_join(1, GROUP);
	assert_int_equal(ibv_detach_mcast(e->qp, &g->mgid, g->mlid), 0);
}

static void attached_at_the_end(bool wrong)
{
	struct lab_group *g = wrong ? NULL : lab_join(1, GROUP);
	const union ibv_gid nobodys = lab_mgid(7);
	struct lab_end *e = lab_end(1);

	if (wrong) {
		assert_int_equal(ibv_attach_mcast(e->qp, &nobodys, 0xC0DE), 0);
		exit(0);
	}
	lab_attach(e->qp, &g->mgid, g->mlid);
}

static void attached_send_only(bool wrong)
{
	struct lab_group *g = wrong ? lab_join_send_only(1, GROUP) : lab_join(1, GROUP);

	lab_attach(lab_end(1)->qp, &g->mgid, g->mlid);
}

static void joined_not_attached(bool wrong)
{
	struct lab_group *g = lab_join(1, GROUP);
	struct lab_end *e = lab_end(1);

	if (!wrong)
		lab_attach(e->qp, &g->mgid, g->mlid);
}

static void sent_not_joined(bool wrong)
{
	struct lab_group *g;
	struct lab_end *e = wrong ? stranger(&g) : sender(&g);

	send_to(e, &g->attr, LAB_MCAST, g->qkey, 64);
}

static void left_before_sending(bool wrong)
{
	struct lab_group *g, *own = lab_join_send_only(1, GROUP);
	struct lab_end *e = stranger(&g);

	send_to(e, &g->attr, LAB_MCAST, g->qkey, 64);
	if (wrong)
		lab_leave(own);
	send_to(e, &g->attr, LAB_MCAST, g->qkey, 64);
}

static void left_before_detach(bool wrong)
{
	struct lab_group *g = lab_join(1, GROUP);
	struct lab_end *e = lab_end(1);

	assert_int_equal(ibv_attach_mcast(e->qp, &g->mgid, g->mlid), 0);
	if (wrong)
		lab_leave(g);
	assert_int_equal(ibv_detach_mcast(e->qp, &g->mgid, g->mlid), 0);
	if (!wrong)
		lab_leave(g);
}

static void not_joined_again(bool wrong)
{
	struct lab_group *g;
	struct lab_end *e = member(1, &g);

	lab_link(1, false);
	lab_link(1, true);
	if (wrong)
		usleep(LOST_US);
	else
		lab_join(1, GROUP);
	lab_detach(e->qp, &g->mgid, g->mlid);
}

/* On host r1 with RoCE, where attaching joins, too. */
static void attached_on_roce(bool wrong)
{
	union ibv_gid mgid = { .raw = { [10] = 0xFF, 0xFF, 239, 1, 2, 3 } };
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_context *context = ibv_open_device(devices[0]);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct rdma_ud_param joined;
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp *qp;

	init.send_cq = init.recv_cq = cq;
	assert_non_null(qp = ibv_create_qp(pd, &init));
	assert_int_equal(
	        ibv_modify_qp(qp, &attr,
	                      IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
	        0);
	if (!wrong)
		join_in(RDMA_PS_UDP, "172.16.0.1", &joined);
	assert_int_equal(ibv_attach_mcast(qp, &mgid, 0), 0);
	assert_int_equal(ibv_detach_mcast(qp, &mgid, 0), 0);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	ibv_free_device_list(devices);
}

/* ---- the group's record ---- */

static void other_qpn(bool wrong)
{
	struct lab_group *g;
	struct lab_end *e = sender(&g);

	send_to(e, &g->attr, wrong ? e->qp->qp_num : LAB_MCAST, g->qkey, 64);
}

static void other_qkey(bool wrong)
{
	struct lab_group *g;
	struct lab_end *e = sender(&g);

	send_to(e, &g->attr, LAB_MCAST, wrong ? g->qkey + 1 : g->qkey, 64);
}

/* The queue pair's, as the highest bit says. */
static void other_qkey_of_queue_pair(bool wrong)
{
	struct lab_group *g;
	struct lab_end *e = sender(&g);
	struct ibv_qp_attr attr = { .qkey = g->qkey + 1 };

	if (wrong)
		assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_QKEY), 0);
	send_to(e, &g->attr, LAB_MCAST, 0x80000000, 64);
}

static void other_sl(bool wrong)
{
	struct lab_group *g;
	struct lab_end *e = sender(&g);
	struct ibv_ah_attr attr = g->attr;

	if (wrong)
		attr.sl++;
	send_to(e, &attr, LAB_MCAST, g->qkey, 64);
}

static void faster(bool wrong)
{
	struct lab_group *g;
	struct lab_end *e = sender(&g);
	struct ibv_ah_attr attr = g->attr;

	if (wrong)
		attr.static_rate = IBV_RATE_300_GBPS;
	send_to(e, &attr, LAB_MCAST, g->qkey, 64);
}

static void longer(bool wrong)
{
	struct rdma_ud_param g; /* of IPoIB: the MTU is that of the broadcast group */
	struct lab_end *e;

	join_in(RDMA_PS_IPOIB, "10.0.0.1", &g);
	e = lab_end_with(&(struct lab_options){ .qkey = g.qkey });
	lab_attach(e->qp, &g.ah_attr.grh.dgid, g.ah_attr.dlid);
	send_to(e, &g.ah_attr, LAB_MCAST, g.qkey, wrong ? 4096 : 2048);
}

/* The partition at index 1 is another one. */
static void other_pkey(bool wrong)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = wrong };
	struct lab_end *e;
	struct lab_group *g;

	member(2, &g);
	lab_join_send_only(1, GROUP);
	e = lab_end_with(&(struct lab_options){ .reset = true });
	attr.qkey = g->qkey;
	assert_int_equal(
	        ibv_modify_qp(e->qp, &attr,
	                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	        0);
	lab_to_rtr(e->qp);
	lab_to_rts(e->qp);
	send_to(e, &g->attr, LAB_MCAST, g->qkey, 64);
}

/* ---- receives ---- */

static void post_receive(struct lab_end *e, uint32_t bytes)
{
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));
	struct ibv_sge sge = { (uintptr_t)memory, bytes, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 8, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
}

static void ud_receive_small(bool wrong)
{
	struct lab_end *e = lab_end(1), *to = lab_end(2);

	post_receive(to, wrong ? 100 : 104);
	lab_send(e, lab_ah_to(e, to), to->qp->qp_num, NULL, 64);
	lab_complete(to->cq, wrong ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS);
}

static void ud_receive_without_grh(bool wrong)
{
	struct lab_end *e = lab_end(1), *to = lab_end(2);

	post_receive(e, wrong ? 64 : 104);
	lab_post(to, 1);
	lab_send(e, lab_ah_to(e, to), to->qp->qp_num, NULL, 64);
	lab_to(e->qp, IBV_QPS_RESET);
}

/* Connected queue pairs of hosts 1 and 2. */
static void connect_two(struct lab_end *e[2], struct ibv_qp *qp[2])
{
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };

		e[i] = lab_end(1 + i);
		init.send_cq = e[i]->send_cq;
		init.recv_cq = e[i]->cq;
		init.cap = (struct ibv_qp_cap){ 8, 8, 1, 1, 0 };
		qp[i] = lab_qp(e[i]->pd, &init);
	}
	for (int i = 0; i < 2; i++)
		lab_connect(qp[i], qp[!i]->qp_num, e[!i]->context, 0);
}

static void post_rc(struct lab_end *e, struct ibv_qp *qp, uint32_t bytes)
{
	struct lab_request r;
	struct ibv_send_wr *bad;

	lab_request(e, &r, NULL, 0, NULL, bytes);
	assert_int_equal(ibv_post_send(qp, &r.wr, &bad), 0);
}

static void rc_receive_small(bool wrong)
{
	struct lab_end *e[2];
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;

	connect_two(e, qp);
	mr = lab_mr(e[1]->pd, memory, sizeof(memory));

	struct ibv_sge sge = { (uintptr_t)memory, wrong ? 63 : 64, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(qp[1], &wr, &bad), 0);
	post_rc(e[0], qp[0], 64);
	lab_complete(e[1]->cq, wrong ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS);
	lab_complete(e[0]->send_cq, wrong ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS);
}

/* Again, with rnr_retry 0. */
static void connect_impatiently(struct ibv_qp *qp, uint32_t peer, struct ibv_context *there)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	lab_to(qp, IBV_QPS_RESET);
	assert_int_equal(
	        ibv_modify_qp(qp, &attr,
	                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	        0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
		                     .path_mtu = IBV_MTU_1024,
		                     .dest_qp_num = peer,
		                     .max_dest_rd_atomic = 1,
		                     .ah_attr = lab_path(there) };
	assert_int_equal(ibv_modify_qp(qp, &attr,
	                               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
	                                       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	                                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	                 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .retry_cnt = 7, .timeout = 14 };
	assert_int_equal(ibv_modify_qp(qp, &attr,
	                               IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
	                                       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	                                       IBV_QP_MAX_QP_RD_ATOMIC),
	                 0);
}

static void receives_run_out(bool wrong)
{
	struct ibv_recv_wr wr = { .num_sge = 0 }, *bad;
	struct lab_end *e[2];
	struct ibv_qp *qp[2];

	connect_two(e, qp);
	connect_impatiently(qp[0], qp[1]->qp_num, e[1]->context);
	if (!wrong)
		assert_int_equal(ibv_post_recv(qp[1], &wr, &bad), 0);
	post_rc(e[0], qp[0], 0);
	lab_complete(e[0]->send_cq, wrong ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_SUCCESS);
}

/* Datagrams that meet no receive are lost, and nobody is told. */
static void datagrams_run_out(bool wrong)
{
	struct lab_end *e = lab_end(1), *to = lab_end(2);
	struct ibv_ah *ah = lab_ah_to(e, to);

	lab_post(to, wrong ? 1 : 3);
	for (int i = 0; i < 3; i++)
		lab_send(e, ah, to->qp->qp_num, NULL, 64);
	lab_receive(to);
	lab_post(to, 1);
}

/* The last of them: no receive is posted any more. */
static void datagrams_run_out_at_the_end(bool wrong)
{
	struct lab_end *e = lab_end(1), *to = lab_end(2);
	struct ibv_ah *ah = lab_ah_to(e, to);

	lab_post(to, 2);
	for (int i = 0; i < (wrong ? 3 : 2); i++)
		lab_send(e, ah, to->qp->qp_num, NULL, 64);
	lab_receive(to);
	lab_receive(to);
}

/* ---- events and ends ---- */

static unsigned late_us;

/* Meanwhile ibv_destroy_qp() waits. */
static void *acknowledge_late(void *event)
{
	usleep(late_us);
	ibv_ack_async_event(event);
	return NULL;
}

static void async_event_left(bool wrong)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	static struct ibv_async_event event;
	struct lab_end *e = lab_end(1);
	pthread_t thread;

	assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	assert_int_equal(ibv_get_async_event(e->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
	late_us = wrong ? 1300000 : 100000;
	assert_int_equal(pthread_create(&thread, NULL, acknowledge_late, &event), 0);
}

static void domain_first(bool wrong)
{
	struct ibv_pd *pd = ibv_alloc_pd(lab_open(1));
	struct ibv_mr *mr;

	assert_non_null(pd);
	assert_non_null(mr = ibv_reg_mr(pd, memory, sizeof(memory), 0));
	if (wrong)
		assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	ibv_dereg_mr(mr);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void queue_first(bool wrong)
{
	struct lab_end *e = lab_end(1);

	if (wrong)
		assert_int_equal(ibv_destroy_cq(e->cq), EBUSY);
}

static void attached_still(bool wrong)
{
	struct lab_group *g;
	struct lab_end *e = member(1, &g);

	if (wrong)
		assert_int_equal(ibv_destroy_qp(e->qp), EBUSY);
}

/* ---- thread domains ---- */

struct in_domain {
	struct ibv_td *td;
	struct ibv_pd *pd;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	pthread_mutex_t lock;
	bool wrong;
	_Atomic bool stop;
};

static void make_domain(struct in_domain *d)
{
	struct ibv_td_init_attr td = { 0 };
	struct ibv_parent_domain_init_attr parent = { .pd = lab_pd(lab_open(1)) };
	struct ibv_cq_init_attr_ex cq = { .cqe = 64, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 16, 16, 1, 1, 0 } };

	assert_non_null(d->td = ibv_alloc_td(parent.pd->context, &td));
	parent.td = d->td;
	assert_non_null(d->pd = ibv_alloc_parent_domain(parent.pd->context, &parent));
	cq.parent_domain = d->pd;
	assert_non_null(d->cq = ibv_create_cq_ex(parent.pd->context, &cq));
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(d->cq);
	assert_non_null(d->qp = ibv_create_qp(d->pd, &init));
	lab_to_init(d->qp, LAB_QKEY);
}

/* Until it is stopped: @use, by two threads. */
static void use_by_two(bool wrong, void *(*use)(void *))
{
	struct in_domain d = { .lock = PTHREAD_MUTEX_INITIALIZER, .wrong = wrong };
	pthread_t thread[2];

	make_domain(&d);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, use, &d), 0);
	usleep(300000);
	d.stop = true;
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(ibv_destroy_qp(d.qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(d.cq)), 0);
	assert_int_equal(ibv_dealloc_pd(d.pd), 0);
	assert_int_equal(ibv_dealloc_td(d.td), 0);
}

static void *poll_domain(void *arg)
{
	struct in_domain *d = arg;
	struct ibv_wc wc;

	while (!d->stop) {
		if (!d->wrong)
			pthread_mutex_lock(&d->lock);
		ibv_poll_cq(ibv_cq_ex_to_cq(d->cq), 1, &wc);
		if (!d->wrong)
			pthread_mutex_unlock(&d->lock);
	}
	return NULL;
}

/* The queue is full soon, and the post is refused: it is a use all the same. */
static void *post_in_domain(void *arg)
{
	struct ibv_recv_wr wr = { .num_sge = 0 }, *bad;
	struct in_domain *d = arg;

	while (!d->stop) {
		if (!d->wrong)
			pthread_mutex_lock(&d->lock);
		ibv_post_recv(d->qp, &wr, &bad);
		if (!d->wrong)
			pthread_mutex_unlock(&d->lock);
	}
	return NULL;
}

static void domain_queue_shared(bool wrong)
{
	use_by_two(wrong, poll_domain);
}

static void domain_queue_pair_shared(bool wrong)
{
	use_by_two(wrong, post_in_domain);
}

const struct mistake group_mistakes[] = {
	{ "attached-not-joined", "attached-not-joined", attached_not_joined },
	{ "attached-first", "attached-not-joined", attached_first },
	{ "attached-send-only", "attached-not-joined", attached_send_only },
	{ "joined-not-attached", "joined-not-attached", joined_not_attached },
	{ "sent-not-joined", "group-send-not-joined", sent_not_joined },
	{ "left-before-sending", "group-send-not-joined", left_before_sending },
	{ "left-before-detach", "left-before-detach", left_before_detach },
	{ "not-joined-again", "group-not-joined-again", not_joined_again },
	{ "group-qpn", "group-qpn", other_qpn },
	{ "group-qkey", "group-qkey", other_qkey },
	{ "group-qkey-of-queue-pair", "group-qkey", other_qkey_of_queue_pair },
	{ "group-sl", "group-sl", other_sl },
	{ "group-rate", "group-rate", faster },
	{ "ud-receive-small", "receive-too-small", ud_receive_small },
	{ "ud-receive-without-grh", "ud-receive-without-grh", ud_receive_without_grh },
	{ "rc-receive-small", "receive-too-small", rc_receive_small },
	{ "receives-run-out", "receives-run-out", receives_run_out },
	{ "datagrams-run-out", "receives-run-out", datagrams_run_out },
	{ "datagrams-run-out-at-the-end", "receives-run-out", datagrams_run_out_at_the_end },
	{ "async-event-left", "async-events-not-acknowledged", async_event_left },
	{ "domain-first", "destroyed-in-use", domain_first },
	{ "queue-first", "destroyed-in-use", queue_first },
	{ "attached-still", "destroyed-in-use", attached_still },
	{ "thread-domain-queue", "thread-domain-shared", domain_queue_shared },
	{ "thread-domain-queue-pair", "thread-domain-shared", domain_queue_pair_shared },
	/* for groups.sh */
	{ "attached-at-the-end", NULL, attached_at_the_end },
	{ "group-mtu", NULL, longer },
	{ "group-pkey", NULL, other_pkey },
	{ "attached-on-roce", NULL, attached_on_roce },
	{ .name = NULL },
};
