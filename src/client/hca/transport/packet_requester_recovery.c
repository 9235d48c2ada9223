/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire, the requester's half: what gets lost. See packet_requester.h.
 *
 * Packets are sent again from the first one on that was not acknowledged ("go back N"): after a NAK
 * of the sequence, after a response that shows that an earlier one got lost, and when nothing has
 * come for the timeout (section 9.7.6). That may be long, and peers tell a gap once only; so
 * packets are sent again earlier, too, when nothing has come for much longer than usual: that is no
 * retry, of which there are few, and the next time it waits twice as long. The number of packets
 * under way is limited; the limit grows while all goes well, and is halved when packets get lost.
 *
 * First one packet goes again, a probe: the peer may have kept what came behind a gap
 * (packet_out_of_order.c), and then acknowledges it with that packet. Responses are kept here
 * likewise, and only those of the gap are asked for again. Then one packet got lost, and the limit
 * hardly shrinks.
 */
#include "base/log.h"
#include "base/util.h"
#include "hca/link/detour.h"
#include "hca/transport/packet_requester.h"

#define WINDOW_LEAST 8
/* A peer that has kept nothing behind so many losses is asked at one loss in so many. */
#define IN_VAIN_MOST 2
#define PROBE_EVERY  16
/* Nothing that comes for so long, and twice the usual time, is taken for a loss. Threads that
 * answer may have to wait for a processor. */
#define EARLY_NS 4000000
/* The same after a loss: packets that were sent again may be lost, too, and peers tell that no
 * more. */
#define EARLY_AGAIN_NS 1000000
/* Twice the usual time, while it is not known. */
#define UNKNOWN_NS 250000000

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

void hca_wire_set_deadline(struct hca_wire *w)
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
 * stays as long as it was when something was acknowledged again: nobody could tell how long a
 * packet took that was sent more than once, and to wait as long as before is too short.
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

	s->next = hca_wire_head(w);
	s->takes = hca_wire_first(w)->takes;
	s->limited = false;
	s->offset = wire_psn_add(s->acked, -hca_wire_first(w)->psn);
	s->psn = s->acked;
	s->answered = 0;
}

void hca_wire_shrink(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;

	s->window = s->window / 2 < WINDOW_LEAST ? WINDOW_LEAST : s->window / 2;
	s->grown = 0;
}

void hca_wire_go_back(struct hca_wire *w)
{
	rewind_to_acked(w);
	w->shm->timed_ns = 0; /* nobody could tell what is acknowledged */
	w->shm->recovers = SHM_WIRE_RECOVERS;
	hca_wire_shrink(w);
}

void hca_wire_ask_again(struct hca_wire *w)
{
	rewind_to_acked(w);
	w->shm->timed_ns = 0;
	w->shm->unasked = 0;
	w->shm->probes = true;
}

/* The same, but first a probe: whether the peer has kept the packets that came behind the lost one.
 * Its answer tells what the loss means for the network. */
static void probe(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;
	/* of a peer that keeps nothing it costs the time of a packet */
	bool may_help = s->has_gap || s->in_vain < IN_VAIN_MOST || !(s->in_vain % PROBE_EVERY);
	bool first = hca_wire_is_selective(w) && !s->probes && may_help;
	uint32_t window = s->window;

	hca_wire_go_back(w);
	if (first)
		s->window = window;
	else if (!s->probes)
		s->in_vain++;
	s->probes = first;
	s->has_gap = s->has_gap && first;
}

void hca_wire_end_probe(struct hca_wire *w, uint32_t acked)
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
		hca_wire_shrink(w);
	}
	s->probes = s->has_gap = false;
}

/* The packets that were sent are taken for lost. */
static void retry(struct hca_wire *w, const char *why)
{
	base_log_debug(packet, "QP 0x%06x: sends again from PSN %u on: %s", w->qpn, w->shm->acked,
	               why);
	w->shm->early = 0;
	if (w->shm->retries++ >= w->path.retry_cnt)
		hca_wire_fail(w, IBV_WC_RETRY_EXC_ERR);
	else
		probe(w);
}

void hca_wire_take_loss(struct hca_wire *w, const char *why)
{
	if (w->shm->recovers == SHM_WIRE_GOES_ON)
		retry(w, why);
	else if (w->shm->recovers == SHM_WIRE_HAS_WAITED)
		probe(w); /* it may be of before the wait, so it uses up no retry */
}

void hca_wire_miss_response(struct hca_wire *w)
{
	if (w->shm->recovers == SHM_WIRE_RECOVERS)
		return;
	HCA_WIRE_COUNT(w, implied_nak_seq_err);
	hca_wire_take_loss(w, "a response got lost");
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
	if (s->window < HCA_WIRE_WINDOW_MOST)
		s->window += s->window < HCA_WIRE_WINDOW_MOST / 2 ? s->window / 4 : 1;
}

void hca_wire_move_acked(struct hca_wire *w, uint32_t psn)
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
	hca_wire_set_deadline(w);
}

void hca_wire_look_at_time(struct hca_wire *w, uint64_t now)
{
	uint64_t deadline = atomic_load_explicit(&w->shm->deadline_ns, memory_order_relaxed);

	if (!deadline || now < deadline || hca_wire_has_failed(w))
		return;
	if (w->path.detours && hca_detour_is_held_up(w->end.process, w->shm->waits_since_ns)) {
		hca_wire_set_deadline(w);
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
