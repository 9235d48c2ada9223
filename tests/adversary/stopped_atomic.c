/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process is stopped, or dies, in the middle of an atomic operation: a lock in shared memory
 * names its queue pair. The test writes that name itself, as nobody can stop a process at a given
 * instruction. Others' operations wait then, and none fails; those on other words do not even wait.
 */
#include "verbs/lab.h"

#include "daemon_lab.h"
#include "shm/connection.h"
#include "shm/region.h"
#include "attributes.h"

#define ACCESS   (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define PATIENCE 1 /* seconds: twice as long as a request waits that gets lost */

struct fixture {
	struct ibv_context *context[2]; /* of the requester; of the responder */
	struct ibv_pd *pd[2];
	struct ibv_cq *cq[2];
	struct ibv_qp *qp[2];
	struct ibv_mr *mr[2];
	uint64_t word[2][512] __attribute__((aligned(4096)));
	struct shm_region region;
	struct shm_keys *keys; /* the responder's */
};

static struct ibv_qp *connected_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = init_of(IBV_QPT_RC, cq, 8, 8);

	return lab_qp(pd, &init);
}

static struct fixture *begin(void)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	for (int i = 0; i < 2; i++) {
		f.context[i] = lab_open(1 + i);
		f.pd[i] = lab_pd(f.context[i]);
		f.cq[i] = lab_cq(f.context[i], 16, NULL);
		f.qp[i] = connected_qp(f.pd[i], f.cq[i]);
		assert_non_null(f.mr[i] =
		                        ibv_reg_mr(f.pd[i], f.word[i], sizeof(f.word[i]), ACCESS));
	}
	for (int i = 0; i < 2; i++)
		lab_connect(f.qp[i], f.qp[!i]->qp_num, f.context[!i], ACCESS);
	close(daemon_map(daemon_client(CONTROL_ROLE_VERBS), &f.region));
	f.keys = shm_payload_at(
	        &f.region, shm_qp_at(&f.region, SHM_QP_INDEX(f.qp[1]->qp_num))->connection.keys_off,
	        sizeof(*f.keys));
	return &f;
}

static void end(struct fixture *f)
{
	shm_region_unmap(&f->region);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_dereg_mr(f->mr[i]), 0);
}

/* Adds @add to word @i of the responder. */
static void post_add(struct fixture *f, unsigned i, uint64_t add)
{
	struct ibv_sge sge = { (uintptr_t)f->word[0], 8, f->mr[0]->lkey };
	struct ibv_send_wr wr = { .wr_id = i,
		                  .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .wr.atomic = { .remote_addr = (uintptr_t)&f->word[1][i],
		                                 .compare_add = add,
		                                 .rkey = f->mr[1]->rkey } };
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(f->qp[0], &wr, &bad), 0);
}

static void expect_added(struct fixture *f, unsigned i, uint64_t sum)
{
	struct ibv_wc wc = lab_complete(f->cq[0], IBV_WC_SUCCESS);

	assert_int_equal(wc.wr_id, i);
	assert_int_equal(f->word[1][i], sum);
}

/* For longer than it may take to fail. */
static void expect_nothing(struct fixture *f)
{
	struct timespec from, now;
	struct ibv_wc wc;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		assert_int_equal(ibv_poll_cq(f->cq[0], 1, &wc), 0);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - from.tv_sec <= PATIENCE);
}

/* As a process that is in the middle of an atomic operation on word @i does. */
static void hold(struct fixture *f, unsigned i, uint32_t qpn)
{
	atomic_store(&f->keys->atomics[i % SHM_ATOMIC_LOCKS], qpn);
}

LAB_CASE(an_operation_waits_for_a_stopped_one_and_does_not_fail)
{
	struct fixture *f = begin();
	struct ibv_qp *other = connected_qp(f->pd[0], f->cq[0]);

	post_add(f, 3, 5);
	expect_added(f, 3, 5);
	hold(f, 3, other->qp_num);
	post_add(f, 3, 6);
	expect_nothing(f);
	assert_int_equal(f->word[1][3], 5);
	hold(f, 3, 0);
	expect_added(f, 3, 11);
	end(f);
}

LAB_CASE(operations_on_other_words_do_not_wait)
{
	struct fixture *f = begin();
	struct ibv_qp *other = connected_qp(f->pd[0], f->cq[0]);

	hold(f, 3, other->qp_num);
	for (unsigned i = 4; i < 3 + SHM_ATOMIC_LOCKS; i++) {
		post_add(f, i, i);
		expect_added(f, i, i);
	}
	hold(f, 3, 0);
	end(f);
}

LAB_CASE(a_lock_of_a_queue_pair_that_is_gone_holds_nobody_up)
{
	struct fixture *f = begin();
	struct ibv_qp *other = connected_qp(f->pd[0], f->cq[0]);

	hold(f, 3, other->qp_num);
	lab_forget(other);
	assert_int_equal(ibv_destroy_qp(other), 0);
	post_add(f, 3, 7);
	expect_added(f, 3, 7);
	end(f);
}

/* A process with a queue pair that is connected to the responder's. */
static pid_t start_other(const struct fixture *f, uint32_t *qpn)
{
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct ibv_context *context = lab_open(3);
		struct ibv_pd *pd = lab_pd(context);
		struct ibv_qp *qp = connected_qp(pd, lab_cq(context, 16, NULL));

		lab_connect(qp, f->qp[1]->qp_num, context, ACCESS);
		if (write(ready[1], &qp->qp_num, sizeof(qp->qp_num)) == sizeof(qp->qp_num))
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], qpn, sizeof(*qpn)), sizeof(*qpn));
	close(ready[0]);
	close(ready[1]);
	return pid;
}

LAB_CASE(an_operation_goes_on_when_the_stopped_process_dies)
{
	struct fixture *f = begin();
	uint32_t qpn;
	pid_t pid = start_other(f, &qpn);

	hold(f, 9, qpn);
	post_add(f, 9, 8);
	expect_nothing(f);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	expect_added(f, 9, 8);
	end(f);
}
