/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs: the state machine and the attributes. The differences between transports are in
 * their tables (transport.h).
 */
#include <errno.h>
#include <string.h>

#include "base/pause.h"
#include "base/reason.h"
#include "hca/link/flow.h"
#include "hca/queue/comp_counter.h"
#include "hca/queue/explain.h"
#include "hca/queue/qp.h"
#include "hca/queue/srq.h"
#include "hca/transport/xrc.h"
#include "shm/connection.h"

/* The bits of these attributes that packets, or the HCA, have room for. */
#define RETRY_MASK     7
#define RNR_TIMER_MASK 31

/* How often hca_qp_enter_error() tries to acquire the send lock. */
#define LOCK_TRIES 1000

static int check_transition(const struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to,
                            int mask)
{
	/* as Linux has it (ib_modify_qp_is_ok()): one in RESET has nothing to flush */
	if (from == IBV_QPS_RESET && to == IBV_QPS_ERR)
		return -EINVAL;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask & ~IBV_QP_STATE ? -EINVAL : 0;
	for (const struct hca_transition *t = qp->transport->transitions; t->to != IBV_QPS_RESET;
	     t++) {
		if (t->from != from || t->to != to)
			continue;
		if ((mask & t->required) != t->required ||
		    (mask & ~(IBV_QP_STATE | t->required | t->optional)))
			return -EINVAL;
		return 0;
	}
	return -EINVAL;
}

/* ---- states ---- */

static bool receives(enum ibv_qp_state state)
{
	return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
	       state == IBV_QPS_SQE;
}

int hca_qp_publish(struct hca_qp *qp)
{
	struct control_modify_qp req = {
		.qpn = qp->ex.qp_base.qp_num,
		.qkey = qp->qkey,
		.pkey_index = qp->pkey_index,
		.port_num = qp->port_num,
		.receives = receives(hca_qp_state(qp)),
		.dest_qpn = qp->connection.dest_qpn,
		.access = qp->connection.access,
		.state = (uint8_t)hca_qp_state(qp),
		.min_rnr_timer = qp->connection.min_rnr_timer,
		.max_dest_rd_atomic = qp->connection.max_dest_rd_atomic,
		.counts_remote = qp->counts_remote,
		.dlid = qp->connection.path.dlid,
	};

	int ret;

	if (qp->transport == &hca_xrc_recv)
		hca_xrc_tell_others(qp, &req.target);
	ret = hca_request(qp->ctx->process, CONTROL_MODIFY_QP, &req, sizeof(req));
	if (!ret)
		qp->told_state = req.state;
	return ret;
}

/* Says so to peers. */
static void show_state(struct hca_qp *qp, enum ibv_qp_state state)
{
	struct shm_connection *c =
	        shm_connection_at(&qp->ctx->process->region, SHM_QP_INDEX(qp->ex.qp_base.qp_num));

	atomic_store_explicit(&c->state, (uint16_t)(1 + state), memory_order_relaxed);
}

static void set_state(struct hca_qp *qp, enum ibv_qp_state state)
{
	struct shm_connection *c =
	        shm_connection_at(&qp->ctx->process->region, SHM_QP_INDEX(qp->ex.qp_base.qp_num));

	atomic_store_explicit(&qp->state, (uint8_t)state, memory_order_relaxed);
	atomic_store_explicit(&c->port_num, qp->port_num, memory_order_relaxed);
	show_state(qp, state);
	if (state == IBV_QPS_ERR && qp->transport->end)
		qp->transport->end(qp);
	if (state == IBV_QPS_RESET)
		hca_rq_set_mode(qp->rq, HCA_RQ_CLOSED);
	else if (hca_rq_mode(qp->rq) == HCA_RQ_CLOSED)
		hca_rq_set_mode(qp->rq,
		                qp->rq->connected || qp->rq->srq ? HCA_RQ_CONNECTED : HCA_RQ_OPEN);
	if (qp->rq->srq && state != IBV_QPS_RESET && state != IBV_QPS_ERR)
		hca_rq_refill(qp->rq);
}

