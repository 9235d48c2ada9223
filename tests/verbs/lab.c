/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects, messages and groups for the tests of the verbs library: see lab.h.
 */
#include "lab.h"
#include "deadline.h"

#include <json-c/json.h>

#include "base/pause.h"

#define MAX_UNDO 4096

static struct undo {
	void (*undo)(void *object);
	void *object;
} undo_stack[MAX_UNDO];
static unsigned n_undo;

void lab_undo(void (*undo)(void *object), void *object)
{
	assert_true(n_undo < MAX_UNDO);
	undo_stack[n_undo++] = (struct undo){ undo, object };
}

void lab_forget(void *object)
{
	for (unsigned i = n_undo; i-- > 0;)
		if (undo_stack[i].object == object) {
			undo_stack[i].undo = NULL;
			return;
		}
	fail_msg("the lab did not make this object");
}

int lab_clean_up(void **state)
{
	(void)state;
	while (n_undo) {
		struct undo u = undo_stack[--n_undo];

		if (u.undo)
			u.undo(u.object);
	}
	return 0;
}

/* ---- objects ---- */

/* Of a host's HCA. On one host with Ethernet ports, eth0 stands for the first host, eth1 for the
 * second; on a fabric of RoCE hosts LAB_HOSTS is "r". */
static void name_device(int host, char name[32])
{
	const char *hosts = getenv("LAB_HOSTS");

	if (getenv("LAB_ETHERNET"))
		snprintf(name, 32, "umbel_eth%d", host - 1);
	else
		snprintf(name, 32, "umbel_%s%d_0", hosts ? hosts : "h", host);
}

struct ibv_device *lab_device(int host)
{
	struct ibv_device **list, *found = NULL;
	char name[32];

	name_device(host, name);
	assert_non_null(list = ibv_get_device_list(NULL));
	for (int i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			found = list[i];
	ibv_free_device_list(list);
	assert_non_null(found);
	return found;
}

struct ibv_ah_attr lab_path(struct ibv_context *to)
{
	struct ibv_ah_attr attr = { .port_num = 1 };
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(to, 1, &port), 0);
	attr.dlid = port.lid;
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) { /* by its IPv4 address */
		attr.is_global = 1;
		attr.grh.sgid_index = 1;
		attr.grh.hop_limit = 64;
		assert_int_equal(ibv_query_gid(to, 1, 1, &attr.grh.dgid), 0);
	}
	return attr;
}

void lab_link(int host, bool up)
{
	struct ibv_context *context = ibv_open_device(lab_device(host));
	const enum ibv_port_state state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	struct deadline deadline = { 0 };
	struct ibv_port_attr port;
	char line[96];

	assert_non_null(context);
	assert_int_equal(ibv_query_port(context, 1, &port), 0);
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET)
		snprintf(line, sizeof(line), "umbel exec r%d -- ip link set eth0 %s", host,
		         up ? "up" : "down");
	else
		snprintf(line, sizeof(line), "umbel link %s h%d:1 > /dev/null", up ? "up" : "down",
		         host);
	assert_int_equal(system(line), 0);
	do { /* an Ethernet port follows its device soon */
		DEADLINE_LOOK(&deadline, "a port's new state");
		assert_int_equal(ibv_query_port(context, 1, &port), 0);
	} while (port.state != state);
	ibv_close_device(context);
}

static void undo_open(void *o)
{
	ibv_close_device(o);
}

struct ibv_context *lab_open(int host)
{
	struct ibv_context *context = ibv_open_device(lab_device(host));

	assert_non_null(context);
	lab_undo(undo_open, context);
	return context;
}

static void undo_pd(void *o)
{
	ibv_dealloc_pd(o);
}

struct ibv_pd *lab_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);

	assert_non_null(pd);
	lab_undo(undo_pd, pd);
	return pd;
}

static void undo_channel(void *o)
{
	ibv_destroy_comp_channel(o);
}

