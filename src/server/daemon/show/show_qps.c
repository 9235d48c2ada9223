/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The view "qps": queue pairs with what senders must know of them, how many receives they have, and
 * how far their requests and packets are. A part is a queue pair index. Much of it lies in the data
 * part, where any program may have written: it is shown, counts only if they can be right, and
 * nothing there is followed.
 */
#include "daemon/show/show_qp.h"
#include "hca/queue/explain.h"
#include "shm/connection.h"
#include "shm/packets.h"
#include "wire/headers.h"

/* Units of work (chores.h). */
#define EMPTY_COST 1
#define QP_COST    32
#define FLOW_COST  2

const char *show_qp_type(const struct shm_qp *q)
{
	switch (q->type) {
	case IBV_QPT_RC:
		return "RC";
	case IBV_QPT_UC:
		return "UC";
	case IBV_QPT_UD:
		return "UD";
	case IBV_QPT_RAW_PACKET:
		return "RAW";
	case IBV_QPT_XRC_SEND:
		return "XRC_SEND";
	case IBV_QPT_XRC_RECV:
		return "XRC_RECV";
	case SHM_QPT_XRC_SRQ:
		return "XRC_SRQ";
	default:
		return "?";
	}
}

static uint32_t load(const _Atomic uint32_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

/* @to - @from, two positions of a queue of @room, which others write meanwhile. */
static uint32_t between(uint32_t from, uint32_t to, uint32_t room)
{
	return to - from <= room ? to - from : 0;
}

static const struct shm_ring *ring_at(const struct daemon_show *s, uint64_t off)
{
	return shm_data_at(s->f->region, off);
}

/* Messages of a ring that wait to be polled, and receives that wait for messages. */
static void count(const struct shm_ring *ring, uint32_t room, uint32_t *arrived, uint32_t *receives)
{
	/* in the order in which they come to a position, so none is taken for one further on */
	uint32_t consumed = load(&ring->consumed), tail = load(&ring->tail);
	uint32_t posted = load(&ring->posted);

	*arrived = between(consumed, tail, room); /* the tail, a hint, may be behind */
	*receives = between(consumed + *arrived, posted, room);
}

static void add_receives(const struct daemon_show *s, struct show_json *o, const struct shm_qp *q)
{
	uint32_t arrived, receives, srq = q->connection.srq;

	count(ring_at(s, q->ring_off), 1u << q->ring_shift, &arrived, &receives);
	if (srq && srq <= SHM_MAX_SRQS) {
		const struct shm_srq *shared = shm_srq_at(s->f->region, srq - 1);
		uint32_t taken;

		show_add_u64(o, "srq", srq - 1);
		receives = 0;
		if (shared->live) /* nothing arrives there: receives that were claimed are gone */
			count(ring_at(s, shared->ring_off), 1u << shared->ring_shift, &taken,
			      &receives);
	}
	show_add_u64(o, "receives", receives);
	show_add_u64(o, "arrived", arrived);
}

/* The requests of a connected queue pair. */
static void add_requests(struct show_json *o, const struct shm_qp *q,
                         const struct shm_connection *c)
{
	uint32_t head = load(&c->head), failed = load(&c->failed);

	show_add_u64(o, "waiting",
	             between(head, load(&c->tail), 1u << q->connection.request_shift));
	if (failed)
		show_add_string(o, "failed", hca_status_name(failed & 0xFF));
}

/* Of a queue pair whose messages go in memory: the values that both ends have to agree on. The PSNs
 * until they have found that these match. */
static void add_agreed(struct show_json *o, const struct shm_connection *c)
{
	uint32_t mtu = load(&c->path_mtu);

	if (mtu)
		show_add_u64(o, "path_mtu", 128ull << (mtu & 7));
	if (load(&c->sq_psn) != SHM_PSN_ANY)
		show_add_u64(o, "sq_psn", load(&c->sq_psn));
	if (load(&c->rq_psn) != SHM_PSN_ANY)
		show_add_u64(o, "rq_psn", load(&c->rq_psn));
}

/* Of one that exchanges packets: nobody holds its locks here, so each may be of another moment. */
static void add_packets(struct show_json *o, const struct shm_wire *w)
{
	show_add_u64(o, "next_psn", w->psn & WIRE_PSN_MASK);
	show_add_u64(o, "acked_psn", w->acked & WIRE_PSN_MASK);
	show_add_u64(o, "expected_psn", w->in.expected & WIRE_PSN_MASK);
	show_add_u64(o, "path_mtu", 1ull << (w->path.mtu_shift & 15));
	show_add_u64(o, "timeout", w->path.timeout);
	show_add_u64(o, "retries", w->retries);
	show_add_u64(o, "retry_cnt", w->path.retry_cnt);
	show_add_u64(o, "rnr_retries", w->rnr_retries);
	show_add_u64(o, "rnr_retry", w->path.rnr_retry);
	show_add_u64(o, "retransmissions", w->retransmissions);
	if (load(&w->open) % SHM_WIRE_OPENED && w->path.detours != SHM_WIRE_HERE)
		show_add_gid(o, "peer_gid", &w->path.dgid);
}

const struct shm_wire *show_wire_of(const struct daemon_show *s, const struct shm_qp *q)
{
	uint32_t index = SHM_QP_INDEX(q->qpn);
	const struct shm_region *r = s->f->region;

	if (q->type != IBV_QPT_RC && q->type != IBV_QPT_UC)
		return NULL;
	/* memory that was never used stays so */
	if (shm_port_at(r, q->port)->link_layer != IBV_LINK_LAYER_ETHERNET &&
	    (load(&shm_connection_at(r, index)->chosen) & 0xFF) != SHM_BY_DETOUR)
		return NULL;
	/* a queue pair that has failed keeps its PSNs until it is reset */
	if (load(&shm_wire_at(r, index)->open) % SHM_WIRE_OPENED ||
	    (load(&shm_connection_at(r, index)->chosen) & 0xFF) == SHM_BY_DETOUR)
		return shm_wire_at(r, index);
	return NULL;
}

static void add_connection(const struct daemon_show *s, struct show_json *o, const struct shm_qp *q)
{
	const struct shm_region *r = s->f->region;
	const struct shm_wire *w = show_wire_of(s, q);
	const struct daemon_qp *peer = NULL;

	if (!w || w->path.detours == SHM_WIRE_HERE)
		peer = daemon_qp_find(&s->objects->qps, q->connection.dest_qpn);
	if (q->type != IBV_QPT_XRC_SEND) {
		show_add_access(o, q->connection.access);
		show_add_u64(o, "max_dest_rd_atomic", q->connection.max_dest_rd_atomic);
	}
	if (q->connection.dest_qpn)
		show_add_text(o, "peer", "0x%06x", q->connection.dest_qpn);
	if (!peer && daemon_qp_was(&s->objects->qps, q->connection.dest_qpn))
		show_add_true(o, "peer_gone");
	if (peer && peer->hca)
		show_add_text(o, "peer_host", "%s", shm_hca_at(r, peer->hca->hca)->host);
	if (q->connection.dest_qpn && q->connection.dlid &&
	    shm_port_at(r, q->port)->link_layer != IBV_LINK_LAYER_ETHERNET)
		show_add_u64(o, "dlid", q->connection.dlid);
	add_requests(o, q, shm_connection_at(r, SHM_QP_INDEX(q->qpn)));
	if (w)
		add_packets(o, w);
	else if (q->type == IBV_QPT_RC || q->type == IBV_QPT_UC)
		add_agreed(o, shm_connection_at(r, SHM_QP_INDEX(q->qpn)));
}

/* A state that it did not tell senders is in the data part. */
enum ibv_qp_state show_qp_own_state(const struct daemon_show *s, const struct shm_qp *q)
{
	uint32_t own =
	        atomic_load_explicit(&shm_connection_at(s->f->region, SHM_QP_INDEX(q->qpn))->state,
	                             memory_order_relaxed);

	return (enum ibv_qp_state)(own ? own - 1 : q->state);
}

uint8_t show_qp_own_port(const struct daemon_show *s, const struct daemon_qp *qp)
{
	const struct shm_region *r = s->f->region;
	const struct shm_qp *q = shm_qp_at(r, SHM_QP_INDEX(qp->qpn));
	const uint32_t own = atomic_load_explicit(
	        &shm_connection_at(r, SHM_QP_INDEX(qp->qpn))->port_num, memory_order_relaxed);

	return own && own <= shm_hca_at(r, qp->hca->hca)->n_ports ? (uint8_t)own : q->port_num;
}

const char *show_qp_state(const struct daemon_show *s, const struct shm_qp *q)
{
	return hca_state_name(show_qp_own_state(s, q));
}

void show_add_room(struct show_json *o, const struct shm_qp *q)
{
	const struct shm_qp_connection *c = &q->connection;

	if (c->requests_off)
		show_add_u64(o, "send_room", 1ull << (c->request_shift & 31));
	if (c->srq && c->srq <= SHM_MAX_SRQS)
		show_add_u64(o, "srq", c->srq - 1);
	else if (q->type != IBV_QPT_XRC_SEND && q->type != IBV_QPT_XRC_RECV)
		show_add_u64(o, "receive_room", 1ull << (q->ring_shift & 31));
}

void show_add_sent(const struct daemon_show *s, struct show_at *at, struct show_json *o,
                   const struct daemon_qp *qp)
{
	uint64_t packets = 0, bytes = 0;
	const struct fabric_flow *flow;

	LIST_FOREACH(flow, &qp->flows, of_sender)
	{
		const struct shm_flow_count *c = shm_flow_count_at(s->f->region, flow->id);

		packets += flow->passed_packets +
		           atomic_load_explicit(&c->packets, memory_order_relaxed);
		bytes += flow->passed_bytes + atomic_load_explicit(&c->bytes, memory_order_relaxed);
	}
	at->work += FLOW_COST * qp->n_flows;
	show_add_u64(o, "sent_packets", packets);
	show_add_u64(o, "sent_bytes", bytes);
}

static void add_qp(const struct daemon_show *s, struct show_at *at, struct show_json *o,
                   const struct daemon_qp *qp)
{
	const struct shm_qp *q = shm_qp_at(s->f->region, SHM_QP_INDEX(qp->qpn));
	const struct shm_hca *hca = shm_hca_at(s->f->region, qp->hca->hca);

	show_open(o, NULL, '{');
	show_add_text(o, "host", "%s", hca->host);
	show_add_text(o, "hca", "%s", hca->name);
	show_add_u64(o, "port", show_qp_own_port(s, qp));
	show_add_text(o, "qpn", "0x%06x", q->qpn);
	show_add_string(o, "type", show_qp_type(q));
	show_add_string(o, "state", show_qp_state(s, q));
	show_add_u64(o, "client", qp->holder->client);
	show_add_u64(o, "pid", (uint32_t)qp->holder->pid);
	if (q->connection.keys_off)
		show_add_u64(o, "pd", q->connection.domain);
	if (q->port_num)
		show_add_text(o, "pkey", "0x%04x", q->pkey);
	if (q->type == IBV_QPT_UD)
		show_add_text(o, "qkey", "0x%08x", q->qkey);
	if (q->type != IBV_QPT_XRC_SEND && q->type != IBV_QPT_XRC_RECV)
		add_receives(s, o, q);
	if (q->type != IBV_QPT_UD && q->type != IBV_QPT_RAW_PACKET && q->type != SHM_QPT_XRC_SRQ)
		add_connection(s, o, q);
	show_add_sent(s, at, o, qp);
	show_close(o, '}');
}

const struct daemon_qp *show_qp_at(const struct daemon_show *s, struct show_at *at, uint32_t index)
{
	const struct daemon_qp *qp =
	        index > IB_QPN_GSI ? base_idtable_get(&s->objects->qps.ids, index) : NULL;

	at->work += EMPTY_COST;
	if (!qp || qp->state != DAEMON_QP_LIVE || qp->holder->dead || qp->is_roce_sender ||
	    !qp->hca)
		return NULL;
	at->work += QP_COST;
	return qp;
}

bool daemon_show_qps(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	const struct daemon_qp *qp;

	if (at->part >= s->objects->qps.ids.size)
		return false;
	qp = show_qp_at(s, at, at->part);
	if (qp)
		add_qp(s, at, o, qp);
	return true;
}
