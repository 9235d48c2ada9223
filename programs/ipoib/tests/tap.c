/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receives what IPoIB sends, with a queue pair that is attached to groups of its port: tap LID QPN
 * MGID MLID... First it asks the interface at that LID and queue pair for 192.0.2.1 and
 * 2001:db8::1, as host 9, so that there are answers for it, too. Each packet is a line: the
 * sender's LID and queue pair, our own queue pair, and in hexadecimal the GRH, or "-", and what
 * follows.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "claim.h"

#define QKEY     0x0B1B
#define RECEIVES 256
#define BYTES    4136
#define GRH      40
#define CHECK(what)                                          \
	do {                                                 \
		if (!(what)) {                               \
			fprintf(stderr, "tap: %s\n", #what); \
			exit(1);                             \
		}                                            \
	} while (0)

static uint8_t memory[RECEIVES + 1][BYTES];
static struct ibv_pd *pd;
static struct ibv_cq *send_cq, *receive_cq;
static struct ibv_comp_channel *channel;
static struct ibv_qp *qp;
static struct ibv_mr *mr;

static struct ibv_sge piece(unsigned i, unsigned bytes)
{
	return (struct ibv_sge){ (uintptr_t)memory[i], bytes, mr->lkey };
}

static void post_receive(unsigned i)
{
	struct ibv_sge sge = piece(i, BYTES);
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK(!ibv_post_recv(qp, &wr, &bad));
}

static void start(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 1, RECEIVES, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_context *context;

	CHECK(list && list[0] && (context = ibv_open_device(list[0])));
	CHECK((pd = ibv_alloc_pd(context)));
	CHECK((channel = ibv_create_comp_channel(context)));
	CHECK((init.send_cq = send_cq = ibv_create_cq(context, 1, NULL, NULL, 0)));
	CHECK((init.recv_cq = receive_cq = ibv_create_cq(context, RECEIVES, NULL, channel, 0)));
	CHECK((qp = ibv_create_qp(pd, &init)));
	CHECK((mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE)));
	CHECK(!ibv_modify_qp(qp, &attr,
	                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	for (unsigned i = 0; i < RECEIVES; i++)
		post_receive(i);
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

/* Asks for the address of host 1. */
static void ask(struct ibv_ah *ah, uint32_t qpn, enum claim_kind kind)
{
	struct ibv_sge sge = piece(RECEIVES, 0);
	struct ibv_send_wr wr = { .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_SEND,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .wr.ud = { ah, qpn, QKEY } },
	                   *bad;
	uint8_t address[CLAIM_ADDRESS_BYTES];
	union ibv_gid gid;
	struct ibv_wc wc;
	int n;

	CHECK(!ibv_query_gid(pd->context, 1, 0, &gid));
	put_address(address, &gid, qp->qp_num);
	sge.length = claim(memory[RECEIVES], kind, 9, address);
	CHECK(!ibv_post_send(qp, &wr, &bad));
	while (!(n = ibv_poll_cq(send_cq, 1, &wc)))
		;
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void print_bytes(const uint8_t *at, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		printf("%02x", at[i]);
}

static void print(const struct ibv_wc *wc)
{
	printf("%u %u %u ", wc->slid, wc->src_qp, qp->qp_num);
	if (wc->wc_flags & IBV_WC_GRH)
		print_bytes(memory[wc->wr_id], GRH);
	else
		printf("-");
	printf(" ");
	print_bytes(memory[wc->wr_id] + GRH, wc->byte_len - GRH);
	printf("\n");
}

static void receive(void)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *arg;

	for (;;) {
		CHECK(!ibv_req_notify_cq(receive_cq, 0));
		while (ibv_poll_cq(receive_cq, 1, &wc) > 0) {
			CHECK(wc.status == IBV_WC_SUCCESS);
			print(&wc);
			post_receive((unsigned)wc.wr_id);
		}
		CHECK(!ibv_get_cq_event(channel, &cq, &arg));
		ibv_ack_cq_events(cq, 1);
	}
}

int main(int argc, char **argv)
{
	struct ibv_ah_attr to = { .port_num = 1 };
	struct ibv_ah *ah;
	union ibv_gid mgid;

	CHECK(argc >= 3 && argc % 2);
	start();
	for (int i = 3; i < argc; i += 2) {
		CHECK(inet_pton(AF_INET6, argv[i], mgid.raw) == 1);
		CHECK(!ibv_attach_mcast(qp, &mgid, (uint16_t)atoi(argv[i + 1])));
	}
	to.dlid = (uint16_t)atoi(argv[1]);
	CHECK((ah = ibv_create_ah(pd, &to)));
	ask(ah, (uint32_t)atoi(argv[2]), CLAIM_ARP_REQUEST);
	ask(ah, (uint32_t)atoi(argv[2]), CLAIM_SOLICITATION);
	printf("ready\n");
	receive();
	return 0;
}