struct ibv_comp_channel *lab_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);

	assert_non_null(channel);
	lab_undo(undo_channel, channel);
	return channel;
}

static void undo_cq(void *o)
{
	ibv_destroy_cq(o);
}

struct ibv_cq *lab_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq = ibv_create_cq(context, cqe, NULL, channel, 0);

	assert_non_null(cq);
	lab_undo(undo_cq, cq);
	return cq;
}

static void undo_mr(void *o)
{
	ibv_dereg_mr(o);
}

struct ibv_mr *lab_mr(struct ibv_pd *pd, void *memory, size_t bytes)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	lab_undo(undo_mr, mr);
	return mr;
}

static void undo_ah(void *o)
{
	ibv_destroy_ah(o);
}

struct ibv_ah *lab_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr)
{
	struct ibv_ah_attr copy = *attr;
	struct ibv_ah *ah = ibv_create_ah(pd, &copy);

	assert_non_null(ah);
	lab_undo(undo_ah, ah);
	return ah;
}

static void undo_qp(void *o)
{
	ibv_destroy_qp(o);
}

struct ibv_qp *lab_qp(struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr copy = *init;
	struct ibv_qp *qp = ibv_create_qp(pd, &copy);

	assert_non_null(qp);
	lab_undo(undo_qp, qp);
	return qp;
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	assert_int_equal(ibv_modify_qp(qp, attr, mask), 0);
}

void lab_to_init(struct ibv_qp *qp, uint32_t qkey)
{
	modify(qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey },
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
}

void lab_to_rtr(struct ibv_qp *qp)
{
	lab_to(qp, IBV_QPS_RTR);
}

void lab_to_rts(struct ibv_qp *qp)
{
	modify(qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS }, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

void lab_start(struct ibv_qp *qp, uint32_t qkey)
{
	lab_to_init(qp, qkey);
	lab_to_rtr(qp);
	lab_to_rts(qp);
}

void lab_connect_mtu(struct ibv_qp *qp, uint32_t peer, struct ibv_context *there, unsigned access,
                     enum ibv_mtu mtu)
{
	const int rc_rtr = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int rc_rts =
	        IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	const bool is_uc = qp->qp_type == IBV_QPT_UC;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		                    .port_num = 1,
		                    .qp_access_flags = access };

	assert_int_equal(
	        ibv_modify_qp(qp, &attr,
	                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	        0);
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = mtu;
	attr.dest_qp_num = peer;
	attr.max_dest_rd_atomic = 1;
	attr.ah_attr = lab_path(there);
	assert_int_equal(ibv_modify_qp(qp, &attr,
	                               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
	                                       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	                                       (is_uc ? 0 : rc_rtr)),
	                 0);
	attr.qp_state = IBV_QPS_RTS;
	attr.rnr_retry = 7;
	attr.retry_cnt = 7;
	attr.timeout = 14;
	attr.max_rd_atomic = 1;
	assert_int_equal(
	        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (is_uc ? 0 : rc_rts)), 0);
}

void lab_connect(struct ibv_qp *qp, uint32_t peer, struct ibv_context *there, unsigned access)
{
	lab_connect_mtu(qp, peer, there, access, IBV_MTU_4096);
}

void lab_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	modify(qp, &(struct ibv_qp_attr){ .qp_state = state }, IBV_QP_STATE);
}

enum ibv_qp_state lab_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

union ibv_gid lab_mgid(unsigned n)
{
	union ibv_gid mgid = { .raw = { 0xFF, 0x12, 0xA0, 0x1B } };

	mgid.raw[14] = (uint8_t)(n >> 8);
	mgid.raw[15] = (uint8_t)n;
	return mgid;
}

struct attachment {
	struct ibv_qp *qp;
	union ibv_gid mgid;
	uint16_t mlid;
};

static void undo_attach(void *o)
{
	struct attachment *a = o;

	if (a->qp)
		ibv_detach_mcast(a->qp, &a->mgid, a->mlid);
	free(a);
}

