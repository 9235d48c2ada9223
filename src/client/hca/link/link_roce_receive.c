/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receives from the network: whose turn it is, and to whom each datagram is delivered.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/pause.h"
#include "base/util.h"
#include "hca/link/flow.h"
#include "hca/link/link_roce.h"
#include "hca/link/link_shm.h"
#include "hca/link/payload.h"

static_assert(WIRE_ROCE_STATUSES <= SHM_ROCE_BAD, "a counter for each");

#define ACK_BYTES (WIRE_BTH_BYTES + WIRE_AETH_BYTES + WIRE_ICRC_BYTES)
/* A holder that receives for longer is stopped or stuck: another thread becomes the holder. */
#define STALL_US 100000
/* A process that has not polled for so long counts as one that does not poll: it may do
 * anything. */
#define LONG_AGO_NS (32 * (int64_t)HCA_ROCE_POLL_NS)
/* While one socket has datagrams, one of this many looks is at the other. */
#define OTHER_POLLS 16
/* So often a process that will sleep tries to do what is due. Between, the lock's holder goes on.
 */
#define FINISH_TRIES 5

static void count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* ---- taking turns ---- */

enum hca_attention hca_roce_attention(const struct hca_link *link, uint64_t now)
{
	const struct hca_roce *w = container_of(link, struct hca_roce, link);
	const uint64_t polled = atomic_load_explicit(&w->shm->polled_ns, memory_order_relaxed);
	/* it may be newer than now */
	const int64_t ago = (int64_t)(now - polled);

	/* messages wait for polls that find nothing: then their receives have been posted */
	if (!atomic_load_explicit(&w->shm->has_wires, memory_order_relaxed))
		return HCA_ATTENDED;
	if (!polled || ago > LONG_AGO_NS)
		return HCA_RESTING;
	return ago > HCA_ROCE_POLL_NS / 2 ? HCA_NEGLECTED : HCA_ATTENDED;
}

/* Notes that the caller polls. Writes the shared cache line at most 8 times in HCA_ROCE_POLL_NS. */
static void note_poll(struct hca_roce *w, uint64_t now)
{
	uint64_t last = atomic_load_explicit(&w->shm->polled_ns, memory_order_relaxed);

	if (now - last > HCA_ROCE_POLL_NS / 8)
		atomic_store_explicit(&w->shm->polled_ns, now, memory_order_relaxed);
}

