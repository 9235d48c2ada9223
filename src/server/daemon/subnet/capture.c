/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Captures: see capture.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "daemon/core/feed.h"
#include "daemon/subnet/capture.h"
#include "daemon/subnet/capture_filter.h"
#include "fabric/model/lanes.h"
#include "wire/frame.h"

#define RECORDS    8192                            /* of MADs, that wait for one reader */
#define LAST_BYTES sizeof(struct control_captured) /* of the last record: there is always room */
#define BYTES      (RECORDS * (LAST_BYTES + MAD_BYTES) + LAST_BYTES)

#define MANAGEMENT_LANE 15
/* of flows: annex A17.3.1.2 */
#define FIRST_UDP_PORT 0xC000

struct capture {
	LIST_ENTRY(capture) entry;
	struct daemon_captures *all;
	struct daemon_feed feed; /* of records */
	bool ending;             /* the last one is there */
	uint32_t lost;
	struct daemon_capture_filter wanted;
};

static void look(struct daemon_captures *c);

static void destroy(struct capture *t)
{
	daemon_capture_filter_fini(&t->wanted);
	free(t);
}

static void capture_free(struct capture *t)
{
	struct daemon_captures *all = t->all;

	LIST_REMOVE(t, entry);
	all->n--;
	all->n_data -= t->wanted.data;
	look(all);
	daemon_feed_close(&t->feed);
	destroy(t);
}

/* ---- records ---- */

static const char *const notes[] = {
	[FABRIC_MAD_DELIVERED] = "",
	[FABRIC_MAD_NO_ROUTE] = "lost: no route",
	[FABRIC_MAD_BAD_PATH] = "lost: no such path",
	[FABRIC_MAD_BAD_P_KEY] = "lost: bad P_Key",
	[FABRIC_MAD_BAD_M_KEY] = "dropped: bad M_Key",
	[FABRIC_MAD_BAD_CC_KEY] = "dropped: bad CC_Key",
	[FABRIC_MAD_UNWANTED] = "unwanted: nobody there receives it",
	[FABRIC_MAD_FAULTY] = "fault: drop",
	[FABRIC_MAD_HELD] = "fault: delay",
};

static uint16_t get16(const uint8_t *d)
{
	return (uint16_t)(d[0] << 8 | d[1]);
}

/* As the LRH has them: where a packet goes by a directed route alone, no LIDs (section 14.2.2.2).
 */
static void set_lids(const struct fabric_mad *mad, uint16_t pkey, struct control_captured *r)
{
	bool directed = !pkey && mad->data[1] == MAD_CLASS_SUBN_DIRECTED &&
	                get16(mad->data + SMP_AT_DR_SLID) == IB_LID_PERMISSIVE &&
	                get16(mad->data + SMP_AT_DR_DLID) == IB_LID_PERMISSIVE;

	r->slid = directed ? IB_LID_PERMISSIVE : mad->slid;
	r->dlid = directed ? IB_LID_PERMISSIVE : mad->dlid;
}

static void describe(const struct fabric_mad_seen *seen, struct control_captured *r)
{
	const struct fabric_mad *mad = seen->mad;

	static_assert(sizeof(r->from.node) == FABRIC_NAME, "a node's name fits");
	r->time_ns = base_real_ns();
	set_lids(mad, seen->pkey, r);
	r->h.bth = (struct wire_bth){ .opcode = WIRE_OPCODE_UD_SEND_ONLY,
		                      .migrated = true,
		                      .pkey = seen->pkey ? seen->pkey : IB_PKEY_DEFAULT,
		                      .dest_qpn = mad->dest_qpn };
	r->h.deth = (struct wire_deth){ .qkey = mad->qkey, .src_qpn = mad->src_qpn };
	r->hop_limit = UINT8_MAX;
	r->sl = mad->sl;
	r->vl = seen->pkey ? fabric_lane_of(seen->from, 0, mad->sl & 0xF) : MANAGEMENT_LANE;
	r->has_grh = mad->has_grh;
	r->sgid = mad->sgid;
	r->dgid = mad->dgid;
	r->from.port = seen->from->num;
	memcpy(r->from.node, seen->from->node->name, sizeof(r->from.node));
	strcpy(r->note, notes[seen->fate]);
	r->payload_bytes = MAD_BYTES;
}

