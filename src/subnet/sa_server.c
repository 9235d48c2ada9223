/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SA's answers: see sa_server.h. One row a kind of record says how long it is, how
 * it is compared, and which function lists all there are; a query is that list, held
 * against the component mask. MCMemberRecords and paths have rules of their own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "subnet/sa_server.h"
#include "wire/sa_records.h"

#define LIFE           18 /* packet life time of all paths: about a second */
#define RATE           IBV_RATE_100_GBPS
#define FIRST_ROOM     4096
#define MAX_BYTES      (256u << 20)
#define ALL_OF_A_TABLE 0xFFFF

/* A query on its way: what is looked for, and what was found. */
struct query {
	struct sa *sa;
	const struct wire_sa_mad *in;
	const struct kind *kind;
	const void *wanted; /* the record of the request, decoded */
	struct sa_answer *out;
	size_t room;
	int error;
};

struct kind {
	uint16_t attribute;
	const struct wire_layout *layout;
	void (*list)(struct query *q);
};

/* ---- collecting ---- */

static bool make_room(struct query *q, size_t bytes)
{
	size_t need = q->out->bytes + bytes, room = q->room ? q->room : FIRST_ROOM;
	uint8_t *p;

	if (need <= q->room)
		return true;
	while (room < need)
		room *= 2;
	p = room <= MAX_BYTES ? realloc(q->out->records, room) : NULL;
	if (!p) {
		q->error = -ENOMEM;
		return false;
	}
	q->out->records = p;
	q->room = room;
	return true;
}

/* Adds a record to the answer, whatever it is. */
static void add(struct query *q, const void *record)
{
	size_t bytes = base_align_up(q->kind->layout->bytes, 8);

	if (q->error || !make_room(q, bytes))
		return;
	memset(q->out->records + q->out->bytes, 0, bytes);
	wire_encode(q->kind->layout, record, q->out->records + q->out->bytes);
	q->out->bytes += bytes;
	q->out->n++;
}

/* Adds a record if it is one that the query asks for. */
static void offer(struct query *q, const void *record)
{
	if (wire_match(q->kind->layout, q->in->component_mask, q->wanted, record))
		add(q, record);
}

/* ---- what there is ---- */

static bool is_switch(const struct fabric_node *node)
{
	return node->type == FABRIC_SWITCH;
}

/* The LID under which a port's records stand: a switch's ports have that of port 0. */
static uint16_t lid_of(const struct fabric_port *p)
{
	return is_switch(p->node) ? p->node->port[0].lid : p->lid;
}

/* Calls @visit for each end port: HCA ports and switches' port 0. */
static void each_end_port(struct query *q, void (*visit)(struct query *q, struct fabric_port *p))
{
	struct fabric *f = q->sa->f;

	for (unsigned i = 0; i < f->n_nodes; i++) {
		struct fabric_node *node = f->node[i];

		if (is_switch(node)) {
			visit(q, &node->port[0]);
			continue;
		}
		for (unsigned k = 1; k <= node->n_ports; k++)
			if (node->port[k].lid)
				visit(q, &node->port[k]);
	}
}

/* Calls @visit for each port of each node, a switch's port 0 too. */
static void each_port(struct query *q, void (*visit)(struct query *q, struct fabric_port *p))
{
	struct fabric *f = q->sa->f;

	for (unsigned i = 0; i < f->n_nodes; i++)
		for (unsigned k = is_switch(f->node[i]) ? 0 : 1; k <= f->node[i]->n_ports; k++)
			if (lid_of(&f->node[i]->port[k]))
				visit(q, &f->node[i]->port[k]);
}

/* The attribute as the node's own agent tells it. Its 64 bytes; false: it has none such. */
static bool attribute_of(struct query *q, struct fabric_port *p, uint16_t id, uint32_t modifier,
                         uint8_t data[SMP_DATA_BYTES])
{
	memset(data, 0, SMP_DATA_BYTES);
	return fabric_sma_get(q->sa->f, p, id, modifier, data) == MAD_STATUS_OK;
}

static void node_record(struct query *q, struct fabric_port *p)
{
	struct wire_node_record r = { .lid = lid_of(p) };
	uint8_t data[SMP_DATA_BYTES];

	if (!attribute_of(q, p, SMP_ATTR_NODE_INFO, 0, data))
		return;
	wire_node_info_decode(data, &r.info);
	attribute_of(q, p, SMP_ATTR_NODE_DESCRIPTION, 0, data);
	wire_node_description_decode(data, &r.description);
	offer(q, &r);
}