/* Says to peers what its packets are like. */
static void show_packets(struct hca_qp *qp, int mask)
{
	struct shm_connection *c =
	        shm_connection_at(&qp->ctx->process->region, SHM_QP_INDEX(qp->ex.qp_base.qp_num));

	if (mask & IBV_QP_SQ_PSN)
		atomic_store_explicit(&c->sq_psn, qp->sender.psn & 0xFFFFFF, memory_order_relaxed);
	if (mask & IBV_QP_RQ_PSN)
		atomic_store_explicit(&c->rq_psn, qp->connection.rq_psn, memory_order_relaxed);
	if (mask & IBV_QP_PATH_MTU)
		atomic_store_explicit(&c->path_mtu, qp->connection.path_mtu, memory_order_relaxed);
}

/* In ERR a queue pair takes no more receives of its shared queue (section 11.6.3.2, o11-5.2.5). */
static void tell_last(struct hca_qp *qp)
{
	struct control_raise_event last = { .type = IBV_EVENT_QP_LAST_WQE_REACHED,
		                            .element = qp->ex.qp_base.qp_num };

	if (qp->rq->srq)
		hca_request(qp->ctx->process, CONTROL_RAISE_EVENT, &last, sizeof(last));
}

bool hca_qp_enter_error(struct hca_qp *qp, bool tell)
{
	struct base_pause pause = { 0 };

	/* The thread that holds the lock may be this one, between ibv_wr_start() and
	 * ibv_wr_complete(). */
	while (!base_trylock(&qp->send_lock)) {
		if (pause.looks > LOCK_TRIES)
			return false;
		base_pause(&pause);
	}
	set_state(qp, IBV_QPS_ERR);
	if (tell) {
		hca_qp_publish(qp);
		tell_last(qp);
	}
	qp->transport->progress(qp); /* in ERR: requests that the send queue kept are flushed */
	base_unlock(&qp->send_lock);
	hca_rq_flush(qp->rq);
	return true;
}

void hca_qp_fail(struct hca_qp *qp)
{
	set_state(qp, IBV_QPS_ERR);
	hca_qp_publish(qp);
	hca_rq_flush(qp->rq);
	tell_last(qp);
}

int hca_qp_start(struct hca_qp *qp)
{
	qp->port_num = 1;
	set_state(qp, IBV_QPS_RTR);
	return hca_qp_publish(qp);
}

/* ---- attributes ---- */

static bool path_mtu_fits(const struct hca_qp *qp, enum ibv_mtu mtu)
{
	struct shm_port port;

	return mtu >= IBV_MTU_256 && !hca_port(qp->ctx, qp->port_num, &port) &&
	       mtu <= port.active_mtu;
}

/* Whether the attributes of a connection that @mask names are possible. Those that are not looked
 * at lose the bits that packets have no room for, as by mlx5 (set_connection()). */
static bool connection_is_valid(const struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	return (!(mask & IBV_QP_PATH_MTU) || path_mtu_fits(qp, a->path_mtu)) &&
	       (!(mask & IBV_QP_TIMEOUT) || a->timeout < 32) &&
	       (!(mask & IBV_QP_MAX_QP_RD_ATOMIC) || a->max_rd_atomic <= HCA_MAX_RD_ATOMIC) &&
	       (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC) || a->max_dest_rd_atomic <= HCA_MAX_RD_ATOMIC);
}

static int set_path(struct hca_qp *next, const struct ibv_qp_attr *a, int mask)
{
	struct ibv_ah_attr path = a->ah_attr;
	int ret = next->transport->set_path(next, &path);

	if (ret)
		return ret;
	/* as Linux has it (modify_qp() in uverbs_cmd.c) */
	if ((mask & IBV_QP_STATE) && a->qp_state == IBV_QPS_RTR && path.port_num != next->port_num)
		return base_because(-EINVAL, "ah_attr.port_num is %u, the queue pair is at port %u",
		                    path.port_num, next->port_num);
	next->connection.path = path;
	return 0;
}

