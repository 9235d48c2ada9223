/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SA's records of nodes, ports, links and tables. Their contents come from the agents of the
 * nodes. A table has a row for each kind of record, with the function that lists all records; the
 * component mask of the query selects.
 */
#include <string.h>

#include "base/util.h"
#include "subnet/sa_query.h"
#include "subnet/sm_role.h"

static bool is_switch(const struct fabric_node *node)
{
	return node->type == FABRIC_SWITCH;
}

/* The LID in a port's records: for ports of a switch, the LID of port 0. */
static uint16_t lid_of(const struct fabric_port *p)
{
	return is_switch(p->node) ? p->node->port[0].lid : p->lid;
}

/*
 * Whether records of @p can match the query. The LID is the first component of all these records;
 * any LID of the port matches it.
 */
static bool may_match(const struct sa_query *q, const struct fabric_port *p)
{
	uint16_t lid = lid_of(p);

	if (!lid)
		return false;
	return !(q->mask & SA_NR(lid)) ||
	       fabric_port_has_lid(fabric_own_port((struct fabric_port *)p),
	                           (uint16_t)(q->in->data[0] << 8 | q->in->data[1]));
}

typedef void visit_fn(struct sa_query *q, struct fabric_port *p);

/* Calls @visit if the port can match; without the LID in the mask, which matches already. */
static void visit_port(struct sa_query *q, struct fabric_port *p, visit_fn *visit)
{
	uint64_t mask = q->mask;

	if (!may_match(q, p))
		return;
	q->mask &= ~SA_NR(lid);
	visit(q, p);
	q->mask = mask;
}

/* Calls @visit for each port of each node, a switch's port 0 too. */
static void each_port(struct sa_query *q, visit_fn *visit)
{
	struct fabric *f = q->sa->f;

	for (; q->at.outer < f->n_nodes; q->at.outer++, q->at.inner = 0) {
		struct fabric_node *node = f->node[q->at.outer];

		if (!is_switch(node) && !q->at.inner)
			q->at.inner = 1;
		for (; q->at.inner <= node->n_ports; q->at.inner++) {
			if (sa_query_stops(q))
				return;
			visit_port(q, &node->port[q->at.inner], visit);
		}
	}
}

/* Calls @visit for each end port: HCA ports and switches' port 0. */
static void each_end_port(struct sa_query *q, visit_fn *visit)
{
	struct fabric_port *p;

	for (; (p = sa_end(q->sa, q->at.outer)); q->at.outer++) {
		if (sa_query_stops(q))
			return;
		visit_port(q, p, visit);
	}
}

/* Gets an attribute, 64 bytes, from the node's agent. False: the node does not have it. */
static bool attribute_of(struct sa_query *q, struct fabric_port *p, uint16_t id, uint32_t modifier,
                         uint8_t data[SMP_DATA_BYTES])
{
	memset(data, 0, SMP_DATA_BYTES);
	sa_query_spend(q, 1);
	return fabric_sma_get(q->sa->f, p, id, modifier, data) == MAD_STATUS_OK;
}

static void node_record(struct sa_query *q, struct fabric_port *p)
{
	struct wire_node_record r = { .lid = lid_of(p) };
	uint8_t data[SMP_DATA_BYTES];

	if (!attribute_of(q, p, SMP_ATTR_NODE_INFO, 0, data))
		return;
	wire_node_info_decode(data, &r.info);
	attribute_of(q, p, SMP_ATTR_NODE_DESCRIPTION, 0, data);
	wire_node_description_decode(data, &r.description);
	sa_query_offer(q, &r);
}

static void list_nodes(struct sa_query *q)
{
	each_end_port(q, node_record);
}

/* Whether each bit that is asked for is there: then the mask is made equal, so that it matches. */
static bool has_bits(uint32_t want, uint32_t *have)
{
	bool has = (*have & want) == want;

	*have = has ? want : *have;
	return has;
}

/* Whether @r matches where capability masks do so bit by bit. */
static bool matches_by_bits(const struct sa_query *q, const struct wire_port_info_record *r)
{
	const struct wire_port_info_record *w = q->wanted;
	struct wire_port_info_record relaxed = *r;
	uint32_t mask = r->info.capability_mask, mask2 = r->info.capability_mask2;

	if (has_bits(w->info.capability_mask, &mask))
		relaxed.info.capability_mask = mask;
	if (has_bits(w->info.capability_mask2, &mask2))
		relaxed.info.capability_mask2 = (uint16_t)mask2;
	return wire_match(q->kind->layout, q->mask, w, &relaxed);
}

