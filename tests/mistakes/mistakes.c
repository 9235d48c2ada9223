/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes the mistake that its argument names, and checks that the call fails with the right errno,
 * or succeeds if the specification has it so. mistakes.sh looks for the words that explain it. On
 * no host: it uses the HCAs of h1 and h2.
 */
#include "must.h"

#include <infiniband/umad.h>
#include <rdma/rdma_cma.h>

#include "../qp_states.h"

#define QKEY        0x1234
#define MCAST_QPN   0xFFFFFF
#define MLID        0xC009 /* of no group: attaching needs none */
#define N_MISTAKES  (sizeof(mistakes) / sizeof(*mistakes))
#define LOST_WAIT_S 20

/* One HCA, with what it takes to send and receive. */
struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint16_t lid;
	char memory[8192];
};

static struct end h1, h2;
static const union ibv_gid group = { .raw = { 0xFF, 0x12, 0x40, 0x1B, 0xFF, 0xFF, [15] = 9 } };

/* The call returns this errno; or NULL or -1, and sets it. */
#define RETURNS(wanted, call) is_refused(#call, wanted, (call))
#define SETS(wanted, call)    (errno = 0, MUST(!(call)), is_refused(#call, wanted, errno))

static void is_refused(const char *call, int wanted, int got)
{
	if (got == wanted)
		return;
	fprintf(stderr, "mistakes: %s: %s, not %s\n", call, strerror(got), strerror(wanted));
	exit(1);
}

static void open_end(struct end *e, struct ibv_device *device)
{
	struct ibv_port_attr port;

	MUST(e->context = ibv_open_device(device));
	MUST(e->pd = ibv_alloc_pd(e->context));
	MUST(e->cq = ibv_create_cq(e->context, 64, NULL, NULL, 0));
	MUST(e->mr = ibv_reg_mr(e->pd, e->memory, sizeof(e->memory), IBV_ACCESS_LOCAL_WRITE));
	MUST(!ibv_query_port(e->context, 1, &port));
	e->lid = port.lid;
}

static void open_both(void)
{
	struct ibv_device **list;
	int n;

	MUST(list = ibv_get_device_list(&n));
	if (n < 2)
		exit(2); /* what says why is looked for */
	open_end(&h1, list[0]);
	open_end(&h2, list[1]);
	ibv_free_device_list(list);
}

static struct ibv_qp *qp_new(struct end *e, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = type, .cap = { 4, 4, 1, 1, 64 }
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	MUST(qp);
	return qp;
}

