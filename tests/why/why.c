/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Does wrong what its first argument names, between a queue pair of h1 and one of h3; says "ready"
 * and both numbers, then how what it has sent completes, and stays until it is killed, so that
 * `umbel show qps` and `umbel explain` can be asked. On no host: it sees the HCAs of all.
 */
#include "must.h"

#include <infiniband/verbs.h>

#include "../qp_states.h"
#include "attributes.h"

#define QKEY  0x1234
#define ROOM  4096
#define BYTES 64
#define GRH   40

/* An end: a queue pair of a host with what it takes. */
struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_srq *srq; /* of the queue pairs that are made; NULL: none */
	uint16_t lid;
	char memory[2 * ROOM];
};

static struct end from, to;
static uint8_t timeout = 22;                 /* of RC: minutes */
static uint8_t rnr_retry = 7;                /* for a receive it waits without an end */
static uint16_t other_lid;                   /* to which @from is connected instead; 0: none */
static uint32_t first_psn;                   /* that @from sends; the other one expects 0 */
static enum ibv_mtu path_mtu = IBV_MTU_4096; /* of @from; the other one's is 4096 */
static uint16_t pkey_index;                  /* of @to */
static unsigned access_flags;                /* of both: what the peer's requests may do */
static enum ibv_wc_status failed;            /* that was polled already */
static bool in_init;                         /* the receiver of datagrams stays there */

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

/* In a child. */
static void reopen(struct end *e, int device)
{
	struct ibv_device **list;
	int n;

	MUST(list = ibv_get_device_list(&n));
	MUST(device < n);
	open_end(e, list[device]);
	ibv_free_device_list(list);
}

static void make(struct end *e, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .send_cq = e->cq,
		                         .recv_cq = e->cq,
		                         .srq = e->srq,
		                         .qp_type = type,
		                         .cap = { 8, 8, 1, 1, 0 } };

	MUST(e->qp = ibv_create_qp(e->pd, &init));
}

static void to_init(struct end *e)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
		                 .port_num = 1,
		                 .pkey_index = e == &to ? pkey_index : 0,
		                 .qp_access_flags = access_flags,
		                 .qkey = QKEY };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	mask |= e->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	MUST(!ibv_modify_qp(e->qp, &a, mask));
}

static void receive(struct end *e, unsigned n)
{
	struct ibv_sge sge = { (uintptr_t)e->memory, GRH + ROOM, e->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	while (n--)
		MUST(!ibv_post_recv(e->qp, &wr, &bad));
}

/* ---- UD ---- */

static void to_rts(struct end *e)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR };

	to_init(e);
	MUST(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_RTS;
	MUST(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

/* @n messages of @bytes to the receiver, which has posted @receives. */
static void datagrams(unsigned receives, unsigned n, uint32_t bytes, uint32_t qkey)
{
	struct ibv_sge sge = { (uintptr_t)from.memory, bytes, from.mr->lkey };
	struct ibv_ah_attr path = { .dlid = to.lid, .port_num = 1 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	make(&from, IBV_QPT_UD);
	make(&to, IBV_QPT_UD);
	to_rts(&from);
	if (in_init)
		to_init(&to);
	else
		to_rts(&to);
	receive(&to, receives);
	MUST(wr.wr.ud.ah = ibv_create_ah(from.pd, &path));
	wr.wr.ud.remote_qpn = to.qp->qp_num;
	wr.wr.ud.remote_qkey = qkey;
	while (n--)
		MUST(!ibv_post_send(from.qp, &wr, &bad));
}

static void ud(void)
{
	datagrams(4, 1, BYTES, QKEY);
}

static void ud_qkey(void)
{
	datagrams(4, 1, BYTES, QKEY + 1);
}

static void ud_no_receive(void)
{
	datagrams(0, 3, BYTES, QKEY);
}

static void ud_init(void)
{
	in_init = true;
	datagrams(0, 2, BYTES, QKEY);
}

static void ud_unpolled(void)
{
	datagrams(2, 3, BYTES, QKEY);
}

static void ud_mtu(void)
{
	datagrams(4, 1, ROOM + 1, QKEY);
}

/* ---- RC ---- */

static void connect_to(struct end *e, const struct end *peer, uint32_t number)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
		                 .path_mtu = e == &from ? path_mtu : IBV_MTU_4096,
		                 .dest_qp_num = number,
		                 .min_rnr_timer = 1,
		                 .ah_attr = { .dlid = peer->lid, .port_num = 1 } };

	if (e == &from && other_lid)
		a.ah_attr.dlid = other_lid;

	to_init(e);
	MUST(!qp_to_rtr(e->qp, &a));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
		                  .sq_psn = e == &from ? first_psn : 0,
		                  .timeout = timeout,
		                  .retry_cnt = 7,
		                  .rnr_retry = rnr_retry };
	MUST(!qp_to_rts(e->qp, &a));
}

