/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SA's responses: see sa_server.h. The kinds of sa_query.h know the records; this file has what
 * all have in common: versions, methods, keys, and the number of records.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "subnet/sa_query.h"
#include "subnet/sa_server.h"

/* ---- requests ---- */

static uint16_t class_port_info(struct sa_query *q)
{
	struct wire_class_port_info c = {
		.base_version = MAD_BASE_VERSION,
		.class_version = MAD_VERSION_SUBN_ADM,
		.capability_mask = SA_CAP_OPTIONAL_RECORDS | SA_CAP_UD_MULTICAST |
		                   SA_CAP_MULTIPATH | SA_CAP_PORT_INFO_CAPMASK,
		.capability_mask2 = SA_CAP2_MULTICAST_FDB_TOP | SA_CAP2_ALIAS_GUIDS |
		                    SA_CAP2_FULL_PORT_INFO | SA_CAP2_EXTENDED_SPEEDS |
		                    SA_CAP2_PORT_INFO_CAPMASK2 | SA_CAP2_LINK_WIDTH_2X |
		                    SA_CAP2_LINK_SPEED_HDR,
		.resp_time_value = 16,
	};

	if (q->sa->f->settings.sa_send_only)
		c.capability_mask2 |= SA_CAP2_SEND_ONLY_FULL;
	if (q->in->mad->mad.method != MAD_GET)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	sa_query_add(q, &c);
	return MAD_STATUS_OK;
}

static const struct sa_kind class_port_info_kind = {
	.attribute = SA_ATTR_CLASS_PORT_INFO,
	.layout = &wire_class_port_info_layout,
	.get = class_port_info,
};

static const struct sa_kind *find_kind(uint16_t attribute)
{
	static const struct sa_kind *const kinds[] = {
		&class_port_info_kind, &sa_path_kind,   &sa_multipath_kind,     &sa_member_kind,
		&sa_service_kind,      &sa_inform_kind, &sa_inform_record_kind,
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i]->attribute == attribute)
			return kinds[i];
	return sa_node_kind(attribute);
}

static uint16_t call(struct sa_query *q, uint16_t (*function)(struct sa_query *q))
{
	return function ? function(q) : MAD_STATUS_BAD_METHOD_ATTRIBUTE;
}

static uint16_t dispatch(struct sa_query *q)
{
	switch (q->in->mad->mad.method) {
	case MAD_SET:
		return call(q, q->kind->set);
	case MAD_DELETE:
		return call(q, q->kind->del);
	case MAD_GET_MULTI:
		return call(q, q->kind->get_multi);
	default:
		if (!q->kind->list)
			return call(q, q->kind->get);
		q->kind->list(q);
		return MAD_STATUS_OK;
	}
}

/* Decodes the record of the request and serves it. */
static uint16_t query(struct sa_query *q)
{
	const struct wire_layout *layout = q->kind->layout;
	union { /* room for the largest record */
		struct wire_node_record node;
		struct wire_port_info_record port;
		struct wire_multicast_ft_record mft;
		struct wire_pkey_table_record pkeys;
		struct wire_path_record path;
		struct wire_service_record service;
		struct wire_guid_info_record guids;
		struct wire_vl_arb_record vl_arb;
		struct wire_class_port_info info;
	} wanted;
	uint16_t status;

	if (layout->host_bytes > sizeof(wanted))
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (layout->bytes > q->in->bytes)
		return SA_REQ_INVALID;
	wire_decode(layout, q->in->data, &wanted);
	q->wanted = &wanted;
	status = dispatch(q);
	q->wanted = NULL;
	return status;
}

/* The status of a Get: its response must be exactly one record. */
static uint16_t settle(const struct sa_query *q, uint16_t status)
{
	if (status)
		return status;
	if (q->too_much)
		return SA_NO_RESOURCES;
	if (q->in->mad->mad.method != MAD_GET)
		return MAD_STATUS_OK;
	if (!q->out->n)
		return SA_NO_RECORDS;
	return q->out->n > 1 && !q->kind->any ? SA_TOO_MANY_RECORDS : MAD_STATUS_OK;
}