static int to_init_by(struct ibv_qp *qp, unsigned pkey_index, unsigned port)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
		                 .pkey_index = (uint16_t)pkey_index,
		                 .port_num = (uint8_t)port,
		                 .qkey = QKEY };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	return ibv_modify_qp(
	        qp, &a, mask | (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

/* A UD queue pair in that state. */
static struct ibv_qp *ud_in(struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp *qp = qp_new(e, IBV_QPT_UD);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR };

	if (state >= IBV_QPS_INIT)
		MUST(!to_init_by(qp, 0, 1));
	if (state >= IBV_QPS_RTR)
		MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_RTS;
	if (state >= IBV_QPS_RTS)
		MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return qp;
}

static struct ibv_ah *handle_of(struct end *from, const struct end *to)
{
	struct ibv_ah_attr a = { .dlid = to->lid, .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(from->pd, &a);

	MUST(ah);
	return ah;
}

/* A request to send; what is wrong with it the caller changes. */
struct request {
	struct ibv_sge sge;
	struct ibv_send_wr wr;
};

static void fill_send(struct request *r, struct end *from, struct ibv_ah *ah, uint32_t qpn)
{
	*r = (struct request){
		.sge = { (uintptr_t)from->memory, 64, from->mr->lkey },
		.wr = { .wr_id = 7,
		        .sg_list = &r->sge,
		        .num_sge = 1,
		        .opcode = IBV_WR_SEND,
		        .send_flags = IBV_SEND_SIGNALED,
		        .wr.ud = { ah, qpn, QKEY } },
	};
}

static int post(struct ibv_qp *qp, struct request *r)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(qp, &r->wr, &bad);
}

static int receive(struct end *e, struct ibv_qp *qp, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)e->memory, bytes, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

static void await_completion(struct end *e, enum ibv_wc_status status)
{
	struct ibv_wc wc = { 0 };
	int n;

	while (!(n = ibv_poll_cq(e->cq, 1, &wc)))
		;
	MUST(n == 1);
	is_refused("a completion", (int)status, (int)wc.status);
}

/* From h1 to a UD queue pair of h2, which has a receive of these bytes, or none. */
struct pair {
	struct ibv_qp *from, *to;
	struct request r;
};

static void pair_up(struct pair *p, uint32_t receive_bytes)
{
	p->from = ud_in(&h1, IBV_QPS_RTS);
	p->to = ud_in(&h2, IBV_QPS_RTR);
	if (receive_bytes)
		MUST(!receive(&h2, p->to, receive_bytes));
	fill_send(&p->r, &h1, handle_of(&h1, &h2), p->to->qp_num);
}

/* ---- calls that fail ---- */

static void attach_rc(void)
{
	RETURNS(EINVAL, ibv_attach_mcast(qp_new(&h1, IBV_QPT_RC), &group, MLID));
}

static void attach_unicast(void)
{
	union ibv_gid gid;

	MUST(!ibv_query_gid(h1.context, 1, 0, &gid));
	RETURNS(EINVAL, ibv_attach_mcast(ud_in(&h1, IBV_QPS_RTS), &gid, MLID));
}

static void attach_lid(void)
{
	RETURNS(EINVAL, ibv_attach_mcast(ud_in(&h1, IBV_QPS_RTS), &group, 5));
}

static void detach_twice(void)
{
	struct ibv_qp *qp = ud_in(&h1, IBV_QPS_RTS);

	MUST(!ibv_attach_mcast(qp, &group, MLID));
	MUST(!ibv_detach_mcast(qp, &group, MLID));
	RETURNS(EINVAL, ibv_detach_mcast(qp, &group, MLID));
}

static void forgotten_detach(void)
{
	struct ibv_qp *qp = ud_in(&h1, IBV_QPS_RTS);

	MUST(!ibv_attach_mcast(qp, &group, MLID));
	RETURNS(EBUSY, ibv_destroy_qp(qp));
}

static void pkey_index(void)
{
	RETURNS(EINVAL, to_init_by(qp_new(&h1, IBV_QPT_UD), 5, 1));
}

static void port_number(void)
{
	RETURNS(EINVAL, to_init_by(qp_new(&h1, IBV_QPT_UD), 0, 2));
}

static void rtr_skipped(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS };

	RETURNS(EINVAL, ibv_modify_qp(ud_in(&h1, IBV_QPS_INIT), &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void rtr_mask(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR };

	RETURNS(EINVAL, ibv_modify_qp(ud_in(&h1, IBV_QPS_INIT), &a, IBV_QP_STATE | IBV_QP_PORT));
}

static void rc_mask(void)
{
	struct ibv_qp *qp = qp_new(&h1, IBV_QPT_RC);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
		                 .path_mtu = IBV_MTU_4096,
		                 .dest_qp_num = 99,
		                 .ah_attr = { .dlid = 2, .port_num = 1 } };

	MUST(!to_init_by(qp, 0, 1));
	RETURNS(EINVAL,
	        ibv_modify_qp(qp, &a,
	                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN));
}

static void send_in_init(void)
{
	struct ibv_qp *qp = ud_in(&h1, IBV_QPS_INIT);
	struct request r;

	fill_send(&r, &h1, handle_of(&h1, &h2), 99);
	RETURNS(EINVAL, post(qp, &r));
}

static void receive_in_reset(void)
{
	RETURNS(EINVAL, receive(&h1, ud_in(&h1, IBV_QPS_RESET), 104));
}

static void ud_write(void)
{
	struct pair p;

	pair_up(&p, 0);
	p.r.wr.opcode = IBV_WR_RDMA_WRITE;
	RETURNS(EINVAL, post(p.from, &p.r));
}

static void null_handle(void)
{
	struct pair p;

	pair_up(&p, 0);
	p.r.wr.wr.ud.ah = NULL;
	RETURNS(EINVAL, post(p.from, &p.r));
}

static void inline_too_long(void)
{
	struct pair p;

	pair_up(&p, 0);
	p.r.sge.length = 500;
	p.r.wr.send_flags |= IBV_SEND_INLINE;
	RETURNS(EINVAL, post(p.from, &p.r));
}

/* Address handles to a group, each with one thing wrong. */
static void handle(bool is_global, uint8_t sgid_index, uint8_t port, uint16_t dlid)
{
	struct ibv_ah_attr a = { .is_global = is_global,
		                 .grh = { .dgid = group, .sgid_index = sgid_index },
		                 .dlid = dlid,
		                 .port_num = port };

	SETS(EINVAL, ibv_create_ah(h1.pd, &a));
}

static void handle_without_grh(void)
{
	handle(false, 0, 1, MLID);
}

static void handle_sgid_index(void)
{
	handle(true, 9, 1, MLID);
}

static void handle_port(void)
{
	handle(true, 0, 3, MLID);
}

static void handle_lid_0(void)
{
	handle(true, 0, 1, 0);
}

/* There is no handle for a reply to a message that was sent to a group. */
static void handle_from_wc(void)
{
	struct ibv_wc wc = { .slid = h2.lid, .wc_flags = IBV_WC_GRH };
	struct ibv_grh grh = { .version_tclass_flow = htonl(0x60000000), .dgid = group };

	SETS(EINVAL, ibv_create_ah_from_wc(h1.pd, &wc, &grh, 1));
}

static void send_queue_full(void)
{
	struct pair p;

	pair_up(&p, 0);
	for (int i = 0; i < 4; i++)
		MUST(!post(p.from, &p.r));
	RETURNS(ENOMEM, post(p.from, &p.r));
}

static void receive_queue_full(void)
{
	struct ibv_qp *qp = ud_in(&h1, IBV_QPS_INIT);

	for (int i = 0; i < 4; i++)
		MUST(!receive(&h1, qp, 104));
	RETURNS(ENOMEM, receive(&h1, qp, 104));
}

static void receive_in_two(void)
{
	struct ibv_sge sge[2] = { { (uintptr_t)h1.memory, 64, h1.mr->lkey },
		                  { (uintptr_t)h1.memory, 64, h1.mr->lkey } };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 2 }, *bad;

	RETURNS(EINVAL, ibv_post_recv(ud_in(&h1, IBV_QPS_INIT), &wr, &bad));
}

