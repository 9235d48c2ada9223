/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One end of datagrams that cross subnets:
 *
 *	peer receive COUNT [MGID]      prints "here GID QPN", then each message: its number, its
 *	                               sender's GID, SLID, hop limit; and answers it, if unicast
 *	peer send GID QPN COUNT [HOPS] asks the SA for the path, prints it, and sends numbered
 *	                               messages, of 4 to 2,000 bytes; waits for as many answers
 *	peer group MGID COUNT          joins the group as a sender, and sends as many
 *
 * It ends after COUNT messages have come, or have been sent. A receiver also ends when nothing has
 * come for as many seconds as QUIET in the environment says.
 */
#include "posix.h"

#include <infiniband/verbs.h>

#include "property/sa.h"

#define QKEY   0x01234567
#define DEPTH  4096
#define MOST   2048
#define GRH    40
#define GROUPQ 0xFFFFFF
#define FULL   1

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *sent, *received;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *memory; /* DEPTH receives, and one message to send */
static struct sa_port sa;

static void must(int failed, const char *what)
{
	if (failed)
		err(EXIT_FAILURE, "%s", what);
}

static void post(uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)memory + slot * (MOST + GRH), MOST + GRH, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void begin(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .cap = { DEPTH, DEPTH, 1, 1, 0 }, .qp_type = IBV_QPT_UD };
	struct ibv_qp_attr a = { .port_num = 1, .qkey = QKEY };

	must(!list || !*list, "no device");
	context = ibv_open_device(*list);
	must(!context, "ibv_open_device");
	sa_open(&sa, ibv_get_device_name(*list), 1);
	pd = ibv_alloc_pd(context);
	sent = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
	received = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
	must(!pd || !sent || !received, "ibv_create_cq");
	init.send_cq = sent;
	init.recv_cq = received;
	qp = ibv_create_qp(pd, &init);
	memory = calloc(DEPTH + 1, MOST + GRH);
	must(!qp || !memory, "ibv_create_qp");
	mr = ibv_reg_mr(pd, memory, (DEPTH + 1) * (MOST + GRH), IBV_ACCESS_LOCAL_WRITE);
	must(!mr, "ibv_reg_mr");
	a.qp_state = IBV_QPS_INIT;
	must(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	     "INIT");
	for (uint64_t i = 0; i < DEPTH; i++)
		post(i);
	a.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(qp, &a, IBV_QP_STATE), "RTR");
	a.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
	setvbuf(stdout, NULL, _IOLBF, 0);
}

/* The next message, for @seconds at most; false: none. */
static int next(int seconds, struct ibv_wc *wc)
{
	const time_t end = time(NULL) + seconds;

	while (time(NULL) <= end) {
		if (!ibv_poll_cq(received, 1, wc)) {
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
			continue;
		}
		if (wc->status)
			errx(EXIT_FAILURE, "%s", ibv_wc_status_str(wc->status));
		return 1;
	}
	return 0;
}

static struct ibv_ah *ah_to(const uint8_t gid[16], uint16_t dlid, uint8_t sl, uint8_t hops)
{
	struct ibv_ah_attr a = { .dlid = dlid, .sl = sl, .is_global = 1, .port_num = 1 };
	struct ibv_ah *ah;

	memcpy(a.grh.dgid.raw, gid, 16);
	a.grh.hop_limit = hops;
	ah = ibv_create_ah(pd, &a);
	must(!ah, "ibv_create_ah");
	return ah;
}

/* Bytes of message @number. */
static uint32_t bytes_of(uint32_t number)
{
	return 4 + number * 37 % 1997;
}

static void send_one(struct ibv_ah *ah, uint32_t qpn, uint32_t number)
{
	uint8_t *m = memory + (size_t)DEPTH * (MOST + GRH);
	struct ibv_sge sge = { (uintptr_t)m, bytes_of(number), mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = number % 2 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		                  .imm_data = htobe32(number),
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY } };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	memset(m, (int)number, bytes_of(number));
	number = htobe32(number);
	memcpy(m, &number, 4);
	must(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	while (!ibv_poll_cq(sent, 1, &wc))
		;
}

static void print_gid(const uint8_t gid[16])
{
	char text[INET6_ADDRSTRLEN];

	printf("%s", inet_ntop(AF_INET6, gid, text, sizeof(text)));
}

