/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rough treatment of programs on a weak fabric (docs/weak.md) whose requests are under way: a peer
 * is stopped, or becomes another program; the program starts others; it has no descriptor or no
 * memory left; many of its queue pairs wait. Each time a neighbour, on other hosts, must not
 * notice.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../deadline.h"
#include "base/util.h"
#include "verbs/peer_lab.h"

#define ROUNDS 8
#define EACH   32 /* requests that are under way together */

extern char **environ;

/* Number @i, for words from @i on. */
static struct lab_work work(enum ibv_wr_opcode opcode, unsigned i, const struct lab_peer *to)
{
	return (struct lab_work){ .opcode = opcode,
		                  .wr_id = i,
		                  .n = 1,
		                  .piece = { { i * 64, 64, 0 } },
		                  .to = to,
		                  .remote = i * 64 };
}

static void post_writes(struct lab_peer *p[2])
{
	for (unsigned i = 0; i < EACH; i++) {
		struct lab_work w = work(IBV_WR_RDMA_WRITE, i, p[1]);

		lab_peer_post(p[0], &w);
	}
}

static void all_sent(struct lab_peer *p)
{
	for (unsigned i = 0; i < EACH; i++)
		assert_int_equal(lab_peer_sent(p, IBV_WC_SUCCESS).wr_id, i);
}

/* Two more in this process. */
static void make_neighbours(struct lab_peer *q[2])
{
	struct lab_peer_options o = { .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };

	for (int i = 0; i < 2; i++) {
		o.host = 3 + i;
		q[i] = lab_peer(&o);
	}
	lab_peer_connect(q[0], q[1]);
	lab_peer_connect(q[1], q[0]);
}

/* What they do is done, whatever becomes of others. */
static void expect_work(struct lab_peer *q[2], unsigned seed)
{
	lab_peer_fill(q[0], 0, EACH * 64, seed);
	post_writes(q);
	all_sent(q[0]);
	lab_peer_expect(q[1], 0, EACH * 64, seed);
}

/* ---- peers that are stopped ---- */

LAB_CASE(what_waits_for_a_stopped_peer_is_done_when_it_goes_on)
{
	struct lab_peer **p, *q[2];

	p = lab_peers(NULL, (void *[]){ (void *)1 });
	make_neighbours(q);
	for (unsigned k = 0; k < ROUNDS; k++) {
		lab_peer_fill(p[0], 0, EACH * 64, k);
		lab_peer_signal(p[1], SIGSTOP);
		for (unsigned i = 0; i < EACH; i++) {
			struct lab_work w = work(i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, i, p[1]);

			lab_peer_post(p[0], &w);
		}
		expect_work(q, k);
		lab_peer_signal(p[1], SIGCONT);
		for (unsigned i = 1; i < EACH; i += 2)
			lab_peer_receive(p[1], i, i * 64, 64);
		all_sent(p[0]);
		for (unsigned i = 1; i < EACH; i += 2)
			assert_int_equal(lab_peer_received(p[1], IBV_WC_SUCCESS).wr_id, i);
		lab_peer_expect(p[1], 0, EACH * 64, k);
	}
}

static void add(struct lab_peer *p, const struct lab_peer *to, unsigned i)
{
	struct lab_work w = work(IBV_WR_ATOMIC_FETCH_AND_ADD, i, to);

	w.piece[0] = (struct lab_piece){ 64 + i * 8, 8, 0 };
	w.remote = 0;
	w.compare_add = 1;
	lab_peer_post(p, &w);
}

