/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * gid_index gid wrong|right: makes an address handle by GID index 0, as a program does that has its
 * peer's GID from a socket; right: once it has looked at what is there. gid_index port wrong|right:
 * brings a queue pair to RTS at port 1; right: it asks how the port is in between. It has no
 * librdmacm, which would choose index and port by itself. For cards.sh.
 */
#include "posix.h"

#include <infiniband/verbs.h>

static struct ibv_context *open_first(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && *devices ? ibv_open_device(*devices) : NULL;

	if (!context)
		exit(1);
	ibv_free_device_list(devices);
	return context;
}

/* The GID of the peer, who has looked at its own. */
static void ask_peer(union ibv_gid *gid)
{
	int ends[2];

	if (pipe(ends))
		exit(1);
	if (!fork()) {
		if (ibv_query_gid(open_first(), 1, 0, gid) ||
		    write(ends[1], gid, sizeof(*gid)) != (ssize_t)sizeof(*gid))
			_exit(1);
		_exit(0);
	}
	close(ends[1]);
	if (read(ends[0], gid, sizeof(*gid)) != (ssize_t)sizeof(*gid))
		exit(1);
	close(ends[0]);
	wait(NULL);
}

static int use_gid(struct ibv_context *context, struct ibv_pd *pd, bool is_right)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	union ibv_gid own;
	struct ibv_ah *ah;

	ask_peer(&attr.grh.dgid);
	if (is_right && ibv_query_gid(context, 1, 0, &own))
		return 1;
	ah = ibv_create_ah(pd, &attr);
	return !ah || ibv_destroy_ah(ah);
}

static int use_port(struct ibv_context *context, struct ibv_pd *pd, bool is_right)
{
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &init) : NULL;
	struct ibv_port_attr port;

	if (!qp ||
	    ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		return 1;
	if (is_right && ibv_query_port(context, 1, &port))
		return 1;
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		return 1;
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		return 1;
	return ibv_destroy_qp(qp) || ibv_destroy_cq(cq);
}

int main(int argc, char **argv)
{
	const bool is_right = argc == 3 && !strcmp(argv[2], "right");
	struct ibv_context *context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	int ret = argc != 3 || !pd;

	if (!ret && !strcmp(argv[1], "gid"))
		ret = use_gid(context, pd, is_right);
	else if (!ret)
		ret = use_port(context, pd, is_right);
	if (ret)
		return 1;
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}
