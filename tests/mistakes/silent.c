/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes a mistake, named by the argument, that a card keeps quiet about or has one error for:
 * silent.sh looks for the words that tell it from others. The peer is another process, on h2.
 */
#include "must.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define QKEY   0x1234
#define BYTES  4096
#define PSN    11
#define SENDS  8 /* max_send_wr */
#define WAIT_S 20

/* The message of the peer about itself and its keys. */
struct told {
	uint32_t qpn;
	uint16_t lid;
	uint64_t addr;
	uint32_t key, read_only, other_pd, deregistered, freed_window;
};

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *sends, *receives;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct told me, peer;
	int to_peer, from_peer;
	_Alignas(4096) char memory[BYTES];
};

static struct end end;

static void open_host(const char *name)
{
	struct ibv_port_attr port;
	struct ibv_device **list;
	int n;

	MUST(list = ibv_get_device_list(&n));
	for (int i = 0; i < n; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			MUST(end.context = ibv_open_device(list[i]));
	MUST(end.context);
	ibv_free_device_list(list);
	MUST(!ibv_query_port(end.context, 1, &port));
	end.me.lid = port.lid;
	MUST(end.pd = ibv_alloc_pd(end.context));
	MUST(end.sends = ibv_create_cq(end.context, 16, NULL, NULL, 0));
	MUST(end.receives = ibv_create_cq(end.context, 16, NULL, NULL, 0));
}

static struct ibv_mr *region(struct ibv_pd *pd, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, end.memory, BYTES, access);

	MUST(mr);
	return mr;
}

#define ALL_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

static struct ibv_qp *qp_new(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .send_cq = end.sends,
		                         .recv_cq = end.receives,
		                         .qp_type = type,
		                         .cap = { SENDS, 8, 1, 1 } };
	struct ibv_qp *qp = ibv_create_qp(end.pd, &init);

	MUST(qp);
	return qp;
}

