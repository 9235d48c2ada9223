/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests by rkeys, from h1 to h3: for each case it says which request it is about to post, waits
 * for a line, posts it, and says with which status it completes. rkey.sh asks `umbel explain
 * --rkey` meanwhile what will happen. On no host: it sees the HCAs of all.
 */
#include "must.h"
#include "attributes.h"

#include <infiniband/verbs.h>

#define BYTES  4096
#define ACCESS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint16_t lid;
	_Alignas(4096) char memory[BYTES];
};

enum trick {
	PLAIN,
	OTHER_PD,
	DEREGISTERED, /* the region is gone */
	AGAIN,        /* and another one is in its place */
	NONSENSE,     /* a number that never was a key */
	NOT_READY,    /* the responder stays in INIT */
	WINDOW_1,     /* of the second half */
	WINDOW_2,
	WINDOW_2_OTHER, /* bound by another queue pair */
	WINDOW_2_INVALIDATED,
};

/* A request by a key of memory that is registered with @access, to a queue pair that lets @lets_in
 * in. */
struct request {
	const char *name;
	enum trick trick;
	enum ibv_wr_opcode opcode;
	unsigned access, lets_in;
	int64_t offset;
	uint32_t length;
	uint8_t reads; /* max_dest_rd_atomic */
	bool is_uc;
};

#define WRITE  IBV_WR_RDMA_WRITE
#define READ   IBV_WR_RDMA_READ
#define ATOMIC IBV_WR_ATOMIC_FETCH_AND_ADD
#define HALF   (BYTES / 2)

static const struct request requests[] = {
	{ "write", PLAIN, WRITE, ACCESS, ACCESS, 0, BYTES, 1, false },
	{ "read", PLAIN, READ, ACCESS, ACCESS, 64, 64, 1, false },
	{ "atomic", PLAIN, ATOMIC, ACCESS, ACCESS, 8, 8, 1, false },
	{ "beyond", PLAIN, WRITE, ACCESS, ACCESS, 1, BYTES, 1, false },
	{ "far_beyond", PLAIN, READ, ACCESS, ACCESS, 3 * BYTES, 8, 1, false },
	{ "before", PLAIN, WRITE, ACCESS, ACCESS, -1, 2, 1, false },
	{ "no_write", PLAIN, WRITE, IBV_ACCESS_REMOTE_READ, ACCESS, 0, 8, 1, false },
	{ "no_read", PLAIN, READ, IBV_ACCESS_REMOTE_WRITE, ACCESS, 0, 8, 1, false },
	{ "no_atomic", PLAIN, ATOMIC, IBV_ACCESS_REMOTE_WRITE, ACCESS, 0, 8, 1, false },
	{ "no_access", PLAIN, READ, 0, ACCESS, 0, 8, 1, false },
	{ "qp_no_write", PLAIN, WRITE, ACCESS, IBV_ACCESS_REMOTE_READ, 0, 8, 1, false },
	{ "qp_no_read", PLAIN, READ, ACCESS, IBV_ACCESS_REMOTE_WRITE, 0, 8, 1, false },
	{ "qp_no_reads", PLAIN, READ, ACCESS, ACCESS, 0, 8, 0, false },
	{ "unaligned", PLAIN, ATOMIC, ACCESS, ACCESS, 4, 8, 1, false },
	{ "other_pd", OTHER_PD, WRITE, ACCESS, ACCESS, 0, 8, 1, false },
	{ "deregistered", DEREGISTERED, WRITE, ACCESS, ACCESS, 0, 8, 1, false },
	{ "again", AGAIN, WRITE, ACCESS, ACCESS, 0, 8, 1, false },
	{ "nonsense", NONSENSE, WRITE, ACCESS, ACCESS, 0, 8, 1, false },
	{ "nothing", NONSENSE, WRITE, ACCESS, ACCESS, 0, 0, 1, false },
	{ "not_ready", NOT_READY, WRITE, ACCESS, ACCESS, 0, 8, 1, false },
	{ "window_1", WINDOW_1, WRITE, IBV_ACCESS_REMOTE_WRITE, ACCESS, HALF, 8, 1, false },
	{ "window_1_before", WINDOW_1, WRITE, IBV_ACCESS_REMOTE_WRITE, ACCESS, 0, 8, 1, false },
	{ "window_1_no_read", WINDOW_1, READ, IBV_ACCESS_REMOTE_WRITE, ACCESS, HALF, 8, 1, false },
	{ "window_2", WINDOW_2, READ, IBV_ACCESS_REMOTE_READ, ACCESS, HALF, HALF, 1, false },
	{ "window_2_other", WINDOW_2_OTHER, READ, IBV_ACCESS_REMOTE_READ, ACCESS, HALF, 8, 1,
	  false },
	{ "window_2_invalidated", WINDOW_2_INVALIDATED, READ, IBV_ACCESS_REMOTE_READ, ACCESS, HALF,
	  8, 1, false },
	{ "uc", PLAIN, WRITE, ACCESS, ACCESS, 0, 8, 0, true },
	{ "uc_no_write", PLAIN, WRITE, IBV_ACCESS_REMOTE_READ, ACCESS, 0, 8, 0, true },
};

