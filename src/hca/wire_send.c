/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages out to the wire, a batch at a time: see wire.h. A batch belongs to a queue pair
 * and is empty whenever nobody is in ibv_post_send().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "hca/wire.h"

/* Where a message goes: what is the same as for the one before is not worked out again. */
struct way {
	uint32_t class_flow;
	uint32_t seq; /* of the port's record */
	uint8_t hop_limit, sgid_index;
	struct wire_ip ip;
	int fd;         /* -1: there is none */
	unsigned first; /* message of the batch that goes there */
};

/* Room for the headers, a small message and what comes behind it, in one. */
#define SMALL_HEAD  (WIRE_ROCE_HEAD_BYTES + WIRE_IMM_BYTES)
#define SMALL_BYTES (SMALL_HEAD + SHM_INLINE + WIRE_ROCE_MAX_TRAILER)

struct hca_wire_batch {
	int fd; /* that all of it leaves by */
	unsigned n;
	struct way way;
	unsigned first;       /* of those that leave in one piece with the last */
	uint32_t piece_bytes; /* of that piece */
	struct link_udp_message message[LINK_UDP_BATCH];
	struct wire_roce_packet packet[LINK_UDP_BATCH];
	struct wire_roce_frame frame[LINK_UDP_BATCH];
	uint8_t small[LINK_UDP_BATCH][SMALL_BYTES];
	uint32_t slot[LINK_UDP_BATCH]; /* payload memory that is pinned */
};

static struct hca_wire_batch *batch_of(struct hca_qp *qp)
{
	if (!qp->out) {
		qp->out = calloc(1, sizeof(*qp->out));
		if (!qp->out)
			return NULL;
		qp->out->way.fd = -1;
		qp->payloads.max_pinned = LINK_UDP_BATCH;
	}
	return qp->out;
}

/* The port's GID @index, under the record's sequence number, which it returns. */
static uint32_t read_gid(struct hca_process *p, uint32_t port, uint8_t index, struct ib_gid *gid)
{
	const struct shm_port *s = &p->region.ports[port];
	uint32_t seq;
	bool alive;

	do {
		alive = shm_read_begin(&p->region, &s->seq, &seq);
		*gid = s->gid[index % SHM_GIDS];
	} while (alive && shm_read_retry(&s->seq, seq));
	return seq;
}

static bool is_zero(const struct ib_gid *gid)
{
	static const struct ib_gid zero;

	return !memcmp(gid, &zero, sizeof(zero));
}

/* A flow keeps its port; different ones are spread (annex A17.3.1.2). */
static unsigned source_of(const struct hca_qp *qp, const struct hca_packet *pkt)
{
	uint32_t label = pkt->a.class_flow & 0xFFFFF;
	uint32_t key = label ? label : qp->ex.qp_base.qp_num;

	return (unsigned)base_hash_of(&key, sizeof(key), 0);
}

/* A socket for it; whatever waits for another one goes first. The descriptor or -errno. */
static int choose_socket(struct hca_qp *qp, const struct hca_packet *pkt, struct wire_ip *ip)
{
	bool is_ipv4 = wire_gid_is_ipv4(&ip->dgid);
	int fd = -EADDRNOTAVAIL;

	/* the address may have gone, and another one come in its place */
	if (wire_gid_is_ipv4(&ip->sgid) == is_ipv4 && !is_zero(&ip->sgid))
		fd = hca_wire_source(qp->ctx->wire, !is_ipv4, source_of(qp, pkt), &ip->udp_source);
	if (fd < 0)
		return fd;
	if (qp->out->n && qp->out->fd != fd)
		hca_wire_flush(qp);
	qp->out->fd = fd;
	return fd;
}

/* Where the message stays until it is sent. */
static const void *keep(struct hca_qp *qp, const struct hca_packet *pkt, unsigned i)
{
	struct hca_wire_batch *b = qp->out;

	b->slot[i] = HCA_WIRE_NO_SLOT;
	if (!(pkt->a.flags & SHM_ARRIVAL_PAYLOAD))
		return memcpy(b->small[i] + SMALL_HEAD, pkt->a.data, SHM_INLINE);
	b->slot[i] = (uint32_t)(pkt->payload - qp->payloads.slot);
	pkt->payload->pinned = true;
	return shm_data_at(&qp->process->region, pkt->a.payload_off);
}

