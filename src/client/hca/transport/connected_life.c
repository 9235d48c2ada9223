/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The transports RC and UC: the life of a connected queue pair, and the tables.
 */
#include <errno.h>

#include "hca/link/flow.h"
#include "hca/registration/mr.h"
#include "hca/transport/connected.h"
#include "hca/transport/place.h"
#include "hca/transport/packet_connection.h"
#include "hca/transport/weak_requests.h"

/* Receives were posted that somebody waits for. */
static BASE_COLD void help(struct hca_qp *qp)
{
	struct hca_connected_qp *c = hca_connected(qp);

	if (!c->wire)
		hca_connected_help(qp);
	else if (!qp->rq->srq)
		hca_wire_tell_credits(c);
}

static int connected_init(struct hca_qp *qp)
{
	qp->rq->connected = qp;
	qp->rq->help = help;
	return hca_mr_publish_keys(qp->ctx->process, hca_connections_wait);
}

/* Whom it reaches does not depend on PSNs until they are set. */
static void forget_psns(struct hca_connected_qp *c)
{
	atomic_store_explicit(&c->shm->sq_psn, SHM_PSN_ANY, memory_order_relaxed);
	atomic_store_explicit(&c->shm->rq_psn, SHM_PSN_ANY, memory_order_relaxed);
}

static void connected_made(struct hca_qp *qp)
{
	struct hca_connected_qp *c = hca_connected(qp);
	struct hca_process *p = qp->ctx->process;

	c->shm = shm_connection_at(&p->region, SHM_QP_INDEX(qp->sender.qpn));
	atomic_store_explicit(&c->shm->flow, UINT32_MAX, memory_order_relaxed);
	if (qp->transport != &hca_xrc_recv) /* which others may have moved already */
		forget_psns(c);
	qp->rq->connection = c->shm;
	c->x.process = p;
	c->x.responder.process = p;
	c->x.sender = &qp->sender;
	c->x.self = qp->sender.shm;
	c->x.responder.worker = qp->sender.qpn;
	c->x.responder.requester = qp->sender.qpn;
	hca_connected_read_own(c);
	c->x.responder.is_xrc = qp->transport == &hca_xrc_send;
	qp->rq->entries = shm_data_at(&p->region, c->x.requester.qp.connection.entries_off);
	c->x.requester.memory = hca_memory_get(p, &c->x.requester.qp);
	base_lock(&p->connected_lock);
	LIST_INSERT_HEAD(&p->connected, c, entry);
	base_unlock(&p->connected_lock);
}

static uint32_t last_peer(const struct hca_connected_qp *c)
{
	return atomic_load_explicit(&c->last_peer, memory_order_relaxed);
}

static void connected_fini(struct hca_qp *qp)
{
	struct hca_connected_qp *c = hca_connected(qp);
	struct hca_process *p = qp->ctx->process;

	hca_ah_release(&c->path);
	hca_weak_close(c);
	if (!c->shm)
		return;
	hca_wire_free(c);
	hca_connected_wait_for(qp, qp->xrcd ? qp->connection.dest_qpn : last_peer(c));
	/* not before: a thread that deregisters memory waits as well */
	base_lock(&p->connected_lock);
	LIST_REMOVE(c, entry);
	base_unlock(&p->connected_lock);
	if (c->x.responder.end.memory)
		hca_memory_put(p, c->x.responder.end.memory);
	if (c->x.requester.memory)
		hca_memory_put(p, c->x.requester.memory);
}

/* Drops what waits; nobody works on the queue afterwards. */
static void connected_flush(struct hca_qp *qp)
{
	struct hca_connected_qp *c = hca_connected(qp);

	hca_wire_close(c);
	hca_connected_lock(c);
	c->completed += qp->sq_kept;
	hca_connected_publish_completed(c);
	qp->sq_kept = 0;
	c->waits_since_ns = 0;
	/* release: before others see that it is the peer no more; pairs with wait_for_peers() */
	atomic_store_explicit(&c->last_peer, qp->connection.dest_qpn, memory_order_release);
	if (hca_qp_state(qp) != IBV_QPS_ERR) /* in ERR it stays barred while it is destroyed */
		atomic_store_explicit(&c->shm->error, 0, memory_order_relaxed);
	atomic_store_explicit(&c->shm->established, 0, memory_order_relaxed);
	atomic_store_explicit(&c->shm->failed, 0, memory_order_relaxed);
	hca_place_forget(&c->x.responder);
	hca_connected_unlock(c->shm, qp->sender.qpn);
}

