/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why requests are refused, and why they complete in error: see explain.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/reason.h"
#include "base/util.h"
#include "hca/connected.h"
#include "hca/explain.h"
#include "hca/operation.h"

/* ---- names ---- */

static const char *name_in(const char *const *names, size_t n, unsigned i)
{
	return i < n && names[i] ? names[i] : "?";
}

const char *hca_state_name(enum ibv_qp_state state)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return name_in(names, ARRAY_SIZE(names), state);
}

#define NAME(value) [value] = #value

const char *hca_status_name(enum ibv_wc_status status)
{
	static const char *const names[] = {
		NAME(IBV_WC_SUCCESS),           NAME(IBV_WC_LOC_LEN_ERR),
		NAME(IBV_WC_LOC_QP_OP_ERR),     NAME(IBV_WC_LOC_PROT_ERR),
		NAME(IBV_WC_WR_FLUSH_ERR),      NAME(IBV_WC_MW_BIND_ERR),
		NAME(IBV_WC_REM_INV_REQ_ERR),   NAME(IBV_WC_REM_ACCESS_ERR),
		NAME(IBV_WC_REM_OP_ERR),        NAME(IBV_WC_RETRY_EXC_ERR),
		NAME(IBV_WC_RNR_RETRY_EXC_ERR), NAME(IBV_WC_FATAL_ERR),
		NAME(IBV_WC_GENERAL_ERR),
	};

	return name_in(names, ARRAY_SIZE(names), status);
}

const char *hca_opcode_name(unsigned opcode)
{
#define OPERATION(opcode, name, completion, calls, carry_out, properties) [opcode] = name,
	static const char *const names[] = {
#include "hca/operation.def"
		[IBV_WR_TSO] = "TSO", /* which no transport has */
	};
#undef OPERATION

	return name_in(names, ARRAY_SIZE(names), opcode);
}

/* ---- posting ---- */

/* What is wrong with the request itself, whatever the transport. 0: nothing. */
static int explain_request(const struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length,
                           int error)
{
	const unsigned op = hca_operation(wr->opcode);
	bool is_ud = qp->transport->type == IBV_QPT_UD;
	bool has = is_ud ? wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM
	                 : (op & HCA_OP_POSTED) &&
	                           !((op & HCA_OP_ANSWERED) && qp->transport->type == IBV_QPT_UC);

	if (!has)
		return base_because(error, "%s queue pairs have no operation '%s' (opcode %u)",
		                    qp->transport->name, hca_opcode_name(wr->opcode),
		                    (unsigned)wr->opcode);
	if ((uint32_t)wr->num_sge > qp->cap.max_send_sge)
		return base_because(error, "num_sge is %d: QP 0x%06x has max_send_sge %u",
		                    wr->num_sge, qp->sender.qpn, qp->cap.max_send_sge);
	if ((wr->send_flags & IBV_SEND_INLINE) && length > qp->cap.max_inline_data)
		return base_because(
		        error, "%" PRIu64 " bytes of inline data: QP 0x%06x has max_inline_data %u",
		        length, qp->sender.qpn, qp->cap.max_inline_data);
	if (!is_ud && length > HCA_MAX_MESSAGE)
		return base_because(error, "the message has %" PRIu64 " bytes: at most %u are one",
		                    length, HCA_MAX_MESSAGE);
	if ((op & HCA_OP_WORD) && length != sizeof(uint64_t))
		return base_because(error, "an operation '%s' has 8 bytes, this one has %" PRIu64,
		                    hca_opcode_name(wr->opcode), length);
	return 0;
}

static uint64_t bytes_of(const struct ibv_sge *sge, uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += sge[i].length;
	return bytes;
}

static int explain_wrong(const struct hca_qp *qp, const struct ibv_send_wr *wr, int error)
{
	bool fits = (uint32_t)wr->num_sge <= qp->cap.max_send_sge;
	const struct hca_ah *ah = (const struct hca_ah *)wr->wr.ud.ah;
	enum ibv_qp_state state = hca_qp_state(qp);

	if (!hca_qp_can_post(state))
		return base_because(error,
		                    "QP 0x%06x is in %s, and takes sends from RTS on: move it "
		                    "there with ibv_modify_qp()",
		                    qp->sender.qpn, hca_state_name(state));
	if (explain_request(qp, wr, fits ? bytes_of(wr->sg_list, (uint32_t)wr->num_sge) : 0, error))
		return error;
	if (qp->transport->type != IBV_QPT_UD)
		return error;
	if (!ah)
		return base_because(error, "wr.ud.ah is NULL: make one with ibv_create_ah()");
	if (ah->alive != HCA_AH_ALIVE)
		return base_because(error, "wr.ud.ah is an address handle that was destroyed");
	return error;
}