/* Whether number @i can leave in one piece with those before it. */
static bool can_follow(const struct hca_qp *qp, const struct hca_wire_batch *b, unsigned i)
{
	const struct wire_roce_packet *p = b->packet;
	uint16_t bytes;

	if (i == b->way.first ||
	    atomic_load_explicit(&qp->ctx->wire->one_by_one, memory_order_relaxed))
		return false;
	bytes = wire_roce_udp_payload(&p[b->first]);
	return wire_roce_udp_payload(&p[i - 1]) == bytes && wire_roce_udp_payload(&p[i]) <= bytes &&
	       b->piece_bytes + bytes <= LINK_UDP_PIECE_BYTES;
}

/* Puts what is around a small message next to it. */
static void put_together(struct hca_wire_batch *b, unsigned i)
{
	struct wire_roce_frame *f = &b->frame[i];
	uint32_t bytes = b->packet[i].payload_bytes;
	uint8_t *message = b->small[i] + SMALL_HEAD;

	memcpy(message - f->head_bytes, f->head, f->head_bytes);
	memcpy(message + bytes, f->trailer, sizeof(f->trailer));
	b->message[i].iov[0] =
	        (struct iovec){ message - f->head_bytes, f->head_bytes + bytes + f->trailer_bytes };
}

/* Makes the datagram of number @i. */
static void build(struct hca_wire_batch *b, unsigned i)
{
	const struct wire_roce_packet *p = &b->packet[i];
	struct wire_roce_frame *f = &b->frame[i];
	struct link_udp_message *m = &b->message[i];

	wire_roce_build(p, f);
	m->ip = &p->ip;
	m->n_iov = 1;
	m->follows = p->ip.ipv4_id != 0;
	if (b->slot[i] == HCA_WIRE_NO_SLOT) {
		put_together(b, i);
		return;
	}
	m->n_iov = 3;
	m->iov[0] = (struct iovec){ f->head, f->head_bytes };
	m->iov[1] = (struct iovec){ (void *)p->payload, p->payload_bytes };
	m->iov[2] = (struct iovec){ f->trailer, f->trailer_bytes };
}

/* Adds it to the batch. */
static void add(struct hca_qp *qp, const struct hca_packet *pkt, const struct wire_ip *ip,
                uint32_t remote_qpn)
{
	struct hca_wire_batch *b = qp->out;
	unsigned i = b->n++;
	struct wire_roce_packet *p = &b->packet[i];

	*p = (struct wire_roce_packet){
		.ip = *ip,
		.bth = { .opcode = pkt->a.flags & SHM_ARRIVAL_IMM ? WIRE_OPCODE_UD_SEND_ONLY_IMM
		                                                  : WIRE_OPCODE_UD_SEND_ONLY,
		         .solicited = pkt->a.flags & SHM_ARRIVAL_SOLICITED,
		         .migrated = true,
		         .pkey = pkt->a.pkey,
		         .dest_qpn = remote_qpn,
		         .psn = qp->sq_psn++ & 0xFFFFFF },
		.deth = { .qkey = pkt->qkey, .src_qpn = pkt->a.src_qpn },
		.imm_data = pkt->a.imm,
		.payload = keep(qp, pkt, i),
		.payload_bytes = pkt->a.length,
	};
	if (!can_follow(qp, b, i)) {
		b->first = i;
		b->piece_bytes = 0;
	}
	b->piece_bytes += wire_roce_udp_payload(p);
	p->ip.ipv4_id = (uint16_t)(i - b->first);
	build(b, i);
}

/* Whether @pkt goes the way of the last message, and that is as it was. */
static bool is_same_way(const struct hca_qp *qp, const struct hca_packet *pkt)
{
	const struct way *w = &qp->out->way;
	const struct shm_port *port = &qp->process->region.ports[qp->port];

	return w->fd >= 0 && !memcmp(&w->ip.dgid, &pkt->a.dgid, sizeof(w->ip.dgid)) &&
	       w->class_flow == pkt->a.class_flow && w->hop_limit == pkt->a.hop_limit &&
	       w->sgid_index == pkt->a.sgid_index &&
	       w->seq == atomic_load_explicit((_Atomic uint32_t *)&port->seq, memory_order_acquire);
}