/* Prints a message that has come, whose bytes must be as they were sent. */
static uint32_t show(const struct ibv_wc *wc)
{
	const uint8_t *grh = memory + wc->wr_id * (MOST + GRH), *m = grh + GRH;
	uint32_t number;

	memcpy(&number, m, 4);
	number = be32toh(number);
	if (!(wc->wc_flags & IBV_WC_GRH) || wc->byte_len != GRH + bytes_of(number))
		errx(EXIT_FAILURE, "message %u has %u bytes", number, wc->byte_len);
	if (!!(wc->wc_flags & IBV_WC_WITH_IMM) != number % 2 ||
	    (number % 2 && be32toh(wc->imm_data) != number))
		errx(EXIT_FAILURE, "message %u has other immediate data", number);
	for (uint32_t i = 4; i < bytes_of(number); i++)
		if (m[i] != (uint8_t)number)
			errx(EXIT_FAILURE, "message %u is damaged at %u", number, i);
	printf("message %u from ", number);
	print_gid(grh + 8);
	printf(" slid %u hops %u\n", wc->slid, grh[7]);
	return number;
}

static void answer(struct ibv_wc *wc, uint32_t number)
{
	struct ibv_grh *grh = (void *)(memory + wc->wr_id * (MOST + GRH));
	struct ibv_ah *ah = ibv_create_ah_from_wc(pd, wc, grh, 1);

	must(!ah, "ibv_create_ah_from_wc");
	send_one(ah, wc->src_qp, number);
	ibv_destroy_ah(ah);
}

static void receive(int count, const char *group)
{
	const char *quiet = getenv("QUIET");
	union ibv_gid gid;
	uint16_t mlid;

	if (group) {
		must(inet_pton(AF_INET6, group, gid.raw) != 1, group);
		must(sa_join(&sa, gid.raw, FULL, &mlid), "join");
		must(ibv_attach_mcast(qp, &gid, mlid), "ibv_attach_mcast");
	}
	printf("here ");
	print_gid(sa.gid);
	printf(" %u\n", qp->qp_num);
	for (int i = 0; i < count; i++) {
		struct ibv_wc wc;
		uint32_t number;

		if (!next(quiet ? atoi(quiet) : 500, &wc))
			break;
		number = show(&wc);
		if (!group)
			answer(&wc, number);
		post(wc.wr_id);
	}
}

static void send_to(const char *to, uint32_t qpn, int count, int hops)
{
	uint8_t gid[16];
	struct sa_path path;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	int status;

	must(inet_pton(AF_INET6, to, gid) != 1, to);
	status = sa_path(&sa, gid, &path);
	if (status) {
		printf("no path: status 0x%x\n", status);
		exit(3);
	}
	printf("path lid %u hops %u\n", path.dlid, path.hop_limit);
	ah = ah_to(gid, path.dlid, path.sl, (uint8_t)(hops >= 0 ? hops : path.hop_limit));
	for (int i = 0; i < count; i++) {
		send_one(ah, qpn, (uint32_t)i);
		if (!next(hops >= 0 ? 2 : 500, &wc)) {
			printf("no answer\n");
			exit(4);
		}
		show(&wc);
		post(wc.wr_id);
	}
}

static void send_group(const char *group, int count)
{
	uint8_t gid[16];
	struct ibv_ah *ah;
	uint16_t mlid;

	must(inet_pton(AF_INET6, group, gid) != 1, group);
	must(sa_join(&sa, gid, FULL, &mlid), "join");
	ah = ah_to(gid, mlid, 0, 255);
	printf("joined\n");
	if (getenv("GO"))
		while (getchar() != 'g')
			;
	for (int i = 0; i < count; i++)
		send_one(ah, GROUPQ, (uint32_t)i);
	printf("sent %d\n", count);
}

int main(int argc, char **argv)
{
	begin();
	if (argc >= 3 && !strcmp(argv[1], "receive"))
		receive(atoi(argv[2]), argv[3]);
	else if (argc >= 5 && !strcmp(argv[1], "send"))
		send_to(argv[2], (uint32_t)atoi(argv[3]), atoi(argv[4]),
		        argv[5] ? atoi(argv[5]) : -1);
	else if (argc == 4 && !strcmp(argv[1], "group"))
		send_group(argv[2], atoi(argv[3]));
	else
		errx(EXIT_FAILURE, "which? see the source");
	return 0;
}
