/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion counters: version 1.18 of the interface. Debian 12 and 13 have no header for them, so
 * what they share with programs is declared here, under names of its own: a newer header must not
 * collide with them. Safe from any thread.
 */
#include <string.h>

#include "api/verbs/verbs.h"
#include "base/util.h"
#include "hca/queue/comp_counter.h"

/* struct ibv_comp_cntr_caps */
struct verbs_comp_counter_caps {
	uint64_t max_value;
	uint32_t max_counters;
	uint32_t operations; /* enum ibv_qp_attach_comp_cntr_op */
};

/* struct ibv_comp_cntr_init_attr */
struct verbs_comp_counter_attr {
	uint32_t comp_mask;
	uint32_t type; /* enum ibv_comp_cntr_type */
	uint32_t flags;
};

enum { COUNTS_REQUESTS, COUNTS_BYTES };

/* struct ibv_qp_attach_comp_cntr_attr */
struct verbs_attach_attr {
	uint32_t comp_mask;
	uint32_t operations;
};

#define AS(name) __asm__(#name)

int verbs_query_comp_counter_caps(struct ibv_context *context, void *caps, size_t size)
        AS(_ibv_query_comp_cntr_caps);
struct hca_comp_counter *verbs_create_comp_counter(struct ibv_context *context,
                                                   const struct verbs_comp_counter_attr *attr)
        AS(ibv_create_comp_cntr);
int verbs_destroy_comp_counter(struct hca_comp_counter *c) AS(ibv_destroy_comp_cntr);
int verbs_set_comp_counter(struct hca_comp_counter *c, uint64_t value) AS(ibv_set_comp_cntr);
int verbs_set_error_counter(struct hca_comp_counter *c, uint64_t value) AS(ibv_set_err_comp_cntr);
int verbs_add_comp_counter(struct hca_comp_counter *c, uint64_t amount) AS(ibv_inc_comp_cntr);
int verbs_add_error_counter(struct hca_comp_counter *c, uint64_t amount) AS(ibv_inc_err_comp_cntr);
int verbs_read_comp_counter(struct hca_comp_counter *c, uint64_t *value) AS(ibv_read_comp_cntr);
int verbs_read_error_counter(struct hca_comp_counter *c, uint64_t *value)
        AS(ibv_read_err_comp_cntr);
int verbs_attach_comp_counter(struct ibv_qp *qp, struct hca_comp_counter *c,
                              const struct verbs_attach_attr *attr) AS(ibv_qp_attach_comp_cntr);

/* @size: of the structure as the program knows it. ibv_query_comp_cntr_caps(3) */
int verbs_query_comp_counter_caps(struct ibv_context *context, void *caps, size_t size)
{
	const struct verbs_comp_counter_caps all = {
		.max_value = UINT64_MAX,
		.max_counters = HCA_MAX_COMP_COUNTERS,
		.operations = HCA_COMP_COUNTER_OPERATIONS,
	};

	(void)context;
	memset(caps, 0, size);
	memcpy(caps, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

/** Of requests or of bytes; EOPNOTSUPP: anything else. ibv_create_comp_cntr(3) */
struct hca_comp_counter *verbs_create_comp_counter(struct ibv_context *context,
                                                   const struct verbs_comp_counter_attr *attr)
{
	struct hca_comp_counter *c;
	int ret;

	if (attr->comp_mask || attr->flags || attr->type > COUNTS_BYTES)
		return verbs_null(-EOPNOTSUPP);
	ret = hca_comp_counter_create(hca_context(context), attr->type == COUNTS_BYTES, &c);
	return ret ? verbs_null(ret) : c;
}

/** EBUSY: a queue pair has it. ibv_destroy_comp_cntr(3), as those below */
int verbs_destroy_comp_counter(struct hca_comp_counter *c)
{
	return verbs_result(hca_comp_counter_destroy(c));
}

int verbs_set_comp_counter(struct hca_comp_counter *c, uint64_t value)
{
	hca_comp_counter_set(c, HCA_COMP_DONE, value);
	return 0;
}

int verbs_set_error_counter(struct hca_comp_counter *c, uint64_t value)
{
	hca_comp_counter_set(c, HCA_COMP_FAILED, value);
	return 0;
}

int verbs_add_comp_counter(struct hca_comp_counter *c, uint64_t amount)
{
	hca_comp_counter_add(c, HCA_COMP_DONE, amount);
	return 0;
}

int verbs_add_error_counter(struct hca_comp_counter *c, uint64_t amount)
{
	hca_comp_counter_add(c, HCA_COMP_FAILED, amount);
	return 0;
}

int verbs_read_comp_counter(struct hca_comp_counter *c, uint64_t *value)
{
	*value = hca_comp_counter_read(c, HCA_COMP_DONE);
	return 0;
}

int verbs_read_error_counter(struct hca_comp_counter *c, uint64_t *value)
{
	*value = hca_comp_counter_read(c, HCA_COMP_FAILED);
	return 0;
}

/** EINVAL: the queue pair is not in RESET or INIT; EBUSY: another counter counts one of these
 * operations; EOPNOTSUPP: the queue pair has none such. ibv_qp_attach_comp_cntr(3) */
int verbs_attach_comp_counter(struct ibv_qp *qp, struct hca_comp_counter *c,
                              const struct verbs_attach_attr *attr)
{
	if (attr->comp_mask)
		return verbs_result(-EOPNOTSUPP);
	return verbs_result(hca_comp_counter_attach(c, hca_qp(qp), attr->operations));
}
