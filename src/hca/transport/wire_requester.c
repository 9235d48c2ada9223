/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire, the requester's half: requests become packets, and what comes back completes them. See
 * wire.h.
 *
 * Packets are sent again from the first one on that was not acknowledged ("go back N"): after a NAK
 * of the sequence, after a response that shows that an earlier one got lost, and when nothing has
 * come for the timeout (section 9.7.6). That may be long, and peers tell a gap once only; so
 * packets are sent again earlier, too, when nothing has come for much longer than usual: that is no
 * retry, of which there are few, and the next time it waits twice as long. The number of packets
 * under way is limited; the limit grows while all goes well, and is halved when packets get lost.
 *
 * First one packet goes again, a probe: the peer may have kept what came behind a gap
 * (wire_ahead.c), and then acknowledges it with that packet. Responses are kept here likewise, and
 * only those of the gap are asked for again. Then one packet got lost, and the limit hardly
 * shrinks.
 *
 * A peer may tell credits: how many receives it has (section 9.7.7.2). They are kept to once it had
 * none: programs that see to that themselves know of new receives before the next acknowledgement
 * tells, and would wait for it. From then on no message that needs one is begun beyond them, but
 * one, while nothing else is under way: of a peer without receives it finds out when it may go on,
 * if what the peer says of new ones gets lost.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "hca/link/detour.h"
#include "hca/process/operation.h"
#include "hca/queue/cq.h"
#include "hca/transport/wire.h"

#define WINDOW_LEAST 8
#define WINDOW_MOST  256 /* a quarter of it is one batch: see is_worth() */
/* So many packets of an RDMA READ are asked for at one time: its responses must not overwhelm us.
 */
#define READ_MOST 64
/* A READ of so many packets waits for nobody else's. */
#define READ_SHORT 8
/* A packet in so many asks for an acknowledgement, besides the last one of each message. */
#define ACK_EVERY_MOST 32
#define INFINITELY     7 /* rnr_retry */
/* A peer that has kept nothing behind so many losses is asked at one loss in so many. */
#define IN_VAIN_MOST 2
#define PROBE_EVERY  16
/* Nothing that comes for so long, and twice the usual time, is taken for a loss. Threads that
 * answer may have to wait for a processor. */
#define EARLY_NS 4000000
/* The same after a loss: what was sent again may be lost, too, and peers tell that no more. */
#define EARLY_AGAIN_NS 1000000
/* Twice the usual time, while it is not known. */
#define UNKNOWN_NS 250000000
/* Of ask(): no enum ibv_wc_status. */
#define NOT_NOW (-1)

/* Requests under way, as far as that is not in struct shm_wire. */
static uint32_t head_of(const struct hca_wire *w)
{
	return hca_connected_load(&w->connection->head);
}

static uint32_t under_way(const struct hca_wire *w)
{
	return wire_psn_add(w->shm->psn, -w->shm->acked);
}

/* How many packets may be under way. Others can write to the record. */
static uint32_t window_of(const struct hca_wire *w)
{
	return w->shm->window < WINDOW_MOST ? w->shm->window : WINDOW_MOST;
}

/* How often packets ask for an acknowledgement: the packets that a window lets go at one time bring
 * one at least, so that the loss of one alone stops nothing. */
static uint32_t ack_every(const struct hca_wire *w)
{
	uint32_t every = window_of(w) / 4;

	return every > ACK_EVERY_MOST ? ACK_EVERY_MOST : every ? every : 1;
}

static uint32_t packets_of(const struct hca_wire *w, const struct shm_request *r)
{
	const unsigned op = hca_operation(r->opcode);

	/* a request with a response is one packet, and so is its response, but for a READ's */
	return (op & (HCA_OP_ANSWERED | HCA_OP_READ)) == HCA_OP_ANSWERED
	               ? 1
	               : hca_wire_packets(w, r->length);
}

/* Of the peer's. */
static bool takes_receive(const struct shm_request *r)
{
	return hca_operation(r->opcode) & (HCA_OP_SEND | HCA_OP_IMM);
}

/* ---- what becomes of requests ---- */

static bool has_failed(const struct hca_wire *w)
{
	return hca_connected_load(&w->connection->failed);
}

static void tell_owner(struct hca_wire *w)
{
	struct hca_process *p = w->end.process;

	atomic_thread_fence(memory_order_seq_cst); /* head before the look at arm */
	hca_cq_alert(p, &p->region.cqs[w->end.qp.connection.send_cq]);
	if (has_failed(w)) /* its receives will be flushed */
		hca_cq_alert(p, &p->region.cqs[w->end.qp.cq]);
}

/* The first request fails: those behind it are not sent any more. */
static void fail(struct hca_wire *w, enum ibv_wc_status status)
{
	base_log_debug(packet, "QP 0x%06x: its first request fails, status %d", w->qpn,
	               (int)status);
	atomic_store_explicit(&w->connection->failed, shm_failed(head_of(w), status),
	                      memory_order_release);
	atomic_store_explicit(&w->shm->deadline_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&w->shm->resume_ns, 0, memory_order_relaxed);
	tell_owner(w);
}

