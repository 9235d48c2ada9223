/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Optional counters: see pma_details.h. A row for each attribute says how wide its counters are and
 * which function has what they count. Each attribute is cleared by itself.
 */
#include <stdlib.h>

#include "base/util.h"
#include "fabric/agents/pma_details.h"
#include "fabric/model/lanes.h"
#include "wire/opcode.h"
#include "wire/perf.h"

#define WORD 4

/* ---- what has been counted since the fabric started ---- */

typedef uint64_t count_fn(const struct fabric *f, const struct fabric_port *p, unsigned i);

static uint64_t nothing(const struct fabric *f, const struct fabric_port *p, unsigned i)
{
	(void)f;
	(void)p;
	(void)i;
	return 0;
}

static uint64_t rcv_errors(const struct fabric *f, const struct fabric_port *p, unsigned i)
{
	(void)f;
	if (i == PERF_RCV_LOCAL_PHYSICAL)
		return p->stats.damaged;
	if (i == PERF_RCV_DLID_MAPPING)
		return p->stats.lost[FABRIC_LOST_RELAY];
	if (i == PERF_RCV_LOOPING)
		return p->stats.lost[FABRIC_LOST_LOOP];
	return i == PERF_RCV_VL_MAPPING ? p->stats.lost[FABRIC_LOST_VL] : 0;
}

/* A switch forwards by the MTU that its senders know of; an HCA discards what is larger. */
static uint64_t xmit_discards(const struct fabric *f, const struct fabric_port *p, unsigned i)
{
	const struct shm_port_count *c;
	uint64_t larger;

	if (p->node->type != FABRIC_HCA)
		return i == PERF_XMIT_INACTIVE ? p->stats.lost[FABRIC_LOST_DISCARD] : 0;
	c = shm_port_count_at(f->region, p->index);
	larger = atomic_load_explicit(&c->xmit_mtu, memory_order_relaxed);
	if (i == PERF_XMIT_INACTIVE)
		return atomic_load_explicit(&c->xmit_discards, memory_order_relaxed) - larger;
	return i == PERF_XMIT_NEIGHBOR_MTU ? larger : 0;
}

static uint64_t op_rcv(const struct fabric *f, const struct fabric_port *p, unsigned i)
{
	(void)f;
	return i == PERF_OP_RCV_PACKETS ? p->stats.recv_ud_packets : p->stats.recv_ud_bytes / WORD;
}

/* Entry @i of an array of counts; of entry 0, which is not counted apart, what the others leave of
 * @all. */
static uint64_t entry_of(const uint64_t *counts, unsigned n, unsigned i, uint64_t all)
{
	if (i)
		return i < n && counts ? counts[i] : 0;
	for (unsigned k = 1; k < n && counts; k++)
		all -= counts[k];
	return all;
}

static uint64_t vl_op_packets(const struct fabric *f, const struct fabric_port *p, unsigned i)
{
	(void)f;
	return entry_of(p->lanes ? p->lanes->counts.recv_ud_packets : NULL, FABRIC_LANES, i,
	                p->stats.recv_ud_packets);
}

static uint64_t vl_op_data(const struct fabric *f, const struct fabric_port *p, unsigned i)
{
	(void)f;
	return entry_of(p->lanes ? p->lanes->counts.recv_ud_bytes : NULL, FABRIC_LANES, i,
	                p->stats.recv_ud_bytes) /
	       WORD;
}

static uint64_t xmit_data_sl(const struct fabric *f, const struct fabric_port *p, unsigned i)
{
	(void)f;
	return entry_of(p->lanes ? p->lanes->counts.xmit_bytes : NULL, IB_SLS, i,
	                p->stats.xmit_bytes + p->stats.xmit_headers) /
	       WORD;
}

static uint64_t rcv_data_sl(const struct fabric *f, const struct fabric_port *p, unsigned i)
{
	(void)f;
	return entry_of(p->lanes ? p->lanes->counts.recv_bytes : NULL, IB_SLS, i,
	                p->stats.recv_bytes + p->stats.recv_headers) /
	       WORD;
}

/* ---- the attributes ---- */

#define WIDTH(bits) &wire_perf_details_##bits##_layout, (uint32_t)((1ull << (bits)) - 1)

