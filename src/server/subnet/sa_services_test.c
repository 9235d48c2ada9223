/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ServiceRecords: which ports may offer and withdraw services, which ones see them, and for how
 * long.
 */
#include <harness.h>

#include "subnet/testing_sa.h"

static struct wire_service_record service(const struct env *e, unsigned host, uint64_t id,
                                          uint32_t lease)
{
	return (struct wire_service_record){ .id = id,
		                             .gid = gid(e, host),
		                             .pkey = IB_PKEY_DEFAULT,
		                             .lease = lease,
		                             .name = "chess",
		                             .data8 = { 1, 2, 3 } };
}

#define SERVICE_MASK (SA_SR(id) | SA_SR(gid) | SA_SR(pkey) | SA_SR(lease) | SA_SR(name))

static uint16_t with_service(struct env *e, uint8_t method, uint64_t mask,
                             const struct wire_service_record *rec)
{
	prepare(e, method, SA_ATTR_SERVICE);
	e->mad.component_mask = mask;
	wire_service_record_encode(rec, e->mad.data);
	return serve(e);
}

CASE_WITH(a_service_that_is_offered_is_found, setup, teardown)
{
	struct env *e = *state;
	struct wire_service_record s = service(e, 1, 42, 100), got;

	assert_int_equal(with_service(e, MAD_SET, SERVICE_MASK, &s), SA_OK);
	assert_int_equal(e->response.method, MAD_GET_RESP);
	assert_int_equal(with_service(e, MAD_GET, SA_SR(name), &s), SA_OK);
	got = RECORD(e, service_record, 0);
	assert_memory_equal(&got, &s, sizeof(s));
	assert_int_equal(with_service(e, MAD_GET, SA_SR(data8[1]), &s), SA_OK);
	s.data8[1] = 9;
	assert_int_equal(with_service(e, MAD_GET, SA_SR(data8[1]), &s), SA_NO_RECORDS);
	assert_int_equal(with_service(e, MAD_GET_TABLE, 0, &s), SA_OK);
	assert_int_equal(e->response.n, 1);
}

CASE_WITH(only_trusted_requests_see_the_key_of_a_service, setup, teardown)
{
	struct env *e = *state;
	struct wire_service_record s = service(e, 1, 42, 100);

	s.key[3] = 9;
	assert_int_equal(with_service(e, MAD_SET, SERVICE_MASK | SA_SR(key), &s), SA_OK);
	assert_int_equal(RECORD(e, service_record, 0).key[3], 0);
	assert_int_equal(with_service(e, MAD_GET, SA_SR(key), &s), SA_OK);
	assert_int_equal(RECORD(e, service_record, 0).key[3], 0);
	e->mad.sm_key = SA_KEY;
	assert_int_equal(serve(e), SA_OK);
	assert_int_equal(RECORD(e, service_record, 0).key[3], 9);
}

CASE_WITH(a_service_offered_again_is_the_same_one, setup, teardown)
{
	struct env *e = *state;
	struct wire_service_record s = service(e, 1, 42, 100);

	assert_int_equal(with_service(e, MAD_SET, SERVICE_MASK, &s), SA_OK);
	s.data8[0] = 77;
	assert_int_equal(with_service(e, MAD_SET, SERVICE_MASK, &s), SA_OK);
	assert_int_equal(with_service(e, MAD_GET, SA_SR(id), &s), SA_OK);
	assert_int_equal(RECORD(e, service_record, 0).data8[0], 77);
}

CASE_WITH(a_lease_runs_out, setup, teardown)
{
	struct env *e = *state;
	struct wire_service_record s = service(e, 1, 42, 100);

	e->request.now_s = 1000;
	assert_int_equal(with_service(e, MAD_SET, SERVICE_MASK, &s), SA_OK);
	e->request.now_s = 1060;
	assert_int_equal(with_service(e, MAD_GET, SA_SR(id), &s), SA_OK);
	assert_int_equal(RECORD(e, service_record, 0).lease, 40);
	e->request.now_s = 1100;
	assert_int_equal(with_service(e, MAD_GET, SA_SR(id), &s), SA_NO_RECORDS);
}

CASE_WITH(without_a_lease_a_service_is_for_ever, setup, teardown)
{
	struct env *e = *state;
	struct wire_service_record s = service(e, 1, 42, 5);

	assert_int_equal(with_service(e, MAD_SET, SERVICE_MASK & ~SA_SR(lease), &s), SA_OK);
	e->request.now_s = 1ull << 40;
	assert_int_equal(with_service(e, MAD_GET, SA_SR(id), &s), SA_OK);
	assert_int_equal(RECORD(e, service_record, 0).lease, 0xFFFFFFFF);
}