/* The first request, of @n packets, is done. */
static void complete(struct hca_wire *w, const struct shm_request *r, uint32_t n)
{
	uint32_t head = head_of(w);

	if (w->shm->next == head) { /* it was to be sent again */
		w->shm->next++;
		w->shm->takes += takes_receive(r);
		w->shm->offset = 0;
	}
	w->shm->head_takes += takes_receive(r);
	w->shm->head_ssn = wire_psn_add(w->shm->head_ssn, 1);
	w->shm->head_psn = wire_psn_add(w->shm->head_psn, n);
	hca_connected_settle(w->connection, head, IBV_WC_SUCCESS);
}

/* Copies the first request. False: no part of it was ever sent. */
static bool first_request(const struct hca_wire *w, struct shm_request *r, struct shm_entry *e)
{
	uint32_t head = head_of(w);

	/* not by their order: the longest message has half of all PSNs */
	if (head == hca_connected_load(&w->connection->tail) || w->shm->beyond == w->shm->head_psn)
		return false;
	return hca_connected_take(&w->end, head, r, e);
}

/* ---- time ---- */

static uint64_t timeout_ns(const struct hca_wire *w)
{
	/* section 9.7.6.1.3: 4.096 microseconds times a power of two; 0: for ever */
	return w->path.timeout ? 4096ull << w->path.timeout : 0;
}

/* How long nothing may come. Section 9.7.6.1.3 allows up to four times the timeout: as much as
 * packets need that wait in queues. */
static uint64_t patience_ns(const struct hca_wire *w)
{
	const uint64_t timeout = timeout_ns(w), usual = 4 * w->shm->round_ns;

	return usual < timeout ? timeout : usual < 4 * timeout ? usual : 4 * timeout;
}

static void write_deadline(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;
	uint64_t timeout = patience_ns(w), usual = s->round_ns ? 2 * s->round_ns : UNKNOWN_NS;
	uint64_t least = s->recovers == SHM_WIRE_RECOVERS ? EARLY_AGAIN_NS : EARLY_NS;
	uint64_t early = (least + usual) << (s->early & 31);

	if (!w->end.process->region.control->settings.roce_adp_retrans)
		early = timeout;
	atomic_store_explicit(&s->deadline_ns,
	                      s->waits_since_ns + (early < timeout ? early : timeout),
	                      memory_order_relaxed);
	hca_wire_watch(w);
}

/* Something was sent, or acknowledged. */
static void set_deadline(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;

	if (s->psn == s->acked || !timeout_ns(w)) {
		atomic_store_explicit(&s->deadline_ns, 0, memory_order_relaxed);
		return;
	}
	s->waits_since_ns = base_now_ns();
	write_deadline(w);
}

/*
 * Takes the time of a packet, one after the other: the longest, which fades. Until then the wait
 * stays as long as it was when something was acknowledged again: of what was sent more than once
 * nobody could tell how long it took, and to wait as long as before is too short.
 */
static void time_packet(struct shm_wire *s)
{
	uint64_t took;

	if (!s->timed_ns || wire_psn_diff(s->acked, s->timed_psn) <= 0)
		return;
	took = base_now_ns() - s->timed_ns;
	s->round_ns = took > s->round_ns ? took : s->round_ns - (s->round_ns - took) / 8;
	s->timed_ns = 0;
	s->early = 0;
}

/* ---- going back ---- */

/* The next packet is the first that is not acknowledged. */
static void rewind_to_acked(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;

	s->next = head_of(w);
	s->takes = s->head_takes;
	s->limited = false;
	s->offset = wire_psn_add(s->acked, -s->head_psn);
	s->psn = s->acked;
	s->answered = 0;
}

static void shrink(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;

	s->window = s->window / 2 < WINDOW_LEAST ? WINDOW_LEAST : s->window / 2;
	s->grown = 0;
}

/* Has all that is not acknowledged sent again, as some of it got lost. */
static void go_back(struct hca_wire *w)
{
	rewind_to_acked(w);
	w->shm->timed_ns = 0; /* nobody could tell what is acknowledged */
	w->shm->recovers = SHM_WIRE_RECOVERS;
	shrink(w);
}

/* The same, but first a probe: whether the peer has kept what came behind the packet that got lost.
 * What the loss says of the network its answer tells. */
static void probe(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;
	/* of a peer that keeps nothing it costs the time of a packet */
	bool may_help = s->has_gap || s->in_vain < IN_VAIN_MOST || !(s->in_vain % PROBE_EVERY);
	bool first = hca_wire_is_selective(w) && !s->probes && may_help;
	uint32_t window = s->window;

	go_back(w);
	if (first)
		s->window = window;
	else if (!s->probes)
		s->in_vain++;
	s->probes = first;
	s->has_gap = s->has_gap && first;
}

