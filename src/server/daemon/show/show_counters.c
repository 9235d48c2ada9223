/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The view "counters": the values of the ports' counters. A counter is a line of one of the tables
 * here, with its name, its offset and its meaning.
 */
#include <stddef.h>
#include <string.h>

#include "base/util.h"
#include "daemon/show/views.h"
#include "fabric/agents/mads.h"
#include "fabric/forwarding/collect.h"
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
	{ "relay_errors", LOST(RELAY),
	  "packets that the switch had no table entry for: nobody has the destination LID, or "
	  "nobody has joined the group of the MLID; see 'umbel show routes' and 'umbel show "
	  "groups'" },
	{ "loop_errors", LOST(LOOP),
	  "packets whose route leads back out of the port that they came in by; see 'umbel "
	  "check'" },
	{ "vl_errors", LOST(VL),
	  "packets that the switch had no virtual lane for: the SL of the address handle is none "
	  "of the path's" },
	{ "xmit_discards", LOST(DISCARD),
	  "packets discarded as the link is down, or its MTU is less; see 'umbel show topology'" },
	{ "xmit_constraint", LOST(XMIT_PKEY),
	  "packets that did not leave here: the port behind this one is not in their partition" },
	{ "rcv_constraint", LOST(RCV_PKEY),
	  "packets that did not enter here: the port behind this one is not in their partition" },
};

/* Of an HCA's port on InfiniBand: likewise. */
static const struct counter groups[] = {
	{ "mcast_unheard", offsetof(struct fabric_port_stats, mcast_unheard),
	  "packets sent to a group that reached no other port: nobody else of this fabric has "
	  "joined it as a full member; see 'umbel show groups', and 'umbel status' for other "
	  "fabrics" },
	{ "mcast_unattached", offsetof(struct fabric_port_stats, mcast_unattached),
	  "packets to a group that came while no queue pair of the HCA was attached to it: "
	  "ibv_attach_mcast() with the MGID and MLID of the join" },
};

#define COUNTED(what, text) { #what, offsetof(struct shm_port_count, what), text },

/* Of an HCA's port: struct shm_port_count. */
static const struct counter errors[] = {
#include "shm/port_count.def"
};

#undef COUNTED

#define ROCE(what) #what, offsetof(struct shm_roce_port, what)

/* Of an Ethernet port: struct shm_roce_port. */
static const struct counter roce[] = {
	{ ROCE(own), "our own messages to groups that came back" },
	{ ROCE(no_member), "datagrams to groups to which no queue pair here is attached" },
	{ ROCE(overflow), "datagrams lost as the sockets were full: programs poll too rarely" },
	{ ROCE(unreachable),
	  "datagrams that the network could not deliver: has the peer's address a route?" },
	{ ROCE(bad_mad), "datagrams to QP1 that were no MAD" },
	{ ROCE(overtakes), "times that a process which was receiving had stalled or died" },
	{ ROCE(duplicate_request), "requests of connections that came again" },
	{ ROCE(out_of_sequence),
	  "requests of connections that came before an earlier one, which got lost on its way "
	  "here" },
	{ ROCE(packet_seq_err),
	  "times that a peer has seen a gap: packets got lost on their way there" },
	{ ROCE(implied_nak_seq_err),
	  "times that the response to a READ or atomic operation got lost on its way here" },
	{ ROCE(local_ack_timeout_err),
	  "times that a peer acknowledged nothing for the queue pair's timeout" },
	{ ROCE(rnr_nak_retry_err),
	  "times that a peer had posted no receive: post more of them there" },
	{ ROCE(rp_cnp_handled), "congestion notifications that slowed a queue pair down" },
	{ ROCE(rp_cnp_ignored),
	  "congestion notifications that changed nothing (setting roce_ecn), or came too soon "
	  "after another" },
	{ ROCE(np_ecn_marked_roce_packets), "packets that a congested network has marked" },
	{ ROCE(np_cnp_sent), "notifications to peers whose packets came marked" },
};

#define MADS(what) offsetof(struct fabric_mad_stats, what)

/* Of all ports: MADs that came to nobody. */
static const struct counter mads[] = {
	{ "mad_no_route", MADS(no_route),
	  "MADs lost on their way: nobody has the LID, a link is down, or a directed route leads "
	  "out" },
	{ "mad_bad_path", MADS(bad_path), "MADs with a hop pointer and count that no route has" },
	{ "mad_bad_pkey", MADS(bad_p_key), "MADs whose sender and receiver share no partition" },
	{ "mad_bad_mkey", MADS(bad_m_key), "MADs refused as they have not the port's M_Key" },
	{ "mad_bad_cckey", MADS(bad_cc_key), "MADs refused as they have not the node's CC_Key" },
	{ "mad_unwanted", MADS(unwanted),
	  "MADs for which the port has no agent: no program there has registered for their class, "
	  "or a response came too late" },
	{ "mad_unread", MADS(unread),
	  "MADs lost as a program with an agent does not read what comes: umad_recv()" },
	{ "mad_backlog", MADS(backlog),
	  "connect requests that a listener had no room for, which come again: give rdma_listen() "
	  "a larger backlog, and call rdma_get_cm_event() sooner" },
	{ "mad_faulty", MADS(faulty), "MADs lost by a rule of umbel fault add mad=" },
	{ "mad_unreported", MADS(unreported),
	  "notices that those who subscribed to them (InformInfo) do not hear of, as too many "
	  "wait" },
	{ "mad_no_memory", MADS(no_memory), "MADs lost as the daemon had no memory" },
};