/* Finds @pkt's way. 0 or -errno. */
static int find_way(struct hca_qp *qp, const struct hca_packet *pkt)
{
	struct way *w = &qp->out->way;

	*w = (struct way){ .class_flow = pkt->a.class_flow,
		           .hop_limit = pkt->a.hop_limit,
		           .sgid_index = pkt->a.sgid_index,
		           .ip = { .dgid = pkt->a.dgid,
		                   .flow_label = pkt->a.class_flow & 0xFFFFF,
		                   .traffic_class = (uint8_t)(pkt->a.class_flow >> 20),
		                   .hop_limit = pkt->a.hop_limit } };
	w->seq = read_gid(qp->process, qp->port, w->sgid_index, &w->ip.sgid);
	w->fd = choose_socket(qp, pkt, &w->ip);
	w->first = qp->out->n;
	return w->fd < 0 ? w->fd : 0;
}

void hca_wire_send(struct hca_qp *qp, const struct hca_packet *pkt, uint32_t remote_qpn)
{
	if (wire_gid_is_ip_mcast(&pkt->a.dgid) && remote_qpn != IB_QPN_MCAST)
		return; /* malformed */
	if (!batch_of(qp) || (!is_same_way(qp, pkt) && find_way(qp, pkt))) {
		HCA_COUNT(qp->process, qp->port, xmit_discards);
		return;
	}
	add(qp, pkt, &qp->out->way.ip, remote_qpn);
	if (qp->out->n == LINK_UDP_BATCH)
		hca_wire_flush(qp);
}

static void count_error(struct hca_qp *qp, int error)
{
	struct shm_wire *shm = &qp->process->region.wires[qp->port];

	if (error == -EMSGSIZE || error == -ENETDOWN || error == -ENODEV)
		HCA_COUNT(qp->process, qp->port, xmit_discards);
	else
		atomic_fetch_add_explicit(&shm->unreachable, 1, memory_order_relaxed);
}

/* Whether number @i was in a piece of several and failed for what it would not, alone. */
static bool was_not_cut(const struct hca_wire_batch *b, unsigned i)
{
	int error = b->message[i].error;

	return (b->message[i].follows || (i + 1 < b->n && b->message[i + 1].follows)) &&
	       (error == -EIO || error == -EINVAL || error == -EMSGSIZE);
}

/* Sends number @i again, by itself. */
static void send_alone(struct hca_qp *qp, unsigned i)
{
	struct hca_wire_batch *b = qp->out;
	bool cannot_cut = b->message[i].error != -EMSGSIZE;

	b->packet[i].ip.ipv4_id = 0;
	build(b, i);
	if (!link_udp_send(b->fd, &b->message[i], 1))
		count_error(qp, b->message[i].error);
	else if (cannot_cut)
		atomic_store_explicit(&qp->ctx->wire->one_by_one, true, memory_order_relaxed);
}

/* What has not gone with the batch. */
static void see_to_errors(struct hca_qp *qp)
{
	struct hca_wire_batch *b = qp->out;
	bool again[LINK_UDP_BATCH];

	for (unsigned i = 0; i < b->n; i++)
		again[i] = was_not_cut(b, i);
	for (unsigned i = 0; i < b->n; i++) {
		if (again[i])
			send_alone(qp, i);
		else if (b->message[i].error)
			count_error(qp, b->message[i].error);
	}
}

void hca_wire_flush(struct hca_qp *qp)
{
	struct hca_wire_batch *b = qp->out;

	if (!b->n)
		return;
	if (link_udp_send(b->fd, b->message, b->n) != b->n)
		see_to_errors(qp);
	for (unsigned i = 0; i < b->n; i++)
		if (b->slot[i] != HCA_WIRE_NO_SLOT)
			qp->payloads.slot[b->slot[i]].pinned = false;
	b->n = 0;
	b->way.first = 0;
}

int hca_wire_send_one(struct hca_wire *w, struct wire_roce_packet *packet)
{
	bool is_ipv6 = !wire_gid_is_ipv4(&packet->ip.dgid);
	int fd = hca_wire_source(w, is_ipv6, 0, &packet->ip.udp_source);
	struct wire_roce_frame f;
	struct link_udp_message message = { .ip = &packet->ip, .n_iov = 3 };

	if (fd < 0)
		return fd;
	wire_roce_build(packet, &f);
	message.iov[0] = (struct iovec){ f.head, f.head_bytes };
	message.iov[1] = (struct iovec){ (void *)packet->payload, packet->payload_bytes };
	message.iov[2] = (struct iovec){ f.trailer, f.trailer_bytes };
	return link_udp_send(fd, &message, 1) ? 0 : message.error;
}