/* Puts the attributes of a connection into @next. */
static int set_connection(struct hca_qp *next, const struct ibv_qp_attr *a, int mask)
{
	struct hca_connection *c = &next->connection;
	int ret;

#define SET(flag, to, from) \
	if (mask & (flag))  \
	(to) = (from)
	if ((mask & IBV_QP_ALT_PATH) ||
	    ((mask & IBV_QP_PATH_MIG_STATE) && a->path_mig_state != IBV_MIG_MIGRATED))
		return base_because(-EOPNOTSUPP, "alternate paths are not supported");
	if (!connection_is_valid(next, a, mask))
		return -EINVAL;
	ret = mask & IBV_QP_AV ? set_path(next, a, mask) : 0;
	if (ret)
		return ret;
	SET(IBV_QP_ACCESS_FLAGS, c->access, a->qp_access_flags);
	SET(IBV_QP_PATH_MTU, c->path_mtu, (uint8_t)a->path_mtu);
	SET(IBV_QP_DEST_QPN, c->dest_qpn, a->dest_qp_num & IB_QPN_MASK);
	SET(IBV_QP_RQ_PSN, c->rq_psn, a->rq_psn & 0xFFFFFF);
	SET(IBV_QP_TIMEOUT, c->timeout, a->timeout);
	SET(IBV_QP_RETRY_CNT, c->retry_cnt, a->retry_cnt & RETRY_MASK);
	SET(IBV_QP_RNR_RETRY, c->rnr_retry, a->rnr_retry & RETRY_MASK);
	SET(IBV_QP_MIN_RNR_TIMER, c->min_rnr_timer, a->min_rnr_timer & RNR_TIMER_MASK);
	SET(IBV_QP_MAX_QP_RD_ATOMIC, c->max_rd_atomic, a->max_rd_atomic);
	SET(IBV_QP_MAX_DEST_RD_ATOMIC, c->max_dest_rd_atomic, a->max_dest_rd_atomic);
#undef SET
	return 0;
}

static void set_port(struct hca_qp *qp, uint32_t port)
{
	qp->sender.port = port;
	qp->sender.port_is = shm_port_at(&qp->ctx->process->region, port);
}

/* Checks the attributes that @mask names and puts them into @next. */
static int set_attributes(struct hca_qp *next, const struct ibv_qp_attr *attr, int mask)
{
	struct shm_port port;
	unsigned port_num = mask & IBV_QP_PORT ? attr->port_num : next->port_num;

	if (mask & (IBV_QP_PORT | IBV_QP_PKEY_INDEX)) {
		unsigned index = mask & IBV_QP_PKEY_INDEX ? attr->pkey_index : next->pkey_index;

		if (hca_port(next->ctx, port_num, &port) || index >= port.n_pkeys ||
		    !port.pkey[index])
			return -EINVAL;
		next->port_num = (uint8_t)port_num;
		set_port(next, shm_hca_at(&next->ctx->process->region, next->ctx->hca)->first_port +
		                       port_num - 1);
		next->pkey_index = (uint16_t)index;
	}
	if (mask & IBV_QP_QKEY)
		next->qkey = attr->qkey;
	if (mask & IBV_QP_SQ_PSN)
		next->sender.psn = attr->sq_psn & 0xFFFFFF;
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_SQD) /* for this time only */
		next->en_sqd_async_notify =
		        mask & IBV_QP_EN_SQD_ASYNC_NOTIFY ? attr->en_sqd_async_notify : 0;
	return next->transport->set_path ? set_connection(next, attr, mask) : 0;
}

static void forget_everything(struct hca_qp *qp)
{
	struct hca_cq *recv_cq = qp->rq->cq;

	base_lock(&recv_cq->lock);
	hca_counted_update(qp); /* what has arrived is done */
	base_unlock(&recv_cq->lock);
	hca_rq_reset(qp->rq);
	qp->transport->flush(qp);
	hca_flow_drop_all(&qp->sender);
	atomic_store_explicit(&qp->sq_done, qp->sq_posted, memory_order_relaxed);
	hca_cq_purge(qp->send_cq, qp);
	hca_cq_purge(recv_cq, qp);
	qp->port_num = 0;
	qp->qkey = 0;
	qp->connection = (struct hca_connection){ 0 };
	if (qp->transport->set_path)
		qp->transport->set_path(qp, NULL);
	if (qp->rq->srq)
		hca_srq_help_if_due(qp->rq->srq);
}

