/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An HCA with two ports, of the fabric in two_ports.net. The program starts that fabric and itself
 * on it.
 */
#include "lab.h"

LAB_CASE(a_message_leaves_by_the_queue_pairs_port_only)
{
	struct lab_end *e = lab_end(1);
	struct ibv_ah_attr attr = lab_attr_to(e);
	struct ibv_device_attr device;
	struct ibv_send_wr *bad;
	struct lab_request r;

	assert_int_equal(ibv_query_device(e->context, &device), 0);
	assert_int_equal(device.phys_port_cnt, 2);
	assert_true(device.device_cap_flags & IBV_DEVICE_UD_AV_PORT_ENFORCE);
	attr.port_num = 2;
	lab_request(e, &r, lab_ah(e->pd, &attr), e->qp->qp_num, "message", 7);
	assert_int_equal(ibv_post_send(e->qp, &r.wr, &bad), 0);
	lab_complete(e->send_cq, IBV_WC_LOC_QP_OP_ERR);
}

/* The kernel says so, whatever the card. */
LAB_CASE(a_connection_leaves_by_the_queue_pairs_port_only)
{
	struct lab_end *e = lab_end(1);
	struct ibv_qp_init_attr init = { .send_cq = e->send_cq,
		                         .recv_cq = e->cq,
		                         .qp_type = IBV_QPT_RC,
		                         .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp *qp = lab_qp(e->pd, &init);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	const int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	                   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

	assert_int_equal(
	        ibv_modify_qp(qp, &attr,
	                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	        0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
		                     .path_mtu = IBV_MTU_1024,
		                     .dest_qp_num = qp->qp_num,
		                     .ah_attr = lab_attr_to(e) };
	attr.ah_attr.port_num = 2;
	assert_int_equal(ibv_modify_qp(qp, &attr, to_rtr), EINVAL);
	attr.ah_attr.port_num = 1;
	assert_int_equal(ibv_modify_qp(qp, &attr, to_rtr), 0);
}

static int run_within(void)
{
	return harness_run(NULL, NULL);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return run_within();
	execlp("umbel", "umbel", "run", "--topology", "verbs/two_ports.net", "--", argv[0],
	       "within", NULL);
	return 127;
}
