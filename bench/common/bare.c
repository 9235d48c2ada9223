/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints of plain verbs on RoCEv2: see bare.h.
 */
#include "common/util.h"
#include "common/bare.h"

#define PORT      1
#define QKEY      0x11111111
#define MCAST_QPN 0xFFFFFF
#define HOP_LIMIT 64

union ibv_gid bench_mapped_gid(const char *address)
{
	union ibv_gid gid = { .raw = { [10] = 0xFF, [11] = 0xFF } };

	if (inet_pton(AF_INET, address, gid.raw + 12) != 1)
		errx(EXIT_FAILURE, "'%s' is no IPv4 address", address);
	return gid;
}

uint8_t bench_find_gid(struct ibv_context *verbs, const char *address)
{
	const union ibv_gid wanted = bench_mapped_gid(address);
	struct ibv_gid_entry table[256];
	ssize_t n = ibv_query_gid_table(verbs, table, sizeof(table) / sizeof(*table), 0);

	for (ssize_t i = 0; i < n; i++)
		if (table[i].port_num == PORT && table[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(&table[i].gid, &wanted, sizeof(wanted)))
			return (uint8_t)table[i].gid_index;
	errx(EXIT_FAILURE, "the device has no GID of %s", address);
}

void bench_bare_open(struct bench_endpoint *e, const char *address)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		errx(EXIT_FAILURE, "there is no RDMA device");
	bench_must((e->verbs = ibv_open_device(list[0])), "ibv_open_device");
	ibv_free_device_list(list);
	bench_must((e->pd = ibv_alloc_pd(e->verbs)), "ibv_alloc_pd");
	e->port_num = PORT;
	e->sgid_index = bench_find_gid(e->verbs, address);
}

void bench_bare_close(struct bench_endpoint *e)
{
	ibv_dealloc_pd(e->pd);
	ibv_close_device(e->verbs);
}

static void move_to(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = PORT, .qkey = QKEY };

	errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);
	bench_must(!errno, "ibv_modify_qp");
}

void bench_bare_qp(struct bench_endpoint *e, struct ibv_qp_init_attr_ex *attr)
{
	bench_must((e->qp = ibv_create_qp_ex(e->verbs, attr)), "ibv_create_qp_ex");
	move_to(e->qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	move_to(e->qp, IBV_QPS_RTR, 0);
	move_to(e->qp, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

void bench_bare_attach(struct bench_endpoint *e, const char *group)
{
	const union ibv_gid gid = bench_mapped_gid(group);

	errno = ibv_attach_mcast(e->qp, &gid, 0);
	bench_must(!errno, "ibv_attach_mcast");
}

void bench_bare_lead(struct bench_endpoint *e, const char *group)
{
	struct ibv_ah_attr attr = { .is_global = 1,
		                    .port_num = PORT,
		                    .grh = { .dgid = bench_mapped_gid(group),
		                             .sgid_index = e->sgid_index,
		                             .hop_limit = HOP_LIMIT } };

	bench_must((e->ah = ibv_create_ah(e->pd, &attr)), "ibv_create_ah");
	e->remote_qpn = MCAST_QPN;
	e->qkey = QKEY;
}
