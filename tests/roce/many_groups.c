// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * many_groups DEVICE GROUP COUNT: a UD queue pair that is attached to so many groups, GROUP and
 * those after it, says so, and of each message that it receives to which. GROUP is a GID. The
 * Q_Key is 0x11111111. Until it is killed.
 */
#include "must.h"
#include "attributes.h"

#include <infiniband/verbs.h>

#define RECEIVES 64
#define GRH      40
#define ROOM     (GRH + 4096)
#define Q_KEY    0x11111111

static char buffer[RECEIVES][ROOM];

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return ibv_open_device(list[i]);
	errno = ENODEV;
	return NULL;
}

static void post(struct ibv_qp *qp, const struct ibv_mr *mr, unsigned i)
{
	struct ibv_sge sge = { (uintptr_t)buffer[i], ROOM, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	check(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = init_of(IBV_QPT_UD, cq, 1, RECEIVES);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = Q_KEY };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	check(qp, "ibv_create_qp");
	check(!ibv_modify_qp(qp, &attr,
	                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	      "INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RTR");
	return qp;
}

/* GROUP, and @i on from there. */
static union ibv_gid group(const char *first, unsigned i)
{
	union ibv_gid gid;
	uint32_t low;

	check(inet_pton(AF_INET6, first, &gid) == 1, first);
	memcpy(&low, gid.raw + 12, sizeof(low));
	low = htonl(ntohl(low) + i);
	memcpy(gid.raw + 12, &low, sizeof(low));
	return gid;
}

static void tell(const char *message)
{
	char text[INET6_ADDRSTRLEN];

	if (message[0] >> 4 == 6)
		inet_ntop(AF_INET6, message + GRH - 16, text, sizeof(text));
	else
		inet_ntop(AF_INET, message + GRH - 4, text, sizeof(text));
	printf("received to %s\n", text);
}

int main(int argc, char **argv)
{
	struct ibv_comp_channel *channel;
	struct ibv_context *context;
	struct ibv_cq *cq, *which;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	unsigned count;
	void *unused;

	must(argc == 4, "usage: many_groups DEVICE GROUP COUNT");
	context = open_device(argv[1]);
	check(context, argv[1]);
	pd = ibv_alloc_pd(context);
	mr = pd ? ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE) : NULL;
	channel = ibv_create_comp_channel(context);
	cq = channel ? ibv_create_cq(context, RECEIVES, NULL, channel, 0) : NULL;
	check(mr && cq, "memory or completions");
	qp = make_qp(pd, cq);
	for (unsigned i = 0; i < RECEIVES; i++)
		post(qp, mr, i);
	count = (unsigned)atoi(argv[3]);
	for (unsigned i = 0; i < count; i++) {
		union ibv_gid gid = group(argv[2], i);

		errno = ibv_attach_mcast(qp, &gid, 0);
		check(!errno, "ibv_attach_mcast");
	}
	check(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	printf("attached to %u\n", count);
	for (;;) {
		while (ibv_poll_cq(cq, 1, &wc) > 0) {
			tell(buffer[wc.wr_id]);
			post(qp, mr, (unsigned)wc.wr_id);
		}
		fflush(stdout);
		check(!ibv_get_cq_event(channel, &which, &unused), "ibv_get_cq_event");
		ibv_ack_cq_events(which, 1);
		check(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	}
}
