/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the wire brings in: who receives, and to whom each datagram goes. See wire.h.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "hca/wire.h"

static_assert(WIRE_ROCE_STATUSES <= SHM_WIRE_BAD, "a counter for each");

/* More than the largest message makes is no datagram for us. */
#define MAX_DATAGRAM (WIRE_ROCE_HEAD_BYTES + WIRE_ROCE_MAX_PAYLOAD + WIRE_ROCE_BODY_MORE)

/* Who receives for so long without an end is stopped: others go on. */
#define STALL_US 100000
/* While one socket has something, of so many looks one is at the other. */
#define OTHER_POLLS 16

static void count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* ---- taking turns ---- */

/* The caller looks again soon. Its line is written seldomer than it is looked at. */
static void note_poll(struct hca_wire *w, uint64_t now)
{
	uint64_t last = atomic_load_explicit(&w->shm->polled_ns, memory_order_relaxed);

	if (now - last > HCA_WIRE_POLL_NS / 8)
		atomic_store_explicit(&w->shm->polled_ns, now, memory_order_relaxed);
}

void hca_wire_rest(struct hca_wire *w)
{
	uint64_t one = 1;

	/* seq_cst: nobody polls, and only then a look whether the manager knows; it says that it
	 * is away, and then looks whether somebody polls */
	atomic_store_explicit(&w->shm->polled_ns, 0, memory_order_seq_cst);
	if (!atomic_load_explicit(&w->shm->manager_away, memory_order_seq_cst) ||
	    !atomic_exchange_explicit(&w->shm->manager_away, 0, memory_order_seq_cst))
		return;
	while (write(w->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static bool is_held(uint64_t held, uint64_t now)
{
	return held && now / 1000 - (held >> 16) < STALL_US;
}

bool hca_wire_is_polled(const struct hca_wire *w)
{
	uint64_t now = base_now_ns();

	if (is_held(atomic_load_explicit(&w->shm->holder, memory_order_relaxed), now))
		return true;
	/* seq_cst: see hca_wire_rest() */
	return now - atomic_load_explicit(&w->shm->polled_ns, memory_order_seq_cst) <
	       HCA_WIRE_POLL_NS;
}

/* *@turn: what says that it is ours. False: somebody else's. */
static bool take_turn(struct hca_wire *w, uint64_t now, uint64_t *turn)
{
	uint64_t held = atomic_load_explicit(&w->shm->holder, memory_order_relaxed);

	if (is_held(held, now))
		return false;
	*turn = now / 1000 << 16 | SHM_QP_INDEX(w->qp.ex.qp_base.qp_num);
	/* acquire: pairs with the release in end_turn() */
	if (!atomic_compare_exchange_strong_explicit(&w->shm->holder, &held, *turn,
	                                             memory_order_acquire, memory_order_relaxed))
		return false;
	if (held)
		count(&w->shm->overtakes, 1);
	return true;
}

/* Unless we were overtaken meanwhile. */
static void end_turn(struct hca_wire *w, uint64_t turn)
{
	/* release: what we delivered comes before what the next one does */
	atomic_compare_exchange_strong_explicit(&w->shm->holder, &turn, 0, memory_order_release,
	                                        memory_order_relaxed);
}

void hca_wire_release(struct shm_wire *shm, uint16_t writer)
{
	uint64_t held = atomic_load_explicit(&shm->holder, memory_order_relaxed);

	if ((held & 0xFFFF) == writer)
		atomic_compare_exchange_strong_explicit(&shm->holder, &held, 0,
		                                        memory_order_relaxed, memory_order_relaxed);
}

/* ---- to whom ---- */

/* A datagram of @bytes bytes, and what it says. */
struct message {
	const struct wire_roce_packet *in;
	uint32_t bytes;
};

/* What it is to those that receive it. Copied to a payload slot, with room for @n receivers; or
 * counted: there is none. */
static bool describe(struct hca_wire *w, const struct message *m, uint32_t n,
                     struct hca_packet *pkt)
{
	const struct wire_roce_packet *in = m->in;
	struct hca_payload *payload = hca_payload_get(&w->qp);

	if (!payload || hca_payload_reserve(payload, n)) {
		HCA_COUNT(w->process, w->port, no_payload_slot);
		return false;
	}
	memcpy(shm_data_at(&w->process->region, payload->off), in->payload, in->payload_bytes);
	*pkt = (struct hca_packet){
		.a = { .src_qpn = in->deth.src_qpn,
		       .src_port = w->port,
		       .pkey = in->bth.pkey,
		       .length = in->payload_bytes,
		       .hop_limit = in->ip.hop_limit,
		       .flags = SHM_ARRIVAL_GRH | SHM_ARRIVAL_PAYLOAD | SHM_ARRIVAL_ETHERNET |
		                SHM_ARRIVAL_WIRE,
		       .dgid = in->ip.dgid,
		       .payload_off = payload->off },
		.qkey = in->deth.qkey,
		.payload = payload,
		.sender = w->qp.sender,
		.writer = (uint16_t)SHM_QP_INDEX(w->qp.ex.qp_base.qp_num),
	};
	wire_ip_grh(&in->ip, (uint16_t)m->bytes, pkt->a.data);
	if (in->bth.opcode == WIRE_OPCODE_UD_SEND_ONLY_IMM) {
		pkt->a.flags |= SHM_ARRIVAL_IMM;
		pkt->a.imm = in->imm_data;
	}
	if (in->bth.solicited)
		pkt->a.flags |= SHM_ARRIVAL_SOLICITED;
	return true;
}

/* Whether it is one of ours: on a loopback device all that we send to a group comes back. */
static bool is_own(struct hca_wire *w, const struct ib_gid *sgid)
{
	const struct shm_port *port = &w->process->region.ports[w->port];
	/* acquire: the table is no older than this */
	uint32_t seq = atomic_load_explicit((_Atomic uint32_t *)&port->seq, memory_order_acquire);

	if (seq == w->foreign_seq && !memcmp(&w->foreign, sgid, sizeof(*sgid)))
		return false;
	for (int i = 0; i < SHM_GIDS; i++)
		if (!memcmp(&port->gid[i], sgid, sizeof(*sgid)))
			return true;
	w->foreign = *sgid;
	w->foreign_seq = seq;
	return false;
}

/* The flow that lists who is attached to @mgid on this HCA, or NULL. */
static struct hca_flow *group_flow(struct hca_wire *w, const struct ib_gid *mgid)
{
	if (memcmp(w->group.dest.gid, mgid, sizeof(w->group.dest.gid)) != 0) {
		memcpy(w->group.dest.gid, mgid, sizeof(w->group.dest.gid));
		atomic_store_explicit(&w->group.flow, NULL, memory_order_relaxed);
	}
	w->group.dest.lid = IB_LID_MCAST_FIRST;
	w->group.dest.port_num = 1;
	w->group.dest.is_global = true;
	return hca_flow_get(&w->qp, &w->group);
}

static void deliver_to_group(struct hca_wire *w, const struct message *m)
{
	const struct wire_roce_packet *in = m->in;
	struct hca_packet pkt;
	struct hca_flow *f;

	if (in->bth.dest_qpn != IB_QPN_MCAST) { /* malformed */
		HCA_COUNT(w->process, w->port, no_qp);
		return;
	}
	if (is_own(w, &in->ip.sgid)) {
		count(&w->shm->own, 1);
		return;
	}
	f = group_flow(w, &in->ip.dgid);
	if (!f || !f->count) {
		count(&w->shm->no_member, 1);
		return;
	}
	if (!describe(w, m, f->count, &pkt))
		return;
	hca_deliver_to(w->process, &pkt, HCA_ANY_PORT, f->to, f->count);
	w->now.delivered += pkt.payload->n != 0;
}

static void deliver_to_qp(struct hca_wire *w, const struct message *m)
{
	struct hca_packet pkt;

	if (!describe(w, m, 1, &pkt))
		return;
	hca_deliver(w->process, &pkt, m->in->bth.dest_qpn, w->port);
	w->now.delivered += pkt.payload->n != 0;
}

/* The general services are the manager's. */
static void give_to_manager(struct hca_wire *w, const struct wire_roce_packet *in)
{
	struct control_wire_mad req = { .hca_handle = w->hca_handle,
		                        .src_qpn = in->deth.src_qpn,
		                        .qkey = in->deth.qkey,
		                        .pkey = in->bth.pkey,
		                        .sgid = in->ip.sgid,
		                        .dgid = in->ip.dgid };

	if (in->payload_bytes != sizeof(req.data)) {
		count(&w->shm->bad_mad, 1);
		return;
	}
	memcpy(req.data, in->payload, sizeof(req.data));
	hca_request(w->process, CONTROL_WIRE_MAD, &req, sizeof(req));
}

static void deliver(struct hca_wire *w, const struct message *m)
{
	bool is_mcast = wire_gid_is_ip_mcast(&m->in->ip.dgid);

	if (m->in->bth.dest_qpn == IB_QPN_GSI && !is_mcast)
		give_to_manager(w, m->in);
	else if (is_mcast)
		deliver_to_group(w, m);
	else
		deliver_to_qp(w, m);
}

/* One of @bytes bytes; @ip: its header, with a guess at its identification. Returns what that
 * was, if it can be told. */
static uint16_t take_in(struct hca_wire *w, const uint8_t *at, uint32_t bytes,
                        const struct wire_ip *ip)
{
	const struct wire_roce_datagram raw = { .head = at,
		                                .body = at + WIRE_ROCE_HEAD_BYTES,
		                                .bytes = bytes,
		                                .truncated = bytes > MAX_DATAGRAM };
	struct wire_roce_packet in = { .ip = *ip };
	enum wire_roce_status status = wire_roce_parse(&raw, &in);

	w->now.datagrams++;
	if (status != WIRE_ROCE_OK) {
		count(&w->shm->bad[status], 1);
		return ip->ipv4_id;
	}
	deliver(w, &(struct message){ .in = &in, .bytes = bytes });
	w->now.packets++;
	w->now.bytes += in.payload_bytes;
	return in.ip.ipv4_id;
}

/* All that the kernel has joined; mostly their identifications count up. */
static void take_apart(struct hca_wire *w, const struct link_udp_datagram *d)
{
	const uint8_t *at = d->iov[0].iov_base;
	uint32_t left = d->bytes;
	struct wire_ip ip = d->ip;

	do {
		uint32_t bytes = d->each && d->each < left ? d->each : left;

		ip.ipv4_id = take_in(w, at, bytes, &ip) + 1;
		at += bytes;
		left -= bytes;
	} while (left);
}

/* ---- batches ---- */

/*
 * How many to ask for after @got came of @asked, @datagrams of them if those that were joined
 * are taken apart. Each that does not come costs the kernel a look: who polls a quiet wire asks
 * for one. And not for too many: receivers have to keep up.
 */
static unsigned next_batch(unsigned asked, unsigned got, unsigned datagrams)
{
	unsigned n = got < asked ? got + 1 : asked * 4;

	while (n > 1 && got && n * datagrams > got * LINK_UDP_BATCH)
		n /= 2;
	return n < LINK_UDP_BATCH ? n : LINK_UDP_BATCH;
}

static void note_lost(struct hca_wire *w, unsigned version, uint32_t lost)
{
	uint32_t before = atomic_load_explicit(&w->shm->lost[version], memory_order_relaxed);

	if (lost == before)
		return;
	atomic_store_explicit(&w->shm->lost[version], lost, memory_order_relaxed);
	count(&w->shm->overflow, lost - before);
}

/* One batch of IPv4, 0, or IPv6, 1. Whether there was anything. */
static bool receive_batch(struct hca_wire *w, unsigned version)
{
	uint32_t lost = atomic_load_explicit(&w->shm->lost[version], memory_order_relaxed);
	int fd = w->receive_fd[version], n;

	if (fd < 0)
		return false;
	n = link_udp_receive(fd, w->datagram, w->batch, &lost);
	if (n <= 0) {
		w->batch = 1;
		return false;
	}
	note_lost(w, version, lost);
	memset(&w->now, 0, sizeof(w->now));
	for (int i = 0; i < n; i++)
		take_apart(w, &w->datagram[i]);
	w->batch = next_batch(w->batch, (unsigned)n, w->now.datagrams);
	count(&w->shm->packets, w->now.packets);
	count(&w->shm->bytes, w->now.bytes);
	return true;
}

/* Mostly one IP version is in use: the other's socket is looked at seldomer, by who looks often. */
static void receive(struct hca_wire *w, bool again)
{
	if (hca_process_gone(w->process))
		hca_wire_abandon(w);
	else if (w->process->region.ports[w->port].wire_round != w->round)
		hca_wire_reopen(w);
	if (receive_batch(w, w->busy) || (again && ++w->polls % OTHER_POLLS))
		return;
	if (receive_batch(w, !w->busy))
		w->busy = !w->busy;
}

bool hca_wire_receive(struct hca_wire *w, bool again)
{
	uint64_t now = base_now_ns(), turn;
	bool delivered = false;

	if (again)
		note_poll(w, now);
	if (!base_trylock(&w->receive_lock))
		return false;
	if (take_turn(w, now, &turn)) {
		w->now.delivered = 0;
		receive(w, again);
		delivered = w->now.delivered;
		end_turn(w, turn);
	}
	base_unlock(&w->receive_lock);
	return delivered;
}
