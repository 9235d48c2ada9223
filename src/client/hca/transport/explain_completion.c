/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why requests complete in error: see explain.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/reason.h"
#include "hca/process/operation.h"
#include "hca/queue/explain.h"
#include "hca/transport/packet_connection.h"
#include "wire/text.h"

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

/* As far as @bytes reach into them. */
static void explain_entries(struct hca_process *p, const struct hca_domain *domain,
                            const struct ibv_sge *sge, uint32_t n, uint64_t bytes, unsigned access,
                            int error)
{
	for (const struct ibv_sge *end = sge + n; sge < end && bytes; sge++) {
		struct ibv_sge used = *sge;

		if (used.length > bytes)
			used.length = (uint32_t)bytes;
		if (!explain_entry(p, domain, &used, access, error))
			return;
		bytes -= used.length;
	}
}

/* ---- completions ---- */

/* The meaning of a status, where nothing more is known. */
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

	if (shm_port_at(r, qp->sender.port)->link_layer != IBV_LINK_LAYER_ETHERNET)
		return false;
	for (uint32_t i = 0; i < r->control->n_ports; i++)
		for (unsigned k = 0;
		     shm_port_at(r, i)->state == IB_PORT_ACTIVE && k < shm_port_at(r, i)->n_gids;
		     k++)
			if (!memcmp(shm_port_at(r, i)->gid[k].raw, dgid,
			            sizeof(shm_port_at(r, i)->gid[k].raw)))
				return false;
	return true;
}

/* The peer is outside of the fabric, and has not acknowledged what was sent. */
static void explain_wire(const struct hca_qp *qp, int error)
{
	const struct hca_wire *w = ((const struct hca_connected_qp *)qp)->wire;

	if (!w)
		base_because(error, "the GID in ah_attr is no port's of this fabric that is up: on "
		                    "RoCE, XRC does not reach other machines yet");
	else
		base_because(error,
		             "%s does not acknowledge PSN %u: has it QP 0x%06x, which is in RTR "
		             "or RTS and connected to this one? (%" PRIu64
		             " packets were sent again)",
		             wire_gid_text(&w->path.dgid), w->shm->acked, qp->connection.dest_qpn,
		             w->shm->retransmissions);
}

/* Why the responder could not be reached. */
static void explain_silence(const struct hca_qp *qp, int error)
{
	const struct hca_exchange *x = &((const struct hca_connected_qp *)qp)->x;
	const struct shm_region *r = &qp->ctx->process->region;
	const uint32_t dest = qp->connection.dest_qpn;
	struct shm_qp to;

	shm_qp_read(r, dest, &to);
	if (shm_port_at(r, qp->sender.port)->state != IB_PORT_ACTIVE)
		base_because(error, "port %u is not active", qp->port_num);
	else if (is_elsewhere(qp))
		explain_wire(qp, error);
	else if (to.qpn != dest)
		base_because(error, "dest_qp_num 0x%06x: there is no such queue pair", dest);
	else if (!(to.flags & SHM_QP_RECEIVES))
		base_because(error, "QP 0x%06x, the destination, is not in RTR or RTS", dest);
	else if (to.connection.dest_qpn != qp->sender.qpn)
		base_because(error, "QP 0x%06x, the destination, is connected to QP 0x%06x", dest,
		             to.connection.dest_qpn);
	else if (to.type == x->requester.qp.type && !hca_exchange_psns_match(x))
		base_because(error,
		             "QP 0x%06x, the destination, expects another PSN: its rq_psn has to "
		             "be the sq_psn of QP 0x%06x",
		             dest, qp->sender.qpn);
	else if (to.type == x->requester.qp.type && !hca_exchange_leads_back(x))
		base_because(error,
		             "QP 0x%06x, the destination, acknowledges to LID %u: its ah_attr is "
		             "not that of the port of QP 0x%06x",
		             dest, to.connection.dlid, qp->sender.qpn);
	else if (!x->is_match && !x->longest)
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
		                UINT64_MAX, brings_back ? IBV_ACCESS_LOCAL_WRITE : 0, (int)status);
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
		explain_length(rq, wc, hca_sge_bytes(sge, n_sge), (int)wc->status);
	if (sge && wc->status == IBV_WC_LOC_PROT_ERR)
		explain_entries(rq->process, rq->domain, sge, n_sge, wc->byte_len,
		                IBV_ACCESS_LOCAL_WRITE, (int)wc->status);
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
