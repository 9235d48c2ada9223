/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends packets to the network, a batch at a time: see link_roce.h. A sender has a batch only while
 * a thread is in ibv_post_send(), or receives. Then the next one has it, whichever queue pair that
 * is of: so there are no more batches than threads that send at one time, and they stay in the
 * processor's cache.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/util.h"
#include "hca/link/link_roce.h"
#include "hca/link/packet.h"
#include "hca/link/payload.h"

/* Where a sender's last packet went. The next one often goes there too. */
struct hca_roce_path {
	uint32_t class_flow, qpn;
	uint32_t seq; /* of the port's record */
	uint8_t hop_limit, sgid_index;
	struct wire_ip ip;
	int fd;         /* -1: there is none */
	unsigned first; /* first message of the batch that goes there */
};

/* Room for the headers, a small message and its trailer. */
#define SMALL_HEAD  WIRE_HEADERS_MAX_BYTES
#define SMALL_BYTES (SMALL_HEAD + SHM_INLINE + WIRE_ROCE_MAX_TRAILER)

struct hca_roce_batch {
	SLIST_ENTRY(hca_roce_batch) entry; /* of hca_roce.batches, while no sender has it */
	int fd;                            /* by which all messages of the batch leave */
	unsigned n;
	unsigned first;       /* the first message of the piece that the last one is in */
	uint32_t piece_bytes; /* of that piece */
	struct netdev_udp_message message[NETDEV_UDP_BATCH];
	struct wire_roce_packet packet[NETDEV_UDP_BATCH];
	struct wire_roce_frame frame[NETDEV_UDP_BATCH];
	uint8_t small[NETDEV_UDP_BATCH][SMALL_BYTES];
	uint32_t slot[NETDEV_UDP_BATCH]; /* payload memory that is pinned; or HCA_ROCE_NO_SLOT */
	uint8_t *room;                   /* payloads of hca_roce_begin(); NULL: never asked for */
	size_t used;                     /* bytes of it, by the packets that wait */
};

/*
 * A batch that no sender has, or a new one. NULL: no memory. Nobody waits for the lock: in a child
 * of fork() its holder is not there.
 */
static struct hca_roce_batch *take_batch(struct hca_roce *w)
{
	struct hca_roce_batch *b = NULL;

	if (base_likely(base_trylock(&w->batches_lock))) {
		b = SLIST_FIRST(&w->batches);
		if (base_likely(b))
			SLIST_REMOVE_HEAD(&w->batches, entry);
		base_unlock(&w->batches_lock);
	}
	return base_likely(b) ? b : calloc(1, sizeof(*b));
}

static void free_batch(struct hca_roce_batch *b)
{
	free(b->room);
	free(b);
}

static void give_batch_back(struct hca_roce *w, struct hca_roce_batch *b)
{
	if (base_unlikely(!base_trylock(&w->batches_lock))) {
		free_batch(b);
		return;
	}
	SLIST_INSERT_HEAD(&w->batches, b, entry);
	base_unlock(&w->batches_lock);
}

void hca_roce_free_batches(struct hca_roce *w)
{
	struct hca_roce_batch *b;

	while ((b = SLIST_FIRST(&w->batches)) != NULL) {
		SLIST_REMOVE_HEAD(&w->batches, entry);
		free_batch(b);
	}
}

static BASE_COLD bool open_path(struct hca_sender *s)
{
	s->path = calloc(1, sizeof(*s->path));
	if (!s->path)
		return false;
	s->path->fd = -1;
	s->payloads.max_pinned = NETDEV_UDP_BATCH;
	return true;
}

/* Gives the sender a batch, if it has none. False: no memory. */
static bool has_batch(struct hca_sender *s)
{
	if (s->batch)
		return true;
	if (base_unlikely(!s->path) && !open_path(s))
		return false;
	s->batch = take_batch(hca_roce(s->network));
	if (!s->batch)
		return false;
	s->batch->fd = s->path->fd;
	s->path->first = 0;
	s->unfinished = true;
	return true;
}

