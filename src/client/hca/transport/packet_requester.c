/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire, the requester's half: requests become packets. See packet_requester.h.
 *
 * A peer may tell credits: how many receives it has (section 9.7.7.2). They are kept to once it had
 * none: programs that see to that themselves know of new receives before the next acknowledgement
 * tells, and would wait for it. From then on no message that needs one is begun beyond them, but
 * one, while nothing else is under way: of a peer without receives it finds out when it may go on,
 * if what the peer says of new ones gets lost.
 */
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "hca/queue/cq.h"
#include "hca/transport/packet_requester.h"

/* A READ of so many packets waits for nobody else's. */
#define READ_SHORT 8
/* Of ask(): no enum ibv_wc_status. */
#define NOT_NOW (-1)

/* At least one packet in so many asks for an acknowledgement: while the peer works on those up to
 * it, as many others are on their way. */
static uint32_t burst(const struct hca_wire *w)
{
	const uint32_t half = hca_wire_window(w) / 2;

	return half ? half : 1;
}

/* ---- what becomes of requests ---- */

void hca_wire_tell_of_failure(struct hca_wire *w)
{
	struct hca_process *p = w->end.process;

	atomic_store_explicit(&w->shm->deadline_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&w->shm->resume_ns, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* `failed` before the looks at arm */
	hca_cq_alert(p, shm_cq_at(&p->region, w->end.qp.connection.send_cq));
	hca_cq_alert(p, shm_cq_at(&p->region, w->end.qp.cq)); /* its receives will be flushed */
}

void hca_wire_fail(struct hca_wire *w, enum ibv_wc_status status)
{
	base_log_debug(packet, "QP 0x%06x: its first request fails, status %d", w->qpn,
	               (int)status);
	atomic_store_explicit(&w->connection->failed, shm_failed(hca_wire_head(w), status),
	                      memory_order_release);
	hca_wire_tell_of_failure(w);
}

void hca_wire_look_for_owner(struct hca_wire *w)
{
	struct shm_entry entries[HCA_MAX_SGE];
	const uint32_t head = hca_wire_head(w);
	struct shm_request r;

	w->needs_owner = head != hca_connected_load(&w->connection->tail) &&
	                 hca_connected_take(&w->end, head, &r, entries) &&
	                 (hca_operation(r.opcode) & HCA_OP_LOCAL);
}

void hca_wire_release_requests(struct hca_wire *w)
{
	const bool tells = w->tells, needs_owner = w->needs_owner;

	w->tells = w->needs_owner = false;
	hca_wire_release(&w->connection->lock, w->worker);
	if (tells || needs_owner)
		hca_connected_tell_owner(w->end.process, w->connection,
		                         w->end.qp.connection.send_cq, needs_owner);
}

/* How many the peer counts (MSN) in a request of @n packets: a READ is asked for in parts. A part
 * that is asked for again it does not count. */
static uint32_t messages_of(const struct shm_request *r, uint32_t n)
{
	return r->opcode == IBV_WR_RDMA_READ ? (n - 1) / HCA_WIRE_READ_MOST + 1 : 1;
}

void hca_wire_complete(struct hca_wire *w, const struct shm_request *r, uint32_t n)
{
	const uint32_t head = hca_wire_head(w);
	const struct shm_wire_head *before = shm_wire_head(w->shm, head);

	if (w->shm->next == head) { /* it was to be sent again */
		w->shm->next++;
		w->shm->takes += hca_wire_takes_receive(r);
		w->shm->offset = 0;
	}
	*shm_wire_head(w->shm, head + 1) =
	        (struct shm_wire_head){ .psn = wire_psn_add(before->psn, n),
		                        .ssn = wire_psn_add(before->ssn, messages_of(r, n)),
		                        .takes = before->takes + hca_wire_takes_receive(r) };
	w->tells |= !r->quiet;
	hca_connected_settle(w->connection, head, IBV_WC_SUCCESS);
}

/* ---- credits ---- */

/* Whether the peer has a receive for the next message, as far as it has told. */
static bool has_credit(const struct shm_wire *s, const struct shm_request *r)
{
	return !s->has_limit || !hca_wire_takes_receive(r) || (int32_t)(s->credits - s->takes) > 0;
}

/* Whether the next packet of a request may be sent. */
static bool is_allowed(const struct hca_wire *w, const struct shm_request *r)
{
	const struct shm_wire *s = w->shm;

	return s->offset ? !s->limited : !hca_wire_under_way(w) || has_credit(s, r);
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

/* The operation of packet @i of the @n of request @r. */
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
	s->unasked += packets;
	if (w->end.qp.type == IBV_QPT_UC) /* nobody acknowledges anything */
		s->acked = next;
	s->offset += packets;
	w->room--;
}

/* How many packets may be sent now, that one included. */
static uint32_t may_follow(const struct hca_wire *w, bool limited)
{
	const uint32_t window = hca_wire_window(w), under = hca_wire_under_way(w);
	const uint32_t open =
	        w->end.qp.type == IBV_QPT_UC || under >= window ? w->room : window - under;

	return limited ? 1 : open < w->room ? open : w->room;
}

/* Whether packets of the next request follow at once those of this one. */
static bool is_followed(struct hca_wire *w)
{
	const uint32_t next = w->shm->next + 1;
	struct shm_entry entries[HCA_MAX_SGE];
	struct shm_request r;
	struct hca_parts parts;

	return next != hca_connected_load(&w->connection->tail) && !w->shm->has_limit &&
	       !(w->open & SHM_WIRE_PAUSED) && hca_connected_take(&w->end, next, &r, entries) &&
	       (hca_operation(r.opcode) & (HCA_OP_SEND | HCA_OP_WRITE)) &&
	       !(r.flags & IBV_SEND_FENCE) && hca_parts_of_request(&w->end, &r, entries, 0, &parts);
}

/* Whether a packet asks for an acknowledgement: the last one of those that leave at one time, and
 * of a short message, which a program may wait for. */
static bool asks(struct hca_wire *w, bool is_last, bool is_short)
{
	const struct shm_wire *s = w->shm;

	return s->probes || s->unasked + 1 >= burst(w) ||
	       hca_wire_under_way(w) + 1 >= hca_wire_window(w) ||
	       (is_last && (is_short || !is_followed(w)));
}

/* Sends packets of a SEND or WRITE, of @n in all, as many as may be under way. An enum
 * ibv_wc_status.
 */
static int send_data(struct hca_wire *w, const struct shm_request *r, struct hca_parts *from,
                     uint32_t n)
{
	const bool is_uc = w->end.qp.type == IBV_QPT_UC;
	/* what waits for the acknowledgement of the first packet, which has taken a receive */
	bool limited = !w->shm->offset && n > 1 && !has_credit(w->shm, r) &&
	               (hca_operation(r->opcode) & HCA_OP_SEND);
	struct hca_wire_gathering gathering = { .end = &w->end,
		                                .parts = from,
		                                .length = r->length };

	while (w->room && w->shm->offset < n && !w->shm->limited &&
	       (is_uc || hca_wire_under_way(w) < hca_wire_window(w))) {
		uint32_t i = w->shm->offset;
		uint32_t bytes = hca_wire_packet_bytes(w, r->length, i);
		bool is_last = i + 1 == n;
		struct wire_headers h = { .bth = hca_wire_bth(w, operation_of(r, i, n),
			                                      w->shm->psn) };
		uint8_t *room = hca_wire_begin(w, bytes);
		int ret = 0;

		gathering.packets = may_follow(w, limited);
		if (room)
			ret = hca_wire_gather_next(w, &gathering, (uint64_t)i << w->path.mtu_shift,
			                           bytes, room);
		if (!hca_wire_keeps(w, &w->connection->lock))
			return NOT_NOW;
		if (ret && w->worker == w->qpn)
			return IBV_WC_LOC_PROT_ERR;
		w->shm->limited = limited;
		if (!room || ret) { /* as if it had got lost: its own thread may reach its memory */
			note_sent(w, 1);
			continue;
		}
		h.bth.solicited = is_last && (r->flags & IBV_SEND_SOLICITED);
		h.bth.ack_requested = limited || asks(w, is_last, n == 1);
		fill_headers(w, r, r->remote_addr, r->length, &h);
		hca_wire_end(w, &h);
		note_sent(w, 1);
		if (h.bth.ack_requested)
			w->shm->unasked = 0;
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
	uint32_t part = HCA_WIRE_READ_MOST - s->offset % HCA_WIRE_READ_MOST;
	uint32_t packets = least(n - s->offset, least(part, missing(s)));
	uint64_t at = (uint64_t)s->offset << w->path.mtu_shift;
	uint64_t bytes = (uint64_t)packets << w->path.mtu_shift;
	struct wire_headers h = { .bth = hca_wire_bth(w, operation_of(r, 0, 1), s->psn) };
	uint32_t most = w->path.max_rd_atomic ? w->path.max_rd_atomic : 1;
	uint8_t *room;
	int ret;

	if (s->answered >= most || (n > HCA_WIRE_READ_MOST && s->psn != s->acked) ||
	    (hca_wire_under_way(w) && hca_wire_under_way(w) + packets > hca_wire_window(w)) ||
	    !is_turn(w, packets))
		return NOT_NOW;
	h.bth.ack_requested = true;
	if (bytes > r->length - at)
		bytes = r->length - at;
	fill_headers(w, r, r->remote_addr + at, (uint32_t)bytes, &h);
	room = hca_wire_begin(w, has_word ? sizeof(r->swap) : 0);
	ret = room && has_word ? put_word(w, r, from, room) : 0;
	if (!hca_wire_keeps(w, &w->connection->lock))
		return NOT_NOW;
	if (ret && w->worker == w->qpn)
		return IBV_WC_LOC_PROT_ERR;
	if (room && !ret) /* else as if it had got lost */
		hca_wire_end(w, &h);
	s->cuts |= packets < least(n - s->offset, part);
	s->answered++;
	note_sent(w, packets);
	s->unasked = 0;
	return IBV_WC_SUCCESS;
}

/* Sends the next request, or a part of it. False: no more can be sent now. */
static bool send_next(struct hca_wire *w, const struct shm_request *r, const struct shm_entry *e)
{
	const unsigned op = hca_operation(r->opcode);
	const bool is_answered = op & HCA_OP_ANSWERED, is_uc = w->end.qp.type == IBV_QPT_UC;
	struct shm_wire *s = w->shm;
	uint32_t n = hca_wire_packets_of(w, r);
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
		if (s->next == hca_wire_head(w)) /* else those before it are still to be done */
			hca_wire_fail(w, (enum ibv_wc_status)status);
		return false;
	}
	if (s->offset < n)
		return is_answered || !w->room;
	s->takes += hca_wire_takes_receive(r);
	s->next++;
	s->offset = 0;
	if (is_uc) {
		hca_wire_complete(w, r, n);
		hca_wire_look_for_owner(w);
	}
	return true;
}

/* Whether so much of the window is free that it is worth a system call: packets that leave together
 * cost less on their way and at the peer, which acknowledges them together. Those under way bring
 * an acknowledgement, unless none of them asks for one, so that the rest will be free. */
static bool is_worth(const struct hca_wire *w)
{
	const uint32_t window = hca_wire_window(w), under = hca_wire_under_way(w);

	return !under || under + window / 4 <= window || w->shm->unasked >= under;
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
	return !w->shm->offset && w->shm->psn == w->shm->beyond && !hca_wire_under_way(w);
}

bool hca_wire_drains(struct hca_wire *w)
{
	bool drains = !hca_wire_has_failed(w) && !is_drained(w);

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

/* Whether there is a packet that may be sent, as far as the window says. */
static bool has_next(const struct hca_wire *w)
{
	return !hca_wire_has_failed(w) &&
	       w->shm->next != hca_connected_load(&w->connection->tail) &&
	       hca_wire_under_way(w) < hca_wire_window(w) && may_begin(w);
}

/* Whether an acknowledgement that waits for a reply leaves in one piece with what is sent next, and
 * behind it, which costs half as much as two pieces. The receiver of the piece takes the
 * acknowledgement first. Programs that sleep rely on the order, and theirs do not wait. */
static bool takes_ack_along(const struct hca_wire *w)
{
	struct shm_entry entries[HCA_MAX_SGE];
	struct shm_request r;

	return atomic_load_explicit(&w->shm->ack_waits, memory_order_relaxed) &&
	       w->shm->next + 1 == hca_connected_load(&w->connection->tail) && !w->shm->offset &&
	       hca_connected_take(&w->end, w->shm->next, &r, entries) &&
	       (hca_operation(r.opcode) & (HCA_OP_SEND | HCA_OP_WRITE)) &&
	       r.length >= WIRE_AETH_BYTES && hca_wire_packets(w, r.length) == 1;
}

/* Puts packets into the batch, as many as may be under way. As hca_wire_send(). */
static bool fill_batch(struct hca_wire *w)
{
	struct shm_entry entries[HCA_MAX_SGE];
	struct shm_request r;
	bool more = true;

	w->room =
	        w->shm->probes
	                ? 1
	                : NETDEV_UDP_BATCH; /* one more would send the batch, with the lock held */
	while (more && w->room)
		more = has_next(w) && hca_connected_take(&w->end, w->shm->next, &r, entries) &&
		       send_next(w, &r, entries);
	return more;
}

/* Whether none of the packets under way asks for an acknowledgement: the request that was to follow
 * them cannot be sent. */
static bool is_forgotten(const struct hca_wire *w)
{
	const struct shm_wire *s = w->shm;

	return s->unasked && s->unasked >= hca_wire_under_way(w) && !s->probes &&
	       w->end.qp.type != IBV_QPT_UC && !hca_wire_has_failed(w);
}

/* Whether packets may leave now. *@acknowledges: an acknowledgement leaves with them, and this
 * worker has the responder's lock for that. */
static bool may_leave(struct hca_wire *w, bool *acknowledges)
{
	/* packets that are sent again do not wait: their timer would use up the retries */
	if (hca_wire_ack_is_due(w) && w->shm->psn == w->shm->beyond &&
	    !hca_wire_acknowledges_first(w, acknowledges))
		return false;
	return hca_wire_acquire_egress(w);
}

bool hca_wire_send(struct hca_wire *w)
{
	uint64_t resume = atomic_load_explicit(&w->shm->resume_ns, memory_order_relaxed);
	uint32_t before = w->shm->psn;
	bool more = false, next, held_up, acknowledges = false;

	if ((resume && base_now_ns() < resume) || !is_worth(w) ||
	    (w->shm->probes && hca_wire_under_way(w)))
		return false;
	next = has_next(w);
	held_up = next && !may_leave(w, &acknowledges);
	atomic_store_explicit(&w->shm->held_up, held_up, memory_order_relaxed);
	if (!held_up) {
		if (acknowledges && !takes_ack_along(w))
			hca_wire_acknowledge(w);
		if (resume) /* losses from now on have not been told yet */
			w->shm->recovers = SHM_WIRE_HAS_WAITED;
		atomic_store_explicit(&w->shm->resume_ns, 0, memory_order_relaxed);
		more = next ? fill_batch(w) : has_next(w); /* it was posted just now */
		if (base_unlikely(!more && is_forgotten(w))) {
			hca_wire_ask_again(w);
			more = true;
		}
	}
	if (acknowledges) {
		hca_wire_acknowledge(w);
		hca_wire_release(&w->shm->lock, w->worker);
	}
	if (w->shm->psn != before &&
	    !atomic_load_explicit(&w->shm->deadline_ns, memory_order_relaxed))
		hca_wire_set_deadline(w);
	if (base_unlikely(w->shm->reader.place) && !hca_wire_under_way(w))
		shm_readers_leave(hca_wire_readers(w), &w->shm->reader, w->qpn);
	if (base_unlikely(w->open & SHM_WIRE_PAUSED))
		tell_drained(w);
	return more;
}
