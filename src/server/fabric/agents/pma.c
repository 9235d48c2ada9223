/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The performance management agent of every node (InfiniBand specification volume 1, chapter 16):
 * it reads and writes the counters of ports. Before a request the counts of the flows are collected
 * (collect.h); a Set writes only the offset from which a counter counts.
 */
#include <string.h>

#include "fabric/agents/mads.h"
#include "fabric/agents/pma_details.h"
#include "fabric/agents/pma_samples.h"
#include "fabric/agents/traps.h"
#include "wire/perf.h"

#define WORD 4 /* data is counted in 32-bit words */

enum counter {
	XMIT_DATA,
	RCV_DATA,
	XMIT_PACKETS,
	RCV_PACKETS,
	XMIT_UNICAST,
	RCV_UNICAST,
	XMIT_MULTICAST,
	RCV_MULTICAST,
	LINK_DOWNED,
	LINK_RECOVERED,
	DAMAGED,       /* packets */
	SYMBOL_ERRORS, /* of these one each, at least, and those of no packet */
	RELAY_ERRORS,
	XMIT_DISCARDS,
	XMIT_CONSTRAINT,
	RCV_CONSTRAINT,
	N_COUNTERS,
};
static_assert(N_COUNTERS == FABRIC_COUNTERS, "the ports' zero lines");

struct counts {
	uint64_t n[N_COUNTERS];
};

static uint64_t discards(struct fabric *f, const struct fabric_port *p)
{
	if (p->node->type != FABRIC_HCA)
		return p->stats.lost[FABRIC_LOST_DISCARD];
	return atomic_load_explicit(&shm_port_count_at(f->region, p->index)->xmit_discards,
	                            memory_order_relaxed);
}

/* The port's counters since the fabric started. */
static struct counts counts_of(struct fabric *f, const struct fabric_port *p)
{
	return (struct counts){ {
		[XMIT_DATA] = (p->stats.xmit_bytes + p->stats.xmit_headers) / WORD,
		[RCV_DATA] = (p->stats.recv_bytes + p->stats.recv_headers) / WORD,
		[XMIT_PACKETS] = p->stats.xmit_packets,
		[RCV_PACKETS] = p->stats.recv_packets,
		[XMIT_UNICAST] = p->stats.xmit_packets - p->stats.xmit_mcast,
		[RCV_UNICAST] = p->stats.recv_packets - p->stats.recv_mcast,
		[XMIT_MULTICAST] = p->stats.xmit_mcast,
		[RCV_MULTICAST] = p->stats.recv_mcast,
		[LINK_DOWNED] = p->stats.link_downed,
		[LINK_RECOVERED] = p->stats.link_recovered,
		[DAMAGED] = p->stats.damaged,
		[SYMBOL_ERRORS] = p->stats.damaged + p->stats.symbol_errors,
		[RELAY_ERRORS] = p->stats.lost[FABRIC_LOST_RELAY] +
		                 p->stats.lost[FABRIC_LOST_LOOP] + p->stats.lost[FABRIC_LOST_VL],
		[XMIT_DISCARDS] = discards(f, p),
		[XMIT_CONSTRAINT] = p->stats.lost[FABRIC_LOST_XMIT_PKEY],
		[RCV_CONSTRAINT] = p->stats.lost[FABRIC_LOST_RCV_PKEY],
	} };
}

/* PortCounters and PortCountersExtended have offsets of their own: clearing one does not clear the
 * other. */
static uint64_t *zero_of(struct fabric_port *p, bool extended)
{
	return extended ? p->zero_extended : p->zero;
}

/* The ports that PortSelect names: from @first to @last. False: there is no such port. */
static bool selected(const struct fabric_node *node, unsigned select, unsigned *first,
                     unsigned *last)
{
	unsigned lowest = node->type == FABRIC_SWITCH ? 0 : 1;

	*first = *last = select;
	if (select == PERF_PORT_SELECT_ALL) {
		*first = lowest;
		*last = node->n_ports;
	}
	return *first >= lowest && *last <= node->n_ports;
}

static struct counts sum_counts(struct fabric *f, struct fabric_node *node, unsigned first,
                                unsigned last, bool extended)
{
	struct counts sum = { { 0 } };

	for (unsigned i = first; i <= last; i++) {
		const uint64_t *zero = zero_of(&node->port[i], extended);
		struct counts c = counts_of(f, &node->port[i]);

		for (unsigned k = 0; k < N_COUNTERS; k++)
			sum.n[k] += c.n[k] - zero[k];
	}
	return sum;
}

/* A Set: writes the counters whose bits are set in @select. */
struct write {
	unsigned select;
	enum counter counter;
	uint64_t value;
};

static void write_counters(struct fabric *f, struct fabric_port *p, bool extended,
                           unsigned selected, const struct write *w)
{
	struct counts c = counts_of(f, p);
	uint64_t *zero = zero_of(p, extended);

	for (; w->select; w++)
		if (selected & w->select)
			zero[w->counter] = c.n[w->counter] - w->value;
}