static void list_nodes(struct query *q)
{
	each_end_port(q, node_record);
}

/* PortInfo's CapabilityMask may be matched bit by bit (modifier's high bit, as OpenSM has it). */
static void port_info_record(struct query *q, struct fabric_port *p)
{
	struct wire_port_info_record r = { .lid = lid_of(p), .port_num = p->num };
	uint8_t data[SMP_DATA_BYTES];

	if (!attribute_of(q, p, SMP_ATTR_PORT_INFO, p->num, data))
		return;
	wire_port_info_decode(data, &r.info);
	r.info.m_key = 0; /* for trusted requests only, of which there are none */
	if ((q->in->component_mask & SA_PIR_CAPABILITY_MASK) &&
	    (q->in->mad.attribute_modifier & 1u << 31)) {
		const struct wire_port_info_record *w = q->wanted;
		struct wire_port_info_record relaxed = r;

		if ((r.info.capability_mask & w->info.capability_mask) != w->info.capability_mask)
			return;
		relaxed.info.capability_mask = w->info.capability_mask;
		if (wire_match(q->kind->layout, q->in->component_mask, w, &relaxed))
			add(q, &r);
		return;
	}
	offer(q, &r);
}

static void list_port_infos(struct query *q)
{
	each_port(q, port_info_record);
}

static void switch_info_record(struct query *q, struct fabric_port *p)
{
	struct wire_switch_info_record r = { .lid = lid_of(p) };
	uint8_t data[SMP_DATA_BYTES];

	if (!attribute_of(q, p, SMP_ATTR_SWITCH_INFO, 0, data))
		return;
	wire_switch_info_decode(data, &r.info);
	offer(q, &r);
}

static void list_switch_infos(struct query *q)
{
	each_end_port(q, switch_info_record);
}

static void linear_ft_records(struct query *q, struct fabric_port *p)
{
	struct wire_linear_ft_record r = { .lid = lid_of(p) };
	uint8_t data[SMP_DATA_BYTES];

	for (; is_switch(p->node) && r.block * LFT_BLOCK < p->node->lft_size; r.block++) {
		attribute_of(q, p, SMP_ATTR_LINEAR_FT, r.block, data);
		wire_linear_ft_decode(data, &r.table);
		offer(q, &r);
	}
}

static void list_linear_fts(struct query *q)
{
	each_end_port(q, linear_ft_records);
}

static void multicast_ft_records(struct query *q, struct fabric_port *p)
{
	struct wire_multicast_ft_record r = { .lid = lid_of(p) };
	uint8_t data[SMP_DATA_BYTES];

	for (; is_switch(p->node) && r.block * MFT_BLOCK < p->node->mft_size; r.block++) {
		for (r.position = 0; r.position * MFT_POSITION <= p->node->n_ports; r.position++) {
			attribute_of(q, p, SMP_ATTR_MULTICAST_FT,
			             smp_mft_modifier(r.position, r.block), data);
			wire_multicast_ft_decode(data, &r.table);
			offer(q, &r);
		}
	}
}

static void list_multicast_fts(struct query *q)
{
	each_end_port(q, multicast_ft_records);
}

static void guid_info_record(struct query *q, struct fabric_port *p)
{
	struct wire_guid_info_record r = { .lid = lid_of(p) };
	uint8_t data[SMP_DATA_BYTES];

	attribute_of(q, p, SMP_ATTR_GUID_INFO, 0, data);
	wire_guid_info_decode(data, &r.table);
	offer(q, &r);
}

static void list_guid_infos(struct query *q)
{
	each_end_port(q, guid_info_record);
}

static void pkey_table_record(struct query *q, struct fabric_port *p)
{
	struct wire_pkey_table_record r = { .lid = lid_of(p),
		                            .port_num = is_switch(p->node) ? p->num : 0 };
	uint8_t data[SMP_DATA_BYTES];

	attribute_of(q, p, SMP_ATTR_PKEY_TABLE, smp_pkey_modifier(p->num, 0), data);
	wire_pkey_table_decode(data, &r.table);
	offer(q, &r);
}

static void list_pkey_tables(struct query *q)
{
	each_port(q, pkey_table_record);
}

static void sl_to_vl_record(struct query *q, struct fabric_port *p)
{
	struct wire_sl_to_vl_record r = { .lid = lid_of(p), .out_port = p->num };

	offer(q, &r);
}

