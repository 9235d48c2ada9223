/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RC queue pairs: see rc.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "ipoib/encapsulation.h"
#include "ipoib/rc.h"

#define RECEIVES      64
#define MOST_TRIES    16    /* of a call that fails */
#define RECEIVE_AREA  8     /* receives that are added at once */
#define RECEIVE_BYTES 65536 /* IPOIB_CONNECTED_BYTES, in whole pages */
/* each slot may hold as many requests as a packet has segments, and all may fail */
#define SEND_ENTRIES (IPOIB_SLOTS * IPOIB_MAX_SEGMENT)

struct ipoib_rc {
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *receive_cq;
	struct ibv_srq *srq;
	struct ipoib_area area[RECEIVES / RECEIVE_AREA];
	unsigned n_areas;
	uint8_t used[IPOIB_RC_POLL_MAX]; /* receives that are to be posted again */
	unsigned n_used;
	bool crowded; /* so many had come at once that more may */
	bool failed;
};

static uint8_t *memory_of(const struct ipoib_rc *rc, unsigned receive)
{
	return rc->area[receive / RECEIVE_AREA].memory +
	       (size_t)(receive % RECEIVE_AREA) * RECEIVE_BYTES;
}

static void post(struct ipoib_rc *rc, unsigned receive)
{
	struct ibv_sge sge = { (uintptr_t)memory_of(rc, receive), RECEIVE_BYTES,
		               rc->area[receive / RECEIVE_AREA].mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = receive, .sg_list = &sge, .num_sge = 1 }, *bad;

	for (unsigned tries = 0; !rc->failed && ibv_post_srq_recv(rc->srq, &wr, &bad);)
		rc->failed = ++tries == MOST_TRIES;
}

/* Posts more receives. 0 or -errno; those that there are stay. */
static int add_receives(struct ipoib_rc *rc)
{
	int ret = ipoib_area_make(&rc->area[rc->n_areas], rc->pd,
	                          (size_t)RECEIVE_AREA * RECEIVE_BYTES);

	if (ret)
		return ret;
	rc->n_areas++;
	for (unsigned i = 0; i < RECEIVE_AREA; i++)
		post(rc, (rc->n_areas - 1) * RECEIVE_AREA + i);
	return rc->failed ? -EIO : 0;
}

static int make_queues(struct ipoib_rc *rc, struct ipoib_link *link)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = RECEIVES, .max_sge = 1 } };
	struct ibv_comp_channel *channel = ipoib_link_channel(link);

	rc->pd = ipoib_link_pd(link);
	rc->send_cq = ibv_create_cq(rc->pd->context, SEND_ENTRIES, NULL, channel, 0);
	rc->receive_cq = ibv_create_cq(rc->pd->context, RECEIVES, NULL, channel, 0);
	if (!rc->send_cq || !rc->receive_cq)
		return -errno;
	rc->srq = ibv_create_srq(rc->pd, &init);
	return rc->srq ? 0 : -errno;
}

int ipoib_rc_open(struct ipoib_rc **out, struct ipoib_link *link)
{
	struct ipoib_rc *rc = calloc(1, sizeof(*rc));
	int ret;

	if (!rc)
		return -ENOMEM;
	ret = make_queues(rc, link);
	if (!ret)
		ret = add_receives(rc);
	if (ret) {
		ipoib_rc_close(rc);
		return ret;
	}
	*out = rc;
	return 0;
}

void ipoib_rc_close(struct ipoib_rc *rc)
{
	if (rc->srq)
		ibv_destroy_srq(rc->srq);
	if (rc->send_cq)
		ibv_destroy_cq(rc->send_cq);
	if (rc->receive_cq)
		ibv_destroy_cq(rc->receive_cq);
	for (unsigned i = 0; i < rc->n_areas; i++)
		ipoib_area_free(&rc->area[i]);
	free(rc);
}

struct ibv_qp *ipoib_rc_make_qp(struct ipoib_rc *rc, bool sends)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = rc->send_cq,
		.recv_cq = rc->receive_cq,
		.srq = rc->srq,
		.cap = { .max_send_wr = sends ? IPOIB_RC_SEND_DEPTH : 1, .max_send_sge = 2 },
	};

	return ibv_create_qp(rc->pd, &init);
}

/* ---- sending ---- */

bool ipoib_rc_send(struct ibv_qp *qp, unsigned slot, const struct ipoib_piece *piece, unsigned n)
{
	struct ibv_send_wr wr[IPOIB_MAX_SEGMENT], *bad;

	for (unsigned i = 0; i < n; i++)
		wr[i] = (struct ibv_send_wr){ .wr_id = slot,
			                      .sg_list = (struct ibv_sge *)piece[i].sge,
			                      .num_sge = piece[i].n,
			                      .opcode = IBV_WR_SEND,
			                      .next = &wr[i + 1] };
	wr[n - 1].next = NULL;
	wr[n - 1].send_flags = IBV_SEND_SIGNALED;
	return !ibv_post_send(qp, wr, &bad);
}

int ipoib_rc_poll_sent(struct ipoib_rc *rc, struct ibv_wc *wc, int n)
{
	int got = ibv_poll_cq(rc->send_cq, n, wc);

	rc->failed |= got < 0;
	return got < 0 ? 0 : got;
}

/* ---- receiving ---- */

int ipoib_rc_poll(struct ipoib_rc *rc, struct ipoib_rc_received got[static IPOIB_RC_POLL_MAX])
{
	struct ibv_wc wc[IPOIB_RC_POLL_MAX];
	int n = ibv_poll_cq(rc->receive_cq, IPOIB_RC_POLL_MAX, wc);

	if (n < 0 || rc->failed)
		return -EIO;
	rc->crowded = n >= base_min((int)rc->n_areas * RECEIVE_AREA / 2, IPOIB_RC_POLL_MAX);
	for (int i = 0; i < n; i++) {
		unsigned receive = (unsigned)wc[i].wr_id;

		rc->used[rc->n_used++] = (uint8_t)receive;
		got[i] = (struct ipoib_rc_received){ .data = memory_of(rc, receive),
			                             .bytes = wc[i].byte_len,
			                             .qpn = wc[i].qp_num,
			                             .failed = wc[i].status != IBV_WC_SUCCESS };
	}
	return n;
}

void ipoib_rc_repost(struct ipoib_rc *rc)
{
	while (rc->n_used)
		post(rc, rc->used[--rc->n_used]);
	if (rc->crowded && rc->n_areas < ARRAY_SIZE(rc->area))
		add_receives(rc); /* if there is no memory, another crowd asks again */
	rc->crowded = false;
}

int ipoib_rc_arm(struct ipoib_rc *rc, bool sends)
{
	int ret = ibv_req_notify_cq(rc->receive_cq, 0);

	if (!ret && sends)
		ret = ibv_req_notify_cq(rc->send_cq, 0);
	return -ret;
}