static uint32_t saturate(uint64_t v, uint32_t max)
{
	return v > max ? max : (uint32_t)v;
}

static void set_port_counters(struct fabric *f, struct fabric_port *p,
                              const struct wire_port_counters *c)
{
	const struct write all[] = {
		{ PERF_SELECT_XMIT_DATA, XMIT_DATA, c->xmit_data },
		{ PERF_SELECT_RCV_DATA, RCV_DATA, c->rcv_data },
		{ PERF_SELECT_XMIT_PACKETS, XMIT_PACKETS, c->xmit_packets },
		{ PERF_SELECT_RCV_PACKETS, RCV_PACKETS, c->rcv_packets },
		{ PERF_SELECT_LINK_DOWNED, LINK_DOWNED, c->link_downed },
		{ PERF_SELECT_LINK_ERROR_RECOVERY, LINK_RECOVERED, c->link_error_recovery },
		{ PERF_SELECT_SYMBOL_ERRORS, SYMBOL_ERRORS, c->symbol_errors },
		{ PERF_SELECT_RCV_ERRORS, DAMAGED, c->rcv_errors },
		{ PERF_SELECT_RCV_SWITCH_RELAY_ERRORS, RELAY_ERRORS, c->rcv_switch_relay_errors },
		{ PERF_SELECT_XMIT_DISCARDS, XMIT_DISCARDS, c->xmit_discards },
		{ PERF_SELECT_XMIT_CONSTRAINT_ERRORS, XMIT_CONSTRAINT, c->xmit_constraint_errors },
		{ PERF_SELECT_RCV_CONSTRAINT_ERRORS, RCV_CONSTRAINT, c->rcv_constraint_errors },
		{ 0 },
	};

	write_counters(f, p, false, c->counter_select, all);
}

static void fill_basic(struct wire_port_counters *c, const struct counts *sum, bool is_set)
{
	*c = (struct wire_port_counters){
		.port_select = c->port_select,
		.counter_select = is_set ? c->counter_select : 0,
		.symbol_errors = (uint16_t)saturate(sum->n[SYMBOL_ERRORS], UINT16_MAX),
		.rcv_errors = (uint16_t)saturate(sum->n[DAMAGED], UINT16_MAX),
		.link_downed = (uint8_t)saturate(sum->n[LINK_DOWNED], UINT8_MAX),
		.link_error_recovery = (uint8_t)saturate(sum->n[LINK_RECOVERED], UINT8_MAX),
		.rcv_switch_relay_errors = (uint16_t)saturate(sum->n[RELAY_ERRORS], UINT16_MAX),
		.xmit_discards = (uint16_t)saturate(sum->n[XMIT_DISCARDS], UINT16_MAX),
		.xmit_constraint_errors = (uint8_t)saturate(sum->n[XMIT_CONSTRAINT], UINT8_MAX),
		.rcv_constraint_errors = (uint8_t)saturate(sum->n[RCV_CONSTRAINT], UINT8_MAX),
		.xmit_data = saturate(sum->n[XMIT_DATA], UINT32_MAX),
		.rcv_data = saturate(sum->n[RCV_DATA], UINT32_MAX),
		.xmit_packets = saturate(sum->n[XMIT_PACKETS], UINT32_MAX),
		.rcv_packets = saturate(sum->n[RCV_PACKETS], UINT32_MAX),
	};
}

static uint16_t port_counters(struct fabric *f, struct fabric_node *node, uint8_t *data,
                              bool is_set)
{
	struct wire_port_counters c;
	unsigned first, last;
	struct counts sum;

	wire_port_counters_decode(data, &c);
	if (!selected(node, c.port_select, &first, &last))
		return MAD_STATUS_BAD_FIELD;
	for (unsigned i = first; is_set && i <= last; i++)
		set_port_counters(f, &node->port[i], &c);
	sum = sum_counts(f, node, first, last, false);
	fill_basic(&c, &sum, is_set);
	wire_port_counters_encode(&c, data);
	return MAD_STATUS_OK;
}

static void set_extended(struct fabric *f, struct fabric_port *p,
                         const struct wire_port_counters_extended *c)
{
	const struct write all[] = {
		{ PERF_EXT_SELECT_XMIT_DATA, XMIT_DATA, c->xmit_data },
		{ PERF_EXT_SELECT_RCV_DATA, RCV_DATA, c->rcv_data },
		{ PERF_EXT_SELECT_XMIT_PACKETS, XMIT_PACKETS, c->xmit_packets },
		{ PERF_EXT_SELECT_RCV_PACKETS, RCV_PACKETS, c->rcv_packets },
		{ PERF_EXT_SELECT_UNICAST_XMIT_PACKETS, XMIT_UNICAST, c->unicast_xmit_packets },
		{ PERF_EXT_SELECT_UNICAST_RCV_PACKETS, RCV_UNICAST, c->unicast_rcv_packets },
		{ PERF_EXT_SELECT_MULTICAST_XMIT_PACKETS, XMIT_MULTICAST,
		  c->multicast_xmit_packets },
		{ PERF_EXT_SELECT_MULTICAST_RCV_PACKETS, RCV_MULTICAST, c->multicast_rcv_packets },
		{ 0 },
	};

	write_counters(f, p, true, c->counter_select, all);
}

