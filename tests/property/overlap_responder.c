/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The responder: see overlap.h. One at a time in each process.
 */
#include "overlap.h"

#include <linux/aio_abi.h>

static struct {
	enum kind kind;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq[QUEUES];
	struct ibv_srq *srq[QUEUES];
	struct ibv_xrcd *xrcd;
	struct ibv_qp *qp;
	struct ibv_mr *all, *receives; /* the latter is another one now and then */
	uint8_t *memory;
} r;

static int socket_there = -1;

/* ---- objects ---- */

static void undo_srq(void *o)
{
	assert_int_equal(ibv_destroy_srq(o), 0);
}

static void undo_qp(void *o)
{
	assert_int_equal(ibv_destroy_qp(o), 0);
}

static void undo_xrcd(void *o)
{
	assert_int_equal(ibv_close_xrcd(o), 0);
}

static void undo_memory(void *o)
{
	(void)o;
	if (r.receives)
		assert_int_equal(ibv_dereg_mr(r.receives), 0);
	assert_int_equal(ibv_dereg_mr(r.all), 0);
	r.receives = NULL;
	munmap(r.memory, AREA);
}

static struct ibv_srq *make_srq(struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex init = { .attr = { .max_wr = DEPTH, .max_sge = ENTRIES },
		                             .comp_mask = IBV_SRQ_INIT_ATTR_PD,
		                             .pd = r.pd };
	struct ibv_srq *srq;

	if (r.xrcd) {
		init.comp_mask |=
		        IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		init.srq_type = IBV_SRQT_XRC;
		init.xrcd = r.xrcd;
		init.cq = cq;
	}
	assert_non_null(srq = ibv_create_srq_ex(r.context, &init));
	lab_undo(undo_srq, srq);
	return srq;
}

static void make_target(void)
{
	const struct ibv_xrcd_init_attr domain = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
		                                                IBV_XRCD_INIT_ATTR_OFLAGS,
		                                   .fd = -1,
		                                   .oflags = O_CREAT };
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_RECV,
		                            .comp_mask = IBV_QP_INIT_ATTR_XRCD };

	assert_non_null(r.xrcd = ibv_open_xrcd(r.context, (struct ibv_xrcd_init_attr *)&domain));
	lab_undo(undo_xrcd, r.xrcd);
	for (int i = 0; i < QUEUES; i++)
		r.srq[i] = make_srq(r.cq[i]);
	init.xrcd = r.xrcd;
	assert_non_null(r.qp = ibv_create_qp_ex(r.context, &init));
	lab_undo(undo_qp, r.qp);
}

static void make_qp(void)
{
	struct ibv_qp_init_attr init = { .send_cq = r.cq[0],
		                         .recv_cq = r.cq[0],
		                         .qp_type = r.kind == UC ? IBV_QPT_UC : IBV_QPT_RC,
		                         .cap = { .max_send_wr = 1,
		                                  .max_recv_wr = DEPTH,
		                                  .max_send_sge = 1,
		                                  .max_recv_sge = ENTRIES } };

	if (r.kind == SRQ)
		init.srq = r.srq[0] = make_srq(NULL);
	r.qp = lab_qp(r.pd, &init);
}

static void make(void)
{
	r.context = lab_open(2);
	r.pd = lab_pd(r.context);
	for (int i = 0; i < QUEUES; i++)
		r.cq[i] = lab_cq(r.context, 4 * DEPTH, NULL);
	r.xrcd = NULL;
	memset(r.srq, 0, sizeof(r.srq));
	if (r.kind == XRC)
		make_target();
	else
		make_qp();
	r.memory = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(r.memory != MAP_FAILED);
	assert_non_null(r.all = ibv_reg_mr(r.pd, r.memory, AREA, ACCESS));
	lab_undo(undo_memory, &r);
}

/* Memory that is registered while the kernel could be writing to it by AIO stays where it is. */
static void make_far(void)
{
	aio_context_t aio = 0;

	assert_int_equal(syscall(SYS_io_setup, 1, &aio), 0);
	make();
	assert_int_equal(syscall(SYS_io_destroy, aio), 0);
}

static void open_all(struct command *c)
{
	r.kind = c->kind;
	if (c->far)
		make_far();
	else
		make();
	c->qpn = r.qp->qp_num;
	c->rkey = r.all->rkey;
	c->addr = (uintptr_t)r.memory;
	for (int i = 0; i < QUEUES && r.kind == XRC; i++)
		assert_int_equal(ibv_get_srq_num(r.srq[i], &c->srqn[i]), 0);
}

/* ---- what it does ---- */

static void post(const struct command *c)
{
	const struct receive *from = &c->receive;
	const struct ibv_mr *mr = r.receives ? r.receives : r.all;
	struct ibv_recv_wr wr = { .wr_id = from->wr_id, .num_sge = (int)from->n }, *bad;
	struct ibv_sge sge[ENTRIES];

	for (unsigned i = 0; i < from->n; i++)
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)r.memory + from->entry[i].at,
			                   .length = from->entry[i].length,
			                   .lkey = mr->lkey };
	wr.sg_list = sge;
	if (r.srq[c->queue])
		assert_int_equal(ibv_post_srq_recv(r.srq[c->queue], &wr, &bad), 0);
	else
		assert_int_equal(ibv_post_recv(r.qp, &wr, &bad), 0);
}

/* From now on receives are in a new region. No posted one is in the old one. */
static void register_anew(void)
{
	struct ibv_mr *mr = ibv_reg_mr(r.pd, r.memory, AREA, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	if (r.receives)
		assert_int_equal(ibv_dereg_mr(r.receives), 0);
	r.receives = mr;
}

static void perform(struct command *c)
{
	switch (c->what) {
	case OPEN:
		open_all(c);
		break;
	case CONNECT:
		lab_connect(r.qp, c->peer, lab_open(1), ACCESS);
		break;
	case POST:
		post(c);
		break;
	case POLL:
		c->n = ibv_poll_cq(r.cq[c->queue], 1, &c->wc);
		break;
	case REGISTER:
		register_anew();
		break;
	case GET:
		memcpy(c->memory, r.memory, AREA);
		break;
	case CLOSE:
		lab_clean_up(NULL);
		break;
	}
}

/* ---- elsewhere ---- */

static void serve(int fd)
{
	struct command c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (recv(fd, &c, sizeof(c), MSG_WAITALL) == sizeof(c)) {
		perform(&c);
		if (send(fd, &c, sizeof(c), MSG_NOSIGNAL) != sizeof(c))
			break;
	}
	_exit(0);
}

void overlap_begin(void)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		abort();
	pid = fork();
	if (pid < 0)
		abort();
	socket_there = pair[!pid];
	close(pair[!!pid]);
	if (!pid)
		serve(socket_there);
}

void overlap_do(bool elsewhere, struct command *c)
{
	if (!elsewhere) {
		perform(c);
		return;
	}
	assert_int_equal(send(socket_there, c, sizeof(*c), MSG_NOSIGNAL), sizeof(*c));
	assert_int_equal(recv(socket_there, c, sizeof(*c), MSG_WAITALL), sizeof(*c));
}