static void cq_of_0(void)
{
	SETS(EINVAL, ibv_create_cq(h1.context, 0, NULL, NULL, 0));
}

static void qp_new_with(uint32_t max_send_wr, uint32_t max_inline_data)
{
	struct ibv_qp_init_attr init = { .send_cq = h1.cq,
		                         .recv_cq = h1.cq,
		                         .qp_type = IBV_QPT_UD,
		                         .cap = { max_send_wr, 4, 1, 1, max_inline_data } };

	SETS(EINVAL, ibv_create_qp(h1.pd, &init));
}

static void qp_too_large(void)
{
	qp_new_with(100000, 0);
}

static void qp_inline_too_large(void)
{
	qp_new_with(4, 100000);
}

static void pd_in_use(void)
{
	RETURNS(EBUSY, ibv_dealloc_pd(h1.pd));
}

static void cq_in_use(void)
{
	qp_new(&h1, IBV_QPT_UD);
	RETURNS(EBUSY, ibv_destroy_cq(h1.cq));
}

static void region_access(void)
{
	SETS(EINVAL, ibv_reg_mr(h1.pd, h1.memory, 64, IBV_ACCESS_REMOTE_WRITE));
}

static void region_nowhere(void)
{
	SETS(EFAULT, ibv_reg_mr(h1.pd, (void *)4096, 64, IBV_ACCESS_LOCAL_WRITE));
}

static void gid_index(void)
{
	union ibv_gid gid;

	errno = 0;
	MUST(ibv_query_gid(h1.context, 1, 999, &gid) == -1);
	is_refused("ibv_query_gid", EINVAL, errno);
}

