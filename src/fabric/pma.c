/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The performance management agent of every node (InfiniBand specification volume 1,
 * chapter 16): what the ports have counted. Counters are collected from the flows when
 * somebody asks; a Set that clears them moves the zero line.
 */
#include <string.h>

#include "base/util.h"
#include "fabric/flow.h"
#include "fabric/mads.h"
#include "fabric/traps.h"
#include "wire/perf.h"

#define WORD 4 /* data is counted in 32-bit words */

/* What a port has counted since somebody wrote its counters. */
struct counts {
	struct fabric_port_stats now;
	uint64_t discards;
};

/* The two attributes count apart: to clear one leaves the other. */
static struct fabric_port_zero *zero_of(struct fabric_port *p, bool extended)
{
	return extended ? &p->zero_extended : &p->zero;
}

static uint64_t discards(struct fabric *f, const struct fabric_port *p)
{
	if (p->node->type != FABRIC_HCA)
		return 0;
	return atomic_load_explicit(&f->region->port_counts[p->index].xmit_discards,
	                            memory_order_relaxed);
}

static void add_counts(struct fabric *f, struct fabric_port *p, bool extended, struct counts *sum)
{
	const struct fabric_port_zero *zero = zero_of(p, extended);

	sum->now.xmit_packets += p->stats.xmit_packets - zero->stats.xmit_packets;
	sum->now.xmit_bytes += p->stats.xmit_bytes - zero->stats.xmit_bytes;
	sum->now.recv_packets += p->stats.recv_packets - zero->stats.recv_packets;
	sum->now.recv_bytes += p->stats.recv_bytes - zero->stats.recv_bytes;
	sum->now.link_downed += p->stats.link_downed - zero->stats.link_downed;
	sum->discards += discards(f, p) - zero->discards;
}

/* The ports that a select names: from @first to @last. False: it names none. */
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
	struct counts sum = { .discards = 0 };

	for (unsigned i = first; i <= last; i++)
		add_counts(f, &node->port[i], extended, &sum);
	return sum;
}

static uint32_t saturate(uint64_t v, uint32_t max)
{
	return v > max ? max : (uint32_t)v;
}

/* Counters become what @c says, those that it selects: what was counted so far is less that. */
static void write_counters(struct fabric *f, struct fabric_port *p,
                           const struct wire_port_counters *c)
{
	struct fabric_port_zero *zero = &p->zero;

	if (c->counter_select & PERF_SELECT_XMIT_DATA)
		zero->stats.xmit_bytes = p->stats.xmit_bytes - (uint64_t)c->xmit_data * WORD;
	if (c->counter_select & PERF_SELECT_RCV_DATA)
		zero->stats.recv_bytes = p->stats.recv_bytes - (uint64_t)c->rcv_data * WORD;
	if (c->counter_select & PERF_SELECT_XMIT_PACKETS)
		zero->stats.xmit_packets = p->stats.xmit_packets - c->xmit_packets;
	if (c->counter_select & PERF_SELECT_RCV_PACKETS)
		zero->stats.recv_packets = p->stats.recv_packets - c->rcv_packets;
	if (c->counter_select & PERF_SELECT_LINK_DOWNED)
		zero->stats.link_downed = p->stats.link_downed - c->link_downed;
	if (c->counter_select & PERF_SELECT_XMIT_DISCARDS)
		zero->discards = discards(f, p) - c->xmit_discards;
}

static uint16_t port_counters(struct fabric *f, struct fabric_node *node, uint8_t *data,
                              bool is_set)
{
	struct wire_port_counters c;
	unsigned first, last;
	struct counts n;

	wire_port_counters_decode(data, &c);
	if (!selected(node, c.port_select, &first, &last))
		return MAD_STATUS_BAD_FIELD;
	for (unsigned i = first; is_set && i <= last; i++)
		write_counters(f, &node->port[i], &c);
	n = sum_counts(f, node, first, last, false);
	c = (struct wire_port_counters){
		.port_select = c.port_select,
		.counter_select = is_set ? c.counter_select : 0,
		.link_downed = (uint8_t)saturate(n.now.link_downed, UINT8_MAX),
		.xmit_discards = (uint16_t)saturate(n.discards, UINT16_MAX),
		.xmit_data = saturate(n.now.xmit_bytes / WORD, UINT32_MAX),
		.rcv_data = saturate(n.now.recv_bytes / WORD, UINT32_MAX),
		.xmit_packets = saturate(n.now.xmit_packets, UINT32_MAX),
		.rcv_packets = saturate(n.now.recv_packets, UINT32_MAX),
	};
	wire_port_counters_encode(&c, data);
	return MAD_STATUS_OK;
}