/* Adds the record, if there is room for it and for the last one. */
static void append(struct capture *t, struct control_captured *r, const void *payload)
{
	static const uint8_t zeros[8];

	if (!daemon_feed_fits(&t->feed, control_captured_bytes(r->payload_bytes) + LAST_BYTES)) {
		t->lost += t->lost < UINT32_MAX;
		return;
	}
	r->lost = t->lost;
	t->lost = 0;
	daemon_feed_put(&t->feed, r, sizeof(*r));
	daemon_feed_put(&t->feed, payload, r->payload_bytes);
	daemon_feed_put(&t->feed, zeros, -r->payload_bytes & 7);
}

static void see(void *arg, const struct fabric_mad_seen *seen)
{
	struct daemon_captures *c = arg;
	struct control_captured r = { 0 };
	struct capture *t;

	if (seen->from->ethernet)
		return;
	LIST_FOREACH(t, &c->all, entry)
	{
		if (t->ending || !daemon_capture_filter_mad(&t->wanted, seen))
			continue;
		if (!r.time_ns)
			describe(seen, &r);
		append(t, &r, seen->mad->data);
	}
}

/* ---- packets of queue pairs ---- */

/* A packet that the fabric carries in memory has no UDP port, and no MAC of a neighbour
 * elsewhere. */
static void describe_frame(const struct daemon_captures *c, const struct fabric_flow *flow,
                           struct control_captured *r)
{
	const struct fabric_port *to;

	r->is_ethernet = true;
	r->udp_source = (uint16_t)(FIRST_UDP_PORT | flow->key.qpn);
	memcpy(r->mac_from, flow->from->ethernet->mac, sizeof(r->mac_from));
	if (ib_lid_is_mcast(flow->key.dlid)) {
		wire_frame_group(&r->dgid, r->mac_to);
		return;
	}
	to = fabric_ethernet_find_anywhere(c->f, flow->from, &r->dgid);
	if (to)
		memcpy(r->mac_to, to->ethernet->mac, sizeof(r->mac_to));
}

static void describe_packet(const struct daemon_captures *c, const struct daemon_seen_packet *seen,
                            struct control_captured *r)
{
	const struct fabric_flow *flow = seen->flow;

	r->time_ns = base_real_ns();
	r->slid = flow->from->lid | flow->key.path_bits;
	r->dlid = flow->key.dlid;
	r->sl = flow->key.sl;
	r->vl = fabric_lane_of(flow->from, 0, flow->key.sl);
	r->has_grh = flow->key.is_global;
	r->class_flow = seen->class_flow;
	r->hop_limit = seen->hop_limit;
	r->sgid = *seen->sgid;
	r->dgid = flow->key.dgid;
	r->from.port = flow->from->num;
	memcpy(r->from.node, flow->from->node->name, sizeof(r->from.node));
	snprintf(r->note, sizeof(r->note), "%s", seen->note);
	r->h = *seen->h;
	if (!flow->key.pkey) /* and not from another subnet */
		r->h.deth.src_qpn = flow->key.qpn;
	if (flow->from->ethernet)
		describe_frame(c, flow, r);
	r->payload_bytes = seen->payload_bytes;
}

void daemon_captures_packet(struct daemon_captures *c, const struct daemon_seen_packet *seen)
{
	struct control_captured r = { 0 };
	struct capture *t;

	if (!c->n_data)
		return;
	LIST_FOREACH(t, &c->all, entry)
	{
		if (t->ending ||
		    !daemon_capture_filter_packet(&t->wanted, seen->flow, seen->h->bth.dest_qpn))
			continue;
		if (!r.time_ns)
			describe_packet(c, seen, &r);
		append(t, &r, seen->payload);
	}
}

bool daemon_captures_want_flow(const struct daemon_captures *c, const struct fabric_flow *flow)
{
	const struct capture *t;

	LIST_FOREACH(t, &c->all, entry)
	{
		if (daemon_capture_filter_flow(&t->wanted, flow))
			return true;
	}
	return false;
}