/* ---- requests that fail ---- */

static void wrong_lkey(void)
{
	struct pair p;

	pair_up(&p, 0);
	p.r.sge.lkey = 0xdead;
	MUST(!post(p.from, &p.r));
	await_completion(&h1, IBV_WC_LOC_PROT_ERR);
}

static void beyond_region(void)
{
	struct pair p;

	pair_up(&p, 0);
	p.r.sge.addr += sizeof(h1.memory) - 10;
	MUST(!post(p.from, &p.r));
	await_completion(&h1, IBV_WC_LOC_PROT_ERR);
}

static void other_pd(void)
{
	struct pair p;
	struct ibv_pd *pd = ibv_alloc_pd(h1.context);
	struct ibv_ah_attr a = { .dlid = h2.lid, .port_num = 1 };

	pair_up(&p, 0);
	p.r.wr.wr.ud.ah = ibv_create_ah(pd, &a);
	MUST(!post(p.from, &p.r));
	await_completion(&h1, IBV_WC_LOC_QP_OP_ERR);
}

static void no_room_for_grh(void)
{
	struct pair p;

	pair_up(&p, 64);
	MUST(!post(p.from, &p.r));
	await_completion(&h2, IBV_WC_LOC_LEN_ERR);
}

static void receive_not_writable(void)
{
	struct ibv_mr *mr = ibv_reg_mr(h2.pd, h2.memory, sizeof(h2.memory), 0), *before = h2.mr;
	struct pair p;

	MUST(mr);
	h2.mr = mr;
	pair_up(&p, 104);
	h2.mr = before;
	MUST(!post(p.from, &p.r));
	await_completion(&h2, IBV_WC_LOC_PROT_ERR);
}

/* The reason says how far the message needs it. */
static void receive_beyond_region(void)
{
	struct ibv_mr *mr = ibv_reg_mr(h2.pd, h2.memory, 103, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *before = h2.mr;
	struct pair p;

	MUST(mr);
	h2.mr = mr;
	pair_up(&p, sizeof(h2.memory));
	h2.mr = before;
	MUST(!post(p.from, &p.r));
	await_completion(&h2, IBV_WC_LOC_PROT_ERR);
}

static void flushed(void)
{
	struct ibv_qp *qp = ud_in(&h1, IBV_QPS_RTS);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
	MUST(!receive(&h1, qp, 104));
	await_completion(&h1, IBV_WC_WR_FLUSH_ERR);
}

/* A connection to queue pair @dest of h2; it gives up soon. */
static struct ibv_qp *rc_to(uint32_t dest)
{
	struct ibv_qp *qp = qp_new(&h1, IBV_QPT_RC);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
		                 .path_mtu = IBV_MTU_1024,
		                 .dest_qp_num = dest,
		                 .min_rnr_timer = 1,
		                 .ah_attr = { .dlid = h2.lid, .port_num = 1 } };

	MUST(!to_init_by(qp, 0, 1));
	MUST(!qp_to_rtr(qp, &a));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 1 };
	MUST(!qp_to_rts(qp, &a));
	return qp;
}

static void rc_to_nobody(void)
{
	struct request r;

	fill_send(&r, &h1, NULL, 0);
	MUST(!post(rc_to(0x4321), &r));
	await_completion(&h1, IBV_WC_RETRY_EXC_ERR);
}

static void rc_too_early(void)
{
	struct ibv_qp *peer = qp_new(&h2, IBV_QPT_RC);
	struct request r;

	fill_send(&r, &h1, NULL, 0);
	MUST(!post(rc_to(peer->qp_num), &r));
	await_completion(&h1, IBV_WC_RETRY_EXC_ERR);
}

/* A completion queue of @room overruns. */
static void overrun(void)
{
	struct ibv_cq *cq = ibv_create_cq(h1.context, 1, NULL, NULL, 0), *before = h1.cq;
	struct ibv_wc wc;
	struct pair p;

	MUST(cq);
	h1.cq = cq;
	pair_up(&p, 0);
	h1.cq = before;
	for (int i = 0; i < cq->cqe + 1 && i < 4; i++)
		MUST(!post(p.from, &p.r));
	if (ibv_poll_cq(cq, 1, &wc) >= 0)
		exit(77); /* queues are rounded up: the send queue is smaller */
}