/* Nobody begins to deal with the queue pair any more, as if its record said that it is in ERR. */
static void connected_end(struct hca_qp *qp)
{
	uint32_t none = 0;

	/* seq_cst: before the look whom others deal with; pairs with hca_exchange_begin() */
	atomic_compare_exchange_strong_explicit(&hca_connected(qp)->shm->error, &none,
	                                        SHM_ERROR_ENDED, memory_order_seq_cst,
	                                        memory_order_relaxed);
}

void hca_connected_publish_flow(struct hca_connected_qp *c)
{
	struct hca_flow *f = hca_flow_get(&c->qp.sender, &c->path);

	atomic_store_explicit(&c->shm->flow, f ? f->id : UINT32_MAX, memory_order_release);
}

static void connected_progress(struct hca_qp *qp)
{
	struct hca_connected_qp *c = hca_connected(qp);

	switch (hca_qp_state(qp)) {
	case IBV_QPS_RTR:
		hca_wire_open(c);
		hca_weak_open(c);
		hca_connected_renew(c);
		hca_connected_help(qp);
		break;
	case IBV_QPS_RTS:
		atomic_store_explicit(&c->shm->established, 1, memory_order_release);
		hca_wire_open(c);
		hca_weak_open(c);
		hca_connected_renew(c);
		hca_connected_help(qp); /* the move to RTR may have been told together with this */
		hca_connected_go_on(c);
		break;
	case IBV_QPS_ERR:
	case IBV_QPS_SQE:
		if (hca_qp_state(qp) == IBV_QPS_ERR)
			hca_wire_close(c);
		if (!hca_connected_waits(c))
			break;
		hca_connected_lock(c);
		hca_connected_harvest(c);
		hca_connected_flush(c);
		hca_connected_unlock(c->shm, qp->sender.qpn);
		break;
	case IBV_QPS_RESET:
		hca_wire_free(c);
		hca_weak_close(c);
		forget_psns(c);
		hca_connected_wait_for(qp, last_peer(c));
		atomic_store_explicit(&c->shm->error, 0, memory_order_relaxed);
		atomic_store_explicit(&c->shm->chosen, 0, memory_order_relaxed);
		atomic_store_explicit(&c->last_peer, 0, memory_order_relaxed);
		break;
	case IBV_QPS_SQD:
		hca_wire_open(c);
		if (c->weak)
			hca_weak_drain(c);
		hca_connected_harvest(c);
		break;
	default:
		hca_connected_harvest(c);
		break;
	}
}

static void connected_poll(struct hca_qp *qp)
{
	if (hca_qp_state(qp) == IBV_QPS_RTS && hca_connected(qp)->weak)
		hca_weak_let_pass(hca_connected(qp));
	else if (hca_qp_state(qp) == IBV_QPS_RTS)
		hca_connected_go_on(hca_connected(qp));
	else
		connected_progress(qp);
}

static bool connected_drains(struct hca_qp *qp)
{
	return hca_wire_drain(hca_connected(qp));
}

static int connected_set_path(struct hca_qp *qp, struct ibv_ah_attr *attr)
{
	if (!attr) {
		hca_ah_release(&hca_connected(qp)->path);
		return 0;
	}
	return hca_ah_fill(&hca_connected(qp)->path, qp->ctx, attr);
}

#define AT_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define AT_RTS                                                                             \
	(IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | \
	 IBV_QP_PATH_MIG_STATE)

/* Table 91 of the specification, volume 1, section 11.2.5.2, as ibv_modify_qp(3) lists it for RC;
 * but for the attributes @no, which a type does not have. */