/* If what was begun is done; else that is told when it is. */
static void tell_drained(struct hca_qp *qp)
{
	struct control_raise_event drained = { .type = IBV_EVENT_SQ_DRAINED,
		                               .element = qp->ex.qp_base.qp_num };

	if (!qp->transport->drains || !qp->transport->drains(qp))
		hca_request(qp->ctx->process, CONTROL_RAISE_EVENT, &drained, sizeof(drained));
}

/* Does what follows from a change of state, after the daemon was told, or will be by a batch: then
 * hca_qp_has_moved() follows. With send_lock held. */
static void follow_state(struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
	if (to == IBV_QPS_ERR && from != to)
		tell_last(qp);
	if (to != from && (to == IBV_QPS_RTR || to == IBV_QPS_RTS || to == IBV_QPS_ERR))
		qp->transport->progress(qp);
	/* one with a path: in RTS and SQD it may be another now; RESET waits for threads that deal
	 * with it */
	else if (qp->transport->set_path &&
	         (to == IBV_QPS_RTS || to == IBV_QPS_SQD || to == IBV_QPS_RESET))
		qp->transport->progress(qp);
	if (to == IBV_QPS_SQD && from == IBV_QPS_RTS && qp->en_sqd_async_notify)
		tell_drained(qp);
	if (to == IBV_QPS_RTS && from != to && qp->send_cq)
		hca_vain_begin(qp->send_cq);
	if (to == IBV_QPS_RTS && from != to && qp->rq->cq && qp->rq->cq != qp->send_cq)
		hca_vain_begin(qp->rq->cq);
}

/* Whether requests of the peer wait. */
static bool peer_waits(const struct hca_qp *qp)
{
	const struct shm_connection *peer =
	        shm_connection_at(&qp->ctx->process->region, SHM_QP_INDEX(qp->connection.dest_qpn));

	return qp->rq->connected && atomic_load_explicit(&peer->head, memory_order_acquire) !=
	                                    atomic_load_explicit(&peer->tail, memory_order_acquire);
}

void hca_qp_has_moved(struct hca_qp *qp)
{
	base_lock(&qp->send_lock);
	if (peer_waits(qp))
		hca_qp_publish(qp); /* when that is done, so is the batch */
	qp->transport->progress(qp);
	base_unlock(&qp->send_lock);
}

/* The attributes that a change of state sets, to be restored if the daemon refuses it. */
struct attributes {
	uint32_t qkey, port, psn;
	uint16_t pkey_index;
	uint8_t port_num, en_sqd_async_notify;
	struct hca_connection connection;
};

static struct attributes save_attributes(const struct hca_qp *qp)
{
	return (struct attributes){ .qkey = qp->qkey,
		                    .port = qp->sender.port,
		                    .psn = qp->sender.psn,
		                    .pkey_index = qp->pkey_index,
		                    .port_num = qp->port_num,
		                    .en_sqd_async_notify = qp->en_sqd_async_notify,
		                    .connection = qp->connection };
}

static void restore_attributes(struct hca_qp *qp, const struct attributes *a)
{
	qp->qkey = a->qkey;
	set_port(qp, a->port);
	qp->sender.psn = a->psn;
	qp->pkey_index = a->pkey_index;
	qp->port_num = a->port_num;
	qp->en_sqd_async_notify = a->en_sqd_async_notify;
	qp->connection = a->connection;
}

/*
 * Whether the daemon, and by it others, have to know of the change. Nobody sees a connected queue
 * pair before it receives; that it may send as well is its process's affair.
 */
static bool is_seen(const struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to,
                    const struct hca_connection *old)
{
	const struct hca_connection *c = &qp->connection;

	if (!qp->transport->set_path || qp->xrcd) /* an XRC target may be others', too */
		return true;
	if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
		return c->access != old->access || c->min_rnr_timer != old->min_rnr_timer;
	return to != IBV_QPS_INIT;
}

