/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A broadcast by multicast as MPI libraries do it, by MADs and verbs alone, on a fat tree with two
 * hosts on each of two leaves: rank 0 has the administrator make a group and joins it for all, by
 * libibumad. Each rank attaches a queue pair with Q_Key 0. A lost packet's bytes are read from rank
 * 0 by a reliable connection.
 */
#include "property/sa.h"
#include "verbs/fault_lab.h"
#include "verbs/lab.h"

#define RANKS    4
#define MESSAGES LAB_SLOTS
#define BYTES    LAB_MTU
#define FULL     1
#define REFUSED  0x0200 /* REQ_INVALID */
#define LINKS    6      /* of the tree: four hosts', and two leaves' to one spine */

struct rank {
	struct lab_end *end;
	struct sa_port port;
	struct ibv_qp *to_root, *of_root; /* both ends of the connection */
	bool has[MESSAGES];
	uint8_t *data; /* MESSAGES * BYTES */
	struct ibv_mr *mr;
};

static struct rank rank[RANKS];
static union ibv_gid mgid;
static uint16_t mlid;

/* ---- the group ---- */

/* Rank 0's request for rank @r. */
static struct sa_port for_rank(int r)
{
	struct sa_port p = rank[0].port;

	memcpy(p.gid, rank[r].port.gid, sizeof(p.gid));
	return p;
}

static void join_all(void)
{
	memset(&mgid, 0, sizeof(mgid));
	for (int r = 0; r < RANKS; r++) {
		const struct sa_port p = for_rank(r);
		const uint16_t first = mlid;

		assert_int_equal(sa_join_any(&p, mgid.raw, FULL, &mlid), 0);
		if (r)
			assert_int_equal(mlid, first);
	}
	assert_int_equal(mgid.raw[0], 0xFF);
}

static void leave_all(void)
{
	for (int r = 0; r < RANKS; r++) {
		const struct sa_port p = for_rank(r);

		assert_int_equal(sa_leave(&p, mgid.raw, FULL), 0);
		assert_int_equal(sa_leave(&p, mgid.raw, FULL), REFUSED);
	}
}

/* ---- ranks ---- */

static void deregister(void *mr)
{
	ibv_dereg_mr(mr);
}

static void open_rank(int r)
{
	struct rank *k = &rank[r];
	struct lab_options options = { .host = r + 1, .reset = true };
	const char *name;

	k->end = lab_end_with(&options);
	lab_start(k->end->qp, 0);
	k->end->qkey = 0;
	name = ibv_get_device_name(k->end->context->device);
	sa_open(&k->port, name, 1);
	k->port.qkey = 0;
	assert_non_null(k->data = calloc(MESSAGES, BYTES));
	lab_undo(free, k->data);
	assert_non_null(k->mr = ibv_reg_mr(k->end->pd, k->data, (size_t)MESSAGES * BYTES,
	                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
	lab_undo(deregister, k->mr);
	memset(k->has, 0, sizeof(k->has));
}

static struct ibv_qp *connection_of(struct lab_end *e)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		                         .send_cq = e->send_cq,
		                         .recv_cq = e->cq,
		                         .cap = { .max_send_wr = MESSAGES,
		                                  .max_recv_wr = 1,
		                                  .max_send_sge = 1,
		                                  .max_recv_sge = 1 } };

	return lab_qp(e->pd, &init);
}

static void connect_to_root(int r)
{
	struct rank *k = &rank[r];

	k->to_root = connection_of(k->end);
	k->of_root = connection_of(rank[0].end);
	lab_connect(k->to_root, k->of_root->qp_num, rank[0].end->context, 0);
	lab_connect(k->of_root, k->to_root->qp_num, k->end->context, IBV_ACCESS_REMOTE_READ);
}