/* ---- what gets lost ---- */

static void lost_qkey(void)
{
	struct pair p;

	pair_up(&p, 104);
	p.r.wr.wr.ud.remote_qkey = 0x1111;
	MUST(!post(p.from, &p.r));
}

static void lost_no_receive(void)
{
	struct pair p;

	pair_up(&p, 0);
	MUST(!post(p.from, &p.r));
}

static void lost_mtu(void)
{
	struct pair p;

	pair_up(&p, 104);
	p.r.sge.length = 5000;
	MUST(!post(p.from, &p.r));
}

static void lost_no_qp(void)
{
	struct pair p;

	pair_up(&p, 0);
	p.r.wr.wr.ud.remote_qpn = 0x4321;
	MUST(!post(p.from, &p.r));
}

static void lost_not_ready(void)
{
	struct pair p;

	pair_up(&p, 0);
	p.r.wr.wr.ud.remote_qpn = ud_in(&h2, IBV_QPS_INIT)->qp_num;
	MUST(!post(p.from, &p.r));
}

static void lost_lid(void)
{
	struct ibv_ah_attr a = { .dlid = 0x777, .port_num = 1 };
	struct pair p;

	pair_up(&p, 0);
	p.r.wr.wr.ud.ah = ibv_create_ah(h1.pd, &a);
	MUST(!post(p.from, &p.r));
}

static void lost_mlid(void)
{
	struct ibv_ah_attr a = { .is_global = 1, .grh.dgid = group, .dlid = 0xC055, .port_num = 1 };
	struct pair p;

	pair_up(&p, 0);
	p.r.wr.wr.ud.ah = ibv_create_ah(h1.pd, &a);
	p.r.wr.wr.ud.remote_qpn = MCAST_QPN;
	MUST(!post(p.from, &p.r));
}

/* ---- rdma_cm ---- */

static struct rdma_event_channel *events;

static struct rdma_cm_id *bound_id(const char *address, enum rdma_port_space ps, int wanted)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct rdma_cm_id *id;

	if (!events)
		MUST(events = rdma_create_event_channel());
	MUST(!rdma_create_id(events, &id, NULL, ps));
	inet_pton(AF_INET, address, &in.sin_addr);
	errno = 0;
	MUST(!rdma_bind_addr(id, (struct sockaddr *)&in) == !wanted);
	is_refused("rdma_bind_addr", wanted, wanted ? errno : 0);
	return id;
}

static struct rdma_cm_event *next_event(enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event;

	MUST(!rdma_get_cm_event(events, &event));
	if (event->event != wanted) {
		fprintf(stderr, "mistakes: %s, status %d\n", rdma_event_str(event->event),
		        event->status);
		exit(1);
	}
	return event;
}

static int join_by(struct rdma_cm_id *id, uint32_t flags)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = (struct sockaddr *)&in,
	};

	inet_pton(AF_INET, "239.1.1.1", &in.sin_addr);
	return rdma_join_multicast_ex(id, &attr, NULL);
}

/* The group's attributes for h1, which has joined it, and h2 with these flags; -1: it has not. */
static struct rdma_ud_param joined(int flags)
{
	struct rdma_cm_event *event;

	if (flags >= 0) {
		MUST(!join_by(bound_id("10.0.0.2", RDMA_PS_UDP, 0), (uint32_t)flags));
		next_event(RDMA_CM_EVENT_MULTICAST_JOIN);
	}
	MUST(!join_by(bound_id("10.0.0.1", RDMA_PS_UDP, 0), RDMA_MC_JOIN_FLAG_FULLMEMBER));
	event = next_event(RDMA_CM_EVENT_MULTICAST_JOIN);
	return event->param.ud;
}