static void fill_extended(struct wire_port_counters_extended *c, const struct counts *sum,
                          bool is_set)
{
	*c = (struct wire_port_counters_extended){
		.port_select = c->port_select,
		.counter_select = is_set ? c->counter_select : 0,
		.xmit_data = sum->n[XMIT_DATA],
		.rcv_data = sum->n[RCV_DATA],
		.xmit_packets = sum->n[XMIT_PACKETS],
		.rcv_packets = sum->n[RCV_PACKETS],
		.unicast_xmit_packets = sum->n[XMIT_UNICAST],
		.unicast_rcv_packets = sum->n[RCV_UNICAST],
		.multicast_xmit_packets = sum->n[XMIT_MULTICAST],
		.multicast_rcv_packets = sum->n[RCV_MULTICAST],
	};
}

static uint16_t port_counters_extended(struct fabric *f, struct fabric_node *node, uint8_t *data,
                                       bool is_set)
{
	struct wire_port_counters_extended c;
	unsigned first, last;
	struct counts sum;

	wire_port_counters_extended_decode(data, &c);
	if (!selected(node, c.port_select, &first, &last))
		return MAD_STATUS_BAD_FIELD;
	for (unsigned i = first; is_set && i <= last; i++)
		set_extended(f, &node->port[i], &c);
	sum = sum_counts(f, node, first, last, true);
	fill_extended(&c, &sum, is_set);
	wire_port_counters_extended_encode(&c, data);
	return MAD_STATUS_OK;
}

static uint16_t port_details(struct fabric *f, struct fabric_node *node, uint16_t attribute,
                             uint8_t *data, bool is_set)
{
	struct fabric_pma_ports at = { .f = f, .node = node };

	if (!selected(node, data[PERF_AT_PORT_SELECT], &at.first, &at.last))
		return MAD_STATUS_BAD_FIELD;
	return fabric_pma_details(&at, attribute, data, is_set);
}

void fabric_pma_read(struct fabric *f, struct fabric_port *p, struct wire_port_counters *basic,
                     struct wire_port_counters_extended *extended)
{
	struct counts sum;

	sum = sum_counts(f, p->node, p->num, p->num, false);
	fill_basic(basic, &sum, false);
	sum = sum_counts(f, p->node, p->num, p->num, true);
	fill_extended(extended, &sum, false);
}

static uint16_t class_port_info(uint8_t *data)
{
	struct wire_class_port_info c = { .base_version = 1,
		                          .class_version = MAD_VERSION_PERF,
		                          .capability_mask = PERF_CAP_ALL_PORT_SELECT |
		                                             PERF_CAP_EXTENDED_WIDTH,
		                          .resp_time_value = 16 };

	wire_class_port_info_encode(&c, data);
	return MAD_STATUS_OK;
}

bool fabric_pma_wants(const struct fabric_mad *mad)
{
	struct wire_mad h;

	if (wire_mad_class(mad->data) != MAD_CLASS_PERF || mad->dest_qpn != IB_QPN_GSI)
		return false;
	wire_mad_decode(mad->data, &h);
	return h.method == MAD_GET || h.method == MAD_SET;
}

bool fabric_pma_respond(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad)
{
	struct wire_perf_mad p;
	bool is_set;

	wire_perf_mad_decode(mad->data, &p);
	is_set = p.mad.method == MAD_SET;
	fabric_traps_notice_keys(f);
	if (p.mad.base_version != MAD_BASE_VERSION || p.mad.class_version != MAD_VERSION_PERF)
		p.mad.status = MAD_STATUS_BAD_VERSION;
	else if (p.mad.attribute_id == PERF_ATTR_PORT_COUNTERS)
		p.mad.status = port_counters(f, at->node, p.data, is_set);
	else if (p.mad.attribute_id == PERF_ATTR_PORT_COUNTERS_EXTENDED)
		p.mad.status = port_counters_extended(f, at->node, p.data, is_set);
	else if (p.mad.attribute_id == PERF_ATTR_PORT_SAMPLES_CONTROL)
		p.mad.status = fabric_pma_samples_control(f, at->node, p.mad.attribute_modifier,
		                                          p.data, is_set);
	else if (p.mad.attribute_id == PERF_ATTR_PORT_SAMPLES_RESULT && !is_set)
		p.mad.status =
		        fabric_pma_samples_result(at->node, p.mad.attribute_modifier, p.data);
	else if (p.mad.attribute_id == MAD_ATTR_CLASS_PORT_INFO && !is_set)
		p.mad.status = class_port_info(p.data);
	else if (fabric_pma_has_details(at->node, p.mad.attribute_id))
		p.mad.status = port_details(f, at->node, p.mad.attribute_id, p.data, is_set);
	else
		p.mad.status = MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	p.mad.method = MAD_GET_RESP;
	wire_perf_mad_encode(&p, mad->data);
	return true;
}
