/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An HCA with two ports, of the fabric in two_ports.net. The program starts that fabric and itself
 * on it.
 */
#include "lab.h"

#include <sys/wait.h>
#include <unistd.h>

static void a_message_leaves_by_the_queue_pairs_port_only(void **state)
{
	struct lab_end *e = lab_end(1);
	struct ibv_ah_attr attr = lab_attr_to(e);
	struct ibv_device_attr device;
	struct ibv_send_wr *bad;
	struct lab_request r;

	(void)state;
	assert_int_equal(ibv_query_device(e->context, &device), 0);
	assert_int_equal(device.phys_port_cnt, 2);
	assert_true(device.device_cap_flags & IBV_DEVICE_UD_AV_PORT_ENFORCE);
	attr.port_num = 2;
	lab_request(e, &r, lab_ah(e->pd, &attr), e->qp->qp_num, "message", 7);
	assert_int_equal(ibv_post_send(e->qp, &r.wr, &bad), 0);
	lab_complete(e->send_cq, IBV_WC_LOC_QP_OP_ERR);
}

static int run_within(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(a_message_leaves_by_the_queue_pairs_port_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return run_within();
	execlp("umbel", "umbel", "run", "--topology", "verbs/two_ports.net", "--", argv[0],
	       "within", NULL);
	return 127;
}
