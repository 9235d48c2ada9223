// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * wire_fuzz_victim PEER: connected queue pairs whose peer, at that address, is hostile
 * (wire_fuzz.c). It prints of each how it may be reached, again when it had to be connected anew,
 * and of its memory what a peer would be told. It receives, and sends of all kinds. By turns it
 * polls and sleeps. After SIGTERM it ends: in error if a byte has changed that nobody may write, or
 * a message has arrived that had no receive.
 */
#include "must.h"

#include <infiniband/verbs.h>

#include "base/pause.h"
#include "base/util.h"
#include "wire_fuzz.h"
#include "../qp_states.h"

#define PAGE          4096
#define AREA          (200 * PAGE)
#define OPEN_AT       (20 * PAGE + 264)
#define READABLE_AT   (40 * PAGE + 8)
#define READABLE_SIZE 8192
#define PRIVATE_AT    (48 * PAGE)
#define PRIVATE_SIZE  8192
#define SOURCE_AT     (52 * PAGE + 16)
#define SOURCE_SIZE   16384
#define RECEIVES_AT   (60 * PAGE)
#define RECEIVE_SIZE  2900 /* a message of three packets may not fit */
#define RECEIVES      8    /* of a queue pair */
#define SHARED        16   /* of the shared receive queue */
#define SLOTS         (FUZZ_QPS * RECEIVES + SHARED)
#define STRIDE        3200
#define LANDING_AT    (120 * PAGE)
#define LANDING_SIZE  5000 /* of a READ */
#define REQUESTS      8    /* under way */
#define OURS_AT       SOURCE_AT
#define OURS_SIZE     (AREA - 8 * PAGE - OURS_AT)

#define FINISH_MS 20000 /* many times the timeout, with all retries */

#define IS_RECEIVE (1ull << 63)
#define REMOTE                                                                         \
	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | \
	 ACCESS_FLUSH_GLOBAL)

/* Missing in older headers: annex A19. */
enum {
	WR_FLUSH = 14,
	WR_ATOMIC_WRITE = 15,
	ACCESS_FLUSH_GLOBAL = 1 << 8,
	EX_WITH_FLUSH = 1 << 11,
};

struct victim_qp {
	struct ibv_qp *qp;
	enum fuzz_type type;
	unsigned requests; /* under way */
	uint64_t posted;
};

static struct victim {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *ours, *mr[FUZZ_REGIONS];
	union ibv_gid peer;
	struct victim_qp qp[FUZZ_QPS];
	bool receive[SLOTS]; /* is posted */
	uint8_t *area, *before, *may_change;
	uint64_t state; /* of random numbers */
	uint64_t received[FUZZ_TYPES], done, failed, connections;
} victim;

static volatile sig_atomic_t ends;

static void end(int sig)
{
	ends = sig;
}

static uint32_t below(struct victim *v, uint32_t n)
{
	return (uint32_t)(fuzz_random(&v->state) >> 16) % n;
}

/* ---- memory ---- */

static void allow(struct victim *v, uint32_t at, uint32_t bytes)
{
	memset(v->may_change + at, 1, bytes);
}

static void prepare_memory(struct victim *v)
{
	const uint32_t secret = (uint32_t)strlen(FUZZ_SECRET);

	v->area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	v->before = malloc(AREA);
	v->may_change = calloc(1, AREA);
	check(v->area != MAP_FAILED && v->before && v->may_change, "memory");
	for (uint32_t i = 0; i < AREA; i++)
		v->area[i] = (uint8_t)FUZZ_SECRET[i % secret];
	memset(v->area + OPEN_AT, 0x11, FUZZ_OPEN_BYTES);
	memset(v->area + READABLE_AT, 0x22, READABLE_SIZE);
	memset(v->area + SOURCE_AT, 0x33, SOURCE_SIZE);
	allow(v, OPEN_AT, FUZZ_OPEN_BYTES);
	for (uint32_t i = 0; i < SLOTS; i++)
		allow(v, RECEIVES_AT + i * STRIDE, RECEIVE_SIZE);
	for (uint32_t i = 0; i < FUZZ_QPS * REQUESTS; i++)
		allow(v, LANDING_AT + i * (LANDING_SIZE + 200), LANDING_SIZE);
	memcpy(v->before, v->area, AREA);
}

static void check_memory(const struct victim *v)
{
	for (uint32_t i = 0; i < AREA; i++)
		if (v->area[i] != v->before[i] && !v->may_change[i])
			errx(EXIT_FAILURE, "victim: byte %u is 0x%02x, was 0x%02x", i, v->area[i],
			     v->before[i]);
}