/* Something was acknowledged, or answered, up to @acked before. */
static void end_probe(struct hca_wire *w, uint32_t acked)
{
	struct shm_wire *s = w->shm;
	/* behind the packet that was sent, or the responses that were asked for */
	const uint32_t end = s->has_gap ? s->gap_end : wire_psn_add(acked, 1);
	const int32_t kept = wire_psn_diff(s->acked, end);

	if (!s->probes || kept < 0)
		return;
	if (kept) { /* one packet of many got lost */
		s->in_vain = 0;
		s->window -= s->window / 8;
	} else if (s->acked != s->beyond) {
		s->in_vain++;
		shrink(w);
	}
	s->probes = s->has_gap = false;
}

/* What was sent is taken for lost. */
static void retry(struct hca_wire *w, const char *why)
{
	base_log_debug(packet, "QP 0x%06x: sends again from PSN %u on: %s", w->qpn, w->shm->acked,
	               why);
	w->shm->early = 0;
	if (w->shm->retries++ >= w->path.retry_cnt)
		fail(w, IBV_WC_RETRY_EXC_ERR);
	else
		probe(w);
}

/* The peer's packets show that something got lost. */
static void take_loss(struct hca_wire *w, const char *why)
{
	if (w->shm->recovers == SHM_WIRE_GOES_ON)
		retry(w, why);
	else if (w->shm->recovers == SHM_WIRE_HAS_WAITED)
		probe(w); /* it may be of before the wait, so it uses up no retry */
}

/* Unless it goes back already. */
static void retry_for_response(struct hca_wire *w)
{
	if (w->shm->recovers == SHM_WIRE_RECOVERS)
		return;
	HCA_WIRE_COUNT(w, implied_nak_seq_err);
	take_loss(w, "a response got lost");
}

static void grow(struct hca_wire *w, uint32_t packets)
{
	struct shm_wire *s = w->shm;

	s->retries = 0;
	s->rnr_retries = 0;
	s->recovers = SHM_WIRE_GOES_ON;
	s->slowed = s->slowed && wire_psn_diff(s->acked, s->slowed_until) < 0;
	s->grown += packets;
	if (s->grown < s->window)
		return;
	s->grown = 0;
	if (s->window < WINDOW_MOST)
		s->window += s->window < WINDOW_MOST / 2 ? s->window / 4 : 1;
}

/* PSNs before @psn are acknowledged. */
static void move_acked(struct hca_wire *w, uint32_t psn)
{
	int32_t n = wire_psn_diff(psn, w->shm->acked);

	if (n <= 0)
		return;
	w->shm->acked_rounds += psn < w->shm->acked;
	w->shm->acked = psn;
	w->shm->limited = false;
	time_packet(w->shm);
	if (wire_psn_diff(w->shm->psn, psn) < 0) /* it was to be sent again */
		rewind_to_acked(w);
	grow(w, (uint32_t)n);
	set_deadline(w);
}

/*
 * PSNs before @psn are acknowledged, by a response to a later one, or to the last one of them.
 * Completes requests. False: the first one lacks a response of its own, which must have got lost.
 */
static bool acknowledge(struct hca_wire *w, uint32_t psn)
{
	struct shm_entry entries[HCA_MAX_SGE];
	struct shm_request r;

	for (unsigned i = 0; i <= WINDOW_MOST && first_request(w, &r, entries); i++) {
		uint32_t n = packets_of(w, &r), end = wire_psn_add(w->shm->head_psn, n);

		if (hca_operation(r.opcode) & HCA_OP_LOCAL)
			break;
		if (hca_operation(r.opcode) & HCA_OP_ANSWERED)
			return wire_psn_diff(psn, w->shm->acked) <= 0;
		if (wire_psn_diff(psn, end) < 0)
			break;
		complete(w, &r, n);
		if (wire_psn_diff(w->shm->acked, end) < 0)
			move_acked(w, end);
	}
	move_acked(w, psn);
	return true;
}

/* ---- credits ---- */

/* Whether the peer has a receive for the next message, as far as it has told. */
static bool has_credit(const struct shm_wire *s, const struct shm_request *r)
{
	return !s->has_limit || !takes_receive(r) || (int32_t)(s->credits - s->takes) > 0;
}

/* Whether the next packet of a request may be sent. */
static bool is_allowed(const struct hca_wire *w, const struct shm_request *r)
{
	const struct shm_wire *s = w->shm;

	return s->offset ? !s->limited : !under_way(w) || has_credit(s, r);
}

/*
 * What an acknowledgement tells: receives for messages behind its MSN, which may be of before. It
 * may also be ahead of what is done here; then the receives of those in between are not among what
 * it tells. Acknowledgements may overtake each other: so the most that was ever told holds.
 */
