/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages that wait for a program which does not read, or does not acknowledge, are bounded by a
 * budget of that program: they cost the daemon no descriptors, and no more memory than the budget.
 */
#include "umad/lab.h"

#include "daemon_lab.h"

#define RMPP_ACTIVE     1
#define RMPP_AT         24
#define LONG            20000 /* more than a datagram has room for */
#define MANY            300
#define PORT_BUDGET     (64 << 20)
#define SA_CLASS        3
#define GET_TABLE       0x12
#define GET_TABLE_R     0x92
#define PATH_RECORD     0x35
#define STATUS_BUSY     1
#define RESPONSE_BUDGET (64 << 20)

static pid_t daemon_process;

static int find_daemon(void **state)
{
	(void)state;
	daemon_process = daemon_pid();
	return 0;
}

static long daemon_kib(void)
{
	char path[80], line[200];
	long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", daemon_process);
	assert_non_null(f = fopen(path, "r"));
	while (kib < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kib) != 1)
			kib = -1;
	fclose(f);
	return kib;
}

struct sides {
	int from, to, from_agent, to_agent;
};

static struct sides open_sides(void)
{
	struct sides s = { .from = lab_open(1), .to = lab_open(2) };

	s.from_agent = lab_rmpp_agent(s.from, 0);
	s.to_agent = lab_rmpp_agent(s.to, LAB_METHOD(LAB_SEND));
	return s;
}

/* Sends a message of @bytes and waits until it has been acknowledged, and nobody answers. */
static void deliver(const struct sides *s, uint64_t tid, size_t bytes)
{
	void *umad = lab_mad(LAB_SEND, tid, bytes);
	uint8_t *mad = umad_get_mad(umad);
	int agent, length;

	mad[RMPP_AT] = 1;
	mad[RMPP_AT + 1] = 1;
	mad[RMPP_AT + 2] = RMPP_ACTIVE;
	lab_send(s->from, umad,
	         &(struct lab_how){ s->from_agent, lab_lid(2), bytes, .timeout_ms = 1 });
	umad = lab_receive(s->from, &agent, &length);
	assert_int_equal(umad_status(umad), ETIMEDOUT);
	free(umad);
}

LAB_CASE(what_is_not_read_costs_no_descriptors)
{
	struct sides s = open_sides();
	long before = daemon_descriptors(daemon_process);

	for (unsigned i = 0; i < MANY; i++)
		deliver(&s, i + 1, LONG);
	assert_true(daemon_descriptors(daemon_process) <= before + 2);
	for (unsigned i = 0; i < MANY; i++) {
		void *umad = lab_expect(s.to, s.to_agent, LONG);

		assert_int_equal((uint32_t)lab_tid(umad), i + 1);
		free(umad);
	}
}

LAB_CASE(what_is_not_read_is_bounded_by_the_budget_of_the_port)
{
	struct sides s = open_sides();
	const unsigned sent = PORT_BUDGET / LAB_MAX_MAD + 16;
	long before = daemon_kib();
	unsigned n = 0;

	for (unsigned i = 0; i < sent; i++)
		deliver(&s, i + 1, LAB_MAX_MAD);
	assert_true(daemon_kib() - before < (PORT_BUDGET >> 10) + (16 << 10));
	/* what fitted is all there, in order; what did not is lost, as where nobody posts receives
	 */
	for (uint32_t tid = 0; tid != sent + 1; n++) {
		void *umad;

		if (n == PORT_BUDGET / LAB_MAX_MAD / 2)
			deliver(&s, sent + 1, LONG);
		umad = lab_receive(s.to, &(int){ 0 }, &(int){ 0 });
		tid = (uint32_t)lab_tid(umad);
		if (tid != sent + 1)
			assert_int_equal(tid, n + 1);
		free(umad);
	}
	assert_true(n >= PORT_BUDGET / LAB_MAX_MAD / 2 && n < sent);
}

static void *path_request(uint64_t tid)
{
	void *umad = calloc(1, umad_size() + LAB_MAD);
	uint8_t *mad = umad_get_mad(umad);

	assert_non_null(umad);
	mad[0] = 1;
	mad[1] = SA_CLASS;
	mad[2] = 2;
	mad[3] = GET_TABLE;
	mad[15] = (uint8_t)tid;
	mad[17] = PATH_RECORD;
	return umad;
}

/* Asks for all paths of the fabric again and again, and acknowledges nothing. */
LAB_CASE(who_acknowledges_nothing_is_told_that_the_sa_is_busy)
{
	int fd = lab_open(2), agent = umad_register(fd, SA_CLASS, 2, 0, NULL), busy = 0, status;
	long before = daemon_kib();
	uint16_t lid = lab_lid(1); /* the subnet manager's port */

	assert_true(agent >= 0);
	for (unsigned tid = 1; !busy && tid < 60; tid++) {
		bool responded = false;

		lab_send(fd, path_request(tid),
		         &(struct lab_how){ agent, lid, LAB_MAD, .timeout_ms = 20000 });
		while (!responded) {
			int bytes;
			void *umad = lab_receive(fd, &(int){ 0 }, &bytes);
			const uint8_t *mad = umad_get_mad(umad);

			/* segments of the earlier responses are sent again meanwhile */
			responded = mad[3] == GET_TABLE_R && mad[15] == tid;
			status = mad[5];
			busy += responded && status == STATUS_BUSY;
			free(umad);
		}
	}
	assert_int_equal(busy, 1);
	assert_true(daemon_kib() - before < (RESPONSE_BUDGET >> 10) * 5 / 4);
}

int main(void)
{
	return harness_run(find_daemon, NULL);
}
