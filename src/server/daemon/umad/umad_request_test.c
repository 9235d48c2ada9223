/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * However many requests of an agent wait when it ends: they are freed in slices, those of others
 * are not looked at; and each port has memory for so many, and for a few whatever others have.
 */
#include <harness.h>

#include "daemon/umad/umad_memory.h"
#include "daemon/umad/umad_request.h"

#define MANY       10000
#define FEW        10
#define PORT_BYTES (128ull << 20)
#define ALL_PORTS  4 /* have memory for that */
#define BYTES      sizeof(struct umad_request)

struct lab {
	struct daemon_umad u;
	struct umad_open port[ALL_PORTS + 1];
	struct umad_agent agent[ALL_PORTS + 1];
	uint32_t last_tid;
};

static int setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));

	if (!l)
		return -1;
	for (uint32_t i = 0; i <= ALL_PORTS; i++) {
		l->port[i].u = &l->u;
		l->agent[i].port = &l->port[i];
		l->agent[i].tid_high = i + 1;
	}
	*state = l;
	return 0;
}

static int add(struct lab *l, int i)
{
	const struct ib_user_mad header = { .timeout_ms = 1 };
	struct fabric_mad mad = { .data = { 1, 3, 2, 1 } };
	struct umad_request *r;

	l->last_tid++;
	for (int k = 0; k < 4; k++)
		mad.data[MAD_TID_AT + 4 + k] = (uint8_t)(l->last_tid >> (24 - 8 * k));
	return umad_request_new(&l->agent[i], &header, &mad, &r);
}

static unsigned long waiting(const struct lab *l, int i)
{
	return l->port[i].message_bytes / BYTES;
}

static void forget_all(struct lab *l, int i)
{
	uint32_t budget;

	do
		budget = DAEMON_SLICE;
	while (!umad_request_forget(&l->agent[i], &budget));
	assert_int_equal(l->port[i].message_bytes, 0);
}

static int teardown(void **state)
{
	struct lab *l = *state;

	for (int i = 0; i <= ALL_PORTS; i++)
		forget_all(l, i);
	assert_int_equal(l->u.message_bytes, 0);
	base_hash_fini(&l->u.requests_by_tid);
	free(l);
	return 0;
}

CASE_WITH(a_slice_frees_few, setup, teardown)
{
	const unsigned long most = DAEMON_SLICE / umad_memory_work(0) + 1;
	struct lab *l = *state;
	unsigned long left = MANY;
	bool done = false;

	for (int i = 0; i < FEW; i++)
		assert_int_equal(add(l, 1), 0);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(add(l, 0), 0);
	for (int i = 0; i < FEW; i++)
		assert_int_equal(add(l, 1), 0);
	while (!done) {
		uint32_t budget = DAEMON_SLICE;

		done = umad_request_forget(&l->agent[0], &budget);
		assert_true(left - waiting(l, 0) <= most);
		assert_true(done || waiting(l, 0) < left);
		left = waiting(l, 0);
	}
	assert_int_equal(left, 0);
	assert_int_equal(waiting(l, 1), 2 * FEW);
}

/* Others are not walked past: without any of its own an agent costs nothing. */
CASE_WITH(an_agent_without_requests_takes_no_budget, setup, teardown)
{
	struct lab *l = *state;
	uint32_t budget = 0;

	for (int i = 0; i < MANY; i++)
		assert_int_equal(add(l, 0), 0);
	assert_true(umad_request_forget(&l->agent[1], &budget));
	assert_false(umad_request_forget(&l->agent[0], &budget));
	assert_int_equal(waiting(l, 0), MANY);
}

CASE(a_large_message_takes_a_slice)
{
	assert_true(umad_memory_work(CONTROL_UMAD_MAX_BYTES) > DAEMON_SLICE);
}

CASE_WITH(each_port_has_a_budget, setup, teardown)
{
	struct lab *l = *state;
	unsigned long n = 0;

	while (!add(l, 0))
		assert_true(++n <= PORT_BYTES / BYTES);
	assert_int_equal(n, PORT_BYTES / BYTES);
	assert_int_equal(add(l, 0), -ENOMEM);
	assert_int_equal(add(l, 1), 0);
	forget_all(l, 0);
	assert_int_equal(add(l, 0), 0);
}

CASE_WITH(all_have_a_budget_but_for_a_few, setup, teardown)
{
	struct lab *l = *state;

	for (int i = 0; i < ALL_PORTS; i++)
		assert_true(umad_memory_reserve(&l->port[i], PORT_BYTES));
	for (int i = 0; i < FEW; i++)
		assert_int_equal(add(l, ALL_PORTS), 0);
	for (int i = 0; i < MANY && !add(l, ALL_PORTS); i++)
		;
	assert_int_equal(add(l, ALL_PORTS), -ENOMEM);
	umad_memory_release(&l->port[0], PORT_BYTES);
	assert_int_equal(add(l, ALL_PORTS), 0);
	for (int i = 1; i < ALL_PORTS; i++)
		umad_memory_release(&l->port[i], PORT_BYTES);
}