static struct ibv_mr *expose(struct victim *v, enum fuzz_region i, uint32_t at, uint32_t bytes,
                             int access)
{
	struct ibv_mr *mr = ibv_reg_mr(v->pd, v->area + at, bytes, access);

	check(mr, "ibv_reg_mr");
	printf("region %u %lu %u %u\n", i, (unsigned long)mr->addr, bytes, mr->rkey);
	return mr;
}

/* ---- queue pairs ---- */

static void open_device(struct victim *v)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = SHARED, .max_sge = 1 } };
	struct ibv_device **list = ibv_get_device_list(NULL);

	check(list && list[0], "ibv_get_device_list");
	MUST(v->context = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	check(!fcntl(v->context->async_fd, F_SETFL, O_NONBLOCK), "O_NONBLOCK");
	MUST(v->pd = ibv_alloc_pd(v->context));
	MUST(v->ours = ibv_reg_mr(v->pd, v->area + OURS_AT, OURS_SIZE, IBV_ACCESS_LOCAL_WRITE));
	v->mr[FUZZ_OPEN] =
	        expose(v, FUZZ_OPEN, OPEN_AT, FUZZ_OPEN_BYTES, IBV_ACCESS_LOCAL_WRITE | REMOTE);
	v->mr[FUZZ_READABLE] =
	        expose(v, FUZZ_READABLE, READABLE_AT, READABLE_SIZE, IBV_ACCESS_REMOTE_READ);
	v->mr[FUZZ_PRIVATE] =
	        expose(v, FUZZ_PRIVATE, PRIVATE_AT, PRIVATE_SIZE, IBV_ACCESS_LOCAL_WRITE);
	v->channel = ibv_create_comp_channel(v->context);
	check(v->channel && !fcntl(v->channel->fd, F_SETFL, O_NONBLOCK), "completion channel");
	MUST(v->cq = ibv_create_cq(v->context, 1000, NULL, v->channel, 0));
	MUST(v->srq = ibv_create_srq(v->pd, &srq));
}

static void create_qp(struct victim *v, struct victim_qp *q)
{
	struct ibv_qp_init_attr_ex init = { .send_cq = v->cq,
		                            .recv_cq = v->cq,
		                            .srq = q->type == FUZZ_SRQ ? v->srq : NULL,
		                            .qp_type = q->type == FUZZ_UC ? IBV_QPT_UC : IBV_QPT_RC,
		                            .sq_sig_all = 1,
		                            .cap = { REQUESTS, RECEIVES, 1, 1, 0 },
		                            .pd = v->pd,
		                            .comp_mask = IBV_QP_INIT_ATTR_PD };

	if (q->type != FUZZ_UC) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = EX_WITH_FLUSH;
	}
	MUST(q->qp = ibv_create_qp_ex(v->context, &init));
}

/* Slot @i is posted: to the queue pair, or to the shared receive queue if it is NULL. */
static void post_receive(struct victim *v, struct victim_qp *q, unsigned i)
{
	struct ibv_sge sge = { (uintptr_t)v->area + RECEIVES_AT + i * STRIDE, RECEIVE_SIZE,
		               v->ours->lkey };
	struct ibv_recv_wr wr = { .wr_id = IS_RECEIVE | i, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = q ? ibv_post_recv(q->qp, &wr, &bad) : ibv_post_srq_recv(v->srq, &wr, &bad);
	check(!errno, "a receive is posted");
	v->receive[i] = true;
}

static void post_receives(struct victim *v, unsigned i)
{
	struct victim_qp *q = &v->qp[i];

	for (unsigned k = 0; q->type != FUZZ_SRQ && k < RECEIVES; k++)
		post_receive(v, q, i * RECEIVES + k);
}

/* From RESET to RTS. */
static void connect_qp(struct victim *v, unsigned i)
{
	struct victim_qp *q = &v->qp[i];
	const bool is_uc = q->type == FUZZ_UC;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		                    .port_num = 1,
		                    .qp_access_flags = is_uc ? IBV_ACCESS_REMOTE_WRITE : REMOTE,
		                    .path_mtu = IBV_MTU_1024,
		                    .dest_qp_num = FUZZ_PEER_QPN + i,
		                    .max_dest_rd_atomic = 16,
		                    .min_rnr_timer = 10,
		                    .timeout = 13, /* 34 ms */
		                    .retry_cnt = 7,
		                    .rnr_retry = (uint8_t)(below(v, 2) ? 7 : 3),
		                    .max_rd_atomic = (uint8_t)(1 + below(v, 4)) };

	attr.rq_psn = (uint32_t)(below(v, 3) ? fuzz_random(&v->state) : 0xfffff0) & FUZZ_PSN_MASK;
	attr.sq_psn = (uint32_t)(below(v, 3) ? fuzz_random(&v->state) : 0xfffff0) & FUZZ_PSN_MASK;
	check(!qp_to_init(q->qp, &attr), "INIT");
	post_receives(v, i);
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = v->peer;
	attr.ah_attr.grh.sgid_index = 1;
	attr.ah_attr.grh.hop_limit = 64;
	check(!qp_to_rtr(q->qp, &attr), "RTR");
	check(!qp_to_rts(q->qp, &attr), "RTS");
	q->requests = 0;
	v->connections++;
	printf("qp %u %u %u %u\n", i, q->type, q->qp->qp_num, attr.rq_psn);
}