int hca_explain_send(const struct hca_qp *qp, const struct ibv_send_wr *wr, int error)
{
	if (!base_log_reasons)
		return error;
	if (error == -EIO)
		return base_because(error, "the daemon of the fabric is gone");
	if (error == -ENOMEM &&
	    qp->sq_posted + qp->sq_kept -
	                    atomic_load_explicit(&qp->sq_done, memory_order_relaxed) >=
	            qp->cap.max_send_wr)
		return base_because(
		        error,
		        "the send queue of QP 0x%06x is full: it has room for %u requests "
		        "(max_send_wr), which leave it when a completion of theirs, or of a later "
		        "signaled one, is polled",
		        qp->sender.qpn, qp->cap.max_send_wr);
	return error == -EINVAL ? explain_wrong(qp, wr, error) : error;
}

int hca_explain_receive(const struct hca_rq *rq, const struct ibv_recv_wr *wr, int error)
{
	if (error == -EIO)
		return base_because(error, "the daemon of the fabric is gone");
	if (error == -ENOMEM)
		return base_because(error,
		                    "the receive queue of QP 0x%06x is full: it has room for %u "
		                    "requests (max_recv_wr) that are not completed",
		                    rq->qpn, rq->max_wr);
	if (rq->srq)
		return base_because(error,
		                    "the receives of QP 0x%06x are those of its shared receive "
		                    "queue: post them with ibv_post_srq_recv()",
		                    rq->qpn);
	if (hca_rq_mode(rq) == HCA_RQ_CLOSED)
		return base_because(error,
		                    "QP 0x%06x is in RESET, and takes receives from INIT on: move "
		                    "it there with ibv_modify_qp()",
		                    rq->qpn);
	return base_because(error, "num_sge is %d: QP 0x%06x has max_recv_sge %u",
	                    wr ? wr->num_sge : 0, rq->qpn, rq->max_sge);
}

/* ---- states and attributes ---- */

/* Writes the names of the attributes in @mask to @text. */
static const char *mask_names(int mask, char text[static BASE_REASON_MAX])
{
	static const char *const names[] = {
		"STATE",
		"CUR_STATE",
		"EN_SQD_ASYNC_NOTIFY",
		"ACCESS_FLAGS",
		"PKEY_INDEX",
		"PORT",
		"QKEY",
		"AV",
		"PATH_MTU",
		"TIMEOUT",
		"RETRY_CNT",
		"RNR_RETRY",
		"RQ_PSN",
		"MAX_QP_RD_ATOMIC",
		"ALT_PATH",
		"MIN_RNR_TIMER",
		"SQ_PSN",
		"MAX_DEST_RD_ATOMIC",
		"PATH_MIG_STATE",
		"CAP",
		"DEST_QPN",
	};
	size_t n = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < ARRAY_SIZE(names) && n < BASE_REASON_MAX; i++)
		if (mask & 1 << i)
			n += (size_t)snprintf(text + n, BASE_REASON_MAX - n, "%sIBV_QP_%s",
			                      n ? ", " : "", names[i]);
	return text;
}

static const struct hca_transition *find_transition(const struct hca_qp *qp, enum ibv_qp_state from,
                                                    enum ibv_qp_state to)
{
	const struct hca_transition *t = qp->transport->transitions;

	while (t->to != IBV_QPS_RESET && (t->from != from || t->to != to))
		t++;
	return t->to == IBV_QPS_RESET ? NULL : t;
}

