/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of the SA's server share: a query on its way, and how records get into
 * its answer. For sa_server.c, sa_nodes.c, sa_paths.c, sa_members.c, sa_services.c,
 * sa_informs.c and sa_guids.c.
 */
#ifndef SUBNET_SA_QUERY_H
#define SUBNET_SA_QUERY_H

#include "subnet/sa_server.h"
#include "wire/sa_records.h"

/* What is looked for, and what was found. */
struct sa_query {
	struct sa *sa;
	const struct sa_request *in;
	uint64_t mask; /* component mask */
	bool trusted;
	struct fabric_port *asker; /* NULL: nobody knows that LID */
	const struct sa_kind *kind;
	const void *wanted; /* the record of the request, decoded */
	struct sa_answer *out;
	size_t room;
	bool too_much; /* for the memory that an answer may take */
};

/* A kind of record: how long it is and what may be done with it. enum mad_status or sa_status. */
struct sa_kind {
	uint16_t attribute;
	const struct wire_layout *layout;
	void (*list)(struct sa_query *q);    /* Get and GetTable: offers all that there are */
	uint16_t (*get)(struct sa_query *q); /* likewise, if that may fail */
	uint16_t (*set)(struct sa_query *q);
	uint16_t (*del)(struct sa_query *q);
	uint16_t (*get_multi)(struct sa_query *q);
	bool any; /* to a Get the first record is as good an answer as any */
};

extern const struct sa_kind sa_path_kind, sa_multipath_kind, sa_member_kind, sa_service_kind,
        sa_inform_kind, sa_inform_record_kind;

/* Of nodes: find the row in sa_nodes.c. */
const struct sa_kind *sa_node_kind(uint16_t attribute);

/* GUIDInfoRecord: sa_guids.c. */
uint16_t sa_guid_info_set(struct sa_query *q);
uint16_t sa_guid_info_delete(struct sa_query *q);

/* Adds a record to the answer, whatever it is; or if it is one that the query asks for. */
void sa_query_add(struct sa_query *q, const void *record);
void sa_query_offer(struct sa_query *q, const void *record);

/* The port of an HCA with this LID, NULL: there is none. */
struct fabric_port *sa_port_by_lid(const struct sa *sa, uint16_t lid);

/* End ports, those of HCAs and switches' ports 0: the @i-th, from 0; by LID; by GID. Or NULL. */
struct fabric_port *sa_end(const struct sa *sa, unsigned i);
struct fabric_port *sa_end_by_lid(const struct sa *sa, uint16_t lid);
struct fabric_port *sa_end_by_gid(const struct sa *sa, const struct ib_gid *gid);

/* The HCA port with the GUID in @gid, whatever its prefix, as OpenSM looks for some. Or NULL. */
struct fabric_port *sa_port_by_guid(struct fabric *f, const struct ib_gid *gid);

bool sa_has_pkey(const struct fabric_port *p, uint16_t pkey);

/* How fast the port's link is, in Mbit/s; the encoded rate that is next to so many, or below. */
unsigned sa_port_mbps(const struct fabric_port *p);
uint8_t sa_rate_of(unsigned mbps);

/* What the SA has for them, at its end. */
void sa_services_free(struct sa *sa);
void sa_informs_free(struct sa *sa);

/* The port is out of service, and so are its subscriptions. */
void sa_informs_forget(struct sa *sa, const struct fabric_port *port);

/* What the SA itself reports: from now on, of groups, of ports after a sweep. 0 or -ENOMEM. */
int sa_reports_init(struct sa *sa);
void sa_reports_fini(struct sa *sa);
void sa_report_group(struct sa *sa, const struct sa_group *g, bool created);
void sa_reports_swept(struct sa *sa);

#endif