void lab_attach(struct ibv_qp *qp, const union ibv_gid *mgid, uint16_t mlid)
{
	struct attachment *a;

	assert_int_equal(ibv_attach_mcast(qp, mgid, mlid), 0);
	assert_non_null(a = malloc(sizeof(*a)));
	*a = (struct attachment){ qp, *mgid, mlid };
	lab_undo(undo_attach, a);
}

void lab_detach(struct ibv_qp *qp, const union ibv_gid *mgid, uint16_t mlid)
{
	assert_int_equal(ibv_detach_mcast(qp, mgid, mlid), 0);
	for (unsigned i = n_undo; i-- > 0;) {
		struct attachment *a = undo_stack[i].object;

		if (undo_stack[i].undo == undo_attach && a->qp == qp && a->mlid == mlid &&
		    !memcmp(&a->mgid, mgid, sizeof(*mgid)))
			a->qp = NULL; /* the QP may be destroyed before the end */
	}
}

/* ---- ends ---- */

static void *allocate(size_t bytes)
{
	void *p = calloc(1, bytes);

	assert_non_null(p);
	lab_undo(free, p);
	return p;
}

static uint32_t or_else(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

static void make_surroundings(struct lab_end *e, const struct lab_options *o)
{
	const struct lab_end *n = o->neighbour;

	if (n) {
		e->host = n->host;
		e->context = n->context;
		e->pd = n->pd;
		e->channel = n->channel;
		e->cq = n->cq;
		e->send_cq = n->send_cq;
		return;
	}
	e->context = lab_open(e->host);
	e->pd = lab_pd(e->context);
	if (o->channel)
		e->channel = lab_channel(e->context);
	e->cq = lab_cq(e->context, o->cqe ? o->cqe : 4 * LAB_SLOTS, e->channel);
	e->send_cq = lab_cq(e->context, e->cq->cqe, NULL);
}

static void make_qp(struct lab_end *e, const struct lab_options *o)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_UD,
		.send_cq = e->send_cq,
		.recv_cq = e->cq,
		.sq_sig_all = o->signal_all,
		.cap = { .max_send_wr = or_else(o->cap.max_send_wr, LAB_SLOTS),
		         .max_recv_wr = or_else(o->cap.max_recv_wr, LAB_SLOTS),
		         .max_send_sge = or_else(o->cap.max_send_sge, 4),
		         .max_recv_sge = or_else(o->cap.max_recv_sge, 4),
		         .max_inline_data = or_else(o->cap.max_inline_data, 64) },
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = e->pd,
		.create_flags = o->create_flags,
		.send_ops_flags = o->send_ops,
	};

	if (o->create_flags)
		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	if (o->send_ops)
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	assert_non_null(e->qp = ibv_create_qp_ex(e->context, &init));
	lab_undo(undo_qp, e->qp);
}

struct lab_end *lab_end_with(const struct lab_options *o)
{
	struct lab_end *e = allocate(sizeof(*e));

	e->host = o->host ? o->host : 1;
	e->qkey = or_else(o->qkey, LAB_QKEY);
	make_surroundings(e, o);
	e->slot = allocate((LAB_SLOTS + 1) * LAB_SLOT);
	e->out = e->slot + LAB_SLOTS * LAB_SLOT;
	e->mr = lab_mr(e->pd, e->slot, (LAB_SLOTS + 1) * LAB_SLOT);
	make_qp(e, o);
	if (!o->reset)
		lab_start(e->qp, e->qkey);
	return e;
}

struct lab_end *lab_end(int host)
{
	return lab_end_with(&(struct lab_options){ .host = host });
}

struct ibv_ah_attr lab_attr_to(const struct lab_end *to)
{
	return lab_path(to->context);
}

struct ibv_ah_attr lab_attr_global(const struct lab_end *to)
{
	struct ibv_ah_attr attr = lab_attr_to(to);