void hca_roce_call_daemon(struct hca_roce *w)
{
	uint64_t one = 1;

	while (write(w->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* This process will sleep: packets that it has put off must not wait so long, nor the packets
 * behind them. */
static void finish_due(struct hca_roce *w)
{
	struct base_pause pause = { 0 };
	bool more = true;

	for (int i = 0; i < FINISH_TRIES && more && base_trylock(&w->receive_lock); i++) {
		more = !TAILQ_EMPTY(&w->wires.due) && hca_wires_finish(&w->wires, false);
		hca_sender_finish(&w->sender);
		base_unlock(&w->receive_lock);
		if (more)
			base_pause_sleep(&pause);
	}
}

void hca_roce_rest(struct hca_link *link)
{
	struct hca_roce *w = hca_roce(link);

	finish_due(w);
	/* seq_cst: first says that nobody polls, then looks whether the daemon is away. The daemon
	 * first says that it is away, then looks whether somebody polls. */
	atomic_store_explicit(&w->shm->polled_ns, 0, memory_order_seq_cst);
	if (!atomic_load_explicit(&w->shm->daemon_away, memory_order_seq_cst) ||
	    !atomic_exchange_explicit(&w->shm->daemon_away, 0, memory_order_seq_cst))
		return;
	hca_roce_call_daemon(w);
}

/* @now may be older than the turn: this thread looked at the clock before the other one did. */
static bool is_held(uint64_t held, uint64_t now)
{
	return held && now / 1000 + STALL_US - (held >> 16) < 2 * STALL_US;
}

bool hca_roce_is_polled(const struct hca_roce *w)
{
	uint64_t now = base_now_ns();

	if (is_held(atomic_load_explicit(&w->shm->holder, memory_order_relaxed), now))
		return true;
	/* seq_cst: see hca_roce_rest(). It may be newer than now */
	return now + HCA_ROCE_POLL_NS -
	               atomic_load_explicit(&w->shm->polled_ns, memory_order_seq_cst) <
	       2 * HCA_ROCE_POLL_NS;
}

/* Makes this thread the holder. *@turn: the value that says so. False: another thread is. */
static bool claim_turn(struct hca_roce *w, uint64_t now, uint64_t *turn)
{
	uint64_t held = atomic_load_explicit(&w->shm->holder, memory_order_relaxed);

	if (is_held(held, now))
		return false;
	*turn = now / 1000 << 16 | SHM_QP_INDEX(w->sender.qpn);
	/* acquire: pairs with the release in end_turn() */
	if (!atomic_compare_exchange_strong_explicit(&w->shm->holder, &held, *turn,
	                                             memory_order_acquire, memory_order_relaxed))
		return false;
	if (held)
		count(&w->shm->overtakes, 1);
	return true;
}

/* Ends our turn, unless another thread has become the holder meanwhile. */
static void end_turn(struct hca_roce *w, uint64_t turn)
{
	/* release: our deliveries come before those of the next holder */
	atomic_compare_exchange_strong_explicit(&w->shm->holder, &turn, 0, memory_order_release,
	                                        memory_order_relaxed);
}

void hca_roce_release(struct shm_roce_port *shm, uint16_t writer)
{
	uint64_t held = atomic_load_explicit(&shm->holder, memory_order_relaxed);

	if (!held || (held & 0xFFFF) != writer)
		return;
	/* who receives next is to know that packets may be lost. Release: before the turn is free
	 */
	count(&shm->overtakes, 1);
	atomic_compare_exchange_strong_explicit(&shm->holder, &held, 0, memory_order_release,
	                                        memory_order_relaxed);
}

/* ---- the receivers ---- */

/* A datagram: its length, and its decoded headers. */
struct message {
	const struct wire_roce_packet *in;
	uint32_t bytes;
};

/* Makes the message a packet for @n receivers, and copies it to a payload slot. False: no slot is
 * free; it is counted. */
static bool describe(struct hca_roce *w, const struct message *m, uint32_t n,
                     struct hca_packet *pkt)
{
	const struct wire_roce_packet *in = m->in;
	struct hca_payload *payload = hca_payload_get(&w->sender);

	if (!payload || hca_payload_reserve(payload, n)) {
		HCA_COUNT(w->process, w->port, no_payload_slot);
		return false;
	}
	memcpy(shm_data_at(&w->process->region, payload->off), in->payload, in->payload_bytes);
	*pkt = (struct hca_packet){
		.a = { .src_qpn = in->h.deth.src_qpn,
		       .src_port = w->port,
		       .pkey = in->h.bth.pkey,
		       .length = in->payload_bytes,
		       .hop_limit = in->ip.hop_limit,
		       .flags = SHM_ARRIVAL_GRH | SHM_ARRIVAL_PAYLOAD | SHM_ARRIVAL_ETHERNET |
		                SHM_ARRIVAL_ROCE,
		       .dgid = in->ip.dgid,
		       .payload_off = payload->off },
		.qkey = in->h.deth.qkey,
		.payload = payload,
		.sender = w->sender.shm,
		.writer = (uint16_t)SHM_QP_INDEX(w->sender.qpn),
	};
	wire_ip_grh(&in->ip, (uint16_t)m->bytes, pkt->a.data);
	if (base_log_on(packet, BASE_LOG_TRACE))
		pkt->a.flags |= SHM_ARRIVAL_TRACED;
	if (in->h.bth.opcode == WIRE_OPCODE_UD_SEND_ONLY_IMM) {
		pkt->a.flags |= SHM_ARRIVAL_IMM;
		pkt->a.imm = in->h.imm_data;
	}
	if (in->h.bth.solicited)
		pkt->a.flags |= SHM_ARRIVAL_SOLICITED;
	return true;
}

/* Whether we sent it: on a loopback device, all that we send to a group comes back. */
static bool is_own(struct hca_roce *w, const struct ib_gid *sgid)
{
	const struct shm_port *port = shm_port_at(&w->process->region, w->port);
	/* acquire: the GIDs read below are no older than this */
	uint32_t seq = atomic_load_explicit((_Atomic uint32_t *)&port->seq, memory_order_acquire);

	if (seq == w->foreign_seq && ib_gid_equal(&w->foreign, sgid))
		return false;
	for (int i = 0; i < SHM_GIDS; i++)
		if (ib_gid_equal(&port->gid[i], sgid))
			return true;
	w->foreign = *sgid;
	w->foreign_seq = seq;
	return false;
}

/* The flow that lists the queue pairs attached to @mgid on this HCA, or NULL. */
static struct hca_flow *group_flow(struct hca_roce *w, const struct ib_gid *mgid)
{
	if (memcmp(w->group.dest.gid, mgid, sizeof(w->group.dest.gid)) != 0) {
		memcpy(w->group.dest.gid, mgid, sizeof(w->group.dest.gid));
		atomic_store_explicit(&w->group.flow, NULL, memory_order_relaxed);
	}
	w->group.dest.lid = IB_LID_MCAST_FIRST;
	w->group.dest.port_num = 1;
	w->group.dest.is_global = true;
	return hca_flow_get(&w->sender, &w->group);
}

static void deliver_to_group(struct hca_roce *w, const struct message *m)
{
	const struct wire_roce_packet *in = m->in;
	struct hca_packet pkt;
	struct hca_flow *f;

	if (in->h.bth.dest_qpn != IB_QPN_MCAST) { /* malformed */
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

static void deliver_to_qp(struct hca_roce *w, const struct message *m)
{
	struct hca_packet pkt;

	if (!describe(w, m, 1, &pkt))
		return;
	hca_deliver(w->process, &pkt, m->in->h.bth.dest_qpn, w->port);
	w->now.delivered += pkt.payload->n != 0;
}

/* Passes a MAD for QP1 to the daemon, which has the general services. */
static void give_to_daemon(struct hca_roce *w, const struct wire_roce_packet *in)
{
	struct control_roce_mad req = { .hca_handle = w->hca_handle,
		                        .src_qpn = in->h.deth.src_qpn,
		                        .qkey = in->h.deth.qkey,
		                        .pkey = in->h.bth.pkey,
		                        .sgid = in->ip.sgid,
		                        .dgid = in->ip.dgid };

	if (in->payload_bytes != sizeof(req.data)) {
		count(&w->shm->bad_mad, 1);
		return;
	}
	memcpy(req.data, in->payload, sizeof(req.data));
	hca_request(w->process, CONTROL_ROCE_MAD, &req, sizeof(req));
}

/* Has the packets of connected queue pairs worked on that came last. */
static void deliver_run(struct hca_roce *w)
{
	if (w->n_run)
		w->now.delivered += hca_wires_receive(&w->wires, w->run, w->n_run);
	w->n_run = 0;
}

/* A packet of a connected queue pair, in the place behind those of the run. */
static void add_to_run(struct hca_roce *w)
{
	struct wire_roce_packet *in = &w->run[w->n_run];

	if (w->n_run && !hca_wires_continue(in - 1, in)) {
		deliver_run(w);
		w->run[0] = *in;
	}
	if (++w->n_run == HCA_WIRES_RUN_MOST)
		deliver_run(w);
}

static void deliver(struct hca_roce *w, const struct message *m)
{
	bool is_mcast = wire_gid_is_ip_mcast(&m->in->ip.dgid);

	if (wire_opcode_transport(m->in->h.bth.opcode) != WIRE_TRANSPORT_UD) {
		add_to_run(w);
		return;
	}
	deliver_run(w);
	if (m->in->h.bth.dest_qpn == IB_QPN_GSI && !is_mcast)
		give_to_daemon(w, m->in);
	else if (is_mcast)
		deliver_to_group(w, m);
	else
		deliver_to_qp(w, m);
}

/* Receives one datagram. @ip: its IP header, with a guess at its IPv4 identification. Returns the
 * true identification if the ICRC shows it. */
static uint16_t receive_datagram(struct hca_roce *w, const uint8_t *at, uint32_t bytes,
                                 const struct wire_ip *ip)
{
	const struct wire_roce_datagram raw = { .at = at,
		                                .bytes = bytes,
		                                .truncated = bytes > WIRE_ROCE_MAX_BYTES,
		                                .transports = 1 << WIRE_TRANSPORT_RC |
		                                              1 << WIRE_TRANSPORT_CNP |
		                                              1 << WIRE_TRANSPORT_UC |
		                                              1 << WIRE_TRANSPORT_UD,
		                                .rxe_flush = w->rxe_flush,
		                                .reserved = true };
	struct wire_roce_packet *in = &w->run[w->n_run];
	enum wire_roce_status status;
	uint16_t id;

	*in = (struct wire_roce_packet){ .ip = *ip };
	status = wire_roce_parse(&raw, in);
	if (status == WIRE_ROCE_OK && !wire_ipv4_ids_believe(&w->ids, &in->ip))
		status = WIRE_ROCE_ICRC;
	/* there is no room for more; of connected queue pairs the responder refuses it */
	if (status == WIRE_ROCE_OK && in->payload_bytes > SHM_PAYLOAD_SLOT &&
	    wire_opcode_transport(in->h.bth.opcode) == WIRE_TRANSPORT_UD)
		status = WIRE_ROCE_TRUNCATED;
	w->now.datagrams++;
	base_log_trace(packet, "roce: %u bytes, PSN %u, to QP 0x%06x: %s", bytes, in->h.bth.psn,
	               in->h.bth.dest_qpn, wire_roce_status_name(status));
	if (status != WIRE_ROCE_OK) {
		count(&w->shm->bad[status], 1);
		return ip->ipv4_id;
	}
	w->now.packets++;
	w->now.bytes += in->payload_bytes;
	id = in->ip.ipv4_id;
	deliver(w, &(struct message){ .in = in, .bytes = bytes });
	return id;
}

static bool is_ack(const uint8_t *packet)
{
	return *packet == WIRE_OPCODE(WIRE_TRANSPORT_RC, WIRE_ACKNOWLEDGE);
}

/* Bytes of the last of the datagrams that the kernel has joined, if that is an acknowledgement and
 * the first one is not; or 0. */
static uint32_t ack_behind(const struct netdev_udp_datagram *d)
{
	const uint8_t *first = d->iov[0].iov_base;
	uint32_t bytes;

	if (!d->each || d->bytes <= d->each)
		return 0;
	bytes = d->bytes % d->each ? d->bytes % d->each : d->each;
	return bytes == ACK_BYTES && is_ack(first + d->bytes - bytes) && !is_ack(first) ? bytes : 0;
}

/* Receives all datagrams that the kernel has joined. Mostly their identifications count up. An
 * acknowledgement that was sent along with requests is received before them: programs see it in
 * that order (hca/transport/packet_connection.c). */
static void receive_joined(struct hca_roce *w, const struct netdev_udp_datagram *d)
{
	const uint8_t *at = d->iov[0].iov_base;
	const uint32_t ack = ack_behind(d);
	uint32_t left = d->bytes - ack;
	struct wire_ip ip = d->ip;

	if (ack) {
		ip.ipv4_id = (uint16_t)(ip.ipv4_id + left / d->each);
		receive_datagram(w, at + left, ack, &ip);
		ip.ipv4_id = d->ip.ipv4_id;
	}
	do {
		uint32_t bytes = d->each && d->each < left ? d->each : left;

		ip.ipv4_id = receive_datagram(w, at, bytes, &ip) + 1;
		at += bytes;
		left -= bytes;
	} while (left);
}

/* ---- batches ---- */

/*
 * How many buffers to ask the kernel to fill, after it filled @got of @asked with @datagrams
 * datagrams. Each buffer that stays empty costs the kernel a look, so on a quiet network we ask for
 * one. And not for too many: receivers must keep up.
 */
static unsigned next_batch(unsigned asked, unsigned got, unsigned datagrams)
{
	unsigned n = got < asked ? got + 1 : asked * 4;

	while (n > 1 && got && n * datagrams > got * NETDEV_UDP_BATCH)
		n /= 2;
	return n < NETDEV_UDP_BATCH ? n : NETDEV_UDP_BATCH;
}

void hca_roce_note_lost(struct hca_roce *w, unsigned version, uint32_t lost)
{
	uint32_t before = atomic_load_explicit(&w->shm->lost[version], memory_order_relaxed);

	/* a holder that was held up may have a count that is older than the next holder's */
	do {
		if ((int32_t)(lost - before) <= 0)
			return;
	} while (!atomic_compare_exchange_weak_explicit(
	        &w->shm->lost[version], &before, lost, memory_order_relaxed, memory_order_relaxed));
	count(&w->shm->overflow, lost - before);
	shm_readers_lose(&w->shm->readers);
}

/* Receives one batch. @version: 0 is IPv4, 1 is IPv6. @again: the caller polls. Whether there was a
 * datagram. */
static bool receive_batch(struct hca_roce *w, unsigned version, bool again)
{
	uint32_t lost = atomic_load_explicit(&w->shm->lost[version], memory_order_relaxed);
	int fd = w->receive_fd[version], n;

	if (fd < 0)
		return false;
	n = netdev_udp_receive(fd, w->datagram, w->batch, &lost);
	if (n <= 0) {
		w->batch = 1;
		return false;
	}
	hca_roce_note_lost(w, version, lost);
	memset(&w->now, 0, sizeof(w->now));
	for (int i = 0; i < n; i++)
		receive_joined(w, &w->datagram[i]);
	deliver_run(w);
	if (!TAILQ_EMPTY(&w->wires.due))
		hca_wires_finish(&w->wires, again);
	w->batch = next_batch(w->batch, (unsigned)n, w->now.datagrams);
	w->moved += w->now.bytes;
	count(&w->shm->packets, w->now.packets);
	count(&w->shm->bytes, w->now.bytes);
	return true;
}

/* Mostly one IP version is in use. A caller that polls (@again) looks at the other socket seldom.
 */
static void receive(struct hca_roce *w, bool again)
{
	if (base_unlikely(!TAILQ_EMPTY(&w->wires.due)))
		w->now.delivered += hca_wires_finish(&w->wires, false);
	if (hca_process_gone(w->process))
		hca_roce_abandon(w);
	else if (shm_port_at(&w->process->region, w->port)->socket_round != w->round)
		hca_roce_reopen(w);
	if (receive_batch(w, w->busy, again) || (again && ++w->polls % OTHER_POLLS))
		return;
	if (receive_batch(w, !w->busy, again))
		w->busy = !w->busy;
}

bool hca_roce_receive(struct hca_link *link, bool again)
{
	struct hca_roce *w = hca_roce(link);
	uint64_t now = base_now_ns(), turn;
	bool delivered = false;

	/* it stays locked in a child that was forked meanwhile, whose polls must promise nothing */
	if (!base_trylock(&w->receive_lock))
		return false;
	if (again)
		note_poll(w, now);
	if (claim_turn(w, now, &turn)) {
		w->now.delivered = 0;
		receive(w, again);
		delivered = w->now.delivered;
		hca_sender_finish(&w->sender);
		end_turn(w, turn);
	}
	base_unlock(&w->receive_lock);
	return delivered;
}