static int modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state from = hca_qp_state(qp);
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
	const struct attributes old = save_attributes(qp);
	int ret;

	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
		return -EINVAL;
	ret = check_transition(qp, from, to, mask);
	if (ret)
		return ret;
	ret = set_attributes(qp, attr, mask);
	if (ret) {
		restore_attributes(qp, &old);
		return ret;
	}
	if (qp->port_num != old.port_num)
		hca_flow_drop_all(&qp->sender);
	if (to == IBV_QPS_RESET) {
		show_state(qp, to);
		/* seq_cst: before its receives go; pairs with has_left() in responder.c */
		atomic_thread_fence(memory_order_seq_cst);
		forget_everything(qp);
	}
	show_packets(qp, mask);
	set_state(qp, to);
	ret = is_seen(qp, from, to, &old.connection) ? hca_qp_publish(qp) : 0;
	if (ret && to != IBV_QPS_RESET && to != IBV_QPS_ERR) {
		restore_attributes(qp, &old);
		set_state(qp, from);
		return ret;
	}
	follow_state(qp, from, to);
	return 0;
}

/* Between ibv_wr_start() and ibv_wr_complete() of this thread, too: on hardware it is the kernel
 * that changes the state, which knows nothing of them. */
int hca_qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	/* before the lock is held, so that no poll has to wait for it */
	int ret = mask & IBV_QP_AV && qp->transport->set_path
	                  ? hca_ah_await(qp->ctx, &attr->ah_attr)
	                  : 0;
	bool locked;

	if (ret)
		return ret;
	locked = hca_wr_lock(qp);
	if (qp->transport == &hca_xrc_recv)
		hca_xrc_follow_others(qp);
	ret = modify(qp, attr, mask & ~qp->transport->ignored);
	if (ret)
		hca_explain_modify(qp, attr, mask, ret);
	if (locked)
		base_unlock(&qp->send_lock);
	if (!ret && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR)
		hca_rq_flush(qp->rq);
	return ret;
}

void hca_qp_notice_error(struct hca_qp *qp)
{
	enum ibv_qp_state state = hca_qp_state(qp);
	uint32_t error;

	if (!qp->rq->connected || state == IBV_QPS_RESET || state == IBV_QPS_ERR)
		return;
	error = atomic_load_explicit(&qp->rq->connection->error, memory_order_acquire);
	if (error && error != SHM_ERROR_ENDED)
		hca_qp_enter_error(qp, true);
}

static void query_connection(const struct hca_qp *qp, struct ibv_qp_attr *attr)
{
	const struct hca_connection *c = &qp->connection;

	attr->dest_qp_num = c->dest_qpn;
	attr->rq_psn = c->rq_psn;
	attr->qp_access_flags = c->access;
	attr->path_mtu = (enum ibv_mtu)c->path_mtu;
	attr->timeout = c->timeout;
	attr->retry_cnt = c->retry_cnt;
	attr->rnr_retry = c->rnr_retry;
	attr->min_rnr_timer = c->min_rnr_timer;
	attr->max_rd_atomic = c->max_rd_atomic;
	attr->max_dest_rd_atomic = c->max_dest_rd_atomic;
	attr->ah_attr = c->path;
}

void hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	const struct ibv_qp *base = &qp->ex.qp_base;

	if (qp->transport == &hca_xrc_recv)
		hca_xrc_follow_others(qp);
	hca_qp_notice_error(qp);
	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	attr->qp_state = attr->cur_qp_state = hca_qp_state(qp);
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->qkey = qp->qkey;
	attr->sq_psn = qp->sender.psn & 0xFFFFFF;
	attr->cap = qp->cap;
	attr->pkey_index = qp->pkey_index;
	attr->en_sqd_async_notify = qp->en_sqd_async_notify;
	attr->port_num = qp->port_num;
	if (qp->transport->set_path)
		query_connection(qp, attr);
	init->qp_context = base->qp_context;
	init->send_cq = base->send_cq;
	init->recv_cq = base->recv_cq;
	init->cap = qp->cap;
	init->qp_type = base->qp_type;
	init->sq_sig_all = qp->signal_all;
	init->srq = base->srq;
}