static void make_both(void)
{
	make(&from, IBV_QPT_RC);
	make(&to, IBV_QPT_RC);
}

static void send_one(void)
{
	struct ibv_sge sge = { (uintptr_t)from.memory, BYTES, from.mr->lkey };
	struct ibv_send_wr wr = request_of(&sge, IBV_WR_SEND, IBV_SEND_SIGNALED), *bad;

	MUST(!ibv_post_send(from.qp, &wr, &bad));
}

static void connect_both(void)
{
	make_both();
	connect_to(&from, &to, to.qp->qp_num);
	connect_to(&to, &from, from.qp->qp_num);
}

static void rc(void)
{
	connect_both();
	receive(&to, 4);
	receive(&from, 4);
	send_one();
}

/* With a fault that loses acknowledgements: it sends again after a second. */
static void rc_packets(void)
{
	timeout = 18; /* it is asked within the eight seconds until it gives up */
	connect_both();
	receive(&to, 4);
	send_one();
}

static void rc_mtu(void)
{
	path_mtu = IBV_MTU_1024;
	rc();
}

static void rc_no_receive(void)
{
	connect_both();
	send_one();
	send_one();
}

static void rc_unpolled(void)
{
	connect_both();
	receive(&to, 1);
	send_one();
	send_one();
}

static void rc_dead(void)
{
	uint32_t number;

	connect_both();
	number = to.qp->qp_num;
	MUST(!ibv_destroy_qp(to.qp));
	make(&to, IBV_QPT_RC);
	fprintf(stderr, "0x%06x is gone\n", number);
	send_one();
}

/* It gives up at once. */
static void rc_gave_up(void)
{
	timeout = 1;
	rc_dead();
}

static void rc_init(void)
{
	make_both();
	connect_to(&from, &to, to.qp->qp_num);
	to_init(&to);
	send_one();
}

static void rc_other(void)
{
	make_both();
	connect_to(&from, &to, to.qp->qp_num);
	connect_to(&to, &from, from.qp->qp_num + 1);
	send_one();
}

static void rc_error(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	rc();
	MUST(!ibv_modify_qp(to.qp, &a, IBV_QP_STATE));
	send_one();
}

/* ---- RC that gives up: after eight times 8 us, or without waiting for a receive ---- */

static void gives_up(void)
{
	timeout = 1;
	rnr_retry = 1;
}

static void exc_other_type(void)
{
	gives_up();
	make(&from, IBV_QPT_RC);
	make(&to, IBV_QPT_UD);
	connect_to(&from, &to, to.qp->qp_num);
	to_rts(&to);
	send_one();
}

static void exc_reset(void)
{
	gives_up();
	make_both();
	connect_to(&from, &to, to.qp->qp_num);
	send_one();
}

static void exc_init(void)
{
	gives_up();
	rc_init();
}

static void exc_error(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	gives_up();
	connect_both();
	MUST(!ibv_modify_qp(to.qp, &a, IBV_QP_STATE));
	send_one();
}

static void exc_other_peer(void)
{
	gives_up();
	rc_other();
}

static void exc_no_such_qp(void)
{
	gives_up();
	make_both();
	connect_to(&from, &to, to.qp->qp_num + 77);
	connect_to(&to, &from, from.qp->qp_num);
	send_one();
}

/* All that is right in the program: what gets lost is lost by something else. */
static void exc_good(void)
{
	gives_up();
	connect_both();
	receive(&to, 4);
	send_one();
}

static void exc_no_such_lid(void)
{
	other_lid = 0x77;
	exc_good();
}

static void exc_lid_of_other_host(void)
{
	other_lid = (uint16_t)(to.lid - 1);
	exc_good();
}

static void exc_psn(void)
{
	first_psn = 1000;
	exc_good();
}

static void exc_pkey(void)
{
	pkey_index = 1;
	exc_good();
}

static void rnr_no_receive(void)
{
	gives_up();
	connect_both();
	send_one();
}

static void rnr_unpolled(void)
{
	gives_up();
	rc_unpolled();
}

static void rnr_srq_empty(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8, .max_sge = 1 } };

	MUST(to.srq = ibv_create_srq(to.pd, &init));
	rnr_no_receive();
}

