/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the unit tests of the subnet administrator's responses: a fabric that the embedded subnet
 * manager has brought up, and requests of its hosts. Each test program includes it once.
 */
#ifndef SUBNET_TESTING_SA_H
#define SUBNET_TESTING_SA_H

#include "fabric/testing.h"
#include "subnet/sa.h"
#include "subnet/sa_server.h"
#include "wire/sa_records.h"

#define HOSTS 4

#define JOIN   (SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE)
#define CREATE (JOIN | SA_MCM_QKEY | SA_MCM_TCLASS | SA_MCM_PKEY | SA_MCM_FLOW_LABEL | SA_MCM_SL)

struct env {
	struct fabric *f;
	struct sm *sm;
	struct sa *sa;
	struct fabric_node *sw;
	/* the request */
	struct wire_sa_mad mad;
	struct sa_request request;
	struct sa_response response;
	uint64_t notices;
};

static UNUSED void no_wake(void *arg, unsigned ms)
{
	(void)arg;
	(void)ms;
}

static UNUSED int setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));
	const struct sm_ops ops = { .wake = no_wake };

	e->f = testing_fabric(HOSTS);
	assert_int_equal(sm_new(&e->sm, e->f, &ops), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(sa_new(&e->sa, e->f, e->sm), 0);
	e->sw = e->f->node[e->f->n_nodes - 1];
	assert_int_equal(e->sw->type, FABRIC_SWITCH);
	*state = e;
	return 0;
}

static UNUSED int teardown(void **state)
{
	struct env *e = *state;

	free(e->response.records);
	sa_free(e->sa);
	sm_free(e->sm);
	fabric_free(e->f);
	free(e);
	return 0;
}

/* ---- asking ---- */

static UNUSED uint16_t lid(const struct env *e, unsigned host)
{
	return e->f->hca_port[host]->lid;
}

static UNUSED struct ib_gid gid(const struct env *e, unsigned host)
{
	return shm_port_at(e->f->region, host)->gid[0];
}

/* A request of host 0. */
static UNUSED void prepare(struct env *e, uint8_t method, uint16_t attribute)
{
	e->mad = (struct wire_sa_mad){ .mad = { .base_version = MAD_BASE_VERSION,
		                                .mgmt_class = MAD_CLASS_SUBN_ADM,
		                                .class_version = MAD_VERSION_SUBN_ADM,
		                                .method = method,
		                                .attribute_id = attribute } };
	e->request = (struct sa_request){ .mad = &e->mad,
		                          .data = e->mad.data,
		                          .bytes = SA_DATA_BYTES,
		                          .slid = lid(e, 0),
		                          .qpn = 1,
		                          .now_s = e->request.now_s };
}

static UNUSED uint16_t serve(struct env *e)
{
	free(e->response.records);
	sa_serve(e->sa, &e->request, &e->response);
	return e->response.status;
}

/* Prepared already, but for the record. */
#define ASK(e, kind, mask, ...)                              \
	({                                                   \
		struct wire_##kind asked = { __VA_ARGS__ };  \
		(e)->mad.component_mask = (mask);            \
		wire_##kind##_encode(&asked, (e)->mad.data); \
		serve(e);                                    \
	})

#define GET(e, attribute, kind, mask, ...)       \
	({                                       \
		prepare(e, MAD_GET, attribute);  \
		ASK(e, kind, mask, __VA_ARGS__); \
	})

/* How many records there are. */
#define TABLE(e, attribute, kind, mask, ...)                                \
	({                                                                  \
		prepare(e, MAD_GET_TABLE, attribute);                       \
		assert_int_equal(ASK(e, kind, mask, __VA_ARGS__), SA_OK);   \
		assert_int_equal((e)->response.method, MAD_GET_TABLE_RESP); \
		(e)->response.n;                                            \
	})

#define RECORD(e, kind, i)                                                                     \
	({                                                                                     \
		struct wire_##kind got;                                                        \
		assert_true((i) < (e)->response.n);                                            \
		wire_##kind##_decode((e)->response.records + (i) * (e)->response.record_bytes, \
		                     &got);                                                    \
		got;                                                                           \
	})

/* The prepared request in slices of @budget: as many as it takes, more than one if @sliced. */
static UNUSED void assert_same_in_slices(struct env *e, uint32_t budget, bool sliced)
{
	struct sa_response out = { 0 };
	struct sa_job *job = sa_job_new(e->sa, &e->request);
	unsigned slices = 1;

	assert_non_null(job);
	assert_int_equal(serve(e), 0);
	while (!sa_job_run(job, budget, &out))
		slices++;
	if (sliced)
		assert_true(slices > out.n / (budget + 1));
	assert_int_equal(out.status, e->response.status);
	assert_int_equal(out.method, e->response.method);
	assert_int_equal(out.attribute, e->response.attribute);
	assert_int_equal(out.record_bytes, e->response.record_bytes);
	assert_int_equal(out.n, e->response.n);
	assert_int_equal(out.bytes, e->response.bytes);
	if (out.bytes)
		assert_memory_equal(out.records, e->response.records, out.bytes);
	free(out.records);
	sa_job_free(job);
}

#endif
