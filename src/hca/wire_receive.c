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

#define SLOT_BYTES (WIRE_ROCE_MAX_PAYLOAD + WIRE_ROCE_BODY_MORE)

/* Who receives for so long without an end is stopped: others go on. */
#define STALL_US 100000
/* While one socket has something, of so many looks one is at the other. */
#define OTHER_POLLS 8

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

static struct hca_payload *payload_of(struct hca_wire *w, unsigned i)
{
	return &w->qp.payloads.slot[w->slot[i]];
}

/* What it is to those that receive it. */
static void describe(struct hca_wire *w, const struct wire_roce_packet *in, unsigned i,
                     struct hca_packet *pkt)
{
	const struct link_udp_datagram *d = &w->datagram[i];
	struct hca_payload *payload = payload_of(w, i);
	uint64_t skip = (uint64_t)((const char *)in->payload - (const char *)d->iov[1].iov_base);

	*pkt = (struct hca_packet){
		.a = { .src_qpn = in->deth.src_qpn,
		       .src_port = w->port,
		       .pkey = in->bth.pkey,
		       .length = in->payload_bytes,
		       .hop_limit = in->ip.hop_limit,
		       .flags = SHM_ARRIVAL_GRH | SHM_ARRIVAL_PAYLOAD | SHM_ARRIVAL_ETHERNET |
		                SHM_ARRIVAL_WIRE,
		       .dgid = in->ip.dgid,
		       .payload_off = payload->off + skip },
		.qkey = in->deth.qkey,
		.payload = payload,
		.sender = w->qp.sender,
		.writer = (uint16_t)SHM_QP_INDEX(w->qp.ex.qp_base.qp_num),
	};
	wire_ip_grh(&in->ip, (uint16_t)d->bytes, pkt->a.data);
	if (in->bth.opcode == WIRE_OPCODE_UD_SEND_ONLY_IMM) {
		pkt->a.flags |= SHM_ARRIVAL_IMM;
		pkt->a.imm = in->imm_data;
	}
	if (in->bth.solicited)
		pkt->a.flags |= SHM_ARRIVAL_SOLICITED;
}

/* Whether it is one of ours: on a loopback device all that we send to a group comes back. */
static bool is_own(const struct hca_wire *w, const struct ib_gid *sgid)
{
	const struct shm_port *port = &w->process->region.ports[w->port];

	for (int i = 0; i < SHM_GIDS; i++)
		if (!memcmp(&port->gid[i], sgid, sizeof(*sgid)))
			return true;
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

static void deliver_to_group(struct hca_wire *w, const struct wire_roce_packet *in,
                             const struct hca_packet *pkt)
{
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
	if (hca_payload_reserve(pkt->payload, f->count)) {
		HCA_COUNT(w->process, w->port, no_payload_slot);
		return;
	}
	hca_deliver_to(w->process, pkt, HCA_ANY_PORT, f->to, f->count);
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

static void deliver(struct hca_wire *w, const struct wire_roce_packet *in,
                    const struct hca_packet *pkt)
{
	if (in->bth.dest_qpn == IB_QPN_GSI && !wire_gid_is_ip_mcast(&in->ip.dgid))
		give_to_manager(w, in);
	else if (wire_gid_is_ip_mcast(&in->ip.dgid))
		deliver_to_group(w, in, pkt);
	else if (hca_payload_reserve(pkt->payload, 1))
		HCA_COUNT(w->process, w->port, no_payload_slot);
	else
		hca_deliver(w->process, pkt, in->bth.dest_qpn, w->port);
}

/* Datagram @i of the batch. */
static void take_in(struct hca_wire *w, unsigned i)
{
	const struct link_udp_datagram *d = &w->datagram[i];
	const struct wire_roce_datagram raw = { .head = w->head[i],
		                                .body = d->iov[1].iov_base,
		                                .bytes = d->bytes,
		                                .truncated = d->truncated };
	struct wire_roce_packet in = { .ip = d->ip };
	enum wire_roce_status status = wire_roce_parse(&raw, &in);
	struct hca_packet pkt;

	if (status != WIRE_ROCE_OK) {
		count(&w->shm->bad[status], 1);
		return;
	}
	describe(w, &in, i, &pkt);
	deliver(w, &in, &pkt);
	count(&w->shm->packets, 1);
	count(&w->shm->bytes, in.payload_bytes);
	/* who has it reads it there: another slot for the next one */
	if (pkt.payload->n) {
		w->n_delivered++;
		pkt.payload->pinned = false;
		w->slot[i] = HCA_WIRE_NO_SLOT;
	}
}

/* ---- batches ---- */

/* A payload slot for each of @n datagrams. For how many there are some. */
static unsigned prepare(struct hca_wire *w, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct link_udp_datagram *d = &w->datagram[i];
		struct hca_payload *p;

		if (w->slot[i] != HCA_WIRE_NO_SLOT)
			continue;
		p = hca_payload_get(&w->qp);
		if (!p)
			return i;
		p->pinned = true;
		w->slot[i] = (uint32_t)(p - w->qp.payloads.slot);
		d->iov[0] = (struct iovec){ w->head[i], sizeof(w->head[i]) };
		d->iov[1] = (struct iovec){ shm_data_at(&w->process->region, p->off), SLOT_BYTES };
	}
	return n;
}

/*
 * How many to ask for after @got came of @asked: each that does not come costs the kernel a
 * look, and us a slot; who polls a quiet wire asks for one.
 */
static unsigned next_batch(unsigned asked, unsigned got)
{
	if (got < asked)
		return got + 1;
	return asked * 4 < LINK_UDP_BATCH ? asked * 4 : LINK_UDP_BATCH;
}

/* No memory for what comes: it is thrown away, and said so. */
static unsigned throw_away(struct hca_wire *w, int fd)
{
	char scrap[1];
	struct link_udp_datagram d = { .iov = { { scrap, sizeof(scrap) }, { scrap, 0 } } };
	uint32_t lost;
	int n = link_udp_receive(fd, &d, 1, &lost);

	if (n > 0)
		HCA_COUNT(w->process, w->port, no_payload_slot);
	return n > 0 ? 1 : 0;
}

static void note_lost(struct hca_wire *w, unsigned version, uint32_t lost)
{
	uint32_t before = atomic_load_explicit(&w->shm->lost[version], memory_order_relaxed);

	if (lost == before)
		return;
	atomic_store_explicit(&w->shm->lost[version], lost, memory_order_relaxed);
	count(&w->shm->overflow, lost - before);
}

/* One batch of IPv4, 0, or IPv6, 1. How many datagrams. */
static unsigned receive_batch(struct hca_wire *w, unsigned version)
{
	uint32_t lost = atomic_load_explicit(&w->shm->lost[version], memory_order_relaxed);
	int fd = w->receive_fd[version], n;
	unsigned ready;

	if (fd < 0)
		return 0;
	ready = prepare(w, w->batch);
	if (!ready)
		return throw_away(w, fd);
	n = link_udp_receive(fd, w->datagram, ready, &lost);
	w->batch = next_batch(ready, n > 0 ? (unsigned)n : 0);
	if (n <= 0)
		return 0;
	note_lost(w, version, lost);
	for (int i = 0; i < n; i++)
		take_in(w, (unsigned)i);
	return (unsigned)n;
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
	if (pthread_mutex_trylock(&w->receive_lock))
		return false;
	if (take_turn(w, now, &turn)) {
		w->n_delivered = 0;
		receive(w, again);
		delivered = w->n_delivered;
		end_turn(w, turn);
	}
	pthread_mutex_unlock(&w->receive_lock);
	return delivered;
}