/* It has failed: begins anew, now and then as another queue pair. */
static void reconnect(struct victim *v, unsigned i)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct victim_qp *q = &v->qp[i];

	if (below(v, 8)) {
		check(!ibv_modify_qp(q->qp, &attr, IBV_QP_STATE), "RESET");
	} else {
		errno = ibv_destroy_qp(q->qp);
		check(!errno, "ibv_destroy_qp");
		create_qp(v, q);
	}
	for (unsigned k = 0; q->type != FUZZ_SRQ && k < RECEIVES; k++)
		v->receive[i * RECEIVES + k] = false;
	connect_qp(v, i);
}

/* ---- what it does ---- */

/* ibv_wr_flush() lies behind the end of struct ibv_qp_ex of older headers. */
static int post_flush(struct victim *v, unsigned i)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(v->qp[i].qp);
	void (*flush)(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t);

	memcpy(&flush, (char *)ex + offsetof(struct ibv_qp_ex, wr_abort) + 2 * sizeof(void *),
	       sizeof(flush));
	ibv_wr_start(ex);
	ex->wr_id = i;
	ex->wr_flags = 0;
	flush(ex, 0x1234, 0x10000, below(v, LANDING_SIZE), 1, (uint8_t)below(v, 2));
	return ibv_wr_complete(ex);
}

static void post_request(struct victim *v, unsigned i)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,
		IBV_WR_RDMA_WRITE,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_RDMA_READ,
		(enum ibv_wr_opcode)WR_ATOMIC_WRITE,
		(enum ibv_wr_opcode)WR_FLUSH,
	};
	struct victim_qp *q = &v->qp[i];
	enum ibv_wr_opcode opcode = opcodes[below(v, q->type == FUZZ_UC ? 4 : 10)];
	bool is_word = opcode >= IBV_WR_ATOMIC_CMP_AND_SWP;
	uint32_t slot = i * REQUESTS + (uint32_t)(q->posted % REQUESTS);
	struct ibv_sge sge = { (uintptr_t)v->area + SOURCE_AT, below(v, LANDING_SIZE),
		               v->ours->lkey };
	struct ibv_send_wr wr = { .wr_id = i, .opcode = opcode, .sg_list = &sge, .num_sge = 1 },
	                   *bad;

	if (opcode >= IBV_WR_RDMA_READ && opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD)
		sge.addr = (uintptr_t)v->area + LANDING_AT + slot * (LANDING_SIZE + 200);
	if (is_word)
		sge.length = 8;
	wr.wr.rdma.remote_addr = 0x10000;
	wr.wr.rdma.rkey = 0x1234;
	if (is_word && opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = 0x10000;
		wr.wr.atomic.rkey = 0x1234;
	}
	if (opcode == (enum ibv_wr_opcode)WR_FLUSH ? post_flush(v, i)
	                                           : ibv_post_send(q->qp, &wr, &bad))
		return; /* it has failed meanwhile */
	q->requests++;
	q->posted++;
}

