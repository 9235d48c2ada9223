/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The examples of the manual pages that the project comes from, as they are written
 * there but for the assignment to an array, which is no C: attach and detach of a
 * multicast group, and an address handle's life. Run on one host of the fabric.
 */
#include "harness.h"

#include <infiniband/verbs.h>

static struct ibv_context *context;
static struct ibv_pd *pd;

static int example_attach(struct ibv_qp *qp)
{
	union ibv_gid mgid;
	uint16_t mlid;

	/* mgid.raw = {255,1,0,0,0,2,201,133,0,0,0,0,0,0,0,0}; is no C */
	memcpy(mgid.raw, (uint8_t[16]){ 255, 1, 0, 0, 0, 2, 201, 133, 0, 0, 0, 0, 0, 0, 0, 0 },
	       sizeof(mgid.raw));
	mlid = 0xc001;

	if (ibv_attach_mcast(qp, &mgid, mlid)) {
		fprintf(stderr, "Error, ibv_attach_mcast() failed\n");
		return -1;
	}

	if (ibv_detach_mcast(qp, &mgid, mlid)) {
		fprintf(stderr, "Error, ibv_detach_mcast() failed\n");
		return -1;
	}
	return 0;
}

static int example_ah(uint16_t dlid, uint8_t sl, uint8_t port)
{
	struct ibv_ah *ah;
	struct ibv_ah_attr ah_attr;

	memset(&ah_attr, 0, sizeof(ah_attr));

	ah_attr.is_global = 0;
	ah_attr.dlid = dlid;
	ah_attr.sl = sl;
	ah_attr.src_path_bits = 0;
	ah_attr.port_num = port;

	ah = ibv_create_ah(pd, &ah_attr);
	if (!ah) {
		fprintf(stderr, "Error, ibv_create_ah() failed\n");
		return -1;
	}

	if (ibv_destroy_ah(ah)) {
		fprintf(stderr, "Error, ibv_destroy_ah() failed\n");
		return -1;
	}
	return 0;
}

CASE(attach_and_detach_example_runs)
{
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq, .cap = { .max_recv_wr = 1 }
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	assert_non_null(qp);
	assert_int_equal(example_attach(qp), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

CASE(address_handle_example_runs)
{
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(context, 1, &port), 0);
	assert_int_equal(example_ah(port.lid, 0, 1), 0);
}

static int open_device(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)state;
	context = list && *list ? ibv_open_device(*list) : NULL;
	ibv_free_device_list(list);
	pd = context ? ibv_alloc_pd(context) : NULL;
	return pd ? 0 : -1;
}

static int close_device(void **state)
{
	(void)state;
	return ibv_dealloc_pd(pd) || ibv_close_device(context);
}

int main(void)
{
	return harness_run(open_device, close_device);
}
