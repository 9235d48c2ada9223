/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program whose first thread ends (pthread_exit(3)) while others go on: it lives, and its peers
 * reach its memory as before, also by other ways than the kernel has for processes.
 */
#include "peer_lab.h"

static const struct lab_peer_options options = {
	.far = true, .timeout = 10, .retry_cnt = 1, .rnr_retry = 7
};

static void expect_all(struct lab_peer *p[2], unsigned seed)
{
	struct lab_work w = { .opcode = IBV_WR_RDMA_WRITE,
		              .n = 1,
		              .piece = { { 0, LAB_PEER_BYTES, 0 } },
		              .to = p[1] };

	lab_peer_fill(p[0], 0, LAB_PEER_BYTES, seed);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_expect(p[1], 0, LAB_PEER_BYTES, seed);
	lab_peer_fill(p[1], 0, LAB_PEER_BYTES, seed + 1);
	w.opcode = IBV_WR_RDMA_READ;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_expect(p[0], 0, LAB_PEER_BYTES, seed + 1);
	lab_peer_receive(p[1], 1, 0, LAB_PEER_BYTES);
	w.opcode = IBV_WR_SEND;
	lab_peer_fill(p[0], 0, LAB_PEER_BYTES, seed + 2);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_received(p[1], IBV_WC_SUCCESS);
	lab_peer_expect(p[1], 0, LAB_PEER_BYTES, seed + 2);
}

LAB_CASE_ELSEWHERE(after_it_was_used)
{
	struct lab_peer **p = lab_peers(&options, state);

	expect_all(p, 1);
	lab_peer_part(p[1]);
	expect_all(p, 4);
}

LAB_CASE_ELSEWHERE(before_it_is_used)
{
	struct lab_peer **p = lab_peers(&options, state);

	lab_peer_part(p[1]);
	expect_all(p, 1);
}

/* The queue pair by which its memory was reached last is another one, and gone. */
LAB_CASE_ELSEWHERE(after_a_queue_pair_has_gone)
{
	struct lab_work w = { .opcode = IBV_WR_RDMA_WRITE, .n = 1, .piece = { { 0, 64, 0 } } };
	struct lab_peer **p = lab_peers(&options, state), *second[2];

	w.to = p[1];
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	second[0] = lab_peer(&options);
	second[1] = lab_peer_beside(p[1]);
	for (int i = 0; i < 2; i++)
		lab_peer_connect(second[i], second[!i]);
	w.to = second[1];
	lab_peer_do(second[0], &w, IBV_WC_SUCCESS);
	lab_peer_destroy_qp(second[1]);
	lab_peer_part(second[1]);
	w.to = p[1];
	lab_peer_fill(p[0], 0, 64, 3);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	w.opcode = IBV_WR_RDMA_READ;
	w.piece[0].at = 256;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_put(p[0], 0, p[0]->here->memory + 256, 64);
	lab_peer_expect(p[0], 0, 64, 3);
}

/* One that has ended as a whole is gone. */
LAB_CASE_ELSEWHERE(one_that_is_killed_is_gone)
{
	struct lab_work w = { .opcode = IBV_WR_RDMA_WRITE, .n = 1, .piece = { { 0, 8, 0 } } };
	struct lab_peer **p = lab_peers(&options, state);

	expect_all(p, 1);
	lab_peer_part(p[1]);
	lab_peer_signal(p[1], SIGKILL);
	w.to = p[1];
	lab_peer_do(p[0], &w, IBV_WC_RETRY_EXC_ERR);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