/* The port's GID @index, under the record's sequence number, which it returns. */
static uint32_t read_gid(struct hca_process *p, uint32_t port, uint8_t index, struct ib_gid *gid)
{
	const struct shm_port *shm = shm_port_at(&p->region, port);
	uint32_t seq;
	bool alive;

	do {
		alive = shm_read_begin(&p->region, &shm->seq, &seq);
		*gid = shm->gid[index % SHM_GIDS];
	} while (alive && shm_read_retry(&shm->seq, seq));
	return seq;
}

/* All packets of a flow have one UDP source port; flows are distributed over the ports (annex
 * A17.3.1.2). */
static unsigned source_of(const struct hca_roce_route *r)
{
	uint32_t label = r->class_flow & 0xFFFFF;
	uint32_t key = label ? label : r->qpn;

	return (unsigned)base_hash_of(&key, sizeof(key), 0);
}

static void send_batch(struct hca_sender *s);

/* Chooses the socket for the packet. If the batch waits for another socket, sends it first. The
 * descriptor or -errno. */
static int choose_socket(struct hca_sender *s, const struct hca_roce_route *r, struct wire_ip *ip)
{
	bool is_ipv4 = wire_gid_is_ipv4(&ip->dgid);
	int fd = -EADDRNOTAVAIL;

	/* the address may be gone, or replaced by another one */
	if (wire_gid_is_ipv4(&ip->sgid) == is_ipv4 && !ib_gid_is_zero(&ip->sgid))
		fd = hca_roce_source(hca_roce(s->network), !is_ipv4, source_of(r), &ip->udp_source);
	if (fd < 0)
		return fd;
	if (s->batch->n && s->batch->fd != fd)
		send_batch(s);
	s->batch->fd = fd;
	return fd;
}

/* Keeps the message until it is sent. Its address. */
static const void *keep(struct hca_sender *s, const struct hca_packet *pkt, unsigned i)
{
	struct hca_roce_batch *b = s->batch;

	b->slot[i] = HCA_ROCE_NO_SLOT;
	if (!(pkt->a.flags & SHM_ARRIVAL_PAYLOAD))
		return memcpy(b->small[i] + SMALL_HEAD, pkt->a.data, SHM_INLINE);
	b->slot[i] = (uint32_t)(pkt->payload - s->payloads.slot);
	pkt->payload->pinned = true;
	return shm_data_at(&s->process->region, pkt->a.payload_off);
}

/* Whether message @i can leave in one piece with those before it. */
static bool can_follow(const struct hca_sender *s, const struct hca_roce_batch *b, unsigned i)
{
	const struct wire_roce_packet *p = b->packet;
	uint16_t bytes;

	if (i == s->path->first ||
	    atomic_load_explicit(&hca_roce(s->network)->one_by_one, memory_order_relaxed))
		return false;
	bytes = wire_roce_udp_payload(&p[b->first]);
	return wire_roce_udp_payload(&p[i - 1]) == bytes && wire_roce_udp_payload(&p[i]) <= bytes &&
	       b->piece_bytes + bytes <= NETDEV_UDP_PIECE_BYTES;
}

/* Copies headers and trailer of a small message next to it. */
static void put_together(struct hca_roce_batch *b, unsigned i)
{
	struct wire_roce_frame *f = &b->frame[i];
	uint32_t bytes = b->packet[i].payload_bytes;
	uint8_t *message = b->small[i] + SMALL_HEAD;

	memcpy(message - f->head_bytes, f->head, f->head_bytes);
	memcpy(message + bytes, f->trailer, sizeof(f->trailer));
	b->message[i].iov[0] =
	        (struct iovec){ message - f->head_bytes, f->head_bytes + bytes + f->trailer_bytes };
}

