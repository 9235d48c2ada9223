/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A queue pair that sends to ever new destinations keeps a bounded number of flows, and gives back
 * what it has not used for long.
 */
#include "verbs/lab.h"

#define LIMIT 4096 /* flows of a queue pair: docs/limits.md */
#define LIDS  128  /* of a port: LMC 7 */

/* A handle to @to by another path for each @n: ports have LIDS LIDs here. */
static struct ibv_ah *other_path(struct lab_end *from, const struct lab_end *to, unsigned n)
{
	struct ibv_ah_attr attr = lab_attr_to(to);
	struct ibv_ah *ah;

	attr.dlid = (uint16_t)(attr.dlid + n % LIDS);
	attr.src_path_bits = n / LIDS % LIDS;
	assert_non_null(ah = ibv_create_ah(from->pd, &attr));
	return ah;
}

static void destroy(struct ibv_ah *ah)
{
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void send_by(struct lab_end *from, struct ibv_ah *ah, struct lab_end *to, unsigned n)
{
	lab_post(to, 1);
	lab_send(from, ah, to->qp->qp_num, &n, sizeof(n));
	lab_expect(to, &n, sizeof(n));
}

static void send_to_many(struct lab_end *from, struct lab_end *to, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct ibv_ah *ah = other_path(from, to, i);

		send_by(from, ah, to, i);
		destroy(ah);
	}
}

LAB_CASE(flows_that_are_not_used_go)
{
	struct lab_end *from = lab_end(1), *to = lab_end(2);
	uint64_t before = lab_status("flows");

	send_to_many(from, to, LIMIT);
	assert_int_equal(lab_status("flows"), before + LIMIT);
	send_to_many(from, to, 2 * LIMIT);
	assert_true(lab_status("flows") <= before + LIMIT);
}

LAB_CASE(who_sends_often_keeps_its_flow)
{
	struct lab_end *from = lab_end(1), *to = lab_end(2);
	struct ibv_ah *often = other_path(from, to, LIDS * LIDS - 1);
	uint64_t before = lab_status("flows");

	for (unsigned i = 0; i < 2 * LIMIT; i += 64) {
		send_by(from, often, to, i);
		for (unsigned k = 0; k < 64; k++) {
			struct ibv_ah *ah = other_path(from, to, i + k);

			send_by(from, ah, to, k);
			destroy(ah);
		}
	}
	send_by(from, often, to, 0);
	assert_true(lab_status("flows") <= before + LIMIT);
	destroy(often);
}

LAB_CASE(handles_that_outlive_their_flows_work)
{
	struct lab_end *from = lab_end(1), *to = lab_end(2);
	struct ibv_ah **ah = calloc(2 * LIMIT, sizeof(struct ibv_ah *));

	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 2 * LIMIT; i++) {
			if (!ah[i])
				ah[i] = other_path(from, to, i);
			send_by(from, ah[i], to, i);
		}
	for (unsigned i = 0; i < 2 * LIMIT; i++)
		destroy(ah[i]);
	free(ah);
}

LAB_CASE(flows_that_reach_nobody_go_soon)
{
	struct lab_end *from = lab_end(1), *to = lab_end(2);
	struct ibv_ah_attr attr = lab_attr_global(to);
	uint64_t before = lab_status("flows");

	attr.dlid = 0xBF00; /* nobody's */
	for (unsigned i = 0; i < LIMIT; i++) {
		struct ibv_ah *ah;

		memcpy(attr.grh.dgid.raw, &i, sizeof(i));
		assert_non_null(ah = ibv_create_ah(from->pd, &attr));
		lab_send(from, ah, 2, &i, sizeof(i));
		assert_int_equal(ibv_destroy_ah(ah), 0);
	}
	assert_true(lab_status("flows") < before + LIMIT / 4);
}