/* Whether the change of state is possible, and @mask has what goes with it; else says why not. */
static bool explain_transition(const struct hca_qp *qp, enum ibv_qp_state to, int mask, int error)
{
	const int always = IBV_QP_STATE | IBV_QP_CUR_STATE;
	const enum ibv_qp_state from = hca_qp_state(qp);
	const struct hca_transition *t = find_transition(qp, from, to);
	const char *name = qp->transport->name;
	char text[BASE_REASON_MAX];
	int wrong;

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return true;
	if (!t) {
		base_because(error,
		             "QP 0x%06x cannot go from %s to %s: the way is RESET, INIT, RTR, RTS",
		             qp->sender.qpn, hca_state_name(from), hca_state_name(to));
		return false;
	}
	wrong = t->required & ~mask;
	if (wrong) {
		base_because(error, "%s queue pairs need %s to go from %s to %s", name,
		             mask_names(wrong, text), hca_state_name(from), hca_state_name(to));
		return false;
	}
	wrong = mask & ~(always | t->required | t->optional);
	if (wrong)
		base_because(error, "%s queue pairs take no %s when they go from %s to %s", name,
		             mask_names(wrong, text), hca_state_name(from), hca_state_name(to));
	return !wrong;
}

/* Whether port and P_Key index are there; else says why not. */
static bool explain_port(const struct hca_qp *qp, const struct ibv_qp_attr *a, int mask, int error)
{
	unsigned num = mask & IBV_QP_PORT ? a->port_num : qp->port_num;
	unsigned index = mask & IBV_QP_PKEY_INDEX ? a->pkey_index : qp->pkey_index;
	struct shm_port port;

	if (!(mask & (IBV_QP_PORT | IBV_QP_PKEY_INDEX)))
		return true;
	if (hca_port(qp->ctx, num, &port)) /* which says why */
		return false;
	if (index < port.n_pkeys && port.pkey[index])
		return true;
	base_because(error,
	             "P_Key index %u: port %u has no P_Key there; ibv_query_pkey() says "
	             "where it has some",
	             index, num);
	return false;
}

static void explain_number(int error, const char *name, unsigned is, unsigned most)
{
	if (is > most)
		base_because(error, "%s is %u: at most %u is possible", name, is, most);
}

static void explain_connection(const struct hca_qp *qp, const struct ibv_qp_attr *a, int mask,
                               int error)
{
	struct shm_port port;

	if ((mask & IBV_QP_PATH_MTU) &&
	    !hca_port(qp->ctx, mask & IBV_QP_PORT ? a->port_num : qp->port_num, &port) &&
	    (a->path_mtu < IBV_MTU_256 || a->path_mtu > port.active_mtu))
		base_because(error, "path_mtu is enum ibv_mtu %d: the port's active_mtu is %u",
		             (int)a->path_mtu, port.active_mtu);
#define AT_MOST(flag, field, most) \
	if (mask & (flag))         \
	explain_number(error, #field, a->field, most)
	AT_MOST(IBV_QP_DEST_QPN, dest_qp_num, IB_QPN_MASK);
	AT_MOST(IBV_QP_TIMEOUT, timeout, 31);
	AT_MOST(IBV_QP_RETRY_CNT, retry_cnt, 7);
	AT_MOST(IBV_QP_RNR_RETRY, rnr_retry, 7);
	AT_MOST(IBV_QP_MIN_RNR_TIMER, min_rnr_timer, 31);
	AT_MOST(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, HCA_MAX_RD_ATOMIC);
	AT_MOST(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, HCA_MAX_RD_ATOMIC);
#undef AT_MOST
}

int hca_explain_modify(const struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask, int error)
{
	enum ibv_qp_state state = hca_qp_state(qp);

	if (!base_log_reasons || error != -EINVAL)
		return error;
	mask &= ~qp->transport->ignored;
	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != state)
		return base_because(error, "cur_qp_state is %s: QP 0x%06x is in %s",
		                    hca_state_name(attr->cur_qp_state), qp->sender.qpn,
		                    hca_state_name(state));
	if (explain_transition(qp, mask & IBV_QP_STATE ? attr->qp_state : state, mask, error) &&
	    explain_port(qp, attr, mask, error) && qp->transport->set_path)
		explain_connection(qp, attr, mask, error);
	return error;
}

/* ---- memory ---- */