static void take_credits(struct hca_wire *w, const struct wire_aeth *aeth)
{
	int32_t ahead = wire_psn_diff(aeth->msn, w->shm->head_ssn);
	struct shm_entry entries[HCA_MAX_SGE];
	struct shm_wire *s = w->shm;
	struct shm_request r;
	uint32_t credits;

	if ((aeth->syndrome & 31) == WIRE_AETH_NO_CREDITS) {
		s->has_limit = false;
		return;
	}
	credits = s->head_takes + wire_credits_decode(aeth->syndrome & 31) +
	          (uint32_t)(ahead < 0 ? ahead : 0);
	if (s->has_limit && (int32_t)(credits - s->credits) <= 0)
		return;
	/* it waits for a receive: there is one now */
	if (atomic_load_explicit(&s->resume_ns, memory_order_relaxed) &&
	    (int32_t)(credits - s->credits) > 0 && first_request(w, &r, entries) &&
	    takes_receive(&r))
		atomic_store_explicit(&s->resume_ns, 1, memory_order_relaxed);
	s->has_limit = s->ran_short;
	s->credits = credits;
}

/* ---- sending ---- */

/* The opcodes of an operation's first packet, last packet, and only packet; a middle packet has the
 * opcode after the first. */
static const struct {
	uint8_t first, last, only; /* enum wire_operation */
} on_wire[] = {
	[IBV_WR_SEND] = { WIRE_SEND_FIRST, WIRE_SEND_LAST, WIRE_SEND_ONLY },
	[IBV_WR_SEND_WITH_IMM] = { WIRE_SEND_FIRST, WIRE_SEND_LAST_IMM, WIRE_SEND_ONLY_IMM },
	[IBV_WR_SEND_WITH_INV] = { WIRE_SEND_FIRST, WIRE_SEND_LAST_INVALIDATE,
	                           WIRE_SEND_ONLY_INVALIDATE },
	[IBV_WR_RDMA_WRITE] = { WIRE_WRITE_FIRST, WIRE_WRITE_LAST, WIRE_WRITE_ONLY },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { WIRE_WRITE_FIRST, WIRE_WRITE_LAST_IMM,
	                                 WIRE_WRITE_ONLY_IMM },
	/* one packet asks for all that is answered */
	[IBV_WR_RDMA_READ] = { .only = WIRE_READ_REQUEST },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { .only = WIRE_COMPARE_SWAP },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { .only = WIRE_FETCH_ADD },
	[HCA_WR_ATOMIC_WRITE] = { .only = WIRE_ATOMIC_WRITE },
	[HCA_WR_FLUSH] = { .only = WIRE_FLUSH },
};

static bool is_known(const struct shm_request *r)
{
	return r->opcode < ARRAY_SIZE(on_wire) && on_wire[r->opcode].only;
}

/* What packet @i of the @n of request @r is. */
static unsigned operation_of(const struct shm_request *r, uint32_t i, uint32_t n)
{
	if (n == 1)
		return on_wire[r->opcode].only;
	return !i           ? on_wire[r->opcode].first
	       : i + 1 == n ? on_wire[r->opcode].last
	                    : on_wire[r->opcode].first + 1u;
}

/* Fills in the headers besides the BTH. */
static void fill_headers(const struct hca_wire *w, const struct shm_request *r, uint64_t at,
                         uint32_t length, struct wire_headers *h)
{
	const unsigned headers = wire_opcodes[h->bth.opcode].headers;

	if (headers & WIRE_RETH)
		h->reth = (struct wire_reth){ .va = at, .rkey = r->rkey, .dma_length = length };
	if (headers & WIRE_ATOMICETH) {
		bool adds = r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

		h->atomic = (struct wire_atomiceth){ .va = at,
			                             .rkey = r->rkey,
			                             .swap_or_add = adds ? r->compare_add : r->swap,
			                             .compare = adds ? 0 : r->compare_add };
	}
	if (headers & WIRE_FETH) {
		const uint8_t level = hca_flush_level(r->swap);

		h->feth = (struct wire_feth){
			.placement = hca_flush_type(r->swap),
			.selectivity = level,
			.rxe_icrc = w->end.process->region.control->settings.roce_rxe_flush != 0
		};
		/* of a region as a whole it means nothing, and may be too long */
		h->reth.dma_length = level == HCA_FLUSH_RANGE ? (uint32_t)r->compare_add : 0;
	} else if (headers & (WIRE_IMMDT | WIRE_IETH)) { /* both lie in one place */
		h->imm_data = r->imm;
	}
}

static void note_sent(struct hca_wire *w, uint32_t packets)
{
	struct shm_wire *s = w->shm;
	uint32_t next = wire_psn_add(s->psn, packets);

	if (wire_psn_diff(s->beyond, s->psn) > 0) {
		s->retransmissions += packets;
	} else if (!s->timed_ns) {
		s->timed_ns = base_now_ns();
		s->timed_psn = s->psn;
	}
	if (wire_psn_diff(next, s->beyond) > 0)
		s->beyond = next;
	s->psn = next;
	s->offset += packets;
	w->room--;
}

/* Sends packets of a SEND or WRITE, of @n in all, as many as may be under way. An enum
 * ibv_wc_status.
 */
