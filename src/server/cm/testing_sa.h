/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A subnet administrator for the unit tests of this folder: it knows groups, one path between any
 * two ports, and what it can do. It may lose requests, say that it is busy, refuse, or keep its
 * responses until the test releases them.
 */
#ifndef CM_TESTING_SA_H
#define CM_TESTING_SA_H

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "fabric/agents/mads.h"
#include "wire/mgid.h"
#include "wire/sa_records.h"

#define TESTING_SA_LID     1
#define TESTING_SA_MEMBERS 16
#define TESTING_SA_MLID    0xC001
#define TESTING_SA_MTU     IBV_MTU_2048
#define TESTING_SA_QKEY    0x0B1B

struct testing_group {
	LIST_ENTRY(testing_group) entry;
	struct wire_mcmember rec;
	unsigned n_members;
	struct {
		struct ib_gid port;
		uint8_t join_state;
	} member[TESTING_SA_MEMBERS];
};

struct testing_sa_kept {
	STAILQ_ENTRY(testing_sa_kept) entry;
	struct fabric_port *port;
	struct fabric_mad response;
};

struct testing_sa {
	LIST_HEAD(, testing_group) groups;   /* but the broadcast group */
	STAILQ_HEAD(, testing_sa_kept) kept; /* responses */
	struct fabric *f;
	bool send_only, has_broadcast; /* whether there is such a thing */
	bool keeps;                    /* its responses */
	bool chooses;                  /* MLIDs, whatever is asked for */
	unsigned loses;                /* so many of the next requests */
	uint16_t says;                 /* this status to all requests; 0: what is right */
	uint16_t next_mlid;
	unsigned n_get, n_set, n_delete; /* requests that it has seen */
	struct wire_sa_mad last;         /* of these */
};

static inline void testing_sa_init(struct testing_sa *sa, struct fabric *f)
{
	*sa = (struct testing_sa){ .f = f, .send_only = true, .has_broadcast = true };
	sa->next_mlid = TESTING_SA_MLID;
	LIST_INIT(&sa->groups);
	STAILQ_INIT(&sa->kept);
}

static inline void testing_sa_fini(struct testing_sa *sa)
{
	struct testing_sa_kept *k;
	struct testing_group *g;

	while ((g = LIST_FIRST(&sa->groups))) {
		LIST_REMOVE(g, entry);
		free(g);
	}
	while ((k = STAILQ_FIRST(&sa->kept))) {
		STAILQ_REMOVE_HEAD(&sa->kept, entry);
		free(k);
	}
}

/* ---- groups ---- */

static inline struct testing_group *testing_sa_group(struct testing_sa *sa,
                                                     const struct ib_gid *mgid)
{
	struct testing_group *g;

	LIST_FOREACH(g, &sa->groups, entry)
	if (ib_gid_equal(&g->rec.mgid, mgid))
		return g;
	return NULL;
}

/* The port's index among the members; n_members: it is none. */
static inline unsigned testing_sa_member(const struct testing_group *g, const struct ib_gid *port)
{
	unsigned i = 0;

	while (i < g->n_members && !ib_gid_equal(&g->member[i].port, port))
		i++;
	return i;
}

/* With the MLID that it asks for, if any. */
static inline struct testing_group *testing_sa_create(struct testing_sa *sa,
                                                      const struct wire_mcmember *r)
{
	struct testing_group *g = calloc(1, sizeof(*g));

	g->rec = *r;
	g->rec.mlid = r->mlid && !sa->chooses ? r->mlid : sa->next_mlid++;
	g->rec.mtu = TESTING_SA_MTU;
	g->rec.rate = IBV_RATE_100_GBPS;
	if (!r->mgid.raw[0])
		g->rec.mgid = (struct ib_gid){
			{ 0xFF, 0x12, 0xA0,
			  0x1B, [14] = g->rec.mlid >> 8, [15] = (uint8_t)g->rec.mlid }
		};
	LIST_INSERT_HEAD(&sa->groups, g, entry);
	return g;
}

static inline uint16_t testing_sa_set(struct testing_sa *sa, struct wire_mcmember *r)
{
	struct testing_group *g = testing_sa_group(sa, &r->mgid);
	struct ib_gid port = r->port_gid;
	unsigned i;

	if (r->mgid.raw[0] && !ib_gid_is_mcast(&r->mgid))
		return SA_REQ_INVALID;
	if (!g)
		g = testing_sa_create(sa, r);
	if (g->rec.qkey != r->qkey)
		return SA_REQ_INVALID;
	i = testing_sa_member(g, &port);
	if (i == TESTING_SA_MEMBERS)
		return SA_NO_RESOURCES;
	if (i == g->n_members) {
		g->member[i].join_state = 0;
		g->n_members++;
	}
	g->member[i].port = port;
	g->member[i].join_state |= r->join_state;
	*r = g->rec;
	r->port_gid = port;
	r->join_state = g->member[i].join_state;
	return SA_OK;
}

