// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * receiver [-p] [-s ADDRESS] DEVICE [GROUP]: a UD queue pair, attached to the group if there is
 * one, that says its number, and of each message that it receives length, sender, immediate data
 * and text. GROUP is
 * a GID, of IPv4 with -s: then the program has joined it before, from that address, to send only.
 * The Q_Key is 0x11111111. Sleeps between messages, or polls (-p); until it is killed.
 */
#include "must.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define RECEIVES 64
#define GRH      40
#define ROOM     (GRH + 4096)
#define Q_KEY    0x11111111

static char buffer[RECEIVES][ROOM];

struct receiver {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (struct ibv_device **d = list; list && *d; d++)
		if (!strcmp(ibv_get_device_name(*d), name))
			return ibv_open_device(*d);
	errno = ENODEV;
	return NULL;
}

static void post(struct receiver *r, uint64_t i)
{
	struct ibv_sge sge = { (uintptr_t)buffer[i], ROOM, r->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	check(!ibv_post_recv(r->qp, &wr, &bad), "ibv_post_recv");
}

static void open_queue_pair(struct receiver *r)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = Q_KEY };
	struct ibv_qp_init_attr init;

	MUST(r->pd = ibv_alloc_pd(r->context));
	MUST(r->mr = ibv_reg_mr(r->pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE));
	MUST(r->channel = ibv_create_comp_channel(r->context));
	MUST(r->cq = ibv_create_cq(r->context, RECEIVES, NULL, r->channel, 0));
	init = (struct ibv_qp_init_attr){ .send_cq = r->cq,
		                          .recv_cq = r->cq,
		                          .qp_type = IBV_QPT_UD,
		                          .cap = { 1, RECEIVES, 1, 1, 0 } };
	MUST(r->qp = ibv_create_qp(r->pd, &init));
	check(!ibv_modify_qp(r->qp, &attr,
	                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	      "INIT");
	for (unsigned i = 0; i < RECEIVES; i++)
		post(r, i);
	attr.qp_state = IBV_QPS_RTR;
	check(!ibv_modify_qp(r->qp, &attr, IBV_QP_STATE), "RTR");
}

static void attach(struct receiver *r, const char *group)
{
	union ibv_gid gid;

	check(inet_pton(AF_INET6, group, &gid) == 1, group);
	check(!ibv_attach_mcast(r->qp, &gid, 0), "ibv_attach_mcast");
}

static struct sockaddr_in ipv4(const void *address)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	memcpy(&in.sin_addr, address, sizeof(in.sin_addr));
	return in;
}

static void join_to_send(const char *address, const char *group)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_join_mc_attr_ex join = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER
	};
	struct rdma_cm_event *event;
	struct sockaddr_in from, to;
	struct rdma_cm_id *id;
	union ibv_gid gid;
	struct in_addr in;

	check(inet_pton(AF_INET, address, &in) == 1, address);
	check(inet_pton(AF_INET6, group, &gid) == 1, group);
	from = ipv4(&in);
	to = ipv4(gid.raw + 12);
	join.addr = (struct sockaddr *)&to;
	check(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), "rdma_create_id");
	check(!rdma_bind_addr(id, (struct sockaddr *)&from), "rdma_bind_addr");
	check(!rdma_join_multicast_ex(id, &join, NULL), "rdma_join_multicast_ex");
	check(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	must(event->event == RDMA_CM_EVENT_MULTICAST_JOIN, "%s, status %d",
	     rdma_event_str(event->event), event->status);
	rdma_ack_cm_event(event);
}

static void take(struct receiver *r, const struct ibv_wc *wc)
{
	check(wc->status == IBV_WC_SUCCESS, ibv_wc_status_str(wc->status));
	printf("%u bytes from 0x%x", wc->byte_len - GRH, wc->src_qp);
	if (wc->wc_flags & IBV_WC_WITH_IMM)
		printf(" with 0x%x", ntohl(wc->imm_data));
	printf(": %.20s\n", buffer[wc->wr_id] + GRH);
	memset(buffer[wc->wr_id], 0, ROOM);
	post(r, wc->wr_id);
}

/* All that there are. */
static void receive_all(struct receiver *r)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(r->cq, 1, &wc) > 0)
		take(r, &wc);
}

static void sleep_until_more(struct receiver *r)
{
	struct ibv_cq *cq;
	void *context;

	check(!ibv_get_cq_event(r->channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	check(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
}

int main(int argc, char **argv)
{
	const char *sends_from = NULL;
	struct receiver r = { 0 };
	bool polls = false;
	char **argument;

	for (int o; (o = getopt(argc, argv, "ps:")) != -1;) {
		polls |= o == 'p';
		if (o == 's')
			sends_from = optarg;
	}
	argument = argv + optind;
	must(argument[0] && !(sends_from && !argument[1]),
	     "usage: receiver [-p] [-s ADDRESS] DEVICE [GROUP]");
	r.context = open_device(argument[0]);
	check(r.context, argument[0]);
	open_queue_pair(&r);
	if (sends_from)
		join_to_send(sends_from, argument[1]);
	if (argument[1])
		attach(&r, argument[1]);
	if (!polls)
		check(!ibv_req_notify_cq(r.cq, 0), "ibv_req_notify_cq");
	setlinebuf(stdout);
	printf("qpn %u\n", r.qp->qp_num);
	for (;;) {
		receive_all(&r);
		if (!polls)
			sleep_until_more(&r);
	}
}