/* Whatever it had begun. Both add to the same word. */
LAB_CASE(atomics_do_not_wait_for_a_requester_that_is_stopped)
{
	struct lab_peer_options o = { .host = 3, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	struct lab_peer **p, *q;
	uint64_t sum = 0;

	p = lab_peers(NULL, (void *[]){ (void *)1 });
	o.neighbour = p[0]; /* it has p[0]'s keys */
	o.host = 1;
	q = lab_peer(&o);
	lab_peer_connect(q, q);
	lab_peer_put(p[0], 0, &sum, sizeof(sum));
	for (unsigned k = 0; k < ROUNDS; k++) {
		for (unsigned i = 0; i < EACH; i++)
			add(p[1], p[0], i);
		lab_peer_signal(p[1], SIGSTOP);
		for (unsigned i = 0; i < EACH; i++)
			add(q, p[0], i);
		all_sent(q);
		lab_peer_signal(p[1], SIGCONT);
		all_sent(p[1]);
	}
	lab_peer_get(p[0], 0, &sum, sizeof(sum));
	assert_int_equal(sum, 2 * ROUNDS * EACH);
}

/* ---- other programs ---- */

static void start_another(void)
{
	char *const argv[] = { (char *)"true", NULL };
	int status;
	pid_t pid;

	assert_int_equal(posix_spawnp(&pid, "true", NULL, NULL, argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		execvp("true", argv);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

LAB_CASE(a_program_that_starts_others_loses_nothing)
{
	struct lab_peer **p;

	p = lab_peers(NULL, state);
	for (unsigned k = 0; k < ROUNDS; k++) {
		lab_peer_fill(p[0], 0, EACH * 64, k);
		post_writes(p);
		start_another();
		all_sent(p[0]);
		lab_peer_expect(p[1], 0, EACH * 64, k);
	}
}

/* Both ends have requests under way. */
LAB_CASE(a_peer_that_becomes_another_program_gets_nothing_more)
{
	const struct lab_peer_options o = { .timeout = 10, .retry_cnt = 1, .rnr_retry = 7 };
	struct lab_peer **p, *q[2];
	struct deadline deadline = { 0 };
	struct ibv_wc wc;

	p = lab_peers(&o, (void *[]){ (void *)1 });
	make_neighbours(q);
	for (unsigned i = 0; i < EACH; i++) {
		struct lab_work w = work(IBV_WR_RDMA_WRITE, i, p[0]);

		lab_peer_post(p[1], &w);
	}
	post_writes(p);
	lab_peer_exec(p[1]);
	expect_work(q, 1);
	for (unsigned i = 0; i < EACH; i++) {
		while (!lab_peer_try_sent(p[0], &wc))
			DEADLINE_LOOK(&deadline, "a completion of a peer that is gone");
		assert_int_equal(wc.wr_id, i);
	}
	assert_true(lab_peer_is_untouched(p[1]));
}

/* ---- descriptors and memory ---- */

static void limit(int resource, rlim_t most, struct rlimit *before)
{
	assert_int_equal(getrlimit(resource, before), 0);
	assert_int_equal(setrlimit(resource, &(struct rlimit){ most, before->rlim_max }), 0);
}

LAB_CASE(requests_need_no_descriptor)
{
	struct lab_peer **p;
	struct rlimit before;
	int next;

	p = lab_peers(NULL, (void *[]){ (void *)1 });
	next = dup(STDIN_FILENO);
	assert_true(next >= 0);
	close(next);
	for (unsigned k = 0; k < ROUNDS; k++) {
		lab_peer_fill(p[0], 0, EACH * 64, k);
		limit(RLIMIT_NOFILE, (rlim_t)next, &before);
		post_writes(p);
		all_sent(p[0]);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		lab_peer_expect(p[1], 0, EACH * 64, k);
	}
}

/* As `ulimit -v` has it: what the process has, and no more. */
static rlim_t address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Messages of 256 KiB, which wait in memory of the library where there is some. */
LAB_CASE(messages_wait_where_no_memory_is_left)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* their runtimes map memory */
#endif
	const struct lab_peer_options o = {
		.bytes = 8u << 20, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7
	};
	const uint32_t length = 256u << 10;
	struct lab_peer **p;
	struct rlimit before;

	p = lab_peers(&o, state);
	for (unsigned k = 0; k < 2; k++) {
		lab_peer_fill(p[0], 0, EACH * length, k);
		limit(RLIMIT_AS, address_space() + length, &before);
		for (unsigned i = 0; i < EACH; i++) {
			struct lab_work w = work(k ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, i, p[1]);

			w.piece[0] = (struct lab_piece){ i * length, length, 0 };
			w.remote = i * length;
			lab_peer_post(p[0], &w);
		}
		all_sent(p[0]);
		assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
		if (!k)
			lab_peer_expect(p[1], 0, EACH * length, 0);
	}
	lab_peer_expect(p[0], 0, EACH * length, 0); /* as it was written, and read back */
}

/* ---- many that wait ---- */

#define MANY 1000

/* It is connected to nobody, and waits for ever. */
static void make_one_that_waits(struct lab_peer *first, const struct lab_peer_address *nobody)
{
	struct lab_peer_options o = { .host = 1, .neighbour = first, .shares_cqs = true };
	struct lab_peer to = { .address = *nobody }, *p;
	struct lab_work w = { .opcode = IBV_WR_RDMA_WRITE, .to = first, .unsignalled = true };

	o.bytes = 4096;
	p = lab_peer(&o);
	lab_peer_connect(p, &to);
	lab_peer_post(p, &w);
}

/* Nothing but the library's thread goes on with a WRITE of a program that looks at memory. */
static void expect_write_in_time(struct lab_peer *p[2])
{
	volatile uint8_t *last = (volatile uint8_t *)p[1]->here->memory + 63;
	struct lab_work w = work(IBV_WR_RDMA_WRITE, 0, p[1]);
	const struct timespec look = { .tv_nsec = 1000000 };
	struct deadline deadline = { 0 };

	*last = 0;
	p[0]->here->memory[63] = 1;
	lab_peer_post(p[0], &w);
	while (!*last) {
		nanosleep(&look, NULL);
		DEADLINE_LOOK(&deadline, "a WRITE beside many requests that wait");
	}
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
}

static uint64_t used_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* What is looked at in vain is looked at seldom. */
LAB_CASE(many_that_wait_cost_little)
{
	const struct timespec while_all_get_late = { .tv_nsec = 600000000 };
	struct lab_peer **p, *q[2];
	struct lab_peer_address nobody;
	uint64_t used, began;

	p = lab_peers(NULL, state);
	make_neighbours(q);
	nobody = p[1]->address;
	nobody.qpn ^= 0x800000;
	for (unsigned i = 0; i < MANY; i++)
		make_one_that_waits(p[0], &nobody);
	nanosleep(&while_all_get_late, NULL);
	used = used_ns();
	began = base_now_ns();
	nanosleep(&while_all_get_late, NULL);
	used = used_ns() - used;
	if ((double)used > (double)(base_now_ns() - began) / 25 * deadline_scale())
		fail_msg("%u queue pairs that wait cost %llu us of a processor in %llu us", MANY,
		         (unsigned long long)used / 1000,
		         (unsigned long long)(base_now_ns() - began) / 1000);
	for (unsigned i = 0; i < ROUNDS; i++)
		expect_write_in_time(q);
}

int main(int argc, char *argv[])
{
	if (argc == 4 && !strcmp(argv[0], "another"))
		return lab_peer_look(argv);
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
