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
#include "wire/perf.h"

#define WORD         4  /* data is counted in 32-bit words */

/* What a port has counted since its counters were cleared. */
struct counts {
	struct fabric_port_stats now;
	uint64_t xmit_discards;
};

static uint64_t discards(struct fabric *f, const struct fabric_port *p)
{
	if (p->node->type != FABRIC_HCA)
		return 0;
	return atomic_load_explicit(&f->region->port_counts[p->index].xmit_discards,
	                            memory_order_relaxed);
}

static void collect(struct fabric *f, const struct fabric_port *p, struct counts *c)
{
	c->now = p->stats;
	c->xmit_discards = discards(f, p);
	c->now.xmit_packets -= p->cleared.xmit_packets;
	c->now.xmit_bytes -= p->cleared.xmit_bytes;
	c->now.recv_packets -= p->cleared.recv_packets;
	c->now.recv_bytes -= p->cleared.recv_bytes;
	c->xmit_discards -= p->cleared_discards;
}

static void clear(struct fabric *f, struct fabric_port *p)
{
	p->cleared = p->stats;
	p->cleared_discards = discards(f, p);
}

/* The sum over the ports that a select names; NULL-safe: false if it names none. */
static bool sum(struct fabric *f, struct fabric_node *node, unsigned select, struct counts *total)
{
	unsigned first = select, last = select;

	if (select == PERF_PORT_SELECT_ALL) {
		first = node->type == FABRIC_SWITCH ? 0 : 1;
		last = node->n_ports;
	}
	if (last > node->n_ports || (node->type == FABRIC_HCA && first == 0))
		return false;
	memset(total, 0, sizeof(*total));
	for (unsigned i = first; i <= last; i++) {
		struct counts c;

		collect(f, &node->port[i], &c);
		total->now.xmit_packets += c.now.xmit_packets;
		total->now.xmit_bytes += c.now.xmit_bytes;
		total->now.recv_packets += c.now.recv_packets;
		total->now.recv_bytes += c.now.recv_bytes;
		total->xmit_discards += c.xmit_discards;
	}
	return true;
}

static void clear_selected(struct fabric *f, struct fabric_node *node, unsigned select)
{
	for (unsigned i = 0; i <= node->n_ports; i++)
		if (i == select || select == PERF_PORT_SELECT_ALL)
			clear(f, &node->port[i]);
}

static uint32_t saturate(uint64_t v, uint32_t max)
{
	return v > max ? max : (uint32_t)v;
}

static uint16_t port_counters(struct fabric *f, struct fabric_node *node, uint8_t *data,
                              bool is_set)
{
	struct wire_port_counters c;
	struct counts n;

	wire_port_counters_decode(data, &c);
	if (!sum(f, node, c.port_select, &n))
		return MAD_STATUS_BAD_FIELD;
	if (is_set && c.counter_select) {
		clear_selected(f, node, c.port_select);
		sum(f, node, c.port_select, &n);
	}
	c = (struct wire_port_counters){
		.port_select = c.port_select,
		.xmit_discards = (uint16_t)saturate(n.xmit_discards, UINT16_MAX),
		.xmit_data = saturate(n.now.xmit_bytes / WORD, UINT32_MAX),
		.rcv_data = saturate(n.now.recv_bytes / WORD, UINT32_MAX),
		.xmit_packets = saturate(n.now.xmit_packets, UINT32_MAX),
		.rcv_packets = saturate(n.now.recv_packets, UINT32_MAX),
	};
	wire_port_counters_encode(&c, data);
	return MAD_STATUS_OK;
}

static uint16_t port_counters_extended(struct fabric *f, struct fabric_node *node, uint8_t *data,
                                       bool is_set)
{
	struct wire_port_counters_extended c;
	struct counts n;

	wire_port_counters_extended_decode(data, &c);
	if (!sum(f, node, c.port_select, &n))
		return MAD_STATUS_BAD_FIELD;
	if (is_set && c.counter_select) {
		clear_selected(f, node, c.port_select);
		sum(f, node, c.port_select, &n);
	}
	c = (struct wire_port_counters_extended){
		.port_select = c.port_select,
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
