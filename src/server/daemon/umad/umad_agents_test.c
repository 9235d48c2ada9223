/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A MAD finds its agent by the values that they have in common; however many agents there are, no
 * more are looked at than may share a class.
 */
#include <harness.h>

#include "base/util.h"
#include "daemon/umad/umad_agents.h"
#include "fabric/model/fabric.h"

#define MANY    50000
#define METHODS 128
#define CLASS   0x09
#define VENDOR  0x32
#define OUI     0x02756D

struct lab {
	struct umad_agents all;
	struct fabric_port at[2];
	struct umad_open port[2];
	struct umad_agent *agent;
	uint32_t n;
};

static int setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));

	if (!l)
		return -1;
	l->agent = calloc(MANY, sizeof(*l->agent));
	for (uint32_t i = 0; i < 2; i++) {
		l->at[i].index = i;
		l->port[i].at = &l->at[i];
	}
	*state = l;
	return !l->agent;
}

static int teardown(void **state)
{
	struct lab *l = *state;

	for (uint32_t i = 0; i < l->n; i++)
		umad_agents_remove(&l->all, &l->agent[i]);
	assert_int_equal(l->all.by_tid.n + l->all.by_class.n, 0);
	base_hash_fini(&l->all.by_tid);
	base_hash_fini(&l->all.by_class);
	free(l->agent);
	free(l);
	return 0;
}

static struct umad_agent *add(struct lab *l, int port, const struct control_umad_register *as)
{
	struct umad_agent *a = &l->agent[l->n++];

	a->port = &l->port[port];
	a->as = *as;
	a->tid_high = l->n;
	assert_int_equal(umad_agents_add(&l->all, a), 0);
	return a;
}

static struct umad_agent *of_response(struct lab *l, int port, uint32_t tid_high)
{
	const struct wire_mad head = { .transaction_id = (uint64_t)tid_high << 32 | 1 };

	return umad_agents_of_response(&l->all, &l->at[port], &head);
}

static struct umad_agent *of_request(struct lab *l, int port, uint8_t c, uint8_t method)
{
	const struct wire_mad head = { .mgmt_class = c, .class_version = 1, .method = method };
	const uint8_t data[MAD_BYTES] = { [37] = OUI >> 16, OUI >> 8 & 0xFF, OUI & 0xFF };

	return umad_agents_of_request(&l->all, &l->at[port], &head, data);
}

static struct umad_agent *conflicting(struct lab *l, int port,
                                      const struct control_umad_register *as)
{
	return umad_agents_conflicting(&l->all, &l->at[port], as);
}

static const struct control_umad_register mine = { .mgmt_class = CLASS,
	                                           .mgmt_class_version = 1,
	                                           .method_mask = { 2 } };

/* Some get no requests, others those of another class, version, OUI or HCA port. */
CASE_WITH(of_many_agents_few_are_looked_at, setup, teardown)
{
	struct lab *l = *state;
	struct umad_agent *a = add(l, 0, &mine);
	uint64_t looked_at;

	while (l->n < MANY) {
		struct control_umad_register as = { .mgmt_class_version = 1 };
		uint32_t i = l->n / 4;

		if (l->n % 4 == 0) { /* the class, and no method of it */
			as.mgmt_class = CLASS;
		} else if (l->n % 4 == 1) {
			as.mgmt_class = VENDOR;
			as.oui = i + 1;
			as.method_mask[0] = 2;
		}
		add(l, (int)(l->n & 1), &as);
	}
	looked_at = l->all.looked_at;
	assert_ptr_equal(of_response(l, 0, a->tid_high), a);
	assert_ptr_equal(of_request(l, 0, CLASS, 1), a);
	assert_ptr_equal(conflicting(l, 0, &mine), a);
	assert_null(of_response(l, 0, UINT32_MAX));
	assert_null(of_request(l, 0, CLASS + 1, 1));
	assert_int_equal(l->all.looked_at - looked_at, 3);
}

CASE_WITH(the_methods_of_a_class_are_the_most, setup, teardown)
{
	struct lab *l = *state;
	struct umad_agent *a[METHODS];
	uint64_t looked_at;

	for (unsigned i = 0; i < METHODS; i++) {
		struct control_umad_register as = mine;

		as.method_mask[0] = as.method_mask[1] = 0;
		as.method_mask[i / 64] = 1ull << (i % 64);
		assert_null(conflicting(l, 0, &as));
		a[i] = add(l, 0, &as);
		assert_ptr_equal(conflicting(l, 0, &as), a[i]);
	}
	for (unsigned i = 0; i < METHODS; i++) {
		looked_at = l->all.looked_at;
		assert_ptr_equal(of_request(l, 0, CLASS, (uint8_t)i), a[i]);
		assert_true(l->all.looked_at - looked_at <= METHODS);
	}
}

CASE_WITH(an_agent_is_found_by_its_own_only, setup, teardown)
{
	struct control_umad_register as = mine;
	struct lab *l = *state;
	struct umad_agent *a = add(l, 0, &mine), *vendor;

	assert_null(of_response(l, 1, a->tid_high));
	assert_null(of_request(l, 1, CLASS, 1));
	assert_null(conflicting(l, 1, &mine));
	assert_null(of_request(l, 0, CLASS, 2));
	as.oui = OUI; /* which is no part of this class */
	assert_ptr_equal(conflicting(l, 0, &as), a);
	as.mgmt_class_version++;
	assert_null(conflicting(l, 0, &as));

	as = mine;
	as.mgmt_class = VENDOR;
	as.oui = OUI + 1;
	add(l, 0, &as);
	assert_null(of_request(l, 0, VENDOR, 1));
	as.oui = OUI;
	assert_null(conflicting(l, 0, &as));
	vendor = add(l, 0, &as);
	assert_ptr_equal(of_request(l, 0, VENDOR, 1), vendor);
	assert_ptr_equal(conflicting(l, 0, &as), vendor);
}

CASE_WITH(who_is_removed_is_not_found, setup, teardown)
{
	struct lab *l = *state;
	struct umad_agent *a = add(l, 0, &mine);

	umad_agents_remove(&l->all, a);
	umad_agents_remove(&l->all, a);
	assert_null(of_response(l, 0, a->tid_high));
	assert_null(of_request(l, 0, CLASS, 1));
	assert_null(conflicting(l, 0, &mine));
}