static inline uint16_t testing_sa_delete(struct testing_sa *sa, const struct wire_mcmember *r)
{
	struct testing_group *g = testing_sa_group(sa, &r->mgid);
	unsigned i = g ? testing_sa_member(g, &r->port_gid) : 0;

	if (!g || i == g->n_members || (r->join_state & ~g->member[i].join_state))
		return SA_REQ_INVALID;
	g->member[i].join_state &= (uint8_t)~r->join_state;
	if (!g->member[i].join_state)
		g->member[i] = g->member[--g->n_members];
	if (!g->n_members) {
		LIST_REMOVE(g, entry);
		free(g);
	}
	return SA_OK;
}

static inline uint16_t testing_sa_get_group(const struct testing_sa *sa, struct wire_mcmember *r)
{
	struct ib_gid broadcast;

	wire_mgid_broadcast(&broadcast, IB_PKEY_DEFAULT);
	if (!sa->has_broadcast || !ib_gid_equal(&broadcast, &r->mgid))
		return SA_NO_RECORDS;
	*r = (struct wire_mcmember){ .mgid = broadcast,
		                     .qkey = TESTING_SA_QKEY,
		                     .mlid = IB_LID_MCAST_FIRST,
		                     .mtu = TESTING_SA_MTU,
		                     .rate = IBV_RATE_100_GBPS,
		                     .pkey = IB_PKEY_DEFAULT };
	return SA_OK;
}

/* ---- requests ---- */

static inline uint16_t testing_sa_members(struct testing_sa *sa, struct wire_sa_mad *mad)
{
	struct wire_mcmember r;
	uint16_t status;

	wire_mcmember_decode(mad->data, &r);
	if (!(mad->component_mask & SA_MCM_MLID))
		r.mlid = 0;
	if (mad->mad.method == MAD_SET)
		status = testing_sa_set(sa, &r);
	else if (mad->mad.method == MAD_DELETE)
		status = testing_sa_delete(sa, &r);
	else
		status = testing_sa_get_group(sa, &r);
	wire_mcmember_encode(&r, mad->data);
	return status;
}

static inline uint16_t testing_sa_path(const struct testing_sa *sa, struct wire_sa_mad *mad)
{
	const struct fabric_port *from, *to;
	struct wire_path_record r;

	wire_path_record_decode(mad->data, &r);
	from = fabric_port_by_gid(sa->f, &r.sgid);
	to = fabric_port_by_gid(sa->f, &r.dgid);
	if (!from || !to)
		return SA_REQ_INVALID_GID;
	if (to->state != IB_PORT_ACTIVE)
		return SA_NO_RECORDS;
	r.slid = from->lid;
	r.dlid = to->lid;
	r.mtu = TESTING_SA_MTU;
	r.rate = IBV_RATE_100_GBPS;
	wire_path_record_encode(&r, mad->data);
	return SA_OK;
}

static inline uint16_t testing_sa_info(const struct testing_sa *sa, struct wire_sa_mad *mad)
{
	const struct wire_class_port_info info = {
		.capability_mask2 = sa->send_only ? SA_CAP2_SEND_ONLY_FULL : 0
	};

	wire_class_port_info_encode(&info, mad->data);
	return SA_OK;
}

static inline uint16_t testing_sa_serve(struct testing_sa *sa, struct wire_sa_mad *mad)
{
	if (sa->says)
		return sa->says;
	switch (mad->mad.attribute_id) {
	case SA_ATTR_MCMEMBER:
		return testing_sa_members(sa, mad);
	case SA_ATTR_PATH:
		return testing_sa_path(sa, mad);
	case SA_ATTR_CLASS_PORT_INFO:
		return testing_sa_info(sa, mad);
	default:
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	}
}

static inline void testing_sa_count(struct testing_sa *sa, const struct wire_sa_mad *mad)
{
	sa->n_get += mad->mad.method == MAD_GET;
	sa->n_set += mad->mad.method == MAD_SET;
	sa->n_delete += mad->mad.method == MAD_DELETE;
	sa->last = *mad;
}

/* @mad has come from @port. Whether there is an response now. */
static inline bool testing_sa_input(struct testing_sa *sa, struct fabric_port *port,
                                    const struct fabric_mad *mad, struct fabric_mad *response)
{
	struct testing_sa_kept *k;
	struct wire_sa_mad sa_mad;

	if (sa->loses) {
		sa->loses--;
		return false;
	}
	wire_sa_mad_decode(mad->data, &sa_mad);
	testing_sa_count(sa, &sa_mad);
	sa_mad.mad.status = testing_sa_serve(sa, &sa_mad);
	sa_mad.mad.method = wire_mad_response_method(sa_mad.mad.method);
	*response = (struct fabric_mad){ .slid = mad->dlid,
		                         .dlid = mad->slid,
		                         .src_qpn = IB_QPN_GSI,
		                         .dest_qpn = IB_QPN_GSI,
		                         .qkey = IB_QKEY_GSI };
	wire_sa_mad_encode(&sa_mad, response->data);
	if (!sa->keeps)
		return true;
	k = malloc(sizeof(*k));
	*k = (struct testing_sa_kept){ .port = port, .response = *response };
	STAILQ_INSERT_TAIL(&sa->kept, k, entry);
	return false;
}

#endif