static int send_data(struct hca_wire *w, const struct shm_request *r, struct hca_parts *from,
                     uint32_t n)
{
	const bool is_uc = w->end.qp.type == IBV_QPT_UC;
	const uint32_t every = ack_every(w);
	/* what waits for the acknowledgement of the first packet, which has taken a receive */
	bool limited = !w->shm->offset && n > 1 && !has_credit(w->shm, r) &&
	               (hca_operation(r->opcode) & HCA_OP_SEND);

	while (w->room && w->shm->offset < n && !w->shm->limited &&
	       (is_uc || under_way(w) < window_of(w))) {
		uint32_t i = w->shm->offset;
		uint32_t bytes = hca_wire_packet_bytes(w, r->length, i);
		bool is_last = i + 1 == n;
		struct wire_headers h = { .bth = hca_wire_bth(w, operation_of(r, i, n),
			                                      w->shm->psn) };
		uint8_t *room = hca_wire_begin(w, bytes);
		int ret = room ? hca_wire_gather(&w->end, from, (uint64_t)i << w->path.mtu_shift,
		                                 bytes, room)
		               : 0;

		if (ret && w->worker == w->qpn)
			return IBV_WC_LOC_PROT_ERR;
		w->shm->limited = limited;
		if (!room || ret) { /* as if it had got lost: its own thread may reach its memory */
			note_sent(w, 1);
			continue;
		}
		h.bth.solicited = is_last && (r->flags & IBV_SEND_SOLICITED);
		h.bth.ack_requested = is_last || limited || w->shm->probes ||
		                      (i + 1) % every == 0 || under_way(w) + 1 >= window_of(w);
		fill_headers(w, r, r->remote_addr, r->length, &h);
		hca_wire_end(w, &h);
		note_sent(w, 1);
	}
	return IBV_WC_SUCCESS;
}

/* Copies the word of an atomic WRITE, which may be in the request itself. 0 or as
 * hca_wire_gather(). */
