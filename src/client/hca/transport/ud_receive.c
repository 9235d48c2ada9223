/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UD, receiving. A message is copied to the memory of the oldest posted request, after 40 bytes
 * for its GRH.
 */
#include <string.h>

#include "base/log.h"
#include "hca/queue/cq.h"
#include "hca/queue/explain.h"
#include "hca/queue/srq.h"
#include "hca/transport/ud.h"
#include "wire/grh.h"
#include "wire/ip.h"
#include "wire/roce.h"

/* wc.sl on Ethernet. */
enum { WC_SL_IPV6 = 1, WC_SL_IPV4 = 2, WC_SL_UDP = 8 };

/* Where the next bytes of a message go. */
struct cursor {
	const struct ibv_sge *sge;
	uint32_t n, done; /* entries left, bytes of the first one used */
};

/* Only what is written to must be in a region: an entry may reach beyond its end. */
static enum ibv_wc_status scatter(struct hca_rq *rq, struct cursor *c, const void *from,
                                  uint32_t bytes)
{
	while (bytes) {
		struct hca_mr_table *mrs = &rq->process->mrs;
		const void *source = from;
		struct ibv_sge used;
		uint32_t part;
		char *to;

		if (!c->n)
			return IBV_WC_LOC_LEN_ERR;
		used = *c->sge;
		part = used.length - c->done;
		if (part > bytes)
			part = bytes;
		used.length = c->done + part;
		to = hca_mr_resolve(mrs, rq->domain, &used, IBV_ACCESS_LOCAL_WRITE);
		if (base_unlikely(!to && used.length)) {
			to = hca_mr_fault(mrs, rq->domain, &used, IBV_ACCESS_LOCAL_WRITE);
			if (!to)
				return IBV_WC_LOC_PROT_ERR;
			if (to == HCA_MR_DISCARD)
				source = NULL;
		}
		if (source && part && (!rq->known.doubts || hca_mr_is_there(to + c->done, part)))
			memcpy(to + c->done, source, part);
		if (from)
			from = (const char *)from + part;
		bytes -= part;
		c->done += part;
		if (c->done == c->sge->length) {
			c->sge++;
			c->n--;
			c->done = 0;
		}
	}
	return IBV_WC_SUCCESS;
}

/*
 * On Ethernet the IP header is in the place of the GRH. For a message from the network it is the
 * received header, for one delivered in shared memory the header that a datagram would have had.
 * There is no SL; in its place is the type of the packet, as mlx5 has it: 8 for UDP, and 1 for IPv6
 * or 2 for IPv4. UCX asks it which of the header's forms it has before it.
 */
static void make_ip_header(struct hca_rq *rq, struct shm_arrival *a, uint8_t out[IB_GRH_BYTES])
{
	const struct shm_region *r = &rq->process->region;
	struct wire_roce_packet packet = { .payload_bytes = a->length };

	a->sl = WC_SL_UDP | (wire_gid_is_ipv4(&a->dgid) ? WC_SL_IPV4 : WC_SL_IPV6);
	if (a->flags & SHM_ARRIVAL_ROCE) {
		memcpy(out, a->data, IB_GRH_BYTES);
		return;
	}
	packet.ip = (struct wire_ip){ .traffic_class = (uint8_t)(a->class_flow >> 20),
		                      .flow_label = a->class_flow & 0xFFFFF,
		                      .hop_limit = a->hop_limit,
		                      .dgid = a->dgid };
	packet.h.bth.opcode = a->flags & SHM_ARRIVAL_IMM ? WIRE_OPCODE_UD_SEND_ONLY_IMM
	                                                 : WIRE_OPCODE_UD_SEND_ONLY;
	/* also if the address has gone meanwhile */
	if (a->src_port < r->control->n_ports && a->sgid_index < SHM_GIDS)
		packet.ip.sgid = shm_roce_port_at(r, a->src_port)->source[a->sgid_index];
	wire_ip_grh(&packet.ip, wire_roce_udp_payload(&packet), out);
}

