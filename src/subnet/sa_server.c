/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SA's responses: see sa_server.h. The files of sa_query.h know the records; this one has what
 * all have in common: versions, methods, keys, and the number of records.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/util.h"
#include "subnet/sa_query.h"

#define MAX_BYTES (256u << 20)

/* ---- collecting ---- */

static bool make_room(struct sa_query *q, size_t bytes)
{
	size_t need = q->out->bytes + bytes;

	if (need > MAX_BYTES || base_array_reserve(&q->out->records, &q->room, need))
		q->too_much = true;
	return !q->too_much;
}

void sa_query_add(struct sa_query *q, const void *record)
{
	size_t bytes = base_align_up(q->kind->layout->bytes, 8);

	if (q->too_much || !make_room(q, bytes))
		return;
	sa_query_spend(q, 3);
	memset(q->out->records + q->out->bytes, 0, bytes);
	wire_encode(q->kind->layout, record, q->out->records + q->out->bytes);
	q->out->record_bytes = (uint16_t)bytes;
	q->out->bytes += bytes;
	q->out->n++;
}

void sa_query_offer(struct sa_query *q, const void *record)
{
	sa_query_spend(q, 1);
	if (wire_match(q->kind->layout, q->mask, q->wanted, record))
		sa_query_add(q, record);
}

/* Whether a response to Get, of one record, has all that it needs to be made, or refused. */
static bool has_enough(const struct sa_query *q)
{
	return q->in->mad->mad.method == MAD_GET && q->out->n >= (q->kind->any ? 1 : 2);
}

bool sa_query_stops(struct sa_query *q)
{
	q->stopped = q->too_much || !q->budget || has_enough(q);
	sa_query_spend(q, 1);
	return q->stopped;
}

/* ---- what all of them need ---- */

struct fabric_port *sa_end(const struct sa *sa, unsigned i)
{
	const struct fabric *f = sa->f;
	struct fabric_node *sw;

	if (i < f->n_ib_ports)
		return f->hca_port[i];
	sw = sm_switch(sa->sm, i - f->n_ib_ports);
	return sw ? &sw->port[0] : NULL;
}

/* Fills the cache of end ports by LID. */
static void note_lids(const struct sa *sa)
{
	struct fabric_port *p;

	for (unsigned i = 0; (p = sa_end(sa, i)); i++)
		for (unsigned lid = p->lid; lid < p->lid + (1u << p->lmc); lid++)
			if (lid < IB_LID_MCAST_FIRST)
				sa->end_of_lid[lid] = (uint16_t)i;
}

/* LIDs change rarely: the cache is tried first, and filled again if it is wrong. */
struct fabric_port *sa_end_by_lid(const struct sa *sa, uint16_t lid)
{
	for (int noted = 0; lid && lid < IB_LID_MCAST_FIRST && noted < 2; noted++) {
		struct fabric_port *p = sa_end(sa, sa->end_of_lid[lid]);

		if (p && fabric_port_has_lid(p, lid))
			return p;
		if (!noted)
			note_lids(sa);
	}
	return NULL;
}

struct fabric_port *sa_port_by_lid(const struct sa *sa, uint16_t lid)
{
	struct fabric_port *p = sa_end_by_lid(sa, lid);

	return p && p->node->type == FABRIC_HCA ? p : NULL;
}

struct fabric_port *sa_end_by_gid(const struct sa *sa, const struct ib_gid *gid)
{
	struct fabric_port *p = fabric_port_by_gid(sa->f, gid);
	struct ib_gid own;

	for (unsigned i = sa->f->n_ib_ports; !p; i++) {
		struct fabric_port *port = sa_end(sa, i);

		if (!port)
			return NULL;
		fabric_gid_make(sa->f, port->guid, &own);
		if (ib_gid_equal(&own, gid))
			p = port;
	}
	return p;
}

struct fabric_port *sa_port_by_guid(struct fabric *f, const struct ib_gid *gid)
{
	struct ib_gid g;

	fabric_gid_make(f, 0, &g);
	memcpy(g.raw + 8, gid->raw + 8, 8);
	return fabric_port_by_gid(f, &g);
}

bool sa_has_pkey(const struct fabric_port *p, uint16_t pkey)
{
	for (unsigned i = 0; i < SHM_PKEYS; i++)
		if (p->pkey[i] && !((p->pkey[i] ^ pkey) & IB_PKEY_BASE_MASK))
			return true;
	return false;
}

/* ---- requests ---- */

static uint16_t class_port_info(struct sa_query *q)
{
	struct wire_class_port_info c = {
		.base_version = MAD_BASE_VERSION,
		.class_version = MAD_VERSION_SUBN_ADM,
		.capability_mask = SA_CAP_OPTIONAL_RECORDS | SA_CAP_UD_MULTICAST |
		                   SA_CAP_MULTIPATH | SA_CAP_PORT_INFO_CAPMASK,
		.capability_mask2 = SA_CAP2_ALIAS_GUIDS,
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
	if (q->stopped && !q->too_much && !q->budget && !has_enough(q))
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
