/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UD on a weak fabric (base/weak.h): a datagram is read and leaves late, or is lost, those to other
 * receivers overtake it, and its completion comes late. Completions of a send queue stay in order,
 * and so do datagrams to one receiver, or one group.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/process/operation.h"
#include "hca/queue/cq.h"
#include "hca/queue/explain.h"
#include "hca/transport/ud.h"

/* So many are looked at from the oldest one on, as those that a card has under way. */
#define WINDOW 64

static struct hca_ud_qp *ud(struct hca_qp *qp)
{
	return (struct hca_ud_qp *)qp;
}

static bool is_same_flow(const struct hca_ud_kept *a, const struct hca_ud_kept *b)
{
	return a->wr.wr.ud.remote_qpn == b->wr.wr.ud.remote_qpn &&
	       !memcmp(&a->ah.dest, &b->ah.dest, sizeof(a->ah.dest));
}

/* Whether one to the same receiver has to leave first. */
static bool is_behind_another(struct hca_qp *qp, const struct hca_ud_kept *k)
{
	const struct hca_ud_kept *other;

	STAILQ_FOREACH(other, &ud(qp)->kept, entry)
	{
		if (other == k)
			return false;
		if (!other->is_sent && is_same_flow(other, k))
			return true;
	}
	return false;
}

/* Of a multicast message: which copies leave now. @k->left says which are due later. */
static enum hca_ud_copies choose_copies(struct hca_qp *qp, struct hca_ud_kept *k)
{
	struct hca_weak_clock *clock = &ud(qp)->clock;
	enum hca_ud_copies left = HCA_UD_OWN;

	if (!hca_ud_has_both(qp, k))
		return HCA_UD_ALL;
	hca_weak_set(clock, &k->due, BASE_WEAK_STEP_own);
	if (!k->due.amount) {
		hca_weak_set(clock, &k->due, BASE_WEAK_STEP_others);
		left = HCA_UD_OTHERS;
	}
	if (!k->due.amount || !hca_ud_gather(qp, k))
		return HCA_UD_ALL;
	k->left = (uint8_t)left;
	return left == HCA_UD_OWN ? HCA_UD_OTHERS : HCA_UD_OWN;
}

/* Sends what is due of it. */
static void send_one(struct hca_qp *qp, struct hca_ud_kept *k)
{
	struct hca_weak_clock *clock = &ud(qp)->clock;
	enum hca_ud_copies copies = (enum hca_ud_copies)k->left;
	const bool is_first = copies == HCA_UD_ALL;

	k->left = HCA_UD_ALL;
	if (is_first &&
	    hca_weak_choose(clock->all, qp->weak_object, k->due.number, BASE_WEAK_STEP_lose)) {
		k->status = hca_ud_lose(qp, &k->wr, k->length);
	} else {
		if (is_first)
			copies = choose_copies(qp, k);
		k->status = hca_ud_transmit(qp, &k->wr, k->length, copies, is_first);
	}
	k->is_sent = k->left == HCA_UD_ALL || k->status != IBV_WC_SUCCESS;
	if (k->is_sent)
		hca_weak_set(clock, &k->due, BASE_WEAK_STEP_complete);
}

/* Sends those that are due. Whether there were any. */
static bool send_some(struct hca_qp *qp, const struct hca_weak_due **soon)
{
	struct hca_ud_kept *k;
	unsigned n = 0;
	bool any = false;

	STAILQ_FOREACH(k, &ud(qp)->kept, entry)
	{
		if (n++ == WINDOW || k->status != IBV_WC_SUCCESS ||
		    (!k->is_begun && hca_qp_state(qp) == IBV_QPS_SQD))
			break;
		if (k->is_sent || is_behind_another(qp, k))
			continue;
		if (!hca_weak_is_due(&ud(qp)->clock, &k->due)) {
			*soon = hca_weak_first(*soon, &k->due);
			continue;
		}
		send_one(qp, k);
		any = true;
		if (k->status != IBV_WC_SUCCESS)
			break;
	}
	return any;
}

static void complete(struct hca_qp *qp, enum ibv_wc_status status)
{
	struct hca_ud_kept *k = hca_ud_next_kept(qp);

	hca_qp_complete(qp, &k->wr, (uint32_t)k->length, status);
	hca_ud_free_kept(k);
}

/* Completes the datagrams that were sent, up to the first one that was not. The later ones are
 * flushed, though some may have left. */