/* Makes the datagram of message @i. */
static void build(struct hca_roce_batch *b, unsigned i)
{
	const struct wire_roce_packet *p = &b->packet[i];
	struct wire_roce_frame *f = &b->frame[i];
	struct netdev_udp_message *m = &b->message[i];

	wire_roce_build(p, f);
	m->ip = &p->ip;
	m->n_iov = 1;
	m->follows = p->ip.ipv4_id != 0;
	if (p->payload == b->small[i] + SMALL_HEAD) {
		put_together(b, i);
		return;
	}
	m->n_iov = 3;
	m->iov[0] = (struct iovec){ f->head, f->head_bytes };
	m->iov[1] = (struct iovec){ (void *)p->payload, p->payload_bytes };
	m->iov[2] = (struct iovec){ f->trailer, f->trailer_bytes };
}

/* The packet in the next place of the batch is whole. */
static void append(struct hca_sender *s)
{
	struct hca_roce_batch *b = s->batch;
	unsigned i = b->n++;
	struct wire_roce_packet *p = &b->packet[i];

	if (!can_follow(s, b, i)) {
		b->first = i;
		b->piece_bytes = 0;
	}
	b->piece_bytes += wire_roce_udp_payload(p);
	p->ip.ipv4_id = (uint16_t)(i - b->first);
	build(b, i);
	base_log_trace(packet, "roce: datagram of %u bytes, %s, PSN %u, to QP 0x%06x",
	               wire_roce_udp_payload(p), wire_opcodes[p->h.bth.opcode].name, p->h.bth.psn,
	               p->h.bth.dest_qpn);
}

/* Adds the packet to the batch. */
static void add(struct hca_sender *s, const struct hca_packet *pkt, const struct wire_ip *ip,
                uint32_t remote_qpn)
{
	struct hca_roce_batch *b = s->batch;

	b->packet[b->n] = (struct wire_roce_packet){
		.ip = *ip,
		.h.bth = { .opcode = pkt->a.flags & SHM_ARRIVAL_IMM ? WIRE_OPCODE_UD_SEND_ONLY_IMM
		                                                    : WIRE_OPCODE_UD_SEND_ONLY,
		           .solicited = pkt->a.flags & SHM_ARRIVAL_SOLICITED,
		           .migrated = true,
		           .pkey = pkt->a.pkey,
		           .dest_qpn = remote_qpn,
		           .psn = s->psn++ & 0xFFFFFF },
		.h.deth = { .qkey = pkt->qkey, .src_qpn = pkt->a.src_qpn },
		.h.imm_data = pkt->a.imm,
		.payload = keep(s, pkt, b->n),
		.payload_bytes = pkt->a.length,
	};
	append(s);
}

/* Whether @r is where the last packet went, and the port has not changed since. */
static bool is_same_path(const struct hca_sender *s, const struct hca_roce_route *r)
{
	const struct hca_roce_path *w = s->path;
	const struct shm_port *port = shm_port_at(&s->process->region, s->port);

	return w->fd >= 0 && ib_gid_equal(&w->ip.dgid, &r->dgid) && w->qpn == r->qpn &&
	       w->class_flow == r->class_flow && w->hop_limit == r->hop_limit &&
	       w->sgid_index == r->sgid_index &&
	       w->seq == atomic_load_explicit((_Atomic uint32_t *)&port->seq, memory_order_acquire);
}

/* Finds the path. 0 or -errno. */
static int find_path(struct hca_sender *s, const struct hca_roce_route *r)
{
	struct hca_roce_path *w = s->path;

	*w = (struct hca_roce_path){ .class_flow = r->class_flow,
		                     .qpn = r->qpn,
		                     .hop_limit = r->hop_limit,
		                     .sgid_index = r->sgid_index,
		                     .ip = { .dgid = r->dgid,
		                             .flow_label = r->class_flow & 0xFFFFF,
		                             .traffic_class = (uint8_t)(r->class_flow >> 20),
		                             .hop_limit = r->hop_limit } };
	w->seq = read_gid(s->process, s->port, w->sgid_index, &w->ip.sgid);
	w->fd = choose_socket(s, r, &w->ip);
	w->first = s->batch->n;
	return w->fd < 0 ? w->fd : 0;
}