/* Datagrams that were refused: by enum wire_roce_status. */
static const char *const refused[WIRE_ROCE_STATUSES] = {
	[WIRE_ROCE_TRUNCATED] = "datagrams longer than any that RoCEv2 has",
	[WIRE_ROCE_SHORT] = "datagrams shorter than their headers",
	[WIRE_ROCE_VERSION] = "datagrams of another version of the transport header",
	[WIRE_ROCE_OPCODE] =
	        "datagrams of another transport than UD, RC and UC, which alone are supported",
	[WIRE_ROCE_PAD] = "datagrams with more padding than payload",
	[WIRE_ROCE_ICRC] = "datagrams whose check sum (ICRC) is wrong: damaged on the network",
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
		add_refused(o, shm_roce_port_at(s->f->region, p->index));
		add_shared(o, shm_roce_port_at(s->f->region, p->index), roce, ARRAY_SIZE(roce));
	}
	if (p->node->type == FABRIC_HCA)
		add_shared(o, shm_port_count_at(s->f->region, p->index), errors,
		           ARRAY_SIZE(errors));
	if (p->node->type == FABRIC_HCA && !p->ethernet)
		add_plain(o, &p->stats, groups, ARRAY_SIZE(groups));
	if (p->node->type == FABRIC_SWITCH)
		add_plain(o, &p->stats, losses, ARRAY_SIZE(losses));
	show_close(o, '}');
}

bool daemon_show_collect(const struct daemon_show *s, struct show_at *at)
{
	uint32_t budget = FABRIC_COLLECT_SLICE;

	if (!fabric_flow_collect_step(s->f, &at->n, &budget)) {
		at->work = DAEMON_SLICE;
		return false;
	}
	at->n = 0;
	return true;
}

/* Behind the ports, whose array ends. */
static void add_mads(const struct daemon_show *s, struct show_json *o)
{
	show_close(o, ']');
	show_open(o, "mads", '[');
	show_open(o, NULL, '{');
	show_add_string(o, "fabric", s->name);
	add_plain(o, &s->f->mads->stats, mads, ARRAY_SIZE(mads));
	show_close(o, '}');
}

bool daemon_show_counters(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	const struct fabric_node *node;

	if (!at->collected) {
		at->collected = daemon_show_collect(s, at);
		at->part--; /* no part yet */
		return true;
	}
	if (at->part > s->f->n_nodes)
		return false;
	if (at->part == s->f->n_nodes) {
		add_mads(s, o);
		return true;
	}
	node = s->f->node[at->part];
	for (unsigned k = 1; k <= node->n_ports; k++)
		if (node->port[k].peer || node->port[k].ethernet)
			add_port(s, o, &node->port[k]);
	return true;
}

/* Whether the counter counts no loss, and no sign of one. */
static bool is_harmless(const char *counter)
{
	static const char *const names[] = {
		"xmit_pkts",
		"rcv_pkts",
		"xmit_bytes",
		"rcv_bytes",
		"receive_waits",
		"own",
		"overtakes",
		"duplicate_request",
		"rp_cnp_handled",
		"rp_cnp_ignored",
		"np_ecn_marked_roce_packets",
		"np_cnp_sent",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], counter))
			return true;
	return false;
}

/* The texts of the counters of each kind of port; of all, or of those that count losses. */
static void add_texts(struct show_json *o, bool losses_only)
{
	static const struct {
		const char *of;
		const struct counter *row;
		size_t n;
	} tables[] = {
		{ "port", traffic, ARRAY_SIZE(traffic) }, { "switch", losses, ARRAY_SIZE(losses) },
		{ "hca", errors, ARRAY_SIZE(errors) },    { "group", groups, ARRAY_SIZE(groups) },
		{ "ethernet", roce, ARRAY_SIZE(roce) },   { "mad", mads, ARRAY_SIZE(mads) },
	};

	show_open(o, NULL, '{');
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		show_open(o, tables[i].of, '{');
		for (size_t k = 0; k < tables[i].n; k++)
			if (!losses_only || !is_harmless(tables[i].row[k].name))
				show_add_string(o, tables[i].row[k].name, tables[i].row[k].text);
		show_close(o, '}');
	}
	show_open(o, "datagram", '{');
	for (int i = WIRE_ROCE_OK + 1; i < WIRE_ROCE_STATUSES; i++)
		show_add_string(o, wire_roce_status_name((enum wire_roce_status)i), refused[i]);
	show_close(o, '}');
	show_close(o, '}');
}

bool daemon_show_counter_texts(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	(void)s;
	if (at->part)
		return false;
	add_texts(o, false);
	return true;
}

bool daemon_show_loss_texts(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	(void)s;
	if (at->part)
		return false;
	add_texts(o, true);
	return true;
}