static struct end from, to;
static struct ibv_pd *other_pd;
static struct ibv_mw *mw;

static void open_end(struct end *e, struct ibv_device *device)
{
	struct ibv_port_attr port;

	MUST(e->context = ibv_open_device(device));
	MUST(e->pd = ibv_alloc_pd(e->context));
	MUST(e->cq = ibv_create_cq(e->context, 64, NULL, NULL, 0));
	MUST(!ibv_query_port(e->context, 1, &port));
	e->lid = port.lid;
}

static struct ibv_qp *make(struct end *e, const struct request *r)
{
	struct ibv_qp_init_attr init = init_of(r->is_uc ? IBV_QPT_UC : IBV_QPT_RC, e->cq, 8, 8);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
		                 .port_num = 1,
		                 .qp_access_flags = r->lets_in };
	struct ibv_qp *qp;

	MUST(qp = ibv_create_qp(e->pd, &init));
	MUST(!ibv_modify_qp(qp, &a,
	                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	return qp;
}

static void connect_to(struct ibv_qp *qp, const struct end *peer, const struct ibv_qp *to_qp,
                       const struct request *r)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
		                 .path_mtu = IBV_MTU_4096,
		                 .dest_qp_num = to_qp->qp_num,
		                 .min_rnr_timer = 1,
		                 .max_dest_rd_atomic = r->reads,
		                 .ah_attr = { .dlid = peer->lid, .port_num = 1 } };
	int rc = r->is_uc ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

	MUST(!ibv_modify_qp(qp, &a,
	                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	                            IBV_QP_RQ_PSN | rc));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
		                  .timeout = 1,
		                  .retry_cnt = 1,
		                  .rnr_retry = 1,
		                  .max_rd_atomic = 1 };
	rc = r->is_uc ? 0
	              : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	                        IBV_QP_MAX_QP_RD_ATOMIC;
	MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | rc));
}

static enum ibv_wc_status complete(struct end *e)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(e->cq, 1, &wc)))
		;
	MUST(n == 1);
	return wc.status;
}

/* ---- keys ---- */

/* Binds the window to the second half of the region, by @qp. Its key. */
static uint32_t bind_window(struct ibv_qp *qp, const struct request *r, enum ibv_mw_type type)
{
	struct ibv_mw_bind_info info = { .mr = to.mr,
		                         .addr = (uintptr_t)to.memory + HALF,
		                         .length = HALF,
		                         .mw_access_flags = r->access };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_mw_bind one = { .send_flags = IBV_SEND_SIGNALED, .bind_info = info };

	MUST(mw = ibv_alloc_mw(to.pd, type));
	if (type == IBV_MW_TYPE_1) {
		MUST(!ibv_bind_mw(qp, mw, &one));
		MUST(complete(&to) == IBV_WC_SUCCESS);
		return mw->rkey;
	}
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = info;
	MUST(!ibv_post_send(qp, &wr, &bad));
	MUST(complete(&to) == IBV_WC_SUCCESS);
	return wr.bind_mw.rkey;
}

static void invalidate(struct ibv_qp *qp, uint32_t key)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .invalidate_rkey = key },
	                   *bad;

	MUST(!ibv_post_send(qp, &wr, &bad));
	MUST(complete(&to) == IBV_WC_SUCCESS);
}

static void put_region(void)
{
	MUST(!ibv_dereg_mr(to.mr));
	to.mr = NULL;
}