static const struct row {
	uint16_t attribute;
	uint8_t n; /* counters */
	const struct wire_layout *layout;
	uint32_t max;
	count_fn *count;
} rows[] = {
	{ PERF_ATTR_RCV_ERROR_DETAILS, 6, WIDTH(16), rcv_errors },
	{ PERF_ATTR_XMIT_DISCARD_DETAILS, 4, WIDTH(16), xmit_discards },
	{ PERF_ATTR_OP_RCV_COUNTERS, 2, WIDTH(32), op_rcv },
	{ PERF_ATTR_FLOW_CTL_COUNTERS, 2, WIDTH(32), nothing },
	{ PERF_ATTR_VL_OP_PACKETS, 16, WIDTH(16), vl_op_packets },
	{ PERF_ATTR_VL_OP_DATA, 16, WIDTH(32), vl_op_data },
	{ PERF_ATTR_VL_XMIT_FLOW_CTL_UPDATE_ERRORS, 16, WIDTH(2), nothing },
	{ PERF_ATTR_VL_XMIT_WAIT_COUNTERS, 16, WIDTH(16), nothing },
	{ PERF_ATTR_SW_PORT_VL_CONGESTION, 16, WIDTH(16), nothing },
	{ PERF_ATTR_RCV_CON_CTRL, 2, WIDTH(32), nothing },
	{ PERF_ATTR_SL_RCV_FECN, 16, WIDTH(32), nothing },
	{ PERF_ATTR_SL_RCV_BECN, 16, WIDTH(32), nothing },
	{ PERF_ATTR_XMIT_CON_CTRL, 1, WIDTH(32), nothing },
	{ PERF_ATTR_VL_XMIT_TIME_CONG, 15, WIDTH(32), nothing },
	{ PERF_ATTR_XMIT_DATA_SL, 16, WIDTH(32), xmit_data_sl },
	{ PERF_ATTR_RCV_DATA_SL, 16, WIDTH(32), rcv_data_sl },
};

/* The counts when a counter was last written: it counts from here. */
struct fabric_pma_zeros {
	uint64_t at[ARRAY_SIZE(rows)][PERF_DETAILS];
};

static const struct row *row_of(uint16_t attribute)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].attribute == attribute)
			return &rows[i];
	return NULL;
}

bool fabric_pma_has_details(const struct fabric_node *node, uint16_t attribute)
{
	if (attribute == PERF_ATTR_SW_PORT_VL_CONGESTION && node->type != FABRIC_SWITCH)
		return false;
	return row_of(attribute);
}

static bool counts_by_op(const struct row *row)
{
	return row->count == op_rcv || row->count == vl_op_packets || row->count == vl_op_data;
}

static int write_port(const struct fabric *f, struct fabric_port *p, const struct row *row,
                      const struct wire_perf_details_32 *d)
{
	if (!p->zero_details)
		p->zero_details = calloc(1, sizeof(*p->zero_details));
	if (!p->zero_details)
		return -1;
	for (unsigned i = 0; i < row->n; i++)
		if (d->counter_select >> i & 1)
			p->zero_details->at[row - rows][i] = row->count(f, p, i) - d->counter[i];
	return 0;
}

/* Adds what @p counts; the sum stops at the largest value. */
static void add_port(const struct fabric *f, const struct fabric_port *p, const struct row *row,
                     uint32_t *counter)
{
	for (unsigned i = 0; i < row->n; i++) {
		uint64_t zero = p->zero_details ? p->zero_details->at[row - rows][i] : 0;
		uint64_t n = row->count(f, p, i) - zero;

		counter[i] = n > row->max - counter[i] ? row->max : counter[i] + (uint32_t)n;
	}
}

uint16_t fabric_pma_details(const struct fabric_pma_ports *at, uint16_t attribute, uint8_t *data,
                            bool is_set)
{
	const struct row *row = row_of(attribute);
	struct wire_perf_details_32 in, out = { 0 };

	wire_decode(row->layout, data, &in);
	/* Senders count datagrams, not each opcode. 0, RC's SEND First, is what perfquery writes
	 * when it clears counters: no change. */
	if (is_set && counts_by_op(row) && in.op_code && in.op_code != WIRE_OPCODE_UD_SEND_ONLY)
		return MAD_STATUS_BAD_FIELD;
	for (unsigned i = at->first; is_set && i <= at->last; i++)
		if (write_port(at->f, &at->node->port[i], row, &in))
			return MAD_STATUS_BUSY;
	for (unsigned i = at->first; i <= at->last; i++)
		add_port(at->f, &at->node->port[i], row, out.counter);
	out.op_code = counts_by_op(row) ? WIRE_OPCODE_UD_SEND_ONLY : 0;
	out.port_select = in.port_select;
	out.counter_select = is_set ? in.counter_select : 0;
	wire_encode(row->layout, &out, data);
	return MAD_STATUS_OK;
}
