/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first program with RDMA multicast: prints what is sent to a group, or sends to it.
 * docs/first-multicast.md explains it, and what can go wrong.
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define DEPTH 64

struct buffer {
	struct ibv_grh grh; /* what is received has it in front */
	char text[64];
};

static struct buffer buffers[DEPTH];

static void must(bool done, const char *what)
{
	if (!done)
		err(1, "%s", what);
}

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, text, &a.sin_addr) != 1)
		errx(1, "'%s' is no IPv4 address", text);
	return a;
}

/* A full member receives. Returns the parameters that a sender needs. */
static struct rdma_ud_param join(struct rdma_cm_id *id, struct sockaddr_in group, uint32_t flags)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = (struct sockaddr *)&group,
	};

	must(!rdma_join_multicast_ex(id, &attr, NULL), "rdma_join_multicast_ex");
	return id->event->param.ud;
}

static void receive(struct rdma_cm_id *id, struct ibv_mr *mr, struct sockaddr_in group)
{
	struct buffer *b;
	struct ibv_wc wc;

	for (b = buffers; b < buffers + DEPTH; b++)
		must(!rdma_post_recv(id, b, b, sizeof(*b), mr), "rdma_post_recv");
	join(id, group, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	for (;;) {
		must(rdma_get_recv_comp(id, &wc) == 1, "rdma_get_recv_comp");
		if (wc.status)
			errx(1, "receive: %s", ibv_wc_status_str(wc.status));
		b = (struct buffer *)(uintptr_t)wc.wr_id;
		printf("%.*s\n", (int)(wc.byte_len - sizeof(b->grh)), b->text);
		must(!rdma_post_recv(id, b, b, sizeof(*b), mr), "rdma_post_recv");
	}
}

static void send_to(struct rdma_cm_id *id, struct ibv_mr *mr, struct sockaddr_in group, int count)
{
	struct rdma_ud_param to = join(id, group, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	struct ibv_sge sge = { .addr = (uintptr_t)buffers[0].text, .lkey = mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc;

	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.ud.ah = ibv_create_ah(id->pd, &to.ah_attr);
	must(wr.wr.ud.ah, "ibv_create_ah");
	wr.wr.ud.remote_qpn = to.qp_num;
	wr.wr.ud.remote_qkey = to.qkey;
	for (int i = 1; i <= count; i++) {
		sge.length = (uint32_t)sprintf(buffers[0].text, "message %d", i);
		must(!ibv_post_send(id->qp, &wr, &bad), "ibv_post_send");
		must(rdma_get_send_comp(id, &wc) == 1, "rdma_get_send_comp");
		if (wc.status)
			errx(1, "send: %s", ibv_wc_status_str(wc.status));
	}
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { DEPTH, DEPTH, 1, 1 } };
	struct rdma_cm_id *id;

	if (argc < 3 || argc > 4)
		errx(2, "usage: first_multicast ADDRESS GROUP [COUNT]\n"
		        "prints what is sent to the GROUP, or sends COUNT messages; ADDRESS is "
		        "that of the port");
	struct sockaddr_in port = address_of(argv[1]), group = address_of(argv[2]);
	must(!rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP), "rdma_create_id");
	must(!rdma_bind_addr(id, (struct sockaddr *)&port), argv[1]);
	must(!rdma_create_qp(id, NULL, &init), "rdma_create_qp");
	struct ibv_mr *mr = ibv_reg_mr(id->pd, buffers, sizeof(buffers), IBV_ACCESS_LOCAL_WRITE);
	must(mr, "ibv_reg_mr");
	setlinebuf(stdout);
	if (argc == 4)
		send_to(id, mr, group, atoi(argv[3]));
	else
		receive(id, mr, group);
	return 0;
}
