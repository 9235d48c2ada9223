/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer's process calls exec(). The new program has the same PID, and memory at the address of the
 * region that was; nobody is told that the process has ended. A WRITE then goes nowhere, and a READ
 * reads nothing of the new program's.
 */
#include "peer_lab.h"

static const struct {
	enum ibv_wr_opcode opcode;
	uint32_t length;
} requests[] = {
	{ IBV_WR_RDMA_WRITE, 64 },        { IBV_WR_RDMA_WRITE, 30000 },
	{ IBV_WR_RDMA_READ, 4096 },       { IBV_WR_ATOMIC_FETCH_AND_ADD, 8 },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, 8 }, { IBV_WR_SEND, 20000 },
};

/* @period: the region is no private memory, and is reached by system calls. */
static void try_after_exec(unsigned i, size_t period)
{
	struct lab_peer_options o = { .period = period, .timeout = 10, .retry_cnt = 1 };
	static void *const elsewhere = (void *)(uintptr_t)lab_open;
	struct lab_work w;
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(&o, &elsewhere);

	w = (struct lab_work){ .opcode = requests[i].opcode,
		               .n = 1,
		               .piece = { { 0, requests[i].length, 0 } },
		               .to = p[1],
		               .compare_add = 1,
		               .swap = 1 };
	lab_peer_fill(p[0], 0, requests[i].length, 1);
	lab_peer_fill(p[1], 0, requests[i].length, 2);
	for (unsigned n = 0; n < 2; n++)
		lab_peer_receive(p[1], n, 0, requests[i].length);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_exec(p[1]);
	lab_peer_post(p[0], &w);
	while (!lab_peer_try_sent(p[0], &wc))
		;
	if (period)
		assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
	assert_true(lab_peer_is_untouched(p[1]));
}

LAB_CASE(what_is_reached_by_system_calls)
{
	for (unsigned i = 0; i < LAB_ARRAY(requests); i++) {
		try_after_exec(i, 4096);
		lab_clean_up(state);
	}
}

/* It ends before its peer has looked at its memory. It has refused nothing: it does not answer. */
LAB_CASE(what_nobody_had_reached)
{
	struct lab_peer_options o = { .host = 1, .period = 4096, .timeout = 10, .retry_cnt = 1 };
	struct lab_peer *here = lab_peer(&o), *there;

	o.host = 2;
	o.elsewhere = true;
	there = lab_peer(&o);
	lab_peer_connect(there, here);
	lab_peer_exec(there);
	lab_peer_connect(here, there);
	lab_peer_do(here,
	            &(struct lab_work){ .opcode = IBV_WR_RDMA_WRITE,
	                                .n = 1,
	                                .piece = { { 0, 64, 0 } },
	                                .to = there },
	            IBV_WC_RETRY_EXC_ERR);
	assert_true(lab_peer_is_untouched(there));
}

LAB_CASE(what_was_adopted)
{
	for (unsigned i = 0; i < LAB_ARRAY(requests); i++) {
		try_after_exec(i, 0);
		lab_clean_up(state);
	}
}

int main(int argc, char *argv[])
{
	if (argc == 4 && !strcmp(argv[0], "another"))
		return lab_peer_look(argv);
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