static void count_error(struct hca_sender *s, int error)
{
	struct shm_roce_port *shm = shm_roce_port_at(&s->process->region, s->port);

	if (error == -EMSGSIZE || error == -ENETDOWN || error == -ENODEV)
		HCA_COUNT(s->process, s->port, xmit_discards);
	else
		atomic_fetch_add_explicit(&shm->unreachable, 1, memory_order_relaxed);
}

/* Whether message @i was in a piece with others, and failed for a reason that it alone would not.
 */
static bool was_not_cut(const struct hca_roce_batch *b, unsigned i)
{
	int error = b->message[i].error;

	return (b->message[i].follows || (i + 1 < b->n && b->message[i + 1].follows)) &&
	       (error == -EIO || error == -EINVAL || error == -EMSGSIZE);
}

/* Sends message @i again, by itself. */
static void send_alone(struct hca_sender *s, unsigned i)
{
	struct hca_roce_batch *b = s->batch;
	bool cannot_cut = b->message[i].error != -EMSGSIZE;

	b->packet[i].ip.ipv4_id = 0;
	build(b, i);
	if (!netdev_udp_send(b->fd, &b->message[i], 1))
		count_error(s, b->message[i].error);
	else if (cannot_cut)
		atomic_store_explicit(&hca_roce(s->network)->one_by_one, true,
		                      memory_order_relaxed);
}

/* Handles messages that were not sent with the batch: sends them again, or counts them. */
static void see_to_errors(struct hca_sender *s)
{
	struct hca_roce_batch *b = s->batch;
	bool again[NETDEV_UDP_BATCH];

	for (unsigned i = 0; i < b->n; i++)
		again[i] = was_not_cut(b, i);
	for (unsigned i = 0; i < b->n; i++) {
		if (again[i])
			send_alone(s, i);
		else if (b->message[i].error)
			count_error(s, b->message[i].error);
	}
}

/* Sends all that is in the batch, which the sender keeps. */
static void send_batch(struct hca_sender *s)
{
	struct hca_roce_batch *b = s->batch;

	if (!b->n)
		return;
	if (netdev_udp_send(b->fd, b->message, b->n) != b->n)
		see_to_errors(s);
	for (unsigned i = 0; i < b->n; i++)
		if (b->slot[i] != HCA_ROCE_NO_SLOT)
			s->payloads.slot[b->slot[i]].pinned = false;
	if (s == &hca_roce(s->network)->sender)
		hca_roce(s->network)->moved += b->used;
	b->n = 0;
	b->used = 0;
	s->path->first = 0;
}

/* hca_link_ops.flush */
void hca_roce_flush(struct hca_sender *s)
{
	struct hca_roce_batch *b = s->batch;

	send_batch(s);
	s->batch = NULL;
	give_batch_back(hca_roce(s->network), b);
}

static bool is_reached(struct hca_sender *s, const struct hca_roce_route *r)
{
	if (has_batch(s) && (is_same_path(s, r) || !find_path(s, r)))
		return true;
	HCA_COUNT(s->process, s->port, xmit_discards);
	return false;
}

static void flush_if_full(struct hca_sender *s)
{
	if (s->batch->n == NETDEV_UDP_BATCH)
		send_batch(s);
}

/* Adds the packet to the batch. */
static void add_packet(struct hca_sender *s, const struct hca_packet *pkt, uint32_t remote_qpn)
{
	const struct hca_roce_route to = { .dgid = pkt->a.dgid,
		                           .class_flow = pkt->a.class_flow,
		                           .qpn = s->qpn,
		                           .hop_limit = pkt->a.hop_limit,
		                           .sgid_index = pkt->a.sgid_index };

	if (!is_reached(s, &to))
		return;
	add(s, pkt, &s->path->ip, remote_qpn);
	flush_if_full(s);
}