/* Whether the entry may be used so; else says why not. */
static bool explain_entry(struct hca_process *p, const struct hca_domain *domain,
                          const struct ibv_sge *sge, unsigned access, int error)
{
	const struct hca_mr *mr = hca_mr_find(&p->mrs, sge->lkey);
	const char *why = NULL;

	if (!sge->length)
		return true;
	if (!mr)
		why = "is none of a memory region, or of one that was deregistered";
	else if (mr->own_domain != domain)
		why = "is of a memory region in another protection domain than the queue pair's";
	else if ((mr->access & access) != access)
		why = "is of a memory region without IBV_ACCESS_LOCAL_WRITE, which is written to";
	if (why) {
		base_because(error, "lkey 0x%08x %s", sge->lkey, why);
		return false;
	}
	if (mr->kind == HCA_MR_NULL ||
	    (sge->addr >= mr->iova && sge->addr - mr->iova <= mr->mr.length &&
	     mr->mr.length - (sge->addr - mr->iova) >= sge->length))
		return true;
	base_because(error,
	             "%u bytes at 0x%" PRIx64
	             " are not all in the memory region of lkey 0x%08x: %zu bytes at 0x%" PRIx64,
	             sge->length, sge->addr, sge->lkey, mr->mr.length, mr->iova);
	return false;
}

static void explain_entries(struct hca_process *p, const struct hca_domain *domain,
                            const struct ibv_sge *sge, uint32_t n, unsigned access, int error)
{
	while (n && explain_entry(p, domain, sge, access, error)) {
		n--;
		sge++;
	}
}

/* ---- completions ---- */

/* What a status means, where nothing more is known. */
static const char *meaning_of(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_LOC_LEN_ERR:
		return "the receive is shorter than the message";
	case IBV_WC_LOC_QP_OP_ERR:
		return "the address handle, or the request, does not fit the queue pair";
	case IBV_WC_LOC_PROT_ERR:
		return "a key of an entry does not give access to its memory, or the memory is "
		       "gone";
	case IBV_WC_WR_FLUSH_ERR:
		return "the queue pair is in an error state: an earlier request has failed, or the "
		       "program, the peer or rdma_cm has moved it there";
	case IBV_WC_MW_BIND_ERR:
		return "the window or its memory region does not allow it";
	case IBV_WC_REM_INV_REQ_ERR:
		return "the responder cannot take it: its receive is too short, the address is not "
		       "aligned, or its qp_access_flags or max_dest_rd_atomic do not allow it";
	case IBV_WC_REM_ACCESS_ERR:
		return "rkey, address, length or access flags: the responder has no such memory";
	case IBV_WC_REM_OP_ERR:
		return "the responder's receive names memory that may not be written to";
	case IBV_WC_RETRY_EXC_ERR:
		return "no responder within timeout and retry_cnt";
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return "the responder had no receive posted within rnr_retry times its "
		       "min_rnr_timer: post receives before the peer sends";
	case IBV_WC_FATAL_ERR:
		return "the daemon of the fabric is gone";
	default:
		return "there is no memory left, or no way to the destination";
	}
}

/* One line at most for each power of two of the same failures of a queue pair. */
static void log_completion(uint32_t qpn, uint64_t wr_id, const char *operation,
                           enum ibv_wc_status status)
{
	const struct base_failure f = { .part = BASE_LOG_PART_verbs,
		                        .error = (int)status,
		                        .otherwise = meaning_of(status),
		                        .again = (uint64_t)qpn << 32 | (uint64_t)status << 8 |
		                                 (uint8_t)operation[0] };

	base_failure_log(&f, "QP 0x%06x, wr_id %" PRIu64 ": %s completes with %s", qpn, wr_id,
	                 operation, hca_status_name(status));
}

static void explain_handle(const struct hca_qp *qp, const struct hca_ah *ah, int error)
{
	if (ah->domain != qp->domain)
		base_because(error, "the address handle is in another protection domain than the "
		                    "queue pair");
	else if (ah->dest.port_num != qp->port_num)
		base_because(error,
		             "the address handle is for port %u, the queue pair uses port %u",
		             ah->dest.port_num, qp->port_num);
}

/* Whether its port is on Ethernet, and its path leads to no port of this fabric. */
static bool is_elsewhere(const struct hca_qp *qp)
{
	const struct shm_region *r = &qp->ctx->process->region;
	const uint8_t *dgid = qp->connection.path.grh.dgid.raw;

	if (r->ports[qp->sender.port].link_layer != IBV_LINK_LAYER_ETHERNET)
		return false;
	for (uint32_t i = 0; i < r->control->n_ports; i++)
		for (unsigned k = 0; r->ports[i].state == IB_PORT_ACTIVE && k < r->ports[i].n_gids;
		     k++)
			if (!memcmp(r->ports[i].gid[k].raw, dgid, sizeof(r->ports[i].gid[k].raw)))
				return false;
	return true;
}