	attr.is_global = 1;
	attr.grh.hop_limit = 1;
	assert_int_equal(ibv_query_gid(to->context, 1, 0, &attr.grh.dgid), 0);
	return attr;
}

struct ibv_ah *lab_ah_to(struct lab_end *from, const struct lab_end *to)
{
	struct ibv_ah_attr attr = lab_attr_to(to);

	return lab_ah(from->pd, &attr);
}

/* ---- messages ---- */

void lab_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct deadline deadline = { 0 };
	struct base_pause pause = { 0 };

	for (int done = 0; done < n;) {
		int got = ibv_poll_cq(cq, n - done, wc + done);

		if (got < 0)
			fail_msg("ibv_poll_cq() failed after %d completions", done);
		done += got;
		if (got) {
			pause.looks = 0;
			continue;
		}
		if (deadline_is_over(&deadline))
			fail_msg("%d completions came, not %d", done, n);
		base_pause(&pause);
	}
}

struct ibv_wc lab_complete(struct ibv_cq *cq, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	lab_poll(cq, 1, &wc);
	if (wc.status != status)
		fail_msg("a completion says '%s', not '%s'", ibv_wc_status_str(wc.status),
		         ibv_wc_status_str(status));
	return wc;
}

void lab_quiet(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

void lab_set_nonblocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

void lab_await_sleep(_Atomic pid_t *tid)
{
	struct deadline deadline = { 0 };
	struct base_pause pause = { 0 };
	char path[64], state = 0;

	while (!*tid)
		base_pause(&pause);
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)*tid);
	while (state != 'S') {
		FILE *f = fopen(path, "r");

		assert_non_null(f);
		assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
		fclose(f);
		DEADLINE_LOOK(&deadline, "a thread to sleep");
		base_pause_sleep(&pause);
	}
}

void lab_await_at(int fd, const char *file, int line)
{
	deadline_await(fd, "an event", file, line);
}

struct ibv_async_event lab_async_event(struct ibv_context *context, enum ibv_event_type type)
{
	struct ibv_async_event event;

	lab_await(context->async_fd);
	assert_int_equal(ibv_get_async_event(context, &event), 0);
	ibv_ack_async_event(&event);
	if (event.event_type != type)
		fail_msg("the event is '%s', not '%s'", ibv_event_type_str(event.event_type),
		         ibv_event_type_str(type));
	return event;
}

int lab_try_post(struct lab_end *e, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)e->slot + wr_id % LAB_SLOTS * LAB_SLOT,
		               .length = LAB_SLOT,
		               .lkey = e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(e->qp, &wr, &bad);
}

void lab_post(struct lab_end *e, unsigned n)
{
	while (n--) {
		uint64_t slot = e->posted++ % LAB_SLOTS;

		memset(e->slot + slot * LAB_SLOT, 0xEE, LAB_SLOT);
		assert_int_equal(lab_try_post(e, slot), 0);
	}
}

void lab_request(struct lab_end *e, struct lab_request *r, struct ibv_ah *ah, uint32_t qpn,
                 const void *data, uint32_t bytes)
{
	if (data)
		memcpy(e->out, data, bytes < LAB_SLOT ? bytes : LAB_SLOT);
	r->sge =
	        (struct ibv_sge){ .addr = (uintptr_t)e->out, .length = bytes, .lkey = e->mr->lkey };
	r->wr = (struct ibv_send_wr){ .opcode = IBV_WR_SEND,
		                      .send_flags = IBV_SEND_SIGNALED,
		                      .sg_list = &r->sge,
		                      .num_sge = 1 };
	r->wr.wr.ud.ah = ah;
	r->wr.wr.ud.remote_qpn = qpn;
	r->wr.wr.ud.remote_qkey = e->qkey;
}