static void flush(struct hca_qp *qp)
{
	const struct hca_ud_kept *k;
	bool is_done = true;

	while ((k = STAILQ_FIRST(&ud(qp)->kept))) {
		is_done &= k->is_sent && k->status == IBV_WC_SUCCESS;
		complete(qp, is_done ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
	}
}

static bool complete_some(struct hca_qp *qp, const struct hca_weak_due **soon)
{
	const struct hca_ud_kept *k;
	bool any = false;

	while ((k = STAILQ_FIRST(&ud(qp)->kept)) && k->is_sent) {
		if (!hca_weak_is_due(&ud(qp)->clock, &k->due)) {
			*soon = hca_weak_first(*soon, &k->due);
			break;
		}
		if (k->status != IBV_WC_SUCCESS) {
			hca_ud_fail(qp, &k->wr, k->status);
			complete(qp, k->status);
			while (!STAILQ_EMPTY(&ud(qp)->kept))
				complete(qp, IBV_WC_WR_FLUSH_ERR);
			return true;
		}
		complete(qp, IBV_WC_SUCCESS);
		any = true;
	}
	return any;
}

static void work_off(struct hca_qp *qp)
{
	struct hca_weak_clock *clock = &ud(qp)->clock;
	const struct hca_weak_due *soon;
	bool any;

	do {
		do {
			soon = NULL;
			any = send_some(qp, &soon);
			any |= complete_some(qp, &soon);
		} while (any);
	} while (hca_weak_skip_to(clock, soon));
	clock->at_once = false;
}

/* ---- posting ---- */

static int keep(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	struct hca_weak_clock *clock = &ud(qp)->clock;
	struct hca_ud_kept *k;

	if (hca_qp_sq_used(qp) >= qp->cap.max_send_wr)
		return -ENOMEM;
	k = hca_ud_keep(qp, wr, hca_message_length(wr));
	if (!k)
		return -ENOMEM;
	k->is_begun = true;
	k->due.number = clock->posted++;
	hca_weak_set(clock, &k->due, BASE_WEAK_STEP_late);
	return 0;
}

/* 0, or -errno: what is wrong with the request at *@wr. */
static int post_list(struct hca_qp *qp, const struct ibv_send_wr **wr)
{
	int ret = 0;

	for (; *wr && !ret; *wr = ret ? *wr : (*wr)->next) {
		ret = hca_ud.check(qp, *wr);
		ret = ret ? ret : keep(qp, *wr);
	}
	work_off(qp);
	if (qp->sq_kept)
		hca_cq_add_waiting(qp->send_cq, qp);
	return ret;
}

static bool is_weak_now(const struct hca_qp *qp)
{
	return hca_qp_state(qp) == IBV_QPS_RTS && !hca_process_gone(qp->sender.process);
}

static int post_checked(struct hca_qp *qp, const struct ibv_send_wr **wr)
{
	return is_weak_now(qp) ? post_list(qp, wr) : hca_ud.post_checked(qp, wr);
}

static int post(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct ibv_send_wr *at = wr;
	int ret;

	base_lock(&qp->send_lock);
	if (!is_weak_now(qp)) {
		base_unlock(&qp->send_lock);
		return hca_ud.post(qp, wr, bad);
	}
	ret = post_list(qp, &at);
	base_unlock(&qp->send_lock);
	if (ret) {
		*bad = (struct ibv_send_wr *)at;
		hca_explain_send(qp, at, ret);
	}
	return ret;
}

/* ---- for the transport's table ---- */

static void progress(struct hca_qp *qp)
{
	switch (hca_qp_state(qp)) {
	case IBV_QPS_RTS:
	case IBV_QPS_SQD: /* what was begun is done */
		ud(qp)->clock.at_once = true;
		work_off(qp);
		break;
	case IBV_QPS_ERR:
	case IBV_QPS_SQE:
		flush(qp);
		break;
	default:
		break;
	}
}

static void poll(struct hca_qp *qp)
{
	if (!is_weak_now(qp)) {
		progress(qp);
		return;
	}
	ud(qp)->clock.may_skip = true;
	work_off(qp);
	ud(qp)->clock.may_skip = false;
}

static int init(struct hca_qp *qp)
{
	ud(qp)->clock.all = qp->ctx->process->weak;
	ud(qp)->clock.qp = qp;
	return hca_ud.init(qp);
}

const struct hca_transport hca_ud_weak = {
	HCA_UD_TABLE,         .init = init, .post = post, .post_checked = post_checked,
	.progress = progress, .poll = poll,
};