CASE_WITH(a_service_is_withdrawn, setup, teardown)
{
	struct env *e = *state;
	struct wire_service_record s = service(e, 1, 42, 100), other = service(e, 1, 43, 100);

	assert_int_equal(with_service(e, MAD_SET, SERVICE_MASK, &s), SA_OK);
	assert_int_equal(with_service(e, MAD_DELETE, SERVICE_MASK, &other), SA_NO_RECORDS);
	assert_int_equal(with_service(e, MAD_DELETE, SERVICE_MASK, &s), SA_OK);
	assert_int_equal(e->response.method, MAD_DELETE_RESP);
	assert_int_equal(with_service(e, MAD_GET, SA_SR(id), &s), SA_NO_RECORDS);
}

CASE_WITH(services_that_are_nowhere_are_refused, setup, teardown)
{
	struct env *e = *state;
	struct wire_service_record s = service(e, 1, 42, 100);

	assert_int_equal(with_service(e, MAD_SET, SA_SR(id), &s), SA_REQ_INVALID);
	s.pkey = 0x8123;
	assert_int_equal(with_service(e, MAD_SET, SERVICE_MASK, &s), SA_REQ_INVALID);
	s = service(e, 1, 42, 100);
	s.gid.raw[12] ^= 0x80; /* nobody's GUID */
	assert_int_equal(with_service(e, MAD_SET, SERVICE_MASK, &s), SA_REQ_INVALID);
}

/* The SA has the services whose leases, by the model, have not run out, after each of many
 * changes. */
CASE_WITH(leases_run_out_in_any_order, setup, teardown)
{
	enum { SERVICES = 300 };
	struct env *e = *state;
	uint64_t until[SERVICES] = { 0 };
	uint32_t random = 1;

	for (unsigned step = 0; step < 4000; step++) {
		struct wire_service_record s;
		unsigned there = 0, i;

		random = random * 1664525 + 1013904223;
		i = (random >> 8) % SERVICES;
		s = service(e, i % HOSTS, i, 1 + (random >> 18) % 200);
		if (step % 3) {
			assert_int_equal(with_service(e, MAD_SET, SERVICE_MASK, &s), SA_OK);
			until[i] = e->request.now_s + s.lease;
		} else {
			assert_int_equal(with_service(e, MAD_DELETE, SERVICE_MASK, &s),
			                 until[i] > e->request.now_s ? SA_OK : SA_NO_RECORDS);
			until[i] = 0;
		}
		/* now and then many run out at once */
		e->request.now_s += step % 500 ? (random >> 28) / 8 : 150;
		if (step % 20)
			continue;
		for (i = 0; i < SERVICES; i++)
			there += until[i] > e->request.now_s;
		assert_int_equal(with_service(e, MAD_GET_TABLE, 0, &s), SA_OK);
		assert_int_equal(e->response.n, there);
	}
}

/* Places of leases that have run out are free, however many have. */
CASE_WITH(a_full_directory_has_room_when_leases_run_out, setup, teardown)
{
	enum { MOST = 65536 };
	struct env *e = *state;
	struct wire_service_record s = service(e, 1, 0, 100);
	uint64_t id = 0;

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < MOST; i++) {
			s.id = ++id;
			assert_int_equal(with_service(e, MAD_SET, SERVICE_MASK, &s), SA_OK);
		}
		s.id = id + 1;
		assert_int_equal(with_service(e, MAD_SET, SERVICE_MASK, &s), SA_NO_RESOURCES);
		e->request.now_s += 100;
		s.id = id;
		assert_int_equal(with_service(e, MAD_GET, SA_SR(id), &s), SA_NO_RECORDS);
	}
}

/* A query of one record, too, if that is not among the first. */
CASE_WITH(services_in_slices_are_the_same, setup, teardown)
{
	struct env *e = *state;
	struct wire_service_record s;

	for (unsigned i = 0; i < 200; i++) {
		s = service(e, i % HOSTS, i, 100);
		assert_int_equal(with_service(e, MAD_SET, SERVICE_MASK, &s), SA_OK);
	}
	for (uint32_t budget = 1; budget < 100; budget = 3 * budget + 1) {
		struct sa_response out;
		struct sa_job *job;

		with_service(e, MAD_GET_TABLE, 0, &s);
		assert_same_in_slices(e, budget, true);
		assert_int_equal(e->response.n, 200);
		with_service(e, MAD_GET, SA_SR(id), &s);
		assert_same_in_slices(e, budget, true);
		assert_int_equal(e->response.n, 1);
		job = sa_job_new(e->sa, &e->request);
		assert_non_null(job);
		assert_false(sa_job_run(job, budget, &out));
		sa_job_free(job);
	}
}
