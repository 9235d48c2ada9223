/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Identifiers bound by AF_IB to a partition: host 1 is a full member of it, host 2 a limited one,
 * and host 3 is none.
 *
 * umbel: --partitions rdmacm/partitions.conf
 */
#include "common.h"

#define RED   0x8010
#define GROUP "239.7.7.7"

static union address in_partition(unsigned host, uint16_t pkey)
{
	union address a = { 0 };
	char gid[INET6_ADDRSTRLEN];

	snprintf(gid, sizeof(gid), "fe80::275:6d00:0:%x01", host);
	a.ib.sib_family = AF_IB;
	a.ib.sib_pkey = htobe16(pkey);
	a.ib.sib_sid = htobe64(RDMA_IB_IP_PS_UDP);
	a.ib.sib_sid_mask = htobe64(RDMA_IB_IP_PS_MASK);
	assert_int_equal(inet_pton(AF_INET6, gid, a.ib.sib_addr.sib_raw), 1);
	return a;
}

static struct node bound(unsigned host, uint16_t pkey)
{
	union address a = in_partition(host, pkey);
	struct node n = node_open(RDMA_PS_UDP);

	assert_int_equal(rdma_bind_addr(n.id, &a.sa), 0);
	return n;
}

static uint16_t pkey_of_qp(const struct node *n)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	__be16 pkey;

	assert_int_equal(ibv_query_qp(n->id->qp, &attr, IBV_QP_PKEY_INDEX, &init), 0);
	assert_int_equal(ibv_query_pkey(n->id->verbs, 1, attr.pkey_index, &pkey), 0);
	return be16toh(pkey);
}

CASE(a_member_makes_its_qp_whatever_membership_it_names)
{
	static const struct {
		unsigned host;
		uint16_t named, has;
	} row[] = {
		{ 1, RED, RED },
		{ 1, RED & 0x7FFF, RED },
		{ 2, RED, RED & 0x7FFF },
		{ 2, RED & 0x7FFF, RED & 0x7FFF },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct node n = bound(row[i].host, row[i].named);

		node_qp(&n, 0);
		assert_int_equal(pkey_of_qp(&n), row[i].has);
		node_close(&n);
	}
}

CASE(who_is_no_member_makes_none)
{
	struct node CLOSED n = bound(3, RED);
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 0 } };

	assert_fails(rdma_create_qp(n.id, NULL, &attr), ENOENT);
}

CASE(a_limited_member_hears_the_full_one)
{
	struct node CLOSED tx = bound(1, RED), rx = bound(2, RED & 0x7FFF);
	struct rdma_ud_param to;

	node_qp(&tx, 0);
	node_qp(&rx, 0);
	to = join(&tx, GROUP);
	join(&rx, GROUP);
	send_to(&tx, &to, "red");
	assert_received(&rx, "red");
}
