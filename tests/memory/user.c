// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program that uses a card: two connected queue pairs exchange messages. Its arguments say what
 * it does, one after the other:
 *
 *   open        opens the device, and exchanges messages
 *   go          exchanges messages until its input ends, and says "100 more" of each hundred
 *   grow SIZE   makes queue pairs of that size until there is no memory, and says how many
 *   fill        sends datagrams that nobody receives, until one is lost
 *   lock FLAGS  calls mlockall(), and says how much is locked
 *   wait        says "ready", and waits for the end of its input
 *   abort       calls abort()
 */
#include "../posix.h"

#include <infiniband/verbs.h>

#include "../qp_states.h"

#define MESSAGES 500
#define BYTES    8192
#define WRS      128
#define LARGE    4096
#define DATAGRAM 4096

static struct ibv_qp *qp[2];
static struct ibv_cq *cq[2];
static struct ibv_mr *mr[2];
static char memory[2][BYTES];
static uint16_t lid;
static void *volatile kept; /* valgrind searches memory if something is left at the end */

static void must(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(3);
	}
}

static void complete(struct ibv_cq *of)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(of, 1, &wc)))
		nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	must(n == 1 && wc.status == IBV_WC_SUCCESS, "a completion");
}

static void connect_to(int at)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
		                 .port_num = 1,
		                 .path_mtu = IBV_MTU_1024,
		                 .dest_qp_num = qp[!at]->qp_num,
		                 .ah_attr = { .dlid = lid, .port_num = 1 },
		                 .min_rnr_timer = 12,
		                 .timeout = 18,
		                 .retry_cnt = 7,
		                 .rnr_retry = 7 };

	must(!qp_to_init(qp[at], &a), "INIT");
	must(!qp_to_rtr(qp[at], &a), "RTR");
	must(!qp_to_rts(qp[at], &a), "RTS");
}

static void make(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_port_attr port;

	must(pd && !ibv_query_port(context, 1, &port), "the device");
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = { .cap = { WRS, WRS, 1, 1, 0 },
			                         .qp_type = IBV_QPT_RC };

		init.send_cq = init.recv_cq = cq[i] = ibv_create_cq(context, WRS, NULL, NULL, 0);
		mr[i] = ibv_reg_mr(pd, memory[i], BYTES, IBV_ACCESS_LOCAL_WRITE);
		must(cq[i] && mr[i], "a completion queue and a region");
		qp[i] = ibv_create_qp(pd, &init);
		must(!!qp[i], "a queue pair");
	}
	lid = port.lid;
	connect_to(0);
	connect_to(1);
}

static void exchange(int from)
{
	struct ibv_sge to = { (uintptr_t)memory[!from], BYTES, mr[!from]->lkey };
	struct ibv_sge sge = { (uintptr_t)memory[from], BYTES, mr[from]->lkey };
	struct ibv_recv_wr receive = { .sg_list = &to, .num_sge = 1 }, *bad_receive;
	struct ibv_send_wr send = { .sg_list = &sge,
		                    .num_sge = 1,
		                    .opcode = IBV_WR_SEND,
		                    .send_flags = IBV_SEND_SIGNALED },
	                   *bad_send;

	must(!ibv_post_recv(qp[!from], &receive, &bad_receive), "ibv_post_recv");
	must(!ibv_post_send(qp[from], &send, &bad_send), "ibv_post_send");
	complete(cq[from]);
	complete(cq[!from]);
}

static void use(void)
{
	make();
	for (int i = 0; i < MESSAGES; i++) {
		memset(memory[i % 2], i, BYTES);
		exchange(i % 2);
		must(!memcmp(memory[0], memory[1], BYTES), "the message");
	}
}

/* ---- more and more */

static void go(void)
{
	struct pollfd end = { .fd = 0, .events = POLLIN };

	for (int i = 1; !poll(&end, 1, 1); i++) {
		memset(memory[0], i, BYTES);
		exchange(0);
		must(!memcmp(memory[0], memory[1], BYTES), "the message");
		if (i % 100 == 0)
			puts("100 more");
	}
}

static struct ibv_qp *more(enum ibv_qp_type type, uint32_t size)
{
	struct ibv_qp_init_attr init = {
		.cap = { size, size, 1, 1, 0 }, .qp_type = type, .send_cq = cq[0], .recv_cq = cq[1]
	};

	return ibv_create_qp(qp[0]->pd, &init);
}

static void grow(uint32_t size)
{
	unsigned n = 0;

	while (more(IBV_QPT_RC, size))
		n++;
	printf("%u queue pairs, then %s\n", n, errno == ENOMEM ? "no memory" : strerror(errno));
}

static struct ibv_qp *datagrams(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };
	struct ibv_qp *ud = more(IBV_QPT_UD, LARGE);

	if (!ud)
		return NULL;
	must(!ibv_modify_qp(ud, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	     "INIT");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(ud, &a, IBV_QP_STATE), "RTR");
	a.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(ud, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
	return ud;
}

/* To itself, all that it may hold. */
static void fill_one(struct ibv_qp *ud, struct ibv_ah *ah)
{
	struct ibv_sge sge = { (uintptr_t)memory[0], DATAGRAM, mr[0]->lkey };
	struct ibv_recv_wr receive = { .sg_list = &sge, .num_sge = 1 }, *bad_receive;
	struct ibv_send_wr *bad_send, send = { .sg_list = &sge,
		                               .num_sge = 1,
		                               .opcode = IBV_WR_SEND,
		                               .send_flags = IBV_SEND_SIGNALED };

	send.wr.ud.ah = ah;
	send.wr.ud.remote_qpn = ud->qp_num;
	send.wr.ud.remote_qkey = 1;
	for (int i = 0; i < LARGE; i++) {
		must(!ibv_post_recv(ud, &receive, &bad_receive), "ibv_post_recv");
		must(!ibv_post_send(ud, &send, &bad_send), "ibv_post_send");
		complete(cq[0]);
	}
}

static void fill(void)
{
	struct ibv_ah_attr to = { .dlid = lid, .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(qp[0]->pd, &to);
	struct ibv_qp *ud;
	unsigned n = 0;

	must(!!ah, "an address handle");
	for (; (ud = datagrams()); n++)
		fill_one(ud, ah);
	printf("%u queue pairs, then %s\n", n, errno == ENOMEM ? "no memory" : strerror(errno));
}

/* ---- what it costs */

static void lock(int flags)
{
	FILE *f;
	char line[256];

	must(!mlockall(flags), "mlockall");
	f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmLck:", 6))
			printf("locked %ld kB\n", strtol(line + 6, NULL, 10));
	must(f && !fclose(f), "/proc/self/status");
}

int main(int argc, char **argv)
{
	char byte;

	kept = malloc(1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "open")) {
			use();
		} else if (!strcmp(argv[i], "go")) {
			go();
		} else if (!strcmp(argv[i], "grow") && i + 1 < argc) {
			grow((uint32_t)strtoul(argv[++i], NULL, 0));
		} else if (!strcmp(argv[i], "fill")) {
			fill();
		} else if (!strcmp(argv[i], "lock") && i + 1 < argc) {
			lock((int)strtol(argv[++i], NULL, 0));
		} else if (!strcmp(argv[i], "wait")) {
			puts("ready");
			must(!read(0, &byte, 1), "the end of the input");
		} else if (!strcmp(argv[i], "abort")) {
			abort();
		} else {
			return 2;
		}
	return 0;
}
