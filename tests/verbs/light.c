/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program costs little memory: it runs with little address space, locks little by mlockall(), and
 * nothing of the fabric is in its core dump.
 */
#include "lab.h"
#include "attributes.h"

#define KB_LOCKED (16 << 10) /* that mlockall() may add */
#define KB_MAPPED (64 << 10) /* of the fabric's memory */
#define LITTLE    1000000ull /* kB: ulimit -v 1000000 */
/* Sanitizers have terabytes of the address space, and lock what they have there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_LARGE true
#else
#define IS_LARGE false
#endif
#define BYTES 8192

/* A line of /proc/self/status, in kB. */
static long status_kb(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kb = -1;

	assert_non_null(f);
	while (kb < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kb = strtol(line + strlen(name), NULL, 10);
	fclose(f);
	assert_true(kb >= 0);
	return kb;
}

/* Two queue pairs exchange a message. */
static void exchange(void)
{
	static char memory[2][BYTES];
	struct ibv_qp *qp[2];
	struct ibv_cq *cq[2];
	struct ibv_mr *mr[2];
	struct ibv_context *c[2];
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++) {
		struct ibv_pd *pd;

		c[i] = lab_open(1 + i);
		pd = lab_pd(c[i]);
		cq[i] = lab_cq(c[i], 16, NULL);
		mr[i] = lab_mr(pd, memory[i], BYTES);
		qp[i] = lab_qp(pd, &(struct ibv_qp_init_attr){ .send_cq = cq[i],
		                                               .recv_cq = cq[i],
		                                               .qp_type = IBV_QPT_RC,
		                                               .cap = { 16, 16, 1, 1, 0 } });
	}
	for (int i = 0; i < 2; i++)
		lab_connect(qp[i], qp[!i]->qp_num, c[!i], IBV_ACCESS_LOCAL_WRITE);
	memset(memory[0], 'x', BYTES);
	for (int i = 1; i >= 0; i--) {
		struct ibv_sge sge = { (uintptr_t)memory[i], BYTES, mr[i]->lkey };
		struct ibv_recv_wr receive = { .sg_list = &sge, .num_sge = 1 }, *bad_receive;
		struct ibv_send_wr send = request_of(&sge, IBV_WR_SEND, IBV_SEND_SIGNALED),
		                   *bad_send;

		assert_int_equal(i ? ibv_post_recv(qp[i], &receive, &bad_receive)
		                   : ibv_post_send(qp[i], &send, &bad_send),
		                 0);
	}
	lab_poll(cq[1], 1, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(memory[0], memory[1], BYTES);
}

LAB_CASE(little_address_space_is_enough)
{
	struct rlimit little = { LITTLE << 10, LITTLE << 10 }, before;

	if (IS_LARGE)
		skip();
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	little.rlim_max = before.rlim_max;
	if (before.rlim_cur != RLIM_INFINITY && before.rlim_cur < little.rlim_cur)
		skip();
	assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
	exchange();
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
}

LAB_CASE(a_core_has_nothing_of_the_fabric)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	bool ours = false;
	long kb = 0;

	assert_non_null(f);
	exchange();
	while (fgets(line, sizeof(line), f)) {
		if (strchr(line, '/') || strstr(line, "-p "))
			ours = strstr(line, "umbel-control") || strstr(line, "umbel-data");
		else if (ours && !strncmp(line, "Size:", 5))
			kb += strtol(line + 5, NULL, 10);
		else if (ours && !strncmp(line, "VmFlags:", 8) && !strstr(line, " dd"))
			fail_msg("a part of the fabric's memory would be in a core: %s", line);
	}
	fclose(f);
	assert_in_range(kb, 1, KB_MAPPED);
}

LAB_CASE(mlockall_locks_little)
{
	long before, now;

	if (IS_LARGE || mlockall(MCL_CURRENT))
		skip(); /* ulimit -l */
	before = status_kb("VmLck:");
	munlockall();
	exchange();
	assert_int_equal(mlockall(MCL_CURRENT), 0);
	now = status_kb("VmLck:");
	assert_in_range(now - before, 0, KB_LOCKED);
	assert_int_equal(mlockall(MCL_CURRENT | MCL_FUTURE), 0);
	exchange();
	assert_in_range(status_kb("VmLck:") - now, 0, KB_LOCKED);
	munlockall();
}