static void list_sl_to_vls(struct query *q)
{
	each_port(q, sl_to_vl_record);
}

static void vl_arb_records(struct query *q, struct fabric_port *p)
{
	struct wire_vl_arb_record r = { .lid = lid_of(p), .out_port = p->num };

	for (r.block = 1; r.block <= 4; r.block++)
		offer(q, &r);
}

static void list_vl_arbs(struct query *q)
{
	each_port(q, vl_arb_records);
}

static void link_record(struct query *q, struct fabric_port *p)
{
	struct wire_link_record r = { .from_lid = lid_of(p), .from_port = p->num };

	if (!p->peer || p->state == IB_PORT_DOWN)
		return;
	r.to_lid = lid_of(p->peer);
	r.to_port = p->peer->num;
	offer(q, &r);
}

static void list_links(struct query *q)
{
	each_port(q, link_record);
}

static void list_sm_infos(struct query *q)
{
	struct wire_sm_info_record r = { .lid = q->sa->f->hca_port[0]->lid };

	r.info.guid = q->sa->f->hca_port[0]->guid;
	r.info.sm_state = SM_MASTER;
	offer(q, &r);
}

static const struct kind kinds[] = {
	{ SA_ATTR_NODE, &wire_node_record_layout, list_nodes },
	{ SA_ATTR_PORT_INFO, &wire_port_info_record_layout, list_port_infos },
	{ SA_ATTR_SWITCH_INFO, &wire_switch_info_record_layout, list_switch_infos },
	{ SA_ATTR_LINEAR_FT, &wire_linear_ft_record_layout, list_linear_fts },
	{ SA_ATTR_MULTICAST_FT, &wire_multicast_ft_record_layout, list_multicast_fts },
	{ SA_ATTR_GUID_INFO, &wire_guid_info_record_layout, list_guid_infos },
	{ SA_ATTR_PKEY_TABLE, &wire_pkey_table_record_layout, list_pkey_tables },
	{ SA_ATTR_SL_TO_VL, &wire_sl_to_vl_record_layout, list_sl_to_vls },
	{ SA_ATTR_VL_ARBITRATION, &wire_vl_arb_record_layout, list_vl_arbs },
	{ SA_ATTR_LINK, &wire_link_record_layout, list_links },
	{ SA_ATTR_SM_INFO, &wire_sm_info_record_layout, list_sm_infos },
};

static const struct kind path_kind = { SA_ATTR_PATH, &wire_path_record_layout, NULL };
static const struct kind member_kind = { SA_ATTR_MCMEMBER, &wire_mcmember_layout, NULL };

/* ---- paths ---- */

#define PATH_VALUES                                                                                \
	(SA_PR_MTU_SELECTOR | SA_PR_MTU | SA_PR_RATE_SELECTOR | SA_PR_RATE | SA_PR_LIFE_SELECTOR | \
	 SA_PR_LIFE | SA_PR_NUMB_PATH | SA_PR_SERVICE_ID | SA_PR_QOS_CLASS | SA_PR_REVERSIBLE |    \
	 SA_PR_RAW_TRAFFIC | SA_PR_FLOW_LABEL | SA_PR_HOP_LIMIT | SA_PR_TCLASS | SA_PR_SL |        \
	 SA_PR_PKEY)

static void nothing(void *arg, struct fabric_port *p)
{
	(void)arg;
	(void)p;
}

static void note_reached(void *arg, struct fabric_port *p)
{
	*(struct fabric_port **)arg = p;
}

static bool selects(uint64_t mask, uint64_t both, uint8_t selector, uint8_t want, uint8_t have)
{
	if ((mask & both) != both)
		return true;
	switch (selector) {
	case SA_GREATER:
		return have > want;
	case SA_LESS:
		return have < want;
	case SA_EXACTLY:
		return have == want;
	default:
		return true;
	}
}