/* To RTS. */
static void start_ud(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	a.qp_state = IBV_QPS_RTR;
	MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_RTS;
	MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void connect_qp(struct ibv_qp *qp, uint16_t lid, uint32_t qpn)
{
	const int rc = qp->qp_type == IBV_QPT_RC;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
		                 .port_num = 1,
		                 .qp_access_flags = ALL_ACCESS & ~IBV_ACCESS_MW_BIND };

	MUST(!ibv_modify_qp(qp, &a,
	                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
		                  .path_mtu = IBV_MTU_2048,
		                  .dest_qp_num = qpn,
		                  .rq_psn = PSN,
		                  .max_dest_rd_atomic = 1,
		                  .ah_attr = { .dlid = lid, .port_num = 1 } };
	MUST(!ibv_modify_qp(qp, &a,
	                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	                            IBV_QP_RQ_PSN |
	                            (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
		                  .sq_psn = PSN,
		                  .timeout = 10,
		                  .retry_cnt = 3,
		                  .rnr_retry = 7,
		                  .max_rd_atomic = 1 };
	MUST(!ibv_modify_qp(qp, &a,
	                    IBV_QP_STATE | IBV_QP_SQ_PSN |
	                            (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	                                             IBV_QP_MAX_QP_RD_ATOMIC
	                                : 0)));
}

/* ---- the peer ---- */

/* A window of the whole region, bound by @qp, which is in RTS. */
static struct ibv_mw *window(struct ibv_qp *qp, struct ibv_mr *mr)
{
	struct ibv_mw *mw = ibv_alloc_mw(end.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
		                    .bind_info = { mr, (uintptr_t)end.memory, BYTES,
		                                   IBV_ACCESS_REMOTE_WRITE } };
	struct ibv_wc wc;

	MUST(mw);
	MUST(!ibv_bind_mw(qp, mw, &bind));
	while (!ibv_poll_cq(end.sends, 1, &wc))
		;
	MUST(wc.status == IBV_WC_SUCCESS);
	return mw;
}

/* Registers what the mistakes are about. The queue pair is connected. */
static void make_keys(void)
{
	struct ibv_pd *other = ibv_alloc_pd(end.context);
	struct ibv_mr *gone;
	struct ibv_mw *mw;

	MUST(other);
	end.me.addr = (uintptr_t)end.memory;
	end.me.key = end.mr->rkey;
	end.me.read_only = region(end.pd, IBV_ACCESS_REMOTE_READ)->rkey;
	end.me.other_pd = region(other, ALL_ACCESS)->rkey;
	gone = region(end.pd, ALL_ACCESS);
	end.me.deregistered = gone->rkey;
	if (end.qp->qp_type == IBV_QPT_RC) {
		mw = window(end.qp, end.mr);
		end.me.freed_window = mw->rkey;
		MUST(!ibv_dealloc_mw(mw));
	}
	MUST(!ibv_dereg_mr(gone));
}

static void exchange(void)
{
	MUST(write(end.to_peer, &end.me, sizeof(end.me)) == sizeof(end.me));
	MUST(read(end.from_peer, &end.peer, sizeof(end.peer)) == sizeof(end.peer));
}

/* Polls until the other process has ended. */
static void stay(void)
{
	struct pollfd p = { .fd = end.from_peer };
	struct ibv_wc wc;

	while (!poll(&p, 1, 5))
		MUST(ibv_poll_cq(end.receives, 1, &wc) >= 0);
	exit(0);
}

/* Both: a connection, and then the keys of the peer. */
static void set_up(const char *host, enum ibv_qp_type type, int is_peer)
{
	open_host(host);
	end.mr = region(end.pd, ALL_ACCESS);
	end.qp = qp_new(type);
	end.me.qpn = end.qp->qp_num;
	exchange();
	if (type == IBV_QPT_UD)
		start_ud(end.qp);
	else
		connect_qp(end.qp, end.peer.lid, end.peer.qpn);
	if (is_peer)
		make_keys();
	exchange();
}

/* ---- remote memory ---- */

static enum ibv_wc_status request(enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr,
                                  uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)end.memory, bytes, end.mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = 3,
		                        .sg_list = &sge,
		                        .num_sge = 1,
		                        .opcode = opcode,
		                        .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
	}
	MUST(!ibv_post_send(end.qp, &wr, &bad));
	while (!ibv_poll_cq(end.sends, 1, &wc))
		;
	return wc.status;
}

static void is_refused(enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr, uint32_t bytes)
{
	MUST(request(opcode, rkey, addr, bytes) == IBV_WC_REM_ACCESS_ERR);
}

static void key_unknown(void)
{
	is_refused(IBV_WR_RDMA_READ, 0x12345600, end.peer.addr, 16);
}

/* The command has the state and the key: what was refused can be asked about afterwards. */
static void ask_afterwards(void)
{
	char ask[256];

	key_unknown();
	for (int tries = 0; system("umbel show qps | grep -q '^h2 .* ERR '"); tries++) {
		MUST(tries < 20 * WAIT_S);
		usleep(50000);
	}
	snprintf(ask, sizeof(ask),
	         "umbel explain --rkey 0x12345600 --qp h2:0x%06x --op read --address 0x%llx",
	         end.peer.qpn, (unsigned long long)end.peer.addr);
	MUST(system(ask) == 256); /* it exits with 1 */
}

static void key_turned(void)
{
	is_refused(IBV_WR_RDMA_READ, htonl(end.peer.key), end.peer.addr, 16);
}

/* The peer has not so many. */
static void key_of_mine(void)
{
	struct ibv_mr *mr = NULL;

	for (int i = 0; i < 9; i++)
		mr = region(end.pd, ALL_ACCESS);
	is_refused(IBV_WR_RDMA_WRITE, mr->rkey, end.peer.addr, 16);
}

static void key_deregistered(void)
{
	is_refused(IBV_WR_RDMA_WRITE, end.peer.deregistered, end.peer.addr, 16);
}

static void window_freed(void)
{
	is_refused(IBV_WR_RDMA_WRITE, end.peer.freed_window, end.peer.addr, 16);
}

static void key_of_other_pd(void)
{
	is_refused(IBV_WR_ATOMIC_CMP_AND_SWP, end.peer.other_pd, end.peer.addr, 8);
}

static void access_missing(void)
{
	is_refused(IBV_WR_RDMA_WRITE, end.peer.read_only, end.peer.addr, 100);
}

static void address_before(void)
{
	is_refused(IBV_WR_RDMA_READ, end.peer.key, end.peer.addr - 8, 100);
}

static void length_beyond(void)
{
	is_refused(IBV_WR_RDMA_READ, end.peer.key, end.peer.addr + BYTES - 30, 100);
}

static void uc_unknown(void)
{
	MUST(request(IBV_WR_RDMA_WRITE, 0x12345600, end.peer.addr, 16) == IBV_WC_SUCCESS);
}

/* ---- datagrams ---- */

static const union ibv_gid group = { .raw = { 0xFF, 0x12, 0x40, 0x1B, 0xFF, 0xFF, [15] = 9 } };

/* A datagram of @bytes, which completes with success whatever becomes of it. */
static void send_datagram(struct ibv_ah_attr *to, uint32_t qpn, uint32_t qkey, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)end.memory, bytes, end.mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
		                        .num_sge = 1,
		                        .opcode = IBV_WR_SEND,
		                        .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;

	to->port_num = 1;
	MUST(wr.wr.ud.ah = ibv_create_ah(end.pd, to));
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	MUST(!ibv_post_send(end.qp, &wr, &bad));
	while (!ibv_poll_cq(end.sends, 1, &wc))
		;
	MUST(wc.status == IBV_WC_SUCCESS);
}