/* The receive is posted a moment later than rnr_retry waits for. */
static void rnr_late(void)
{
	struct ibv_wc wc;

	rnr_no_receive();
	while (!ibv_poll_cq(from.cq, 1, &wc))
		usleep(1000);
	MUST(wc.status == IBV_WC_RNR_RETRY_EXC_ERR);
	receive(&to, 4);
	failed = wc.status;
}

/* Until the daemon has noticed a death, requests succeed. */
static void write_until_it_fails(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED },
	                   *bad; /* of no bytes */
	struct ibv_wc wc;

	do {
		MUST(!ibv_post_send(from.qp, &wr, &bad));
		while (!ibv_poll_cq(from.cq, 1, &wc))
			usleep(1000);
	} while (wc.status == IBV_WC_SUCCESS);
	failed = wc.status;
}

/* The other end is a child's, which is killed. */
static void exc_killed(void)
{
	int numbers[2], there[2];
	uint32_t number;
	pid_t child;

	access_flags = IBV_ACCESS_REMOTE_WRITE;
	gives_up();
	MUST(!pipe(numbers) && !pipe(there));
	make(&from, IBV_QPT_RC);
	child = fork();
	MUST(child >= 0);
	if (!child) {
		reopen(&to, 2);
		make(&to, IBV_QPT_RC);
		connect_to(&to, &from, from.qp->qp_num);
		number = to.qp->qp_num;
		MUST(write(numbers[1], &number, sizeof(number)) == sizeof(number));
		for (;;)
			pause();
	}
	MUST(read(numbers[0], &number, sizeof(number)) == sizeof(number));
	connect_to(&from, &to, number);
	kill(child, SIGKILL);
	MUST(waitpid(child, NULL, 0) == child);
	to.qp = from.qp; /* its number is no queue pair's any more */
	write_until_it_fails();
}

/* As many as the second argument says, of UD. */
static void many(unsigned n)
{
	while (n--)
		make(&to, IBV_QPT_UD);
	from.qp = to.qp;
}

/* ---- */

static const struct {
	const char *name;
	void (*make)(void);
} causes[] = {
	{ "ud", ud },
	{ "ud_qkey", ud_qkey },
	{ "ud_no_receive", ud_no_receive },
	{ "ud_init", ud_init },
	{ "ud_unpolled", ud_unpolled },
	{ "ud_mtu", ud_mtu },
	{ "rc", rc },
	{ "rc_packets", rc_packets },
	{ "rc_mtu", rc_mtu },
	{ "rc_no_receive", rc_no_receive },
	{ "rc_dead", rc_dead },
	{ "rc_gave_up", rc_gave_up },
	{ "rc_unpolled", rc_unpolled },
	{ "rc_init", rc_init },
	{ "rc_other", rc_other },
	{ "rc_error", rc_error },
	{ "exc_other_type", exc_other_type },
	{ "exc_reset", exc_reset },
	{ "exc_init", exc_init },
	{ "exc_error", exc_error },
	{ "exc_other_peer", exc_other_peer },
	{ "exc_no_such_qp", exc_no_such_qp },
	{ "exc_good", exc_good },
	{ "exc_no_such_lid", exc_no_such_lid },
	{ "exc_lid_of_other_host", exc_lid_of_other_host },
	{ "exc_psn", exc_psn },
	{ "exc_pkey", exc_pkey },
	{ "exc_killed", exc_killed },
	{ "rnr_no_receive", rnr_no_receive },
	{ "rnr_unpolled", rnr_unpolled },
	{ "rnr_srq_empty", rnr_srq_empty },
	{ "rnr_late", rnr_late },
};

static bool find(const char *name)
{
	for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++)
		if (!strcmp(causes[i].name, name)) {
			causes[i].make();
			return true;
		}
	return false;
}

int main(int argc, char **argv)
{
	struct ibv_device **list;
	struct ibv_wc wc;
	int n;

	MUST(list = ibv_get_device_list(&n));
	if (n < 3 || argc < 2)
		return 2;
	open_end(&from, list[0]);
	open_end(&to, list[2]);
	ibv_free_device_list(list);
	if (argc > 2)
		many((unsigned)atoi(argv[2]));
	else if (!find(argv[1]))
		return 2;
	printf("ready 0x%06x 0x%06x\n", from.qp->qp_num, to.qp->qp_num);
	fflush(stdout);
	if (failed != IBV_WC_SUCCESS)
		printf("completed %d\n", failed);
	for (;; usleep(1000)) { /* polling, it tries again what waits */
		while (ibv_poll_cq(from.cq, 1, &wc) > 0)
			printf("completed %d\n", wc.status);
		fflush(stdout);
	}
}