uint32_t daemon_captures_connections(const struct daemon_captures *c,
                                     uint32_t qpns[static DAEMON_CAPTURES_QPNS])
{
	const struct capture *t;
	uint32_t n = 0;

	LIST_FOREACH(t, &c->all, entry)
	{
		if (!t->wanted.data || t->wanted.n_groups) /* connections do not send to groups */
			continue;
		if (!t->wanted.n_qps)
			return DAEMON_CAPTURES_ALL;
		for (unsigned i = 0; i < t->wanted.n_qps; i++)
			qpns[n++] = t->wanted.qp[i].qpn;
	}
	return n;
}

/* Has see() called, if there is somebody to capture for. */
static void look(struct daemon_captures *c)
{
	c->f->mads->tap = (struct fabric_mad_tap){ .see = c->n ? see : NULL, .arg = c };
	if (c->data_wanted)
		c->data_wanted(c->data_arg);
}

/* ---- sending ---- */

/* Sends what there is room for. False: the reader is gone, or has all; the capture has ended. */
static bool flush(struct capture *t)
{
	if (daemon_feed_send(&t->feed) && !(t->ending && !t->feed.used))
		return true;
	capture_free(t);
	return false;
}

void daemon_captures_flush(struct daemon_captures *c)
{
	struct capture *t, *next;

	for (t = LIST_FIRST(&c->all); t; t = next) {
		next = LIST_NEXT(t, entry);
		if (daemon_feed_may_send(&t->feed))
			flush(t);
	}
}

/* The reader wants no more: the last record. There is always room for it. */
static void end(struct capture *t)
{
	if (t->ending)
		return;
	daemon_feed_put(&t->feed, &(struct control_captured){ .lost = t->lost, .end = true },
	                LAST_BYTES);
	t->ending = true;
	daemon_feed_end(&t->feed);
}

static void on_event(struct daemon_source *source, uint32_t events)
{
	struct capture *t = container_of(source, struct capture, feed.source);
	char byte;

	if (events & (EPOLLHUP | EPOLLERR)) {
		capture_free(t);
		return;
	}
	if (events & EPOLLIN) {
		ssize_t n = recv(t->feed.fd, &byte, sizeof(byte), MSG_DONTWAIT);

		if (n == 0)
			end(t);
		else if (n > 0) { /* it has nothing to say */
			capture_free(t);
			return;
		}
	}
	flush(t);
}

/* ---- requests ---- */

static int capture_new(struct daemon_captures *c, const struct control_capture *req,
                       struct capture **out)
{
	struct capture *t = malloc(sizeof(*t));
	int ret;

	if (!t)
		return -ENOMEM;
	memset(t, 0, sizeof(*t));
	t->all = c;
	ret = daemon_capture_filter_init(&t->wanted, c->f, req);
	if (ret) {
		destroy(t);
		return ret;
	}
	*out = t;
	return 0;
}

static int capture(struct daemon_call *call)
{
	struct daemon_captures *c = call->module;
	const struct control_capture *req = call->body;
	struct capture *t;
	int reader, ret;

	if (!c->f->n_ib_ports && !req->data)
		return -EOPNOTSUPP;
	if (c->n == DAEMON_CAPTURES)
		return -EUSERS;
	ret = capture_new(c, req, &t);
	if (ret)
		return ret;
	ret = daemon_feed_open(&t->feed, c->loop, BYTES, on_event, &reader);
	if (ret) {
		destroy(t);
		return ret;
	}
	LIST_INSERT_HEAD(&c->all, t, entry);
	c->n++;
	c->n_data += t->wanted.data;
	look(c);
	daemon_call_give(call, reader);
	return 0;
}

static const struct daemon_request requests[] = {
	DAEMON_OWNERS_REQUEST(CAPTURE, control_capture, DAEMON_CLI, capture),
};

void daemon_captures_init(struct daemon_captures *c, struct daemon_requests *all)
{
	LIST_INIT(&c->all);
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), c);
}

void daemon_captures_stop(struct daemon_captures *c)
{
	while (!LIST_EMPTY(&c->all)) {
		struct capture *t = LIST_FIRST(&c->all);

		end(t);
		if (flush(t))
			capture_free(t);
	}
}