static BASE_HOT void make_grh(struct hca_rq *rq, struct shm_arrival *a, uint8_t out[IB_GRH_BYTES])
{
	const struct shm_region *r = &rq->process->region;
	uint16_t bytes = wire_grh_ud_payload(a->length, a->flags & SHM_ARRIVAL_IMM);

	if (__builtin_expect(a->flags & (SHM_ARRIVAL_ETHERNET | SHM_ARRIVAL_ROCE), 0)) {
		if (a->flags & SHM_ARRIVAL_ETHERNET)
			make_ip_header(rq, a, out);
		else /* from another subnet */
			memcpy(out, a->data, IB_GRH_BYTES);
		return;
	}
	wire_grh_begin(a->class_flow & 0x0FFFFFFF, bytes, a->hop_limit, out);
	if (base_likely(a->src_port < r->control->n_ports && a->sgid_index < SHM_GIDS))
		memcpy(out + 8, &shm_port_at(r, a->src_port)->gid[a->sgid_index],
		       sizeof(struct ib_gid));
	else
		memset(out + 8, 0, sizeof(struct ib_gid));
	memcpy(out + 24, &a->dgid, sizeof(a->dgid));
}

/* The address of the message: @small, or in a payload slot. NULL: the arrival names memory that is
 * no payload. */
static BASE_HOT const void *message_of(struct hca_rq *rq, const struct shm_arrival *a,
                                       const void *small)
{
	if (a->flags & SHM_ARRIVAL_PAYLOAD)
		return shm_payload_at(&rq->process->region, a->payload_off, a->length);
	return a->length <= SHM_INLINE ? small : NULL;
}

static enum ibv_wc_status place_in_many(struct hca_rq *rq, struct shm_arrival *a, struct cursor *c,
                                        const void *message)
{
	enum ibv_wc_status status;
	uint8_t grh[IB_GRH_BYTES];
	const void *head = NULL; /* without a GRH its place is not written */

	if (a->flags & SHM_ARRIVAL_GRH) {
		make_grh(rq, a, grh);
		head = grh;
	}
	status = scatter(rq, c, head, IB_GRH_BYTES);
	return status == IBV_WC_SUCCESS ? scatter(rq, c, message, a->length) : status;
}

/* The common case: the request has one buffer. Its region is looked up once. */
static BASE_HOT enum ibv_wc_status place_in_one(struct hca_rq *rq, struct shm_arrival *a,
                                                const struct ibv_sge *sge, const void *message)
{
	char *to = hca_mr_resolve_known(&rq->process->mrs, &rq->known, rq->domain, sge,
	                                IBV_ACCESS_LOCAL_WRITE);
	const uint32_t length = a->length;

	if (base_unlikely(!to))
		return place_in_many(rq, a, &(struct cursor){ .sge = sge, .n = 1 }, message);
	if (base_unlikely(sge->length < (uint64_t)length + IB_GRH_BYTES))
		return IBV_WC_LOC_LEN_ERR;
	if (a->flags & SHM_ARRIVAL_GRH)
		make_grh(rq, a, (uint8_t *)to);
	if (length <= BASE_COPY_SHORT)
		base_copy_short(to + IB_GRH_BYTES, message, length);
	else
		memcpy(to + IB_GRH_BYTES, message, length);
	return IBV_WC_SUCCESS;
}

static BASE_HOT enum ibv_wc_status place(struct hca_rq *rq, struct shm_arrival *a,
                                         const void *message, uint32_t n_sge,
                                         const struct ibv_sge *sge)
{
	if (base_unlikely(!message))
		return IBV_WC_GENERAL_ERR;
	if (base_likely(n_sge == 1))
		return place_in_one(rq, a, sge, message);
	return place_in_many(rq, a, &(struct cursor){ .sge = sge, .n = n_sge }, message);
}

/* Rare parts: the header received from the network, the timestamp, and the log. */
static BASE_COLD void see_to_rest(const struct hca_rq *rq, const struct shm_arrival *slot,
                                  struct shm_arrival *a)
{
	if (a->flags & (SHM_ARRIVAL_ROCE | SHM_ARRIVAL_STAMPED))
		memcpy(a->data, slot->data, sizeof(a->data));
	if (a->flags & SHM_ARRIVAL_STAMPED)
		rq->cq->arrived_ns = *shm_arrival_time(a);
	if (a->flags & SHM_ARRIVAL_TRACED)
		base_log_trace(packet, "QP 0x%06x: receives %u bytes from QP 0x%06x: position %u",
		               rq->qpn, a->length, a->src_qpn, hca_rq_load(&rq->consumed));
}