void lab_send_request(struct lab_end *e, struct lab_request *r)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(e->qp, &r->wr, &bad), 0);
	wc = lab_complete(e->send_cq, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
	assert_int_equal(wc.wr_id, r->wr.wr_id);
}

void lab_send(struct lab_end *e, struct ibv_ah *ah, uint32_t qpn, const void *data, uint32_t bytes)
{
	struct lab_request r;

	lab_request(e, &r, ah, qpn, data, bytes);
	lab_send_request(e, &r);
}

void lab_send_text(struct lab_end *e, struct ibv_ah *ah, uint32_t qpn, const char *text)
{
	lab_send(e, ah, qpn, text, (uint32_t)strlen(text));
}

void lab_fail_a_send(struct lab_end *e)
{
	struct ibv_send_wr *bad;
	struct lab_request r;

	lab_request(e, &r, lab_ah_to(e, e), e->qp->qp_num, "x", 1);
	r.sge.lkey = ~0u;
	assert_int_equal(ibv_post_send(e->qp, &r.wr, &bad), 0);
	lab_complete(e->send_cq, IBV_WC_LOC_PROT_ERR);
}

void lab_bring_to(struct lab_end *e, int state)
{
	lab_to(e->qp, IBV_QPS_RESET);
	if (state >= IBV_QPS_INIT)
		lab_to_init(e->qp, e->qkey);
	if (state >= IBV_QPS_RTR && state <= IBV_QPS_SQE)
		lab_to_rtr(e->qp);
	if (state >= IBV_QPS_RTS && state <= IBV_QPS_SQE)
		lab_to_rts(e->qp);
	if (state == IBV_QPS_SQD)
		lab_to(e->qp, IBV_QPS_SQD);
	if (state == IBV_QPS_SQE)
		lab_fail_a_send(e);
	if (state == IBV_QPS_ERR)
		lab_to(e->qp, IBV_QPS_ERR);
	assert_int_equal(lab_state(e->qp), state);
}

struct lab_message lab_receive(struct lab_end *e)
{
	struct lab_message m = { .wc = lab_complete(e->cq, IBV_WC_SUCCESS) };

	assert_int_equal(m.wc.opcode, IBV_WC_RECV);
	assert_true(m.wc.wr_id < LAB_SLOTS);
	assert_in_range(m.wc.byte_len, LAB_GRH, LAB_SLOT);
	m.grh = e->slot + m.wc.wr_id * LAB_SLOT;
	m.data = m.grh + LAB_GRH;
	m.length = m.wc.byte_len - LAB_GRH;
	return m;
}

void lab_expect(struct lab_end *e, const void *data, uint32_t bytes)
{
	struct lab_message m = lab_receive(e);

	assert_int_equal(m.length, bytes);
	assert_memory_equal(m.data, data, bytes);
}

void lab_expect_text(struct lab_end *e, const char *text)
{
	lab_expect(e, text, (uint32_t)strlen(text));
}

void lab_expect_nothing(struct lab_end *e, struct lab_end *from)
{
	static const char mark[] = "the first message of all";

	lab_send_text(from, lab_ah_to(from, e), e->qp->qp_num, mark);
	lab_expect_text(e, mark);
}

/* ---- groups ---- */

static void undo_group(void *o)
{
	struct lab_group *g = o;

	if (g->id)
		rdma_destroy_id(g->id);
	rdma_destroy_event_channel(g->channel);
	free(g);
}

static void wait_join_event(struct lab_group *g)
{
	struct rdma_cm_event *event;
	const struct rdma_ud_param *ud;

	lab_await(g->channel->fd);
	assert_int_equal(rdma_get_cm_event(g->channel, &event), 0);
	if (event->event != RDMA_CM_EVENT_MULTICAST_JOIN)
		fail_msg("joining gave %s", rdma_event_str(event->event));
	ud = &event->param.ud;
	g->attr = ud->ah_attr;
	g->mgid = ud->ah_attr.grh.dgid;
	g->mlid = ud->ah_attr.dlid;
	g->qkey = ud->qkey;
	assert_int_equal(rdma_ack_cm_event(event), 0);
}

