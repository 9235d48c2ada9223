/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The view "counters": what the ports have counted. A counter is a line of one of the tables
 * here: its name, where it is, and what it counts.
 */
#include <stddef.h>

#include "base/util.h"
#include "daemon/views.h"
#include "wire/roce.h"

struct counter {
	const char *name;
	size_t at; /* offset of a 64-bit integer in the struct that has it */
	const char *text;
};

/* Of every port: struct fabric_port_stats. */
static const struct counter traffic[] = {
	{ "xmit_pkts", offsetof(struct fabric_port_stats, xmit_packets), "packets sent" },
	{ "rcv_pkts", offsetof(struct fabric_port_stats, recv_packets), "packets received" },
	{ "xmit_bytes", offsetof(struct fabric_port_stats, xmit_bytes), "bytes sent" },
	{ "rcv_bytes", offsetof(struct fabric_port_stats, recv_bytes), "bytes received" },
};

#define LOST(what) offsetof(struct fabric_port_stats, lost[FABRIC_LOST_##what])

/* Of a switch's port: likewise. */
static const struct counter losses[] = {
	{ "relay_errors", LOST(RELAY), "packets that the switch could not forward" },
	{ "vl_errors", LOST(VL), "packets that the switch had no virtual lane for" },
	{ "xmit_discards", LOST(DISCARD),
	  "packets discarded: the port is down, or its MTU is less" },
	{ "xmit_constraint", LOST(XMIT_PKEY), "packets that partitions kept from leaving here" },
	{ "rcv_constraint", LOST(RCV_PKEY), "packets that partitions kept from entering here" },
};

/* Of an HCA's port: struct shm_port_count. */
static const struct counter errors[] = {
	{ "no_receive", offsetof(struct shm_port_count, no_receive),
	  "packets lost: no receive was posted" },
	{ "bad_qkey", offsetof(struct shm_port_count, bad_qkey),
	  "packets refused: their Q_Key was not the receiver's" },
	{ "bad_pkey", offsetof(struct shm_port_count, bad_pkey),
	  "packets refused: the receiver is not in their partition" },
	{ "no_qp", offsetof(struct shm_port_count, no_qp),
	  "packets lost: no such queue pair, or it does not receive" },
	{ "xmit_discards", offsetof(struct shm_port_count, xmit_discards),
	  "messages discarded: larger than the MTU of their path, or the port was not active" },
	{ "no_payload_slot", offsetof(struct shm_port_count, no_payload_slot),
	  "times that a sender had no payload memory left" },
};

/* Of an Ethernet port: struct shm_roce_port. */
static const struct counter roce[] = {
	{ "own", offsetof(struct shm_roce_port, own), "our own messages to groups that came back" },
	{ "no_member", offsetof(struct shm_roce_port, no_member),
	  "datagrams to groups to which no queue pair here is attached" },
	{ "overflow", offsetof(struct shm_roce_port, overflow),
	  "datagrams lost because the sockets were full" },
	{ "unreachable", offsetof(struct shm_roce_port, unreachable),
	  "datagrams that the network could not deliver" },
	{ "bad_mad", offsetof(struct shm_roce_port, bad_mad), "datagrams to QP1 that were no MAD" },
	{ "overtakes", offsetof(struct shm_roce_port, overtakes),
	  "times that a process which was receiving had stalled" },
};

static void add_plain(struct show_json *o, const void *from, const struct counter *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		show_add_u64(o, c[i].name, *(const uint64_t *)((const char *)from + c[i].at));
}

/* Of shared memory: processes count meanwhile. */
static void add_shared(struct show_json *o, const void *from, const struct counter *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const _Atomic uint64_t *at = (const void *)((const char *)from + c[i].at);

		show_add_u64(o, c[i].name, atomic_load_explicit(at, memory_order_relaxed));
	}
}

/* Datagrams that were refused, by what was wrong with them: wire/roce.h has their names. */
static void add_refused(struct show_json *o, const struct shm_roce_port *w)
{
	for (int i = WIRE_ROCE_OK + 1; i < WIRE_ROCE_STATUSES; i++)
		show_add_u64(o, wire_roce_status_name((enum wire_roce_status)i),
		             atomic_load_explicit(&w->bad[i], memory_order_relaxed));
}

static void add_port(const struct daemon_show *s, struct show_json *o, const struct fabric_port *p)
{
	show_open(o, NULL, '{');
	show_add_string(o, "node", p->node->name);
	show_add_u64(o, "port", p->num);
	add_plain(o, &p->stats, traffic, ARRAY_SIZE(traffic));
	if (p->ethernet) {
		add_refused(o, &s->f->region->roce_ports[p->index]);
		add_shared(o, &s->f->region->roce_ports[p->index], roce, ARRAY_SIZE(roce));
	}
	if (p->node->type == FABRIC_HCA)
		add_shared(o, &s->f->region->port_counts[p->index], errors, ARRAY_SIZE(errors));
	else
		add_plain(o, &p->stats, losses, ARRAY_SIZE(losses));
	show_close(o, '}');
}

/* A slice. Whether all is collected that was counted before the view began. */
static bool collect(const struct daemon_show *s, struct show_at *at)
{
	uint32_t budget = FABRIC_COLLECT_SLICE;

	if (fabric_flow_collect_step(s->f, &at->n, &budget))
		return true;
	at->work = DAEMON_SLICE;
	return false;
}

bool daemon_show_counters(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	const struct fabric_node *node;

	if (!at->collected) {
		at->collected = collect(s, at);
		at->part--; /* no part yet */
		return true;
	}
	if (at->part >= s->f->n_nodes)
		return false;
	node = s->f->node[at->part];
	for (unsigned k = 1; k <= node->n_ports; k++)
		if (node->port[k].peer || node->port[k].ethernet)
			add_port(s, o, &node->port[k]);
	return true;
}

bool daemon_show_counter_texts(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	static const struct {
		const char *ports;
		const struct counter *row;
		size_t n;
	} tables[] = {
		{ "all", traffic, ARRAY_SIZE(traffic) },
		{ "switch", losses, ARRAY_SIZE(losses) },
		{ "hca", errors, ARRAY_SIZE(errors) },
		{ "ethernet", roce, ARRAY_SIZE(roce) },
	};

	(void)s;
	if (at->part)
		return false;
	show_open(o, NULL, '{');
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		show_open(o, tables[i].ports, '{');
		for (size_t k = 0; k < tables[i].n; k++)
			show_add_string(o, tables[i].row[k].name, tables[i].row[k].text);
		show_close(o, '}');
	}
	show_close(o, '}');
	return true;
}
