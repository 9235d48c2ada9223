/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that forks while it is connected. The connection is the parent's and goes on; the child
 * may end as it likes, or open the device anew.
 */
#include "peer_lab.h"

static struct lab_peer **begin(void)
{
	static void *const elsewhere = (void *)(uintptr_t)lab_open;
	struct lab_peer **p = lab_peers(NULL, &elsewhere);

	return p;
}

static void transfer(struct lab_peer *from, struct lab_peer *to, enum ibv_wr_opcode opcode,
                     unsigned seed)
{
	struct lab_work w = {
		.opcode = opcode, .n = 1, .piece = { { 0, 5000, 0 } }, .to = to, .remote = 16384
	};

	lab_peer_fill(from, 0, 5000, seed);
	lab_peer_fill(to, 16384, 5000, 99);
	if (opcode == IBV_WR_SEND)
		lab_peer_receive(to, 1, 16384, 5000);
	lab_peer_do(from, &w, IBV_WC_SUCCESS);
	if (opcode == IBV_WR_SEND)
		lab_peer_received(to, IBV_WC_SUCCESS);
	lab_peer_expect(to, 16384, 5000, seed);
}

/* Both ways. */
static void expect_connected(struct lab_peer *p[2], unsigned seed)
{
	transfer(p[0], p[1], IBV_WR_SEND, seed);
	transfer(p[1], p[0], IBV_WR_SEND, seed + 1);
	transfer(p[0], p[1], IBV_WR_RDMA_WRITE, seed + 2);
	transfer(p[1], p[0], IBV_WR_RDMA_WRITE, seed + 3);
}

LAB_CASE(a_connection_goes_on_beside_a_child_and_after_it)
{
	int go[2];
	char byte = 0;
	pid_t pid;
	struct lab_peer **p = begin();

	expect_connected(p, 1);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (!pid) {
		memset(p[0]->here->memory, 0, LAB_PEER_BYTES); /* its own */
		_exit(read(go[0], &byte, 1) != 1);
	}
	for (unsigned i = 0; i < 20; i++)
		expect_connected(p, 10 + i);
	assert_int_equal(write(go[1], &byte, 1), 1);
	harness_expect_success(pid);
	expect_connected(p, 50);
	close(go[0]);
	close(go[1]);
}

/* A request waits for the peer when the child is made: it is carried out once. */
LAB_CASE(what_waits_at_the_fork_is_carried_out_once)
{
	struct lab_work w = { .opcode = IBV_WR_SEND, .n = 1, .piece = { { 0, 100, 0 } } };
	struct ibv_wc wc;
	pid_t pid;
	struct lab_peer **p = begin();

	lab_peer_fill(p[0], 0, 100, 7);
	lab_peer_post(p[0], &w);
	pid = fork();
	if (!pid)
		_exit(0);
	harness_expect_success(pid);
	lab_peer_receive(p[1], 1, 512, 100);
	lab_peer_receive(p[1], 2, 1024, 100);
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
	assert_int_equal(lab_peer_received(p[1], IBV_WC_SUCCESS).wr_id, 1);
	lab_peer_expect(p[1], 512, 100, 7);
	assert_int_equal(lab_peer_try_received(p[1], &wc), 0);
	transfer(p[0], p[1], IBV_WR_RDMA_WRITE, 8);
}

static void connect_anew(void **state)
{
	struct lab_peer **p;

	(void)state;
	p = lab_peers(NULL, NULL);
	expect_connected(p, 5);
}

/* It opens the device again; what it inherited it leaves alone. */
LAB_CASE(a_child_has_connections_of_its_own)
{
	const struct CMUnitTest tests[] = { { "child", connect_anew, NULL, NULL, NULL } };
	pid_t pid;
	struct lab_peer **p = begin();

	expect_connected(p, 1);
	pid = fork();
	if (!pid) {
		harness_serve();
		fclose(stdout);
		_exit(_cmocka_run_group_tests("child", tests, 1, NULL, NULL));
	}
	for (unsigned i = 0; i < 10; i++)
		expect_connected(p, 10 + i);
	harness_expect_success(pid);
	expect_connected(p, 50);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