static struct lab_group *join(int host, const char *address, uint32_t flags)
{
	struct lab_group *g = calloc(1, sizeof(*g));
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct rdma_cm_join_mc_attr_ex how = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
	};

	assert_non_null(g);
	assert_non_null(g->channel = rdma_create_event_channel());
	lab_undo(undo_group, g);
	assert_int_equal(rdma_create_id(g->channel, &g->id, NULL, RDMA_PS_UDP), 0);
	from.sin_addr.s_addr = htonl(0x0A000000 + (uint32_t)host);
	assert_int_equal(rdma_bind_addr(g->id, (struct sockaddr *)&from), 0);
	g->address.sin_family = AF_INET;
	assert_int_equal(inet_pton(AF_INET, address, &g->address.sin_addr), 1);
	how.addr = (struct sockaddr *)&g->address;
	assert_int_equal(rdma_join_multicast_ex(g->id, &how, NULL), 0);
	wait_join_event(g);
	return g;
}

struct lab_group *lab_join(int host, const char *address)
{
	return join(host, address, RDMA_MC_JOIN_FLAG_FULLMEMBER);
}

struct lab_group *lab_join_send_only(int host, const char *address)
{
	return join(host, address, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
}

void lab_leave(struct lab_group *g)
{
	assert_int_equal(rdma_leave_multicast(g->id, (struct sockaddr *)&g->address), 0);
}

struct ibv_ah *lab_ah_group(struct lab_end *e, const struct lab_group *g)
{
	return lab_ah(e->pd, &g->attr);
}

/* ---- what the fabric counts ---- */

/* The output of a command as JSON; json_object_put() it. */
static struct json_object *json_of(const char *command)
{
	struct json_object *o;
	char text[65536];
	FILE *f = popen(command, "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	assert_int_equal(pclose(f), 0);
	assert_non_null(o = json_tokener_parse(text));
	return o;
}

static uint64_t number_in(struct json_object *o, const char *name)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, name, &v))
		fail_msg("there is no '%s'", name);
	return json_object_get_uint64(v);
}

static struct json_object *port_of(struct json_object *counters, int host)
{
	struct json_object *ports, *node;
	char name[32];

	name_device(host, name);
	assert_true(json_object_object_get_ex(counters, "ports", &ports));
	for (size_t i = 0; i < json_object_array_length(ports); i++) {
		struct json_object *port = json_object_array_get_idx(ports, i);

		if (json_object_object_get_ex(port, "node", &node) &&
		    !strcmp(json_object_get_string(node), name))
			return port;
	}
	fail_msg("%s has no port", name);
	return NULL;
}

uint64_t lab_counter(int host, const char *name)
{
	struct json_object *counters = json_of("umbel show counters --json");
	uint64_t value = number_in(port_of(counters, host), name);

	json_object_put(counters);
	return value;
}

uint64_t lab_fabric_counter(const char *name)
{
	struct json_object *counters = json_of("umbel show counters --json"), *ports, *v;
	uint64_t sum = 0;

	assert_true(json_object_object_get_ex(counters, "ports", &ports));
	for (size_t i = 0; i < json_object_array_length(ports); i++)
		if (json_object_object_get_ex(json_object_array_get_idx(ports, i), name, &v))
			sum += json_object_get_uint64(v);
	json_object_put(counters);
	return sum;
}

uint64_t lab_status(const char *name)
{
	struct json_object *status = json_of("umbel status --json");
	uint64_t value = number_in(json_object_array_get_idx(status, 0), name);

	json_object_put(status);
	return value;
}

void lab_await_status(const char *name, uint64_t value)
{
	struct deadline deadline = { 0 };

	while (lab_status(name) != value)
		if (deadline_is_over(&deadline))
			fail_msg("%s does not become %llu", name, (unsigned long long)value);
}