/* Completes the arrival in @slot by a receive with these entries. */
static BASE_HOT void complete_by(struct hca_rq *rq, const struct shm_arrival *slot,
                                 const struct ibv_sge *sge, uint32_t n_sge, struct ibv_wc *wc)
{
	struct hca_cq *cq = rq->cq;
	struct shm_arrival copy, *a = &copy;

	/* other processes can write to the slot, so we check and use a copy */
	memcpy((void *)a, (const void *)slot, offsetof(struct shm_arrival, data));
	if (base_unlikely(a->flags & (SHM_ARRIVAL_ROCE | SHM_ARRIVAL_TRACED | SHM_ARRIVAL_STAMPED)))
		see_to_rest(rq, slot, a);
	atomic_signal_fence(memory_order_acq_rel);
	wc->status = place(rq, a, message_of(rq, a, slot->data), n_sge, sge);
	wc->opcode = IBV_WC_RECV;
	wc->vendor_err = 0;
	wc->byte_len = a->length + IB_GRH_BYTES;
	wc->imm_data = a->imm;
	wc->qp_num = rq->qpn;
	wc->src_qp = a->src_qpn;
	wc->wc_flags = (a->flags & SHM_ARRIVAL_GRH ? IBV_WC_GRH : 0) |
	               (a->flags & SHM_ARRIVAL_IMM ? IBV_WC_WITH_IMM : 0);
	wc->pkey_index = 0;
	wc->slid = a->slid;
	wc->sl = a->sl;
	wc->dlid_path_bits = a->path_bits;
	rq->announced = a->more;
	if (base_unlikely(wc->status != IBV_WC_SUCCESS)) {
		hca_rq_fail(rq);
		cq->failed = true;
		hca_explain_failed_receive(rq, wc, sge, n_sge);
	}
}

/* Both are functions of type hca_rq_complete. */
static BASE_HOT enum hca_rq_outcome complete(struct hca_rq *rq, struct shm_arrival *slot,
                                             struct ibv_wc *wc)
{
	const struct ibv_sge *sge;
	struct hca_rwqe *rwqe = hca_rq_next(rq, &sge);

	wc->wr_id = rwqe->wr_id;
	complete_by(rq, slot, sge, rwqe->n_sge, wc);
	shm_ring_take_data(slot);
	return HCA_RQ_DONE;
}

static BASE_COLD enum hca_rq_outcome complete_shared(struct hca_rq *rq, struct shm_arrival *slot,
                                                     struct ibv_wc *wc)
{
	const uint16_t index = (uint16_t)SHM_QP_INDEX(rq->qpn);
	struct ibv_sge sge[HCA_MAX_SGE];
	uint32_t n_sge;
	const bool taken = hca_srq_take_next(rq->srq, index, &wc->wr_id, sge, &n_sge);

	if (hca_srq_must_help(rq->srq)) /* receives came back, for which connected ones wait */
		rq->cq->failed = true;
	if (!taken) {
		HCA_COUNT(rq->process, shm_qp_at(&rq->process->region, index)->port, no_receive);
		return HCA_RQ_DROPPED;
	}
	complete_by(rq, slot, sge, n_sge, wc);
	shm_ring_take_data(slot);
	return HCA_RQ_DONE;
}

int hca_ud_receive(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals)
{
	return hca_rq_poll(rq, n, wc, arrivals, complete);
}

/* These arrivals are not counted: see is_counted(), cq_members.c. */
int hca_ud_receive_shared(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals)
{
	uint32_t uncounted = 0;
	int done;

	(void)arrivals;
	base_lock(&rq->lock);
	done = hca_rq_poll_locked(rq, n, wc, &uncounted, complete_shared);
	hca_rq_refill_locked(rq);
	base_unlock(&rq->lock);
	rq->cq->uncounted_polled += uncounted;
	return done;
}