/* The key that the request names. @other: a queue pair that is none of the two. */
static uint32_t key_of(const struct request *r, struct ibv_qp *other)
{
	bool window = r->trick >= WINDOW_1;
	unsigned access = window                                ? IBV_ACCESS_MW_BIND
	                  : r->access == IBV_ACCESS_REMOTE_READ ? 0
	                                                        : IBV_ACCESS_LOCAL_WRITE;
	uint32_t key;

	access |= window ? IBV_ACCESS_LOCAL_WRITE : r->access;
	MUST(to.mr = ibv_reg_mr(r->trick == OTHER_PD ? other_pd : to.pd, to.memory, BYTES, access));
	key = to.mr->rkey;
	if (r->trick == DEREGISTERED || r->trick == AGAIN)
		put_region();
	while (r->trick == AGAIN && (!to.mr || to.mr->rkey >> 8 != key >> 8)) {
		if (to.mr)
			put_region();
		MUST(to.mr = ibv_reg_mr(to.pd, to.memory, BYTES, access));
	}
	if (r->trick == NONSENSE)
		key = 0x00abcd05;
	if (window)
		key = bind_window(r->trick == WINDOW_2_OTHER ? other : to.qp, r,
		                  r->trick == WINDOW_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	if (r->trick == WINDOW_2_INVALIDATED)
		invalidate(to.qp, key);
	return key;
}

/* ---- */

static void post(const struct request *r, uint32_t key)
{
	struct ibv_sge sge = { (uintptr_t)from.memory, r->length, from.mr->lkey };
	struct ibv_send_wr wr = request_of(&sge, r->opcode, IBV_SEND_SIGNALED), *bad;
	uint64_t at = (uintptr_t)to.memory + (uint64_t)r->offset;

	if (r->opcode == ATOMIC) {
		wr.wr.atomic.remote_addr = at;
		wr.wr.atomic.rkey = key;
	} else {
		wr.wr.rdma.remote_addr = at;
		wr.wr.rdma.rkey = key;
	}
	MUST(!ibv_post_send(from.qp, &wr, &bad));
}

static const char *name_of(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return "IBV_WC_SUCCESS";
	case IBV_WC_REM_INV_REQ_ERR:
		return "IBV_WC_REM_INV_REQ_ERR";
	case IBV_WC_REM_ACCESS_ERR:
		return "IBV_WC_REM_ACCESS_ERR";
	case IBV_WC_RETRY_EXC_ERR:
		return "IBV_WC_RETRY_EXC_ERR";
	default:
		return "another";
	}
}

static void try(const struct request *r)
{
	struct ibv_qp *third = make(&to, r), *fourth = make(&to, r);
	uint32_t key;
	char line[16];

	from.qp = make(&from, r);
	to.qp = make(&to, r);
	connect_to(from.qp, &to, to.qp, r);
	if (r->trick != NOT_READY)
		connect_to(to.qp, &from, from.qp, r);
	connect_to(third, &to, fourth, r);
	key = key_of(r, third);
	printf("%s h3:0x%06x 0x%08x %s 0x%llx %u\n", r->name, to.qp->qp_num, key,
	       r->opcode == WRITE  ? "write"
	       : r->opcode == READ ? "read"
	                           : "atomic",
	       (unsigned long long)((uintptr_t)to.memory + (uint64_t)r->offset), r->length);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
	post(r, key);
	printf("%s\n", name_of(complete(&from)));
	fflush(stdout);
	MUST(!mw || !ibv_dealloc_mw(mw));
	mw = NULL;
	if (to.mr)
		put_region();
	MUST(!ibv_destroy_qp(from.qp) && !ibv_destroy_qp(to.qp) && !ibv_destroy_qp(third) &&
	     !ibv_destroy_qp(fourth));
}

int main(void)
{
	struct ibv_device **list;
	int n;

	MUST(list = ibv_get_device_list(&n));
	if (n < 3)
		return 2;
	open_end(&from, list[0]);
	open_end(&to, list[2]);
	ibv_free_device_list(list);
	MUST(other_pd = ibv_alloc_pd(to.context));
	MUST(from.mr = ibv_reg_mr(from.pd, from.memory, BYTES, IBV_ACCESS_LOCAL_WRITE));
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
		try(&requests[i]);
	return 0;
}