static uint16_t serve(struct sa_query *q)
{
	const struct wire_mad *h = &q->in->mad->mad;

	if (h->base_version != MAD_BASE_VERSION || h->class_version != MAD_VERSION_SUBN_ADM)
		return MAD_STATUS_BAD_VERSION;
	if (h->method != MAD_GET && h->method != MAD_SET && h->method != MAD_GET_TABLE &&
	    h->method != MAD_DELETE && h->method != MAD_GET_MULTI)
		return MAD_STATUS_BAD_METHOD;
	q->kind = find_kind(h->attribute_id);
	if (!q->kind)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	return settle(q, query(q));
}

/* Removes the records that a response with an error, or to a Get, must not have. */
static void cut(struct sa_response *out)
{
	unsigned most = out->status ? 0 : 1;

	if (out->status || out->method == MAD_GET_RESP)
		out->n = out->n < most ? out->n : most;
	out->bytes = out->n * (size_t)out->record_bytes;
	if (!out->n) {
		free(out->records);
		out->records = NULL;
	}
}

/* ---- jobs ---- */

struct sa_job {
	struct sa_query query;
	struct sa_request request;
	struct sa_response response;
	struct wire_sa_mad mad;
	uint8_t data[];
};

struct sa_job *sa_job_new(struct sa *sa, const struct sa_request *in)
{
	struct sa_job *job = calloc(1, sizeof(*job) + in->bytes);

	if (!job)
		return NULL;
	job->mad = *in->mad;
	memcpy(job->data, in->data, in->bytes);
	job->request = *in;
	job->request.mad = &job->mad;
	job->request.data = job->data;
	job->query = (struct sa_query){ .sa = sa,
		                        .in = &job->request,
		                        .mask = in->mad->component_mask,
		                        .trusted = in->mad->sm_key == SA_KEY,
		                        .asker = sa_port_by_lid(sa, in->slid),
		                        .out = &job->response };
	return job;
}

void sa_job_free(struct sa_job *job)
{
	free(job->response.records);
	free(job);
}

/* A slice. Whether it was the last. */
static bool run(struct sa_query *q, uint32_t budget)
{
	struct sa_response *out = q->out;

	if (q->in->mad->sm_key && !q->trusted)
		return true; /* C15-0.1.5: dropped */
	out->method = wire_mad_response_method(q->in->mad->mad.method);
	if (!out->method)
		return true;
	q->budget = budget;
	q->stopped = false;
	out->attribute = q->in->mad->mad.attribute_id;
	out->status = serve(q);
	if (q->stopped && !q->too_much && !q->budget && !sa_query_has_enough(q))
		return false;
	if (q->kind && !out->n)
		out->record_bytes = (uint16_t)base_align_up(q->kind->layout->bytes, 8);
	cut(out);
	return true;
}

bool sa_job_run(struct sa_job *job, uint32_t budget, struct sa_response *out)
{
	if (!run(&job->query, budget))
		return false;
	*out = job->response;
	job->response.records = NULL;
	return true;
}

size_t sa_job_bytes(const struct sa_job *job)
{
	return job->response.bytes;
}

void sa_job_stop(struct sa_job *job)
{
	job->query.too_much = true;
}

void sa_serve(struct sa *sa, const struct sa_request *in, struct sa_response *out)
{
	struct sa_query q = { .sa = sa,
		              .in = in,
		              .mask = in->mad->component_mask,
		              .trusted = in->mad->sm_key == SA_KEY,
		              .asker = sa_port_by_lid(sa, in->slid),
		              .out = out };

	memset(out, 0, sizeof(*out));
	while (!run(&q, UINT32_MAX))
		;
}
