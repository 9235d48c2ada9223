/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A shared receive queue and its requesters: see srq_lab.h.
 */
#include "srq_lab.h"

static void undo_srq(void *srq)
{
	ibv_destroy_srq(srq);
}

static void undo_qp(void *qp)
{
	ibv_destroy_qp(qp);
}

void srq_lab_make(struct srq_lab *r, unsigned size, uint32_t bytes)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = size, .max_sge = 1 } };

	memset(r, 0, sizeof(*r));
	r->size = size;
	r->bytes = bytes;
	r->context = lab_open(2);
	r->pd = lab_pd(r->context);
	r->cq = lab_cq(r->context, 2 * SRQ_LAB_MOST, NULL); /* all receives, and sends */
	r->memory = malloc(bytes);
	lab_undo(free, r->memory);
	r->mr = lab_mr(r->pd, r->memory, bytes);
	assert_non_null(r->srq = ibv_create_srq(r->pd, &init));
	lab_undo(undo_srq, r->srq);
}

bool srq_lab_try_post_all(struct srq_lab *r)
{
	for (unsigned i = 0; i < r->size; i++) {
		struct ibv_sge sge = { (uintptr_t)r->memory, r->bytes, r->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		if (r->posted[i])
			continue;
		if (ibv_post_srq_recv(r->srq, &wr, &bad))
			return false;
		r->posted[i] = true;
		r->n++;
	}
	return true;
}

void srq_lab_post_all(struct srq_lab *r)
{
	assert_true(srq_lab_try_post_all(r));
}

bool srq_lab_poll(struct srq_lab *r)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(r->cq, 1, &wc);

	assert_true(n >= 0);
	if (!n)
		return false;
	/* requesters are killed; none fails, nor does what was posted */
	if (wc.status != IBV_WC_SUCCESS)
		fail_msg("receive %llu ends with '%s'", (unsigned long long)wc.wr_id,
		         ibv_wc_status_str(wc.status));
	assert_true(wc.wr_id < r->size && r->posted[wc.wr_id]);
	r->posted[wc.wr_id] = false;
	r->n--;
	return true;
}

struct lab_peer *srq_lab_requester(struct srq_lab *r, bool elsewhere)
{
	const struct lab_peer_options o = {
		.elsewhere = elsewhere, .bytes = r->bytes, .rnr_retry = 7, .retry_cnt = 7
	};
	struct ibv_qp_init_attr init = { .send_cq = r->cq,
		                         .recv_cq = r->cq,
		                         .srq = r->srq,
		                         .qp_type = IBV_QPT_RC,
		                         .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
	struct lab_peer *p = lab_peer(&o),
	                responder = { .o = { .type = IBV_QPT_RC, .min_rnr_timer = 1 } };
	struct lab_peer_objects here = { .qp = ibv_create_qp(r->pd, &init) };

	assert_non_null(here.qp);
	lab_undo(undo_qp, here.qp);
	r->last = here.qp;
	responder.here = &here;
	responder.address =
	        (struct lab_peer_address){ .qpn = here.qp->qp_num, .path = lab_path(r->context) };
	lab_peer_connect(&responder, p);
	lab_peer_connect(p, &responder);
	return p;
}