static void take_completion(struct victim *v, const struct ibv_wc *wc)
{
	unsigned slot = (unsigned)(wc->wr_id & ~IS_RECEIVE), i = 0;

	while (i < FUZZ_QPS && v->qp[i].qp->qp_num != wc->qp_num)
		i++;
	must(i != FUZZ_QPS, "victim: a completion of a queue pair 0x%06x", wc->qp_num);
	if (wc->status != IBV_WC_SUCCESS)
		v->failed++;
	if (!(wc->wr_id & IS_RECEIVE)) {
		must(wc->wr_id == i && v->qp[i].requests,
		     "victim: a request is completed that was not posted");
		v->qp[i].requests--;
		v->done += wc->status == IBV_WC_SUCCESS;
		return;
	}
	must(slot < SLOTS && v->receive[slot], "victim: receive %u completes that is not posted",
	     slot);
	v->receive[slot] = false;
	if (wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV &&
	    wc->byte_len > RECEIVE_SIZE)
		errx(EXIT_FAILURE, "victim: %u bytes were received", wc->byte_len);
	v->received[v->qp[i].type] += wc->status == IBV_WC_SUCCESS;
	if (v->qp[i].type == FUZZ_SRQ)
		post_receive(v, NULL, slot);
	else if (wc->status == IBV_WC_SUCCESS)
		post_receive(v, &v->qp[i], slot);
}

static void drain(struct victim *v)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(v->cq, 1, &wc) > 0)
		take_completion(v, &wc);
}

static void sleep_for_completion(struct victim *v)
{
	struct pollfd fd = { v->channel->fd, POLLIN, 0 };
	struct ibv_cq *cq;
	void *context;

	check(!ibv_req_notify_cq(v->cq, 0), "ibv_req_notify_cq");
	drain(v);
	poll(&fd, 1, 20);
	while (!ibv_get_cq_event(v->channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
}

/* Sees to what has failed, and to it that there is something to do. */
static void tend(struct victim *v)
{
	struct ibv_async_event event;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	while (!ibv_get_async_event(v->context, &event))
		ibv_ack_async_event(&event);
	for (unsigned i = 0; i < FUZZ_QPS; i++) {
		check(!ibv_query_qp(v->qp[i].qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
		if (attr.qp_state != IBV_QPS_RTS) {
			drain(v);
			reconnect(v, i);
		}
		for (unsigned n = below(v, 3); n && v->qp[i].requests < REQUESTS; n--)
			post_request(v, i);
	}
}

static void serve(struct victim *v)
{
	uint64_t now, tended = 0, checked = 0;

	while (!ends) {
		struct base_pause pause = { 0 };

		drain(v);
		now = base_now_ns() / 1000000;
		if (now - tended >= 4) {
			tended = now;
			tend(v);
		}
		if (now - checked >= 200) {
			checked = now;
			check_memory(v);
		}
		if (now / 512 % 3 == 0)
			sleep_for_completion(v);
		else
			base_pause_sleep(&pause);
	}
}

/* The peer is silent by now: requests under way must end, in error perhaps. */
static void finish(struct victim *v)
{
	const uint64_t end = base_now_ns() / 1000000 + FINISH_MS;

	for (unsigned i = 0; i < FUZZ_QPS; i++) {
		while (v->qp[i].requests && base_now_ns() / 1000000 < end)
			sleep_for_completion(v);
		must(!v->qp[i].requests, "victim: %u requests of queue pair %u, type %u, never end",
		     v->qp[i].requests, i, v->qp[i].type);
	}
}

int main(int argc, char **argv)
{
	struct victim *v = &victim;
	struct in_addr address;

	must(argc == 2, "usage: wire_fuzz_victim PEER");
	setlinebuf(stdout);
	signal(SIGTERM, end);
	check(inet_pton(AF_INET, argv[1], &address) == 1, argv[1]);
	v->peer.raw[10] = v->peer.raw[11] = 0xff;
	memcpy(v->peer.raw + 12, &address, 4);
	prepare_memory(v);
	open_device(v);
	for (unsigned i = 0; i < SHARED; i++)
		post_receive(v, NULL, FUZZ_QPS * RECEIVES + i);
	for (unsigned i = 0; i < FUZZ_QPS; i++) {
		v->qp[i].type = i % FUZZ_TYPES;
		create_qp(v, &v->qp[i]);
		connect_qp(v, i);
	}
	puts("ready");
	serve(v);
	finish(v);
	check_memory(v);
	printf("received %lu by RC, %lu by UC, %lu by a shared queue; %lu requests done; "
	       "%lu completions in error; %lu connections\n",
	       v->received[FUZZ_RC], v->received[FUZZ_UC], v->received[FUZZ_SRQ], v->done,
	       v->failed, v->connections);
	if (!v->received[FUZZ_RC] || !v->received[FUZZ_UC] || !v->received[FUZZ_SRQ] || !v->done)
		errx(EXIT_FAILURE, "victim: the peer has not done much");
	puts("unharmed");
	return EXIT_SUCCESS;
}