#define TRANSITIONS(no)                                                                           \
	{ IBV_QPS_RESET, IBV_QPS_INIT, AT_INIT, 0 }, { IBV_QPS_INIT, IBV_QPS_INIT, 0, AT_INIT },  \
	        { IBV_QPS_INIT, IBV_QPS_RTR,                                                      \
		  (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |                \
		   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) &                            \
		          ~(no),                                                                  \
		  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },                    \
	        { IBV_QPS_RTR, IBV_QPS_RTS,                                                       \
		  (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |         \
		   IBV_QP_MAX_QP_RD_ATOMIC) &                                                     \
		          ~(no),                                                                  \
		  AT_RTS & ~(no) },                                                               \
	        { IBV_QPS_RTS, IBV_QPS_RTS, 0, AT_RTS & ~(no) },                                  \
	        { IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },                      \
	        { IBV_QPS_SQD, IBV_QPS_RTS, 0, AT_RTS & ~(no) },                                  \
	{                                                                                         \
		IBV_QPS_SQD, IBV_QPS_SQD, 0,                                                      \
		        (IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |            \
		         IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | \
		         IBV_QP_PKEY_INDEX | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |              \
		         IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE) &                          \
		                ~(no)                                                             \
	}
#define NO_MORE                                    \
	{                                          \
		IBV_QPS_RESET, IBV_QPS_RESET, 0, 0 \
	}

#define OF_RECEIVES (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define OF_SENDS    (IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)

static const struct hca_transition rc_transitions[] = { TRANSITIONS(0), NO_MORE };

/* XRC's, as the kernel has them: a queue pair that sends has no receive side, and a target next to
 * no send side. Attributes of the other side are ignored. */
static const struct hca_transition xrc_send_transitions[] = { TRANSITIONS(OF_RECEIVES), NO_MORE };
static const struct hca_transition xrc_recv_transitions[] = { TRANSITIONS(OF_SENDS), NO_MORE };

static const struct hca_transition uc_transitions[] = {
	TRANSITIONS(OF_RECEIVES | OF_SENDS | IBV_QP_TIMEOUT | IBV_QP_PORT),
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS },
	NO_MORE,
};

#define UC_OPS                                                                                     \
	(IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND |                 \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE | \
	 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)

#define CONNECTED                                                                       \
	.qp_bytes = sizeof(struct hca_connected_qp), .init = connected_init,            \
	.made = connected_made, .fini = connected_fini, .set_path = connected_set_path, \
	.check = hca_connected_check, .post = hca_connected_post,                       \
	.post_checked = hca_connected_post_checked,                                     \
	.receive_shared = hca_connected_receive_shared, .progress = connected_progress, \
	.drains = connected_drains, .poll = connected_poll, .flush = connected_flush

#define RC_OPS                                                                   \
	(UC_OPS | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | HCA_QP_EX_WITH_FLUSH | HCA_QP_EX_WITH_ATOMIC_WRITE)

const struct hca_transport hca_rc = {
	.name = "RC",
	.type = IBV_QPT_RC,
	.send_ops = RC_OPS,
	.transitions = rc_transitions,
	.receive = hca_connected_receive,
	.end = connected_end,
	CONNECTED,
};

const struct hca_transport hca_uc = {
	.name = "UC",
	.type = IBV_QPT_UC,
	.send_ops = UC_OPS,
	.transitions = uc_transitions,
	.receive = hca_connected_receive,
	.end = connected_end,
	CONNECTED,
};

const struct hca_transport hca_xrc_send = {
	.name = "XRC",
	.type = IBV_QPT_XRC_SEND,
	.send_ops = RC_OPS,
	.ignored = OF_RECEIVES,
	.transitions = xrc_send_transitions,
	.receive = hca_connected_receive,
	CONNECTED,
};

const struct hca_transport hca_xrc_recv = {
	.name = "XRC",
	.type = IBV_QPT_XRC_RECV,
	.ignored = OF_SENDS,
	.transitions = xrc_recv_transitions,
	.receive = hca_connected_receive,
	CONNECTED,
};

/* The queue pair that a shared receive queue is made of: no program sees it. */
const struct hca_transport hca_xrc_srq = {
	.name = "XRC",
	.type = (enum ibv_qp_type)SHM_QPT_XRC_SRQ,
	.transitions = xrc_recv_transitions,
	.receive = hca_connected_receive_xrc,
	CONNECTED,
};