/* Why the responder could not be reached. */
static void explain_silence(const struct hca_qp *qp, int error)
{
	const struct hca_exchange *x = &((const struct hca_connected_qp *)qp)->x;
	const struct shm_region *r = &qp->ctx->process->region;
	const uint32_t dest = qp->connection.dest_qpn;
	struct shm_qp to;

	shm_qp_read(r, dest, &to);
	if (r->ports[qp->sender.port].state != IB_PORT_ACTIVE)
		base_because(error, "port %u is not active", qp->port_num);
	else if (is_elsewhere(qp))
		base_because(error,
		             "no port of this fabric that is up has the GID in ah_attr: RC, UC "
		             "and XRC on RoCE do not reach other machines yet");
	else if (to.qpn != dest)
		base_because(error, "dest_qp_num 0x%06x: there is no such queue pair", dest);
	else if (!(to.flags & SHM_QP_RECEIVES))
		base_because(error, "QP 0x%06x, the destination, is not in RTR or RTS", dest);
	else if (to.connection.dest_qpn != qp->sender.qpn)
		base_because(error, "QP 0x%06x, the destination, is connected to QP 0x%06x", dest,
		             to.connection.dest_qpn);
	else if (!x->is_match)
		base_because(error, "QP 0x%06x, the destination, is of another type or partition",
		             dest);
	else
		base_because(error,
		             "QP 0x%06x does not answer by LID %u: is ah_attr that of its port, do "
		             "the switches forward, and does its process live?",
		             dest, qp->connection.path.dlid);
}

void hca_explain_failed_send(const struct hca_qp *qp, const struct ibv_send_wr *wr,
                             enum ibv_wc_status status)
{
	const bool brings_back = hca_operation(wr->opcode) & HCA_OP_BACK;

	if (!base_log_on(verbs, BASE_LOG_WARNING))
		return;
	if (status == IBV_WC_LOC_PROT_ERR && !(wr->send_flags & IBV_SEND_INLINE))
		explain_entries(qp->ctx->process, qp->domain, wr->sg_list, (uint32_t)wr->num_sge,
		                brings_back ? IBV_ACCESS_LOCAL_WRITE : 0, (int)status);
	if (status == IBV_WC_LOC_QP_OP_ERR && qp->transport->type == IBV_QPT_UD)
		explain_handle(qp, (const struct hca_ah *)wr->wr.ud.ah, (int)status);
	if (status == IBV_WC_RETRY_EXC_ERR)
		explain_silence(qp, (int)status);
	log_completion(qp->sender.qpn, wr->wr_id, hca_opcode_name(wr->opcode), status);
}

/* The receive has no room for the message. */
static void explain_length(const struct hca_rq *rq, const struct ibv_wc *wc, uint64_t room,
                           int error)
{
	if (rq->connected)
		base_because(error, "receive has %" PRIu64 " bytes, message needs %u", room,
		             wc->byte_len);
	else
		base_because(error, "receive has %" PRIu64 " bytes, message needs %u and %u of GRH",
		             room, wc->byte_len - IB_GRH_BYTES, IB_GRH_BYTES);
}

void hca_explain_failed_receive(struct hca_rq *rq, const struct ibv_wc *wc,
                                const struct ibv_sge *sge, uint32_t n_sge)
{
	if (!base_log_on(verbs, BASE_LOG_WARNING))
		return;
	if (sge && wc->status == IBV_WC_LOC_LEN_ERR)
		explain_length(rq, wc, bytes_of(sge, n_sge), (int)wc->status);
	if (sge && wc->status == IBV_WC_LOC_PROT_ERR)
		explain_entries(rq->process, rq->domain, sge, n_sge, IBV_ACCESS_LOCAL_WRITE,
		                (int)wc->status);
	log_completion(wc->qp_num, wc->wr_id, "receive", wc->status);
}

int hca_explain_overrun(const struct hca_cq *cq)
{
	base_because(-EIO,
	             "completion queue %u has overrun: it has room for %d completions (cqe); poll "
	             "it sooner, or make it as large as all queues that complete there",
	             cq->id, cq->cq.cqe);
	base_call_failed(verbs, "ibv_poll_cq", EIO);
	return -EIO;
}