/* Where the payload of the next packet goes. NULL: no memory. */
static uint8_t *payload_room(struct hca_roce_batch *b, uint32_t bytes)
{
	if (bytes <= SHM_INLINE)
		return b->small[b->n] + SMALL_HEAD;
	if (!b->room)
		/* processors copy to what begins in the middle of a line at less than half the
		 * speed, from what has the same place in its page */
		b->room = aligned_alloc(BASE_CACHE_LINE,
		                        (size_t)NETDEV_UDP_BATCH * WIRE_ROCE_MAX_PAYLOAD);
	return b->room ? b->room + b->used : NULL;
}

uint8_t *hca_roce_begin(struct hca_sender *s, const struct hca_roce_route *to, uint32_t bytes)
{
	struct hca_roce_batch *b;
	uint8_t *room;

	if (!is_reached(s, to))
		return NULL;
	flush_if_full(s);
	b = s->batch;
	b->slot[b->n] = HCA_ROCE_NO_SLOT;
	room = payload_room(b, bytes);
	b->packet[b->n] = (struct wire_roce_packet){ .ip = s->path->ip,
		                                     .payload = room,
		                                     .payload_bytes = bytes };
	return room;
}

void hca_roce_end(struct hca_sender *s, const struct wire_headers *h)
{
	s->batch->packet[s->batch->n].h = *h;
	s->batch->used +=
	        base_align_up(s->batch->packet[s->batch->n].payload_bytes, BASE_CACHE_LINE);
	append(s);
}

unsigned hca_roce_behind(const struct hca_sender *s)
{
	return NETDEV_UDP_BATCH - 1 - s->batch->n;
}

static bool is_malformed(const struct hca_packet *pkt, uint32_t remote_qpn)
{
	return wire_gid_is_ip_mcast(&pkt->a.dgid) && remote_qpn != IB_QPN_MCAST;
}

/* hca_link_ops.send. The packet says where it goes. */
void hca_roce_send(struct hca_sender *s, struct hca_flow *flow, const struct hca_packet *pkt,
                   uint32_t remote_qpn)
{
	(void)flow;
	if (is_malformed(pkt, remote_qpn))
		HCA_COUNT(s->process, s->port, not_mcast_qpn);
	else
		add_packet(s, pkt, remote_qpn);
}

static void send_to_both(struct hca_sender *s, struct hca_flow *flow, const struct hca_packet *pkt,
                         uint32_t remote_qpn)
{
	hca_link_shm.send(s, flow, pkt, remote_qpn);
	if (!is_malformed(pkt, remote_qpn)) /* or it has been counted */
		add_packet(s, pkt, remote_qpn);
}

void hca_roce_free_path(struct hca_sender *s)
{
	free(s->path);
	s->path = NULL;
}

int hca_roce_send_one(struct hca_roce *w, struct wire_roce_packet *packet)
{
	bool is_ipv6 = !wire_gid_is_ipv4(&packet->ip.dgid);
	int fd = hca_roce_source(w, is_ipv6, 0, &packet->ip.udp_source);
	struct wire_roce_frame f;
	struct netdev_udp_message message = { .ip = &packet->ip, .n_iov = 3 };

	if (fd < 0)
		return fd;
	wire_roce_build(packet, &f);
	message.iov[0] = (struct iovec){ f.head, f.head_bytes };
	message.iov[1] = (struct iovec){ (void *)packet->payload, packet->payload_bytes };
	message.iov[2] = (struct iovec){ f.trailer, f.trailer_bytes };
	return netdev_udp_send(fd, &message, 1) ? 0 : message.error;
}

const struct hca_link_ops hca_link_shm_and_roce = {
	.name = "shm and roce",
	.send = send_to_both,
	.flush = hca_roce_flush,
};