/* The path between two ports, if there is one and it is as the query wants it. */
static void offer_path(struct query *q, struct fabric_port *from, struct fabric_port *to)
{
	const struct wire_path_record *w = q->wanted;
	struct wire_path_record r = { .dlid = lid_of(to),
		                      .slid = lid_of(from),
		                      .reversible = 1,
		                      .pkey = IB_PKEY_DEFAULT,
		                      .mtu_selector = SA_EXACTLY,
		                      .rate_selector = SA_EXACTLY,
		                      .rate = RATE,
		                      .life_selector = SA_EXACTLY,
		                      .life = LIFE };
	struct fabric_port *reached = NULL;
	struct fabric_walk walk = { .hop = nothing, .reached = note_reached, .arg = &reached };
	uint64_t mask = q->in->component_mask;

	fabric_gid_make(q->sa->f, to->guid, &r.dgid);
	fabric_gid_make(q->sa->f, from->guid, &r.sgid);
	if (!wire_match(q->kind->layout, mask & ~(uint64_t)PATH_VALUES, w, &r))
		return;
	fabric_walk_unicast(q->sa->f, from, r.dlid, &walk);
	if (reached != to)
		return;
	r.mtu = walk.mtu;
	if (selects(mask, SA_PR_MTU | SA_PR_MTU_SELECTOR, w->mtu_selector, w->mtu, r.mtu) &&
	    selects(mask, SA_PR_RATE | SA_PR_RATE_SELECTOR, w->rate_selector, w->rate, r.rate) &&
	    selects(mask, SA_PR_LIFE | SA_PR_LIFE_SELECTOR, w->life_selector, w->life, r.life) &&
	    (!(mask & SA_PR_PKEY) || ib_pkey_match(w->pkey, r.pkey)) &&
	    (!(mask & SA_PR_SL) || w->sl == r.sl))
		add(q, &r);
}

/* The HCA port that the query names, or NULL: none in particular. *@bad: one that is not there. */
static struct fabric_port *named_end(struct query *q, bool by_gid, const struct ib_gid *gid,
                                     bool by_lid, uint16_t lid, bool *bad)
{
	struct fabric *f = q->sa->f;

	if (by_gid) {
		struct fabric_port *p = fabric_port_by_gid(f, gid);

		*bad |= !p;
		return p;
	}
	for (unsigned i = 0; by_lid && i < f->n_hca_ports; i++)
		if (f->hca_port[i]->lid == lid)
			return f->hca_port[i];
	*bad |= by_lid;
	return NULL;
}

static uint16_t list_paths(struct query *q)
{
	const struct wire_path_record *w = q->wanted;
	uint64_t mask = q->in->component_mask;
	struct fabric *f = q->sa->f;
	struct fabric_port *from, *to;
	bool bad = false;

	from = named_end(q, mask & SA_PR_SGID, &w->sgid, mask & SA_PR_SLID, w->slid, &bad);
	to = named_end(q, mask & SA_PR_DGID, &w->dgid, mask & SA_PR_DLID, w->dlid, &bad);
	if (bad)
		return mask & (SA_PR_SGID | SA_PR_DGID) ? SA_REQ_INVALID_GID : SA_NO_RECORDS;
	for (unsigned i = 0; i < f->n_hca_ports; i++) {
		if (from && f->hca_port[i] != from)
			continue;
		for (unsigned k = 0; k < f->n_hca_ports; k++)
			if (!to || f->hca_port[k] == to)
				offer_path(q, f->hca_port[i], f->hca_port[k]);
	}
	return MAD_STATUS_OK;
}

/* ---- groups ---- */

static struct fabric_port *port_by_lid(struct fabric *f, uint16_t lid)
{
	for (unsigned i = 0; i < f->n_hca_ports; i++)
		if (f->hca_port[i]->lid == lid)
			return f->hca_port[i];
	return NULL;
}

/* One record a group; with its members only for who may see them: all of them, here. */
static void list_members(struct query *q)
{
	bool one_each = q->in->sm_key != 0; /* the privileged view */
	struct base_hash_node *n;

	for (n = base_hash_walk(&q->sa->groups, NULL); n; n = base_hash_walk(&q->sa->groups, n)) {
		const struct sa_group *g = container_of(n, struct sa_group, node);
		struct wire_mcmember r = g->rec;

		r.mtu_selector = r.rate_selector = r.life_selector = SA_EXACTLY;
		if (!one_each) {
			offer(q, &r);
			continue;
		}
		for (unsigned i = 0; i < g->n_members; i++) {
			fabric_gid_make(q->sa->f, g->member[i].port->guid, &r.port_gid);
			r.join_state = g->member[i].join_state;
			offer(q, &r);
		}
	}
}

/* Set and Delete. A port speaks for itself; for another one it must ask for a proxy join. */
static uint16_t change_member(struct query *q, uint16_t slid, bool is_set)
{
	struct wire_mcmember rec = *(const struct wire_mcmember *)q->wanted;
	struct fabric_port *asker = port_by_lid(q->sa->f, slid);
	enum sa_status status;
	struct ib_gid own;

	if (!asker)
		return SA_REQ_INVALID;
	fabric_gid_make(q->sa->f, asker->guid, &own);
	if (!rec.proxy_join && memcmp(&own, &rec.port_gid, sizeof(own)))
		return SA_REQ_INVALID;
	status = is_set ? sa_mcmember_set(q->sa, q->in->component_mask, &rec)
	                : sa_mcmember_delete(q->sa, q->in->component_mask, &rec);
	if (status == SA_OK)
		add(q, &rec);
	return status;
}