static void open_ranks(void)
{
	for (int r = 0; r < RANKS; r++)
		open_rank(r);
	join_all();
	for (int r = 1; r < RANKS; r++) {
		connect_to_root(r);
		lab_attach(rank[r].end->qp, &mgid, mlid);
		lab_post(rank[r].end, MESSAGES);
	}
	for (size_t i = 0; i < (size_t)MESSAGES * BYTES; i++)
		rank[0].data[i] = (uint8_t)(i * 31 + i / BYTES);
	for (uint32_t i = 0; i < MESSAGES; i++)
		memcpy(rank[0].data + (size_t)i * BYTES, &i, sizeof(i));
}

/* ---- the broadcast ---- */

static void send_all(void)
{
	struct lab_end *e = rank[0].end;
	struct ibv_ah_attr attr = {
		.is_global = 1, .dlid = mlid, .port_num = 1, .grh = { .dgid = mgid }
	};
	struct ibv_ah *ah = lab_ah(e->pd, &attr);

	for (size_t i = 0; i < MESSAGES; i++)
		lab_send(e, ah, LAB_MCAST, rank[0].data + i * BYTES, BYTES);
}

static void take(struct rank *k)
{
	const struct lab_message m = lab_receive(k->end);
	uint32_t i;

	assert_int_equal(m.length, BYTES);
	memcpy(&i, m.data, sizeof(i));
	assert_true(i < MESSAGES && !k->has[i]);
	k->has[i] = true;
	memcpy(k->data + (size_t)i * BYTES, m.data, BYTES);
}

static void read_from_root(struct rank *k, uint32_t i)
{
	uint8_t *here = k->data + (size_t)i * BYTES;
	struct ibv_sge sge = { (uintptr_t)here, BYTES, k->mr->lkey };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_READ,
		                        .send_flags = IBV_SEND_SIGNALED,
		                        .sg_list = &sge,
		                        .num_sge = 1 };

	wr.wr.rdma.remote_addr = (uintptr_t)rank[0].data + (uint64_t)i * BYTES;
	wr.wr.rdma.rkey = rank[0].mr->rkey;
	assert_int_equal(ibv_post_send(k->to_root, &wr, &bad), 0);
	lab_complete(k->end->send_cq, IBV_WC_SUCCESS);
}

static void repair(struct rank *k)
{
	for (uint32_t i = 0; i < MESSAGES; i++)
		if (!k->has[i])
			read_from_root(k, i);
	assert_memory_equal(k->data, rank[0].data, (size_t)MESSAGES * BYTES);
}

/* ---- tests ---- */

CASE_WITH(each_link_of_the_tree_carries_each_byte_once, NULL, fault_lab_clean_up)
{
	uint64_t sent;

	open_ranks();
	sent = lab_fabric_counter("xmit_bytes");
	send_all();
	assert_int_equal(lab_fabric_counter("xmit_bytes") - sent, LINKS * MESSAGES * BYTES);
	for (int r = 1; r < RANKS; r++) {
		for (unsigned i = 0; i < MESSAGES; i++)
			take(&rank[r]);
		repair(&rank[r]); /* nothing */
	}
	leave_all();
}

/* Until the rule has seen all that went to the rank. */
static void take_what_was_not_lost(int r)
{
	const size_t rule = (size_t)r - 1;
	uint64_t lost;

	while (fault_lab_shown(rule, "fitted") < MESSAGES)
		;
	lost = fault_lab_fired(rule);
	assert_in_range(lost, 1, MESSAGES / 2);
	for (uint64_t i = lost; i < MESSAGES; i++)
		take(&rank[r]);
	lab_quiet(rank[r].end->cq);
}

CASE_WITH(what_each_rank_lost_it_reads, NULL, fault_lab_clean_up)
{
	uint64_t sent;

	for (int r = 1; r < RANKS; r++)
		fault_lab_add("link=@%d:1 opcode=UD_SEND_ONLY loss=10%% seed=%d", r + 1, r);
	open_ranks();
	sent = lab_fabric_counter("xmit_bytes");
	send_all();
	for (int r = 1; r < RANKS; r++)
		take_what_was_not_lost(r);
	assert_int_equal(lab_fabric_counter("xmit_bytes") - sent, LINKS * MESSAGES * BYTES);
	for (int r = 1; r < RANKS; r++)
		repair(&rank[r]);
	leave_all();
}