static void send_to_group(const struct rdma_ud_param *to, uint32_t qpn)
{
	struct ibv_ah_attr a = to->ah_attr;
	struct pair p;

	pair_up(&p, 0);
	p.r.wr.wr.ud.ah = ibv_create_ah(h1.pd, &a);
	MUST(p.r.wr.wr.ud.ah);
	p.r.wr.wr.ud.remote_qpn = qpn;
	MUST(!post(p.from, &p.r));
}

static void lost_mcast_qpn(void)
{
	struct rdma_ud_param to = joined(RDMA_MC_JOIN_FLAG_FULLMEMBER);

	send_to_group(&to, 7);
}

static void lost_send_only(void)
{
	struct rdma_ud_param to = joined(RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);

	send_to_group(&to, MCAST_QPN);
}

/* The other one has joined it in another fabric. */
static void lost_alone(void)
{
	struct rdma_ud_param to = joined(-1);

	send_to_group(&to, MCAST_QPN);
}

static void lost_unattached(void)
{
	struct rdma_ud_param to = joined(RDMA_MC_JOIN_FLAG_FULLMEMBER);

	send_to_group(&to, MCAST_QPN);
}

static void wrong_address(void)
{
	bound_id("10.0.0.77", RDMA_PS_UDP, EADDRNOTAVAIL);
}

static void join_unbound(void)
{
	struct rdma_cm_id *id;

	MUST(events = rdma_create_event_channel());
	MUST(!rdma_create_id(events, &id, NULL, RDMA_PS_UDP));
	errno = 0;
	MUST(join_by(id, RDMA_MC_JOIN_FLAG_FULLMEMBER) == -1);
	is_refused("rdma_join_multicast_ex", EINVAL, errno);
}

static void join_without_sm(void)
{
	errno = 0;
	MUST(join_by(bound_id("10.0.0.1", RDMA_PS_UDP, 0), RDMA_MC_JOIN_FLAG_FULLMEMBER) == -1);
	is_refused("rdma_join_multicast_ex", EADDRNOTAVAIL, errno);
}

static struct rdma_cm_id *id_resolved(const char *from, const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(7471) };
	struct rdma_cm_id *id = bound_id(from, RDMA_PS_TCP, 0);

	inet_pton(AF_INET, address, &to.sin_addr);
	MUST(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000));
	rdma_ack_cm_event(next_event(RDMA_CM_EVENT_ADDR_RESOLVED));
	return id;
}

static struct rdma_cm_id *resolved_id(void)
{
	return id_resolved("10.0.0.1", "10.0.0.2");
}

static void connect_too_early(void)
{
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_id *id = resolved_id();

	errno = 0;
	MUST(rdma_connect(id, &param) == -1);
	is_refused("rdma_connect", EINVAL, errno);
}

static void rc_for_datagrams(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1 } };
	struct rdma_cm_id *id = bound_id("10.0.0.1", RDMA_PS_UDP, 0);

	errno = 0;
	MUST(rdma_create_qp(id, NULL, &init) == -1);
	is_refused("rdma_create_qp", EINVAL, errno);
}

static void nobody_listens(void)
{
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_id *id = resolved_id();
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1 } };

	MUST(!rdma_resolve_route(id, 2000));
	rdma_ack_cm_event(next_event(RDMA_CM_EVENT_ROUTE_RESOLVED));
	MUST(!rdma_create_qp(id, NULL, &init));
	MUST(!rdma_connect(id, &param));
	next_event(RDMA_CM_EVENT_REJECTED);
}

/* ---- MADs ---- */

static void mad_to_nobody(void)
{
	char *umad = calloc(1, umad_size() + 256);
	int fd = umad_open_port(NULL, 0), agent, length = 256;
	unsigned char *mad = umad_get_mad(umad);

	MUST(fd >= 0);
	agent = umad_register(fd, 0x04, 1, 0, NULL);
	MUST(agent >= 0);
	mad[0] = 1;
	mad[1] = 0x04; /* PerfMgt */
	mad[2] = 1;
	mad[3] = 1;     /* Get */
	mad[17] = 0x01; /* ClassPortInfo */
	umad_set_addr(umad, 0x777, 1, 0, 0x80010000);
	MUST(!umad_send(fd, agent, umad, length, 20, 0));
	MUST(umad_recv(fd, umad, &length, LOST_WAIT_S * 1000) == agent);
	is_refused("umad_status", ETIMEDOUT, umad_status(umad));
}