static int put_word(const struct hca_wire *w, const struct shm_request *r, struct hca_parts *from,
                    uint8_t *room)
{
	if (r->n_entries)
		return hca_wire_gather(&w->end, from, 0, sizeof(r->swap), room);
	memcpy(room, &r->swap, sizeof(r->swap));
	return 0;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* So many responses got lost, if those behind them are kept. */
static uint32_t missing(const struct shm_wire *s)
{
	int32_t n = wire_psn_diff(s->gap_end, s->psn);

	return s->has_gap && n > 0 ? (uint32_t)n : UINT32_MAX;
}

/* Whether it is its turn to ask for so much. If not, the daemon looks when it is. Packets that make
 * the detour come to no socket. */
static bool is_turn(struct hca_wire *w, uint32_t packets)
{
	bool waits = packets > READ_SHORT && !w->path.detours &&
	             !shm_readers_ask(hca_wire_readers(w), &w->shm->reader, w->qpn,
	                              hca_wire_ms(base_now_ns()));

	atomic_store_explicit(&w->shm->awaits_turn, waits, memory_order_relaxed);
	if (waits)
		hca_wire_watch(w);
	return !waits;
}

/* Asks for something that is answered: a READ, or a part of it, an atomic operation, and so on. An
 * enum ibv_wc_status, or NOT_NOW. */
static int ask(struct hca_wire *w, const struct shm_request *r, struct hca_parts *from, uint32_t n)
{
	const bool has_word = hca_operation(r->opcode) & HCA_OP_VALUE;
	struct shm_wire *s = w->shm;
	/* asked for again, it is no more than was asked for before */
	uint32_t part = READ_MOST - s->offset % READ_MOST;
	uint32_t packets = least(n - s->offset, least(part, missing(s)));
	uint64_t at = (uint64_t)s->offset << w->path.mtu_shift;
	uint64_t bytes = (uint64_t)packets << w->path.mtu_shift;
	struct wire_headers h = { .bth = hca_wire_bth(w, operation_of(r, 0, 1), s->psn) };
	uint32_t most = w->path.max_rd_atomic ? w->path.max_rd_atomic : 1;
	uint8_t *room;
	int ret;

	if (s->answered >= most || (n > READ_MOST && s->psn != s->acked) ||
	    (under_way(w) && under_way(w) + packets > window_of(w)) || !is_turn(w, packets))
		return NOT_NOW;
	h.bth.ack_requested = true;
	if (bytes > r->length - at)
		bytes = r->length - at;
	fill_headers(w, r, r->remote_addr + at, (uint32_t)bytes, &h);
	room = hca_wire_begin(w, has_word ? sizeof(r->swap) : 0);
	ret = room && has_word ? put_word(w, r, from, room) : 0;
	if (ret && w->worker == w->qpn)
		return IBV_WC_LOC_PROT_ERR;
	if (room && !ret) /* else as if it had got lost */
		hca_wire_end(w, &h);
	s->answered++;
	note_sent(w, packets);
	return IBV_WC_SUCCESS;
}

/* Sends the next request, or a part of it. False: no more can be sent now. */
static bool send_next(struct hca_wire *w, const struct shm_request *r, const struct shm_entry *e)
{
	const unsigned op = hca_operation(r->opcode);
	const bool is_answered = op & HCA_OP_ANSWERED, is_uc = w->end.qp.type == IBV_QPT_UC;
	struct shm_wire *s = w->shm;
	uint32_t n = packets_of(w, r);
	struct hca_parts parts;
	int status;

	if ((op & HCA_OP_LOCAL) || /* its owner's business */
	    !is_allowed(w, r) || ((r->flags & IBV_SEND_FENCE) && s->answered && !s->offset))
		return false;
	status = !is_known(r) ? IBV_WC_LOC_QP_OP_ERR
	         : hca_parts_of_request(&w->end, r, e,
	                                op & HCA_OP_BACK ? IBV_ACCESS_LOCAL_WRITE : 0, &parts)
	                 ? IBV_WC_SUCCESS
	                 : IBV_WC_LOC_PROT_ERR;
	if (!status)
		status = is_answered ? ask(w, r, &parts, n) : send_data(w, r, &parts, n);
	if (status == NOT_NOW)
		return false;
	if (status) {
		if (s->next == head_of(w)) /* else those before it are still to be done */
			fail(w, (enum ibv_wc_status)status);
		return false;
	}
	if (s->offset < n)
		return is_answered || !w->room;
	s->takes += takes_receive(r);
	s->next++;
	s->offset = 0;
	if (is_uc) { /* nobody acknowledges anything */
		s->acked = s->psn;
		complete(w, r, n);
		tell_owner(w);
	}
	return true;
}

/* Whether so much of the window is free that it is worth a system call: packets that leave together
 * cost less on their way and at the peer, which acknowledges them together. Those under way bring
 * an acknowledgement, so that the rest will be free. */
static bool is_worth(const struct hca_wire *w)
{
	const uint32_t window = window_of(w), under = under_way(w);

	return !under || under + window / 4 <= window;
}

/* In SQD what was begun is finished, and nothing else is begun. */
static bool may_begin(const struct hca_wire *w)
{
	return !(w->open & SHM_WIRE_PAUSED) || w->shm->offset ||
	       wire_psn_diff(w->shm->psn, w->shm->beyond) < 0;
}

/* Whether all that was begun is done. */
static bool is_drained(const struct hca_wire *w)
{
	return !w->shm->offset && w->shm->psn == w->shm->beyond && !under_way(w);
}

bool hca_wire_drains(struct hca_wire *w)
{
	bool drains = !has_failed(w) && !is_drained(w);

	atomic_store_explicit(&w->shm->drains, drains ? SHM_WIRE_DRAINS : SHM_WIRE_TELLS_NOBODY,
	                      memory_order_relaxed);
	return drains;
}

/* In SQD: tells the program, if it waits for that. */
static BASE_COLD void tell_drained(struct hca_wire *w)
{
	struct control_raise_event req = { .type = IBV_EVENT_SQ_DRAINED, .element = w->qpn };

	if (atomic_load_explicit(&w->shm->drains, memory_order_relaxed) != SHM_WIRE_DRAINS ||
	    !is_drained(w))
		return;
	/* release: pairs with the acquire in daemon_qp_drained() */
	atomic_store_explicit(&w->shm->drains, SHM_WIRE_DRAINED, memory_order_release);
	hca_request(w->end.process, CONTROL_RAISE_EVENT, &req, sizeof(req));
}

bool hca_wire_send(struct hca_wire *w)
{
	uint64_t resume = atomic_load_explicit(&w->shm->resume_ns, memory_order_relaxed);
	uint32_t before = w->shm->psn;
	struct shm_entry entries[HCA_MAX_SGE];
	struct shm_request r;
	bool more = true;

	if ((resume && base_now_ns() < resume) || !is_worth(w) || (w->shm->probes && under_way(w)))
		return false;
	if (resume) /* what gets lost from now on has not been told yet */
		w->shm->recovers = SHM_WIRE_HAS_WAITED;
	atomic_store_explicit(&w->shm->resume_ns, 0, memory_order_relaxed);
	w->room =
	        w->shm->probes
	                ? 1
	                : NETDEV_UDP_BATCH; /* one more would send the batch, with the lock held */
	while (more && w->room)
		more = !has_failed(w) && w->shm->next != hca_connected_load(&w->connection->tail) &&
		       under_way(w) < window_of(w) && may_begin(w) &&
		       hca_connected_take(&w->end, w->shm->next, &r, entries) &&
		       send_next(w, &r, entries);
	if (w->shm->psn != before &&
	    !atomic_load_explicit(&w->shm->deadline_ns, memory_order_relaxed))
		set_deadline(w);
	if (base_unlikely(w->shm->reader.place) && !under_way(w))
		shm_readers_leave(hca_wire_readers(w), &w->shm->reader, w->qpn);
	if (base_unlikely(w->open & SHM_WIRE_PAUSED))
		tell_drained(w);
	return more;
}

void hca_wire_look_at_time(struct hca_wire *w, uint64_t now)
{
	uint64_t deadline = atomic_load_explicit(&w->shm->deadline_ns, memory_order_relaxed);

	if (!deadline || now < deadline || has_failed(w))
		return;
	if (w->path.detours && hca_detour_is_held_up(w->end.process, w->shm->waits_since_ns)) {
		set_deadline(w);
		return;
	}
	if (now - w->shm->waits_since_ns < patience_ns(w)) {
		base_log_debug(packet, "QP 0x%06x: sends again from PSN %u on, early", w->qpn,
		               w->shm->acked);
		w->shm->early++;
		probe(w);
		write_deadline(w);
		return;
	}
	atomic_store_explicit(&w->shm->deadline_ns, 0, memory_order_relaxed);
	HCA_WIRE_COUNT(w, local_ack_timeout_err);
	retry(w, "nothing has come for the timeout");
}

/* ---- what comes back ---- */

/* Waits as the peer wants, which has no receive; then all is sent again. */
static void wait_for_receive(struct hca_wire *w, unsigned timer)
{
	struct shm_wire *s = w->shm;

	if (atomic_load_explicit(&s->resume_ns, memory_order_relaxed))
		return; /* it waits already */
	HCA_WIRE_COUNT(w, rnr_nak_retry_err);
	if (w->path.rnr_retry != INFINITELY && s->rnr_retries++ >= w->path.rnr_retry) {
		fail(w, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	go_back(w);
	s->probes = s->has_gap = false;
	s->early = 0;
	s->ran_short = true;
	s->credits = s->head_takes;
	atomic_store_explicit(&s->deadline_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&s->resume_ns, base_now_ns() + hca_rnr_ns(timer),
	                      memory_order_relaxed);
	hca_wire_watch(w);
}

static void take_nak(struct hca_wire *w, unsigned code)
{
	static const enum ibv_wc_status status[] = {
		[WIRE_NAK_INVALID_REQUEST] = IBV_WC_REM_INV_REQ_ERR,
		[WIRE_NAK_REMOTE_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[WIRE_NAK_REMOTE_OPERATION] = IBV_WC_REM_OP_ERR,
		[WIRE_NAK_INVALID_RD_REQUEST] = IBV_WC_REM_INV_RD_REQ_ERR,
	};

	if (!code) {
		HCA_WIRE_COUNT(w, packet_seq_err);
		take_loss(w, "the peer has seen a gap");
	} else if (code < ARRAY_SIZE(status)) {
		fail(w, status[code]);
	}
}

static void take_aeth(struct hca_wire *w, uint32_t psn, const struct wire_aeth *aeth)
{
	const unsigned kind = aeth->syndrome >> 5 & 3;
	const uint32_t acked = w->shm->acked;
	bool complete_before;

	if (kind && wire_psn_diff(psn, w->shm->acked) < 0)
		return; /* it was told twice */
	complete_before = acknowledge(w, kind ? psn : wire_psn_add(psn, 1));
	end_probe(w, acked);

	if (!complete_before && w->shm->recovers != SHM_WIRE_RECOVERS) {
		retry_for_response(w);
		return;
	}
	if (kind == WIRE_AETH_ACK)
		take_credits(w, aeth);
	else if (kind == WIRE_AETH_RNR)
		wait_for_receive(w, aeth->syndrome & 31);
	else if (kind == WIRE_AETH_NAK)
		take_nak(w, aeth->syndrome & 31);
}

/* Copies what has come to the memory of the request. An enum ibv_wc_status. */
static int place(struct hca_wire *w, const struct shm_request *r, const struct shm_entry *e,
                 uint64_t offset, const void *from, uint32_t bytes)
{
	struct hca_parts to;

	if (!hca_parts_of_request(&w->end, r, e, IBV_ACCESS_LOCAL_WRITE, &to) ||
	    hca_wire_scatter(&w->end, &to, offset, from, bytes))
		return IBV_WC_LOC_PROT_ERR;
	return IBV_WC_SUCCESS;
}

/* Whether a packet is what must come as packet @i of the @n that answer request @r. */
static bool answers(const struct hca_wire *w, const struct shm_request *r,
                    const struct wire_roce_packet *p, uint32_t i, uint32_t n)
{
	const struct wire_opcode *opcode = &wire_opcodes[p->h.bth.opcode];
	const unsigned op = hca_operation(r->opcode);
	const bool is_word = opcode->headers & WIRE_ATOMICACK,
	           brings_word = (op & HCA_OP_WORD) && (op & HCA_OP_BACK);
	const bool ends = opcode->flags & WIRE_OPCODE_LAST;
	/* as ask() has asked for it; asked for again, it may begin anywhere, and end where others
	 * are kept */
	bool must_begin = i % READ_MOST == 0, must_end = i + 1 == n || (i + 1) % READ_MOST == 0;

	if (!(op & HCA_OP_ANSWERED) || is_word != brings_word)
		return false;
	if ((opcode->headers & WIRE_AETH) && (p->h.aeth.syndrome >> 5 & 3) != WIRE_AETH_ACK)
		return false;
	if (is_word)
		return !p->payload_bytes;
	if (!(op & HCA_OP_BACK))
		return !p->payload_bytes && (opcode->flags & WIRE_OPCODE_FIRST) && must_end && ends;
	return p->payload_bytes == hca_wire_packet_bytes(w, r->length, i) &&
	       (must_end == ends || (ends && hca_wire_is_selective(w))) &&
	       (!must_begin || (opcode->flags & WIRE_OPCODE_FIRST));
}

/* Responses got lost. Those behind them may have come. */
static void ask_again(struct hca_wire *w)
{
	const struct hca_wire_copy *first = hca_wire_first_ahead(w, HCA_WIRE_REQUESTER);

	w->shm->has_gap = first != NULL;
	if (first)
		w->shm->gap_end = first->packet.h.bth.psn;
	retry_for_response(w);
}

/* A response has come, and one before it is missing. */
static BASE_COLD void take_early(struct hca_wire *w, const struct wire_roce_packet *p)
{
	if (hca_wire_is_selective(w))
		hca_wire_keep_ahead(w, HCA_WIRE_REQUESTER, p);
	if (w->shm->recovers != SHM_WIRE_RECOVERS)
		ask_again(w);
}

/* A part of what a READ asked for, what an atomic operation found, or that it is done. */
static void take_data(struct hca_wire *w, const struct wire_roce_packet *p)
{
	const bool is_atomic = wire_opcodes[p->h.bth.opcode].headers & WIRE_ATOMICACK;
	struct shm_entry entries[HCA_MAX_SGE];
	const void *from = is_atomic ? &p->h.atomic_original : p->payload;
	uint32_t bytes = is_atomic ? sizeof(p->h.atomic_original) : p->payload_bytes;
	bool ends = wire_opcodes[p->h.bth.opcode].flags & WIRE_OPCODE_LAST;
	uint32_t psn = p->h.bth.psn, n, i;
	struct shm_request r;
	int status;

	if (!acknowledge(w, psn)) {
		take_early(w, p);
		return;
	}
	if (psn != w->shm->acked || !first_request(w, &r, entries) ||
	    (hca_operation(r.opcode) & HCA_OP_LOCAL))
		return; /* it came twice, or nobody asked for it */
	n = packets_of(w, &r);
	i = wire_psn_add(psn, -w->shm->head_psn);
	if (i >= n)
		return;
	if (!answers(w, &r, p, i, n)) {
		fail(w, IBV_WC_BAD_RESP_ERR);
		return;
	}
	status = hca_operation(r.opcode) & HCA_OP_BACK
	                 ? place(w, &r, entries, (uint64_t)i << w->path.mtu_shift, from, bytes)
	                 : IBV_WC_SUCCESS;
	if (status) {
		fail(w, (enum ibv_wc_status)status);
		return;
	}
	if (ends && w->shm->answered)
		w->shm->answered--;
	if (i + 1 == n) /* before the move: what is acknowledged is not behind the first request */
		complete(w, &r, n);
	move_acked(w, wire_psn_add(psn, 1));
	if (wire_opcodes[p->h.bth.opcode].headers & WIRE_AETH)
		take_credits(w, &p->h.aeth);
}

/* What is kept behind the response that has come just now, up to the next gap. @acked: before it.
 */
static BASE_COLD void take_ahead(struct hca_wire *w, uint32_t acked)
{
	struct hca_wire_copy *c;

	while (!has_failed(w) && (c = hca_wire_take_ahead(w, HCA_WIRE_REQUESTER)) != NULL) {
		take_data(w, &c->packet);
		free(c);
	}
	end_probe(w, acked);
	if (w->shm->acked != acked && !w->shm->probes &&
	    hca_wire_first_ahead(w, HCA_WIRE_REQUESTER))
		ask_again(w);
}

/* A CNP (annex A17.9): what this sends meets congestion. What was sent before this slowed down says
 * nothing new. */
static void slow_down(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;

	if (s->slowed || !w->end.process->region.control->settings.roce_ecn ||
	    w->end.qp.type == IBV_QPT_UC) {
		HCA_WIRE_COUNT(w, rp_cnp_ignored);
		return;
	}
	HCA_WIRE_COUNT(w, rp_cnp_handled);
	s->slowed = s->psn != s->acked;
	s->slowed_until = s->psn;
	shrink(w);
}

bool hca_wire_response(struct hca_wire *w, const struct wire_roce_packet *p)
{
	const uint32_t head = head_of(w), acked = w->shm->acked, psn = p->h.bth.psn;

	if (p->h.bth.opcode == WIRE_OPCODE_CNP) {
		slow_down(w);
		return false;
	}
	/* what was never sent, or was acknowledged long ago, nobody asked for */
	if (has_failed(w) || wire_psn_diff(psn, w->shm->beyond) >= 0 ||
	    wire_psn_diff(psn, wire_psn_add(w->shm->acked, -1)) < 0)
		return false;
	switch (p->h.bth.opcode & 31) {
	case WIRE_ACKNOWLEDGE:
		take_aeth(w, psn, &p->h.aeth);
		break;
	default:
		take_data(w, p);
		if (base_unlikely(!TAILQ_EMPTY(&w->ahead[HCA_WIRE_REQUESTER])))
			take_ahead(w, acked);
		else
			end_probe(w, acked);
	}
	if (head_of(w) != head)
		tell_owner(w);
	return hca_wire_send(w);
}