/* With the high bit of the modifier, as in OpenSM, CapabilityMask and CapabilityMask2 match bit by
 * bit. */
static void port_info_record(struct sa_query *q, struct fabric_port *p)
{
	struct wire_port_info_record r = { .lid = lid_of(p), .port_num = p->num };
	uint8_t data[SMP_DATA_BYTES];

	if (!attribute_of(q, p, SMP_ATTR_PORT_INFO, p->num, data))
		return;
	wire_port_info_decode(data, &r.info);
	if (!q->trusted)
		r.info.m_key = 0;
	if (!(q->in->mad->mad.attribute_modifier & 1u << 31))
		sa_query_offer(q, &r);
	else if (matches_by_bits(q, &r))
		sa_query_add(q, &r);
}

static void list_port_infos(struct sa_query *q)
{
	each_port(q, port_info_record);
}

static void switch_info_record(struct sa_query *q, struct fabric_port *p)
{
	struct wire_switch_info_record r = { .lid = lid_of(p) };
	uint8_t data[SMP_DATA_BYTES];

	if (!attribute_of(q, p, SMP_ATTR_SWITCH_INFO, 0, data))
		return;
	wire_switch_info_decode(data, &r.info);
	sa_query_offer(q, &r);
}

static void list_switch_infos(struct sa_query *q)
{
	each_end_port(q, switch_info_record);
}

static void linear_ft_records(struct sa_query *q, struct fabric_port *p)
{
	struct wire_linear_ft_record r = { .lid = lid_of(p) };
	uint8_t data[SMP_DATA_BYTES];

	for (; is_switch(p->node) && r.block * LFT_BLOCK < p->node->lft_size; r.block++) {
		attribute_of(q, p, SMP_ATTR_LINEAR_FT, r.block, data);
		wire_linear_ft_decode(data, &r.table);
		sa_query_offer(q, &r);
	}
}

static void list_linear_fts(struct sa_query *q)
{
	each_end_port(q, linear_ft_records);
}

static void multicast_ft_records(struct sa_query *q, struct fabric_port *p)
{
	struct wire_multicast_ft_record r = { .lid = lid_of(p) };
	uint8_t data[SMP_DATA_BYTES];

	for (; is_switch(p->node) && r.block * MFT_BLOCK < p->node->mft_size; r.block++) {
		for (r.position = 0; r.position * MFT_POSITION <= p->node->n_ports; r.position++) {
			attribute_of(q, p, SMP_ATTR_MULTICAST_FT,
			             smp_mft_modifier(r.position, r.block), data);
			wire_multicast_ft_decode(data, &r.table);
			sa_query_offer(q, &r);
		}
	}
}

static void list_multicast_fts(struct sa_query *q)
{
	each_end_port(q, multicast_ft_records);
}

static void guid_info_records(struct sa_query *q, struct fabric_port *p)
{
	struct wire_guid_info_record r = { .lid = lid_of(p) };
	uint8_t data[SMP_DATA_BYTES];

	for (; attribute_of(q, p, SMP_ATTR_GUID_INFO, r.block, data); r.block++) {
		wire_guid_info_decode(data, &r.table);
		sa_query_offer(q, &r);
	}
}

static void list_guid_infos(struct sa_query *q)
{
	each_end_port(q, guid_info_records);
}

/* PortNum, too, is of switches only. visit_port() restores the mask. */
static void pkey_table_record(struct sa_query *q, struct fabric_port *p)
{
	struct wire_pkey_table_record r = { .lid = lid_of(p), .port_num = p->num };
	uint8_t data[SMP_DATA_BYTES];

	if (!is_switch(p->node))
		q->mask &= ~SA_PKTR(port_num);
	attribute_of(q, p, SMP_ATTR_PKEY_TABLE, smp_pkey_modifier(p->num, 0), data);
	wire_pkey_table_decode(data, &r.table);
	sa_query_offer(q, &r);
}

/* Only trusted requests see P_Keys (C15-0.2-1.15). */
static uint16_t get_pkey_tables(struct sa_query *q)
{
	if (!q->trusted)
		return SA_REQ_INVALID;
	each_port(q, pkey_table_record);
	return SA_OK;
}

/* As in OpenSM, an HCA's port is known by its LID: its record has no port numbers, and whichever
 * are asked for, it is meant. visit_port() restores the mask. */