static void send_to_lid(uint16_t lid, uint32_t qpn, uint32_t qkey)
{
	send_datagram(&(struct ibv_ah_attr){ .dlid = lid }, qpn, qkey, 20);
}

static void send_to_group(uint16_t lid, uint32_t qpn, uint32_t bytes)
{
	send_datagram(&(struct ibv_ah_attr){ .is_global = 1, .grh.dgid = group, .dlid = lid }, qpn,
	              QKEY, bytes);
}

static void group_by_lid(void)
{
	send_to_group(end.peer.lid, 0xFFFFFF, 20);
}

static void group_by_lid_of_one(void)
{
	send_to_group(end.peer.lid, end.peer.qpn, 20);
}

static void group_of_nobody(void)
{
	send_to_group(0xC123, 0xFFFFFF, 20);
}

static void group_qpn(void)
{
	send_to_group(0xC123, end.peer.qpn, 20);
}

static void other_qkey(void)
{
	send_to_lid(end.peer.lid, end.peer.qpn, QKEY + 1);
}

static void no_receive(void)
{
	send_to_lid(end.peer.lid, end.peer.qpn, QKEY);
}

static void no_such_qp(void)
{
	send_to_lid(end.peer.lid, 0x4321, QKEY);
}

static void lid_of_nobody(void)
{
	send_to_lid(99, end.peer.qpn, QKEY);
}

/* ---- waiting in vain ---- */

/* Whether the log, which is a file, has a line by now. Fails after WAIT_S. */
static int is_told(void)
{
	static time_t end_at;
	struct stat log;

	if (!end_at)
		end_at = time(NULL) + WAIT_S;
	MUST(!fstat(2, &log));
	errno = ETIMEDOUT;
	check(log.st_size || time(NULL) <= end_at, "a line about it");
	return log.st_size != 0;
}

/* Once the program is told, the mistake is mended, and the call that waits returns. */
static void *mend_when_told(void *mend)
{
	while (!is_told())
		usleep(2000);
	((void (*)(void))(uintptr_t)mend)();
	return NULL;
}

static void mend_later(void (*mend)(void))
{
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, mend_when_told, (void *)(uintptr_t)mend));
	MUST(!pthread_detach(thread));
}

/* A send of RC, without a completion if @flags say none. */
static int send_message(unsigned flags)
{
	struct ibv_sge sge = { (uintptr_t)end.memory, 20, end.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = flags
	};

	wr.wr.rdma.remote_addr = end.peer.addr;
	wr.wr.rdma.rkey = end.peer.key;
	return ibv_post_send(end.qp, &wr, &bad);
}

static void poll_until_told(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (!is_told())
		MUST(!ibv_poll_cq(cq, 1, &wc));
}

static void unsignaled(void)
{
	MUST(!send_message(0));
	poll_until_told(end.sends);
}

static void other_queue(void)
{
	MUST(!send_message(IBV_SEND_SIGNALED));
	poll_until_told(end.receives);
}

static void unsignaled_full(void)
{
	for (int i = 0; i < SENDS; i++)
		MUST(!send_message(0));
	MUST(send_message(0) == ENOMEM);
}

