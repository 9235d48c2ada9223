/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ports with several LIDs (LMC): path bits of the source and of the destination.
 * umbel: --set lmc=2
 */
#include "lab.h"

static struct ibv_port_attr port_of(const struct lab_end *e)
{
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(e->context, 1, &port), 0);
	return port;
}

LAB_CASE(a_port_says_how_many_lids_it_has)
{
	struct ibv_port_attr port = port_of(lab_end(3));

	assert_int_equal(port.lmc, 2);
	assert_int_equal(port.lid % 4, 0);
	assert_int_not_equal(port.lid, 0);
}

/* From path @src to path @dest; the receiver sees both. */
static void send_by(struct lab_end *a, struct lab_end *b, uint8_t src, uint8_t dest)
{
	struct ibv_ah_attr attr = lab_attr_to(b);
	struct lab_message m;

	attr.dlid = (uint16_t)(port_of(b).lid + dest);
	attr.src_path_bits = src;
	lab_post(b, 1);
	lab_send_text(a, lab_ah(a->pd, &attr), b->qp->qp_num, "message");
	m = lab_receive(b);
	assert_memory_equal(m.data, "message", 7);
	assert_int_equal(m.wc.slid, port_of(a).lid + src % 4);
	assert_int_equal(m.wc.dlid_path_bits, dest);
}

LAB_CASE(each_lid_of_a_port_reaches_it)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	for (uint8_t src = 0; src < 4; src++)
		for (uint8_t dest = 0; dest < 4; dest++)
			send_by(a, b, src, dest);
}

LAB_CASE(source_path_bits_beyond_the_lmc_are_ignored)
{
	send_by(lab_end(1), lab_end(2), 0x7D, 0);
}

LAB_CASE(a_reply_goes_back_by_the_same_paths)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_ah_attr attr = lab_attr_to(b);
	struct lab_message m;

	attr.dlid = (uint16_t)(attr.dlid + 3);
	attr.src_path_bits = 1;
	lab_post(b, 1);
	lab_post(a, 1);
	lab_send_text(a, lab_ah(a->pd, &attr), b->qp->qp_num, "question");
	m = lab_receive(b);
	assert_int_equal(ibv_init_ah_from_wc(b->context, 1, &m.wc, (struct ibv_grh *)m.grh, &attr),
	                 0);
	lab_send_text(b, lab_ah(b->pd, &attr), a->qp->qp_num, "answer");
	m = lab_receive(a);
	assert_int_equal(m.wc.dlid_path_bits, 1);
	assert_int_equal(m.wc.slid, port_of(b).lid + 3);
}

LAB_CASE(groups_know_no_paths)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct lab_group *g = lab_join(2, "239.1.1.1");
	struct lab_group *from = lab_join_send_only(1, "239.1.1.1");
	struct ibv_ah_attr attr = from->attr;
	struct lab_message m;

	lab_attach(b->qp, &g->mgid, g->mlid);
	attr.src_path_bits = 2;
	lab_post(b, 1);
	assert_int_equal(a->qkey, b->qkey);
	lab_send_text(a, lab_ah(a->pd, &attr), LAB_MCAST, "to all");
	m = lab_receive(b);
	assert_memory_equal(m.data, "to all", 6);
	assert_int_equal(m.wc.slid, port_of(a).lid + 2);
	assert_int_equal(m.wc.dlid_path_bits, 0);
}