static void sl_to_vl_record(struct sa_query *q, struct fabric_port *p)
{
	struct wire_sl_to_vl_record r = { .lid = lid_of(p),
		                          .out_port = is_switch(p->node) ? p->num : 0 };
	unsigned n_in = is_switch(p->node) ? p->node->n_ports : 0;
	uint8_t data[SMP_DATA_BYTES];

	if (!is_switch(p->node))
		q->mask &= ~(SA_SLVL(in_port) | SA_SLVL(out_port));
	for (unsigned in = 0; in <= n_in; in++) {
		r.in_port = (uint8_t)in;
		attribute_of(q, p, SMP_ATTR_SL_TO_VL, smp_sl_to_vl_modifier((uint8_t)in, p->num),
		             data);
		wire_sl_to_vl_decode(data, &r.table);
		sa_query_offer(q, &r);
	}
}

static void list_sl_to_vls(struct sa_query *q)
{
	each_port(q, sl_to_vl_record);
}

static void vl_arb_records(struct sa_query *q, struct fabric_port *p)
{
	struct wire_vl_arb_record r = { .lid = lid_of(p), .out_port = p->num };
	uint8_t data[SMP_DATA_BYTES];

	if (!is_switch(p->node))
		q->mask &= ~SA_VLAR(out_port);
	for (r.block = 1; r.block <= VL_ARB_PARTS; r.block++) {
		attribute_of(q, p, SMP_ATTR_VL_ARBITRATION, smp_vl_arb_modifier(r.block, p->num),
		             data);
		wire_vl_arb_decode(data, &r.table);
		sa_query_offer(q, &r);
	}
}

static void list_vl_arbs(struct sa_query *q)
{
	each_port(q, vl_arb_records);
}

static void link_record(struct sa_query *q, struct fabric_port *p)
{
	struct wire_link_record r = { .from_lid = lid_of(p), .from_port = p->num };

	if (!p->peer || p->state == IB_PORT_DOWN)
		return;
	r.to_lid = lid_of(p->peer);
	r.to_port = p->peer->num;
	sa_query_offer(q, &r);
}

static void list_links(struct sa_query *q)
{
	each_port(q, link_record);
}

static void list_sm_infos(struct sa_query *q)
{
	struct fabric_port *at = sm_port(q->sa->sm);
	struct wire_sm_info_record r = { .lid = at->lid,
		                         .info = { .guid = at->guid, .sm_state = SM_MASTER } };

	if (!q->sa->role)
		sa_query_offer(q, &r);
	for (unsigned i = 0; q->sa->role && sm_role_known(q->sa->role, i, &at, &r.info); i++) {
		r.lid = at->lid;
		r.info.sm_key = 0; /* never shown */
		sa_query_offer(q, &r);
	}
}

static const struct sa_kind kinds[] = {
	{ .attribute = SA_ATTR_NODE, .layout = &wire_node_record_layout, .list = list_nodes },
	{ .attribute = SA_ATTR_PORT_INFO,
	  .layout = &wire_port_info_record_layout,
	  .list = list_port_infos },
	{ .attribute = SA_ATTR_SWITCH_INFO,
	  .layout = &wire_switch_info_record_layout,
	  .list = list_switch_infos },
	{ .attribute = SA_ATTR_LINEAR_FT,
	  .layout = &wire_linear_ft_record_layout,
	  .list = list_linear_fts },
	{ .attribute = SA_ATTR_MULTICAST_FT,
	  .layout = &wire_multicast_ft_record_layout,
	  .list = list_multicast_fts },
	{ .attribute = SA_ATTR_GUID_INFO,
	  .layout = &wire_guid_info_record_layout,
	  .list = list_guid_infos,
	  .set = sa_guid_info_set,
	  .del = sa_guid_info_delete },
	{ .attribute = SA_ATTR_PKEY_TABLE,
	  .layout = &wire_pkey_table_record_layout,
	  .get = get_pkey_tables },
	{ .attribute = SA_ATTR_SL_TO_VL,
	  .layout = &wire_sl_to_vl_record_layout,
	  .list = list_sl_to_vls },
	{ .attribute = SA_ATTR_VL_ARBITRATION,
	  .layout = &wire_vl_arb_record_layout,
	  .list = list_vl_arbs },
	{ .attribute = SA_ATTR_LINK, .layout = &wire_link_record_layout, .list = list_links },
	{ .attribute = SA_ATTR_SM_INFO,
	  .layout = &wire_sm_info_record_layout,
	  .list = list_sm_infos },
};

const struct sa_kind *sa_node_kind(uint16_t attribute)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].attribute == attribute)
			return &kinds[i];
	return NULL;
}
