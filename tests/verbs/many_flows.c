/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counters of ports while there are so many flows that the daemon collects them in slices: whoever
 * reads them waits, and reads all that was sent before.
 */
#include "lab.h"

#include <stdio.h>

#define QPS   10
#define FLOWS 4000 /* of each: to as many LIDs */
#define SENT  3

/* Makes flows from @e to LIDs at which there is nobody. */
static void make_flows(struct lab_end *e)
{
	for (unsigned i = 0; i < FLOWS; i++) {
		struct ibv_ah_attr attr = { .dlid = (uint16_t)(0x1000 + i), .port_num = 1 };
		struct ibv_ah *ah = ibv_create_ah(e->pd, &attr);

		assert_non_null(ah);
		lab_send(e, ah, 1, NULL, 4);
		assert_int_equal(ibv_destroy_ah(ah), 0);
	}
}

/* The number that @command writes. */
static unsigned long long number_of(const char *command)
{
	FILE *f = popen(command, "r");
	unsigned long long n = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llu", &n), 1);
	assert_int_equal(pclose(f), 0);
	return n;
}

static unsigned long long sysfs_received(void)
{
	return number_of("umbel exec h2 -- cat "
	                 "/sys/class/infiniband/umbel_h2_0/ports/1/counters/port_rcv_packets");
}

static unsigned long long pma_received(void)
{
	return number_of("umbel exec h1 -- perfquery -x $(umbel exec h2 -- cat "
	                 "/sys/class/infiniband/umbel_h2_0/ports/1/lid) 1 | "
	                 "sed -n 's/^PortRcvPkts:\\.*//p'");
}

static void all_that_was_sent_is_counted(void **state)
{
	struct lab_end *to = lab_end(2), *from = lab_end(1);
	struct ibv_ah *ah = lab_ah_to(from, to);
	uint64_t before[3];

	(void)state;
	for (unsigned i = 0; i < QPS; i++)
		make_flows(lab_end_with(&(struct lab_options){ .host = 1, .neighbour = from }));
	before[0] = lab_counter(2, "rcv_pkts");
	before[1] = sysfs_received();
	before[2] = pma_received();
	for (unsigned i = 1; i <= SENT; i++) {
		lab_send(from, ah, to->qp->qp_num, NULL, 4);
		assert_int_equal(pma_received() - before[2], i);
		assert_int_equal(sysfs_received() - before[1], i);
		assert_int_equal(lab_counter(2, "rcv_pkts") - before[0], i);
	}
	assert_in_range(lab_counter(1, "xmit_pkts"), QPS * FLOWS, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(all_that_was_sent_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