/* ---- requests ---- */

static uint16_t class_port_info(struct query *q)
{
	static const struct kind kind = { SA_ATTR_CLASS_PORT_INFO, &wire_class_port_info_layout,
		                          NULL };
	struct wire_class_port_info c = {
		.base_version = MAD_BASE_VERSION,
		.class_version = MAD_VERSION_SUBN_ADM,
		.capability_mask = SA_CAP_UD_MULTICAST | SA_CAP_PORT_INFO_CAPMASK,
		.resp_time_value = 16,
	};

	if (q->sa->f->settings.sa_send_only)
		c.capability_mask2 |= SA_CAP2_SEND_ONLY_FULL;
	q->kind = &kind;
	add(q, &c);
	return MAD_STATUS_OK;
}

static const struct kind *find_kind(uint16_t attribute)
{
	if (attribute == SA_ATTR_PATH)
		return &path_kind;
	if (attribute == SA_ATTR_MCMEMBER)
		return &member_kind;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].attribute == attribute)
			return &kinds[i];
	return NULL;
}

static uint16_t query(struct query *q, uint16_t slid)
{
	uint8_t method = q->in->mad.method;
	union {
		struct wire_node_record node;
		struct wire_port_info_record port;
		struct wire_linear_ft_record lft;
		struct wire_multicast_ft_record mft;
		struct wire_pkey_table_record pkeys;
		struct wire_path_record path;
		struct wire_mcmember member;
		struct wire_guid_info_record guids;
		struct wire_vl_arb_record vl_arb;
	} wanted;

	if (q->kind->layout->host_bytes > sizeof(wanted))
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	wire_decode(q->kind->layout, q->in->data, &wanted);
	q->wanted = &wanted;
	if (method == MAD_SET || method == MAD_DELETE) {
		if (q->kind != &member_kind)
			return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
		return change_member(q, slid, method == MAD_SET);
	}
	if (q->kind == &path_kind)
		return list_paths(q);
	if (q->kind == &member_kind)
		list_members(q);
	else
		q->kind->list(q);
	return MAD_STATUS_OK;
}

/* A Get has exactly one record to give. */
static uint16_t settle(const struct query *q, uint16_t status)
{
	uint8_t method = q->in->mad.method;

	if (status || method == MAD_GET_TABLE)
		return status;
	if (!q->out->n)
		return SA_NO_RECORDS;
	/* paths: the first is as good as any */
	return q->out->n > 1 && q->kind != &path_kind ? SA_TOO_MANY_RECORDS : MAD_STATUS_OK;
}

static uint16_t serve(struct query *q, uint16_t slid)
{
	const struct wire_mad *h = &q->in->mad;

	if (h->base_version != MAD_BASE_VERSION || h->class_version != MAD_VERSION_SUBN_ADM)
		return MAD_STATUS_BAD_VERSION;
	if (h->attribute_id == SA_ATTR_CLASS_PORT_INFO && h->method == MAD_GET)
		return class_port_info(q);
	q->kind = find_kind(h->attribute_id);
	if (!q->kind)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	return settle(q, query(q, slid));
}

int sa_serve(struct sa *sa, uint16_t slid, const struct wire_sa_mad *in, struct sa_answer *out)
{
	struct query q = { .sa = sa, .in = in, .out = out };
	uint8_t method = in->mad.method;

	memset(out, 0, sizeof(*out));
	if (method != MAD_GET && method != MAD_SET && method != MAD_GET_TABLE &&
	    method != MAD_DELETE) {
		out->method = wire_mad_response_method(method);
		out->status = MAD_STATUS_BAD_METHOD;
		return 0;
	}
	out->method = wire_mad_response_method(method);
	out->status = serve(&q, slid);
	if (q.kind)
		out->record_bytes = (uint16_t)base_align_up(q.kind->layout->bytes, 8);
	if (out->status || (method != MAD_GET_TABLE && out->n > 1)) {
		out->n = out->n && !out->status;
		out->bytes = out->n * (size_t)out->record_bytes;
	}
	return q.error;
}