/* The peer posts no receive. */
static void no_receive_for_ever(void)
{
	struct ibv_sge sge = { (uintptr_t)end.memory, 20, end.mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
		                        .num_sge = 1,
		                        .opcode = IBV_WR_SEND,
		                        .send_flags = IBV_SEND_SIGNALED };

	MUST(!ibv_post_send(end.qp, &wr, &bad));
	poll_until_told(end.sends);
}

/* Right: both queues are polled, and nothing has come yet for half a second. */
static void both_queues(void)
{
	struct timespec began, now;
	struct ibv_wc wc;

	MUST(!send_message(0));
	clock_gettime(CLOCK_MONOTONIC, &began);
	do {
		MUST(!ibv_poll_cq(end.sends, 1, &wc));
		MUST(!ibv_poll_cq(end.receives, 1, &wc));
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000 <
	         500);
}

static struct ibv_comp_channel *channel;
static struct ibv_cq *of_channel;

/* Its queue pair takes the place of the other one, and sends to itself. */
static void use_channel(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 1, 1, 1, 1 } };
	struct ibv_sge sge = { (uintptr_t)end.memory, 60, end.mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	MUST(channel = ibv_create_comp_channel(end.context));
	MUST(of_channel = ibv_create_cq(end.context, 16, NULL, channel, 0));
	init.send_cq = init.recv_cq = of_channel;
	MUST(end.qp = ibv_create_qp(end.pd, &init));
	start_ud(end.qp);
	MUST(!ibv_post_recv(end.qp, &wr, &bad));
}

static void arm_and_send(void)
{
	struct ibv_sge sge = { (uintptr_t)end.memory, 20, end.mr->lkey };
	struct ibv_ah_attr to = { .dlid = end.me.lid, .port_num = 1 };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
		                        .num_sge = 1,
		                        .opcode = IBV_WR_SEND,
		                        .send_flags = IBV_SEND_SIGNALED };

	MUST(!ibv_req_notify_cq(of_channel, 0));
	MUST(wr.wr.ud.ah = ibv_create_ah(end.pd, &to));
	wr.wr.ud.remote_qpn = end.qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	MUST(!ibv_post_send(end.qp, &wr, &bad));
}

static void get_event(void)
{
	struct ibv_cq *cq;
	void *context;

	MUST(!ibv_get_cq_event(channel, &cq, &context));
}

static void not_armed(void)
{
	use_channel();
	mend_later(arm_and_send);
	get_event();
}

static void acknowledge_cq(void)
{
	ibv_ack_cq_events(of_channel, 1);
}

static void cq_event_kept(void)
{
	use_channel();
	arm_and_send();
	get_event();
	MUST(!ibv_destroy_qp(end.qp));
	mend_later(acknowledge_cq);
	MUST(!ibv_destroy_cq(of_channel));
}

/* ---- rdma_cm ---- */

static struct rdma_cm_event *kept;

static struct rdma_cm_id *bound_id(void)
{
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct sockaddr_in me = { .sin_family = AF_INET };
	struct rdma_cm_id *id;

	me.sin_addr.s_addr = htonl(0x0A000001); /* 10.0.0.1 */
	MUST(events && !rdma_create_id(events, &id, NULL, RDMA_PS_UDP));
	MUST(!rdma_bind_addr(id, (struct sockaddr *)&me));
	return id;
}

static struct sockaddr *address(void)
{
	static struct sockaddr_in group_of = { .sin_family = AF_INET };

	group_of.sin_addr.s_addr = htonl(0xEF010203);
	return (struct sockaddr *)&group_of;
}

static void group_by_unicast(void)
{
	struct sockaddr_in group_of = { .sin_family = AF_INET };
	struct rdma_cm_id *id = bound_id();

	group_of.sin_addr.s_addr = htonl(0x0A010101); /* 10.1.1.1 */
	MUST(!rdma_join_multicast(id, (struct sockaddr *)&group_of, NULL));
	MUST(!rdma_get_cm_event(id->channel, &kept));
	MUST(kept->event == RDMA_CM_EVENT_MULTICAST_JOIN);
	MUST(!rdma_ack_cm_event(kept));
}