static void write_extended(struct fabric_port *p, const struct wire_port_counters_extended *c)
{
	struct fabric_port_stats *zero = &p->zero_extended.stats;

	if (c->counter_select & PERF_EXT_SELECT_XMIT_DATA)
		zero->xmit_bytes = p->stats.xmit_bytes - c->xmit_data * WORD;
	if (c->counter_select & PERF_EXT_SELECT_RCV_DATA)
		zero->recv_bytes = p->stats.recv_bytes - c->rcv_data * WORD;
	if (c->counter_select & PERF_EXT_SELECT_XMIT_PACKETS)
		zero->xmit_packets = p->stats.xmit_packets - c->xmit_packets;
	if (c->counter_select & PERF_EXT_SELECT_RCV_PACKETS)
		zero->recv_packets = p->stats.recv_packets - c->rcv_packets;
}

static uint16_t port_counters_extended(struct fabric *f, struct fabric_node *node, uint8_t *data,
                                       bool is_set)
{
	struct wire_port_counters_extended c;
	unsigned first, last;
	struct counts n;

	wire_port_counters_extended_decode(data, &c);
	if (!selected(node, c.port_select, &first, &last))
		return MAD_STATUS_BAD_FIELD;
	for (unsigned i = first; is_set && i <= last; i++)
		write_extended(&node->port[i], &c);
	n = sum_counts(f, node, first, last, true);
	c = (struct wire_port_counters_extended){
		.port_select = c.port_select,
		.counter_select = is_set ? c.counter_select : 0,
		.xmit_data = n.now.xmit_bytes / WORD,
		.rcv_data = n.now.recv_bytes / WORD,
		.xmit_packets = n.now.xmit_packets,
		.rcv_packets = n.now.recv_packets,
	};
	wire_port_counters_extended_encode(&c, data);
	return MAD_STATUS_OK;
}

static uint16_t class_port_info(uint8_t *data)
{
	struct wire_class_port_info c = { .base_version = 1,
		                          .class_version = MAD_VERSION_PERF,
		                          .capability_mask = PERF_CAP_ALL_PORT_SELECT |
		                                             PERF_CAP_EXTENDED_WIDTH_NO_IETF,
		                          .resp_time_value = 16 };

	wire_class_port_info_encode(&c, data);
	return MAD_STATUS_OK;
}

bool fabric_pma_wants(const struct fabric_mad *mad)
{
	struct wire_mad h;

	wire_mad_decode(mad->data, &h);
	return h.mgmt_class == MAD_CLASS_PERF && (h.method == MAD_GET || h.method == MAD_SET) &&
	       mad->dest_qpn == IB_QPN_GSI;
}

bool fabric_pma_answer(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad)
{
	struct wire_perf_mad p;
	bool is_set;

	wire_perf_mad_decode(mad->data, &p);
	is_set = p.mad.method == MAD_SET;
	fabric_flow_collect(f);
	fabric_traps_notice_keys(f);
	if (p.mad.base_version != MAD_BASE_VERSION || p.mad.class_version != MAD_VERSION_PERF)
		p.mad.status = MAD_STATUS_BAD_VERSION;
	else if (p.mad.attribute_id == PERF_ATTR_PORT_COUNTERS)
		p.mad.status = port_counters(f, at->node, p.data, is_set);
	else if (p.mad.attribute_id == PERF_ATTR_PORT_COUNTERS_EXTENDED)
		p.mad.status = port_counters_extended(f, at->node, p.data, is_set);
	else if (p.mad.attribute_id == MAD_ATTR_CLASS_PORT_INFO && !is_set)
		p.mad.status = class_port_info(p.data);
	else
		p.mad.status = MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	p.mad.method = MAD_GET_RESP;
	wire_perf_mad_encode(&p, mad->data);
	return true;
}
