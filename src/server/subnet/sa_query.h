/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the files of the SA: a query, how they add records to its response, how they find end
 * ports, and what each of them does for the others. sa_server.c runs the queries.
 */
#ifndef SUBNET_SA_QUERY_H
#define SUBNET_SA_QUERY_H

#include "subnet/sa_request.h"
#include "subnet/sa_state.h"
#include "wire/sa_records.h"

/* A query and its result. */
struct sa_query {
	struct sa *sa;
	const struct sa_request *in;
	uint64_t mask; /* component mask */
	bool trusted;
	struct fabric_port *asker; /* the port that sent it; NULL: no port has that LID */
	const struct sa_kind *kind;
	const void *wanted; /* the record of the request, decoded */
	struct sa_response *out;
	uint32_t room;
	bool too_much; /* for the memory that a response may use */
	/* A long query is served in slices: where it goes on, and what is left of this slice. */
	struct sa_query_at {
		uint32_t outer, inner, pair, paths, checked;
	} at;
	uint32_t budget;
	bool stopped; /* sa_query_stops() has said so */
};

/*
 * A function that lists records, and keeps its position in q->at, asks this before each step. True:
 * it returns, as the slice is used up, or as there are records enough.
 */
bool sa_query_stops(struct sa_query *q);

/* Whether a response to Get, of one record, has all that it needs to be made, or refused. */
bool sa_query_has_enough(const struct sa_query *q);

/* Spends @units of the slice: a tenth of a microsecond each. */
static inline void sa_query_spend(struct sa_query *q, uint32_t units)
{
	q->budget -= units < q->budget ? units : q->budget;
}

/* A kind of record: its layout and its methods, which return enum mad_status or sa_status. */
struct sa_kind {
	uint16_t attribute;
	const struct wire_layout *layout;
	void (*list)(struct sa_query *q);    /* Get and GetTable: offers all records */
	uint16_t (*get)(struct sa_query *q); /* likewise, if that may fail */
	uint16_t (*set)(struct sa_query *q);
	uint16_t (*del)(struct sa_query *q);
	uint16_t (*get_multi)(struct sa_query *q);
	bool any; /* the response to a Get is the first record, if there are several */
};

extern const struct sa_kind sa_path_kind, sa_multipath_kind, sa_member_kind, sa_service_kind,
        sa_inform_kind, sa_inform_record_kind;

/* The kind of a record about nodes (sa_nodes.c), or NULL. */
const struct sa_kind *sa_node_kind(uint16_t attribute);

/* GUIDInfoRecord: sa_guids.c. */
uint16_t sa_guid_info_set(struct sa_query *q);
uint16_t sa_guid_info_delete(struct sa_query *q);

/* Adds a record to the response; sa_query_offer() only if it matches the query. */
void sa_query_add(struct sa_query *q, const void *record);
void sa_query_offer(struct sa_query *q, const void *record);

/* The HCA port with this LID; NULL: there is none. */
struct fabric_port *sa_port_by_lid(const struct sa *sa, uint16_t lid);

/*
 * End ports, which are HCA ports and port 0 of switches: number @i, from 0; by LID; by GID. Or
 * NULL.
 */
struct fabric_port *sa_end(const struct sa *sa, unsigned i);
struct fabric_port *sa_end_by_lid(const struct sa *sa, uint16_t lid);
struct fabric_port *sa_end_by_gid(const struct sa *sa, const struct ib_gid *gid);

/*
 * The HCA port with the GUID in @gid, with any prefix, as OpenSM finds it for some records. Or
 * NULL.
 */
struct fabric_port *sa_port_by_guid(struct fabric *f, const struct ib_gid *gid);

/* Whether @have satisfies selector and value. True if @mask lacks one of the bits in @both. */
bool sa_selects(uint64_t mask, uint64_t both, uint8_t selector, unsigned want, unsigned have);

bool sa_has_pkey(const struct fabric_port *p, uint16_t pkey);

/* Whether a partition has both as members. */
bool sa_share_pkey(const struct fabric_port *a, const struct fabric_port *b);

/* The services: 0 or -ENOMEM. */
int sa_services_init(struct sa *sa);
void sa_services_fini(struct sa *sa);

/* The subscriptions: 0 or -ENOMEM. Frees them, with the notices that wait. */
int sa_informs_init(struct sa *sa);
void sa_informs_fini(struct sa *sa);

/* Removes the subscriptions of a port that is out of service. */
void sa_informs_forget(struct sa *sa, const struct fabric_port *port);

/*
 * Notices of the SA itself. sa_reports_init() returns 0 or -ENOMEM. sa_report_group() reports a
 * group; sa_reports_swept() reports the ports that came or went since the last sweep.
 */
int sa_reports_init(struct sa *sa);
void sa_reports_fini(struct sa *sa);
void sa_report_group(struct sa *sa, const struct sa_group *g, bool created);
void sa_reports_swept(struct sa *sa);

#endif