static void left_before_event(void)
{
	struct rdma_cm_id *id = bound_id();

	MUST(!rdma_join_multicast(id, address(), NULL));
	MUST(!rdma_leave_multicast(id, address()));
}

static void acknowledge_cm(void)
{
	MUST(!rdma_ack_cm_event(kept));
}

static struct rdma_cm_id *joined_id(void)
{
	struct rdma_cm_id *id = bound_id();

	MUST(!rdma_join_multicast(id, address(), NULL));
	MUST(!rdma_get_cm_event(id->channel, &kept));
	MUST(kept->event == RDMA_CM_EVENT_MULTICAST_JOIN);
	return id;
}

static void cm_event_kept(void)
{
	struct rdma_cm_id *id = joined_id();

	mend_later(acknowledge_cm);
	MUST(!rdma_destroy_id(id));
}

static void join_event_kept(void)
{
	struct rdma_cm_id *id = joined_id();

	mend_later(acknowledge_cm);
	MUST(!rdma_leave_multicast(id, address()));
}

/* ---- */

static const struct {
	const char *name;
	void (*make)(void);
	enum ibv_qp_type type;
} mistakes[] = {
	{ "key_unknown", key_unknown, IBV_QPT_RC },
	{ "ask_afterwards", ask_afterwards, IBV_QPT_RC },
	{ "key_turned", key_turned, IBV_QPT_RC },
	{ "key_of_mine", key_of_mine, IBV_QPT_RC },
	{ "key_deregistered", key_deregistered, IBV_QPT_RC },
	{ "window_freed", window_freed, IBV_QPT_RC },
	{ "key_of_other_pd", key_of_other_pd, IBV_QPT_RC },
	{ "access_missing", access_missing, IBV_QPT_RC },
	{ "address_before", address_before, IBV_QPT_RC },
	{ "length_beyond", length_beyond, IBV_QPT_RC },
	{ "uc_unknown", uc_unknown, IBV_QPT_UC },
	{ "group_by_lid", group_by_lid, IBV_QPT_UD },
	{ "group_by_lid_of_one", group_by_lid_of_one, IBV_QPT_UD },
	{ "group_of_nobody", group_of_nobody, IBV_QPT_UD },
	{ "group_qpn", group_qpn, IBV_QPT_UD },
	{ "other_qkey", other_qkey, IBV_QPT_UD },
	{ "no_receive", no_receive, IBV_QPT_UD },
	{ "no_such_qp", no_such_qp, IBV_QPT_UD },
	{ "lid_of_nobody", lid_of_nobody, IBV_QPT_UD },
	{ "unsignaled", unsignaled, IBV_QPT_RC },
	{ "other_queue", other_queue, IBV_QPT_RC },
	{ "unsignaled_full", unsignaled_full, IBV_QPT_RC },
	{ "no_receive_for_ever", no_receive_for_ever, IBV_QPT_RC },
	{ "both_queues", both_queues, IBV_QPT_RC },
	{ "not_armed", not_armed, IBV_QPT_UD },
	{ "cq_event_kept", cq_event_kept, IBV_QPT_UD },
	{ "group_by_unicast", group_by_unicast, IBV_QPT_UD },
	{ "left_before_event", left_before_event, IBV_QPT_UD },
	{ "cm_event_kept", cm_event_kept, IBV_QPT_UD },
	{ "join_event_kept", join_event_kept, IBV_QPT_UD },
};

int main(int argc, char **argv)
{
	int there[2], back[2];
	pid_t child;
	size_t i = 0;

	for (; i < sizeof(mistakes) / sizeof(*mistakes); i++)
		if (argc == 2 && !strcmp(mistakes[i].name, argv[1]))
			break;
	MUST(i < sizeof(mistakes) / sizeof(*mistakes));
	MUST(!pipe(there) && !pipe(back));
	child = fork();
	MUST(child >= 0);
	end.to_peer = child ? there[1] : back[1];
	end.from_peer = child ? back[0] : there[0];
	close(child ? there[0] : there[1]);
	close(child ? back[1] : back[0]);
	set_up(child ? "umbel_h1_0" : "umbel_h2_0", mistakes[i].type, !child);
	if (!child)
		stay();
	mistakes[i].make();
	close(end.to_peer);
	MUST(waitpid(child, NULL, 0) == child);
	return 0;
}