static void mad_unregistered(void)
{
	char *umad = calloc(1, umad_size() + 256);
	int fd = umad_open_port(NULL, 0);

	MUST(fd >= 0);
	MUST(umad_send(fd, 3, umad, 256, 0, 0) == -EIO);
}

static void mad_class_twice(void)
{
	long mask[16 / sizeof(long)] = { 2 };
	int fd = umad_open_port(NULL, 0);

	MUST(umad_register(fd, 0x09, 1, 0, mask) >= 0);
	MUST(umad_register(fd, 0x09, 1, 0, mask) == -EPERM);
}

/* ---- */

#define MISTAKE(name)             \
	{                         \
#name, name, true \
	}
#define MISTAKE_OF_CM(name)        \
	{                          \
#name, name, false \
	}

static const struct {
	const char *name;
	void (*make)(void);
	bool verbs; /* it needs both HCAs open */
} mistakes[] = {
	MISTAKE(attach_rc),
	MISTAKE(attach_unicast),
	MISTAKE(attach_lid),
	MISTAKE(detach_twice),
	MISTAKE(forgotten_detach),
	MISTAKE(pkey_index),
	MISTAKE(port_number),
	MISTAKE(rtr_skipped),
	MISTAKE(rtr_mask),
	MISTAKE(rc_mask),
	MISTAKE(send_in_init),
	MISTAKE(receive_in_reset),
	MISTAKE(ud_write),
	MISTAKE(null_handle),
	MISTAKE(inline_too_long),
	MISTAKE(handle_without_grh),
	MISTAKE(handle_sgid_index),
	MISTAKE(handle_port),
	MISTAKE(handle_lid_0),
	MISTAKE(handle_from_wc),
	MISTAKE(send_queue_full),
	MISTAKE(receive_queue_full),
	MISTAKE(receive_in_two),
	MISTAKE(cq_of_0),
	MISTAKE(qp_too_large),
	MISTAKE(qp_inline_too_large),
	MISTAKE(pd_in_use),
	MISTAKE(cq_in_use),
	MISTAKE(region_access),
	MISTAKE(region_nowhere),
	MISTAKE(gid_index),
	MISTAKE(wrong_lkey),
	MISTAKE(beyond_region),
	MISTAKE(other_pd),
	MISTAKE(no_room_for_grh),
	MISTAKE(receive_not_writable),
	MISTAKE(receive_beyond_region),
	MISTAKE(flushed),
	MISTAKE(rc_to_nobody),
	MISTAKE(rc_too_early),
	MISTAKE(overrun),
	MISTAKE(lost_qkey),
	MISTAKE(lost_no_receive),
	MISTAKE(lost_mtu),
	MISTAKE(lost_no_qp),
	MISTAKE(lost_not_ready),
	MISTAKE(lost_lid),
	MISTAKE(lost_mlid),
	MISTAKE(lost_mcast_qpn),
	MISTAKE(lost_send_only),
	MISTAKE(lost_alone),
	MISTAKE(lost_unattached),
	MISTAKE_OF_CM(wrong_address),
	MISTAKE_OF_CM(join_unbound),
	MISTAKE_OF_CM(join_without_sm),
	MISTAKE_OF_CM(connect_too_early),
	MISTAKE_OF_CM(rc_for_datagrams),
	MISTAKE_OF_CM(nobody_listens),
	MISTAKE_OF_CM(mad_to_nobody),
	MISTAKE_OF_CM(mad_unregistered),
	MISTAKE_OF_CM(mad_class_twice),
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < N_MISTAKES; i++) {
		if (strcmp(mistakes[i].name, argv[1]) != 0)
			continue;
		if (mistakes[i].verbs)
			open_both();
		mistakes[i].make();
		return 0;
	}
	for (size_t i = 0; argc == 1 && i < N_MISTAKES; i++)
		puts(mistakes[i].name);
	return argc == 1 ? 0 : 1;
}
