/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UD, sending. Before ibv_post_send() returns, the caller's thread checks the work request, copies
 * the message once, sends it to all receivers, and completes the request.
 *
 * If the request itself is wrong, the call fails and ends the list. An error that shows only when
 * the request is carried out completes it in error and moves the queue to SQE, as on hardware.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/link/deliver.h"
#include "hca/link/flow.h"
#include "hca/link/packet.h"
#include "hca/process/link.h"
#include "hca/queue/explain.h"
#include "hca/transport/ud.h"

#define LARGEST_MTU 4096

static struct hca_ud_qp *ud(struct hca_qp *qp)
{
	return (struct hca_ud_qp *)qp;
}

/* 0, or -errno: what is wrong with the request itself. *@length: of the message, in bytes.
 * @in_list: its address handle is that of the request before it. */
static BASE_HOT int check(const struct hca_qp *qp, const struct ibv_send_wr *wr, bool in_list,
                          uint64_t *length)
{
	const struct hca_ah *ah = (const struct hca_ah *)wr->wr.ud.ah;

	if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM)
		return -EINVAL;
	if ((uint32_t)wr->num_sge > qp->cap.max_send_sge) /* negative ones too */
		return -EINVAL;
	if (!in_list && (!ah || ah->alive != HCA_AH_ALIVE))
		return -EINVAL;
	*length = hca_message_length(wr);
	if ((wr->send_flags & IBV_SEND_INLINE) && *length > qp->cap.max_inline_data)
		return -EINVAL;
	return 0;
}

/* The address of an entry that is in no ordinary region, or NULL: see hca_mr_fault(). */
static BASE_COLD const void *fault(struct hca_qp *qp, const struct ibv_send_wr *wr,
                                   const struct ibv_sge *sge)
{
	if (wr->send_flags & IBV_SEND_INLINE)
		return NULL;
	return hca_mr_fault(&qp->sender.process->mrs, qp->domain, sge, 0);
}

/* Copies the part of the message that is in @sge. Inline data needs no memory region. */
static BASE_HOT bool gather_one(struct hca_qp *qp, const struct ibv_send_wr *wr,
                                const struct ibv_sge *sge, char *to)
{
	const void *from;

	if (wr->send_flags & IBV_SEND_INLINE)
		from = (const void *)(uintptr_t)sge->addr;
	else
		from = hca_mr_resolve(&qp->sender.process->mrs, qp->domain, sge, 0);
	if (base_unlikely(!from && sge->length)) {
		from = fault(qp, wr, sge);
		if (!from)
			return false;
	}
	if (sge->length <= BASE_COPY_SHORT)
		base_copy_short(to, from, sge->length);
	else
		memcpy(to, from, sge->length);
	return true;
}

static __attribute__((noinline)) bool gather_many(struct hca_qp *qp, const struct ibv_send_wr *wr,
                                                  char *to)
{
	for (int i = 0; i < wr->num_sge; i++) {
		if (!gather_one(qp, wr, &wr->sg_list[i], to))
			return false;
		to += wr->sg_list[i].length;
	}
	return true;
}

/* Copies the message to @to. False: it is not where the request says. */
static BASE_HOT bool gather(struct hca_qp *qp, const struct ibv_send_wr *wr, char *to)
{
	return base_likely(wr->num_sge == 1) ? gather_one(qp, wr, wr->sg_list, to)
	                                     : gather_many(qp, wr, to);
}

/* Fills in what is the same for all packets of the path. */
static BASE_HOT void fill_header(struct hca_qp *qp, const struct hca_ah *ah,
                                 const struct shm_port *port, struct hca_packet *pkt)
{
	const struct hca_sender *s = &qp->sender;

	pkt->sender = s->shm;
	pkt->writer = (uint16_t)SHM_QP_INDEX(s->qpn);
	pkt->a.src_qpn = s->qpn;
	pkt->a.src_port = s->port;
	pkt->a.pkey = port->pkey[qp->pkey_index];
	pkt->a.slid = port->lid | ah->dest.path_bits;
	pkt->a.sl = ah->sl;
	if (ah->dest.is_global) {
		pkt->a.class_flow = ah->class_flow;
		pkt->a.hop_limit = ah->hop_limit;
		pkt->a.sgid_index = ah->sgid_index;
		memcpy(&pkt->a.dgid, ah->dest.gid, sizeof(pkt->a.dgid));
	}
}

/* How many requests directly after @wr go to the same queue pair. */
static BASE_HOT uint8_t count_more(const struct ibv_send_wr *wr)
{
	const struct ibv_send_wr *next = wr->next;
	uint8_t n = 0;

	while (n < UINT8_MAX && next && next->wr.ud.ah == wr->wr.ud.ah &&
	       next->wr.ud.remote_qpn == wr->wr.ud.remote_qpn) {
		next = next->next;
		n++;
	}
	return n;
}

/* Whether the program has received nothing since its last post: it sends one message after the
 * other, and waits for no answer. */
static BASE_HOT bool is_stream(struct hca_ud_qp *u)
{
	uint32_t received = hca_rq_load(&u->qp.rq->consumed);

	if (base_likely(u->received == received))
		return true;
	u->received = received;
	return false;
}

/* The messages behind a single one to one receiver: in a stream others follow. */
static BASE_HOT struct hca_ahead look_behind_one(struct hca_ud_qp *u)
{
	return is_stream(u) ? (struct hca_ahead){ SHM_RING_LIST_AHEAD, true }
	                    : (struct hca_ahead){ 0, false };
}

/* The messages behind this one. @to_one: one queue pair receives it. */
static BASE_HOT struct hca_ahead look_ahead(struct hca_ud_qp *u, const struct ibv_send_wr *wr,
                                            bool to_one)
{
	struct shm_arrival *a = &u->path.pkt.a;

	if (a->more)
		return (struct hca_ahead){ --a->more, true };
	a->more = count_more(wr);
	if (!a->more && to_one)
		return look_behind_one(u);
	is_stream(u);
	return (struct hca_ahead){ a->more, false };
}

/* Nothing is known of the path of the next request. */
static void forget_path(struct hca_ud_path *path)
{
	path->ah = NULL;
	path->repeat.send_flags = HCA_UD_NONE;
}

/* Finds the path of a request. Not IBV_WC_SUCCESS: there is none, and the request completes so. */
static __attribute__((noinline)) enum ibv_wc_status find_path(struct hca_qp *qp, struct hca_ah *ah)
{
	struct hca_ud_path *path = &ud(qp)->path;

	forget_path(path);
	path->pkt.a.more = 0;
	if (ah->domain != qp->domain || ah->dest.port_num != qp->port_num)
		return IBV_WC_LOC_QP_OP_ERR;
	path->flow = hca_flow_get(&qp->sender, ah);
	if (base_unlikely(!path->flow))
		return hca_process_gone(qp->sender.process) ? IBV_WC_FATAL_ERR : IBV_WC_GENERAL_ERR;
	path->port = shm_port_at(&qp->sender.process->region, qp->sender.port);
	/* acquire: pairs with the release in shm_write_end(); before what is read there */
	path->port_seq =
	        atomic_load_explicit((_Atomic uint32_t *)&path->port->seq, memory_order_acquire);
	path->is_active = path->port->state == IB_PORT_ACTIVE;
	fill_header(qp, ah, path->port, &path->pkt);
	path->pkt.a.path_bits = path->flow->path_bits;
	path->ah_serial = ah->serial;
	path->ah = ah;
	return IBV_WC_SUCCESS;
}

/* Whether the path leads where it led when it was found. */
static BASE_HOT bool is_current(const struct hca_ud_path *path)
{
	/* acquire: as in find_path(); a subnet manager may change the port */
	return hca_flow_is_current(path->flow) &&
	       base_likely(atomic_load_explicit((_Atomic uint32_t *)&path->port->seq,
	                                        memory_order_acquire) == path->port_seq);
}

/* Has the path be that of the request, and current. The result as that of find_path(). */
static BASE_HOT enum ibv_wc_status follow_path(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	struct hca_ud_path *path = &ud(qp)->path;
	struct hca_ah *ah = (struct hca_ah *)wr->wr.ud.ah;
	enum ibv_wc_status status;

	/* another handle may have been made at the same place */
	if (base_unlikely(path->ah != ah || path->ah_serial != ah->serial || !is_current(path))) {
		status = find_path(qp, ah);
		if (base_unlikely(status != IBV_WC_SUCCESS))
			return status;
	}
	path->pkt.ahead = look_ahead(ud(qp), wr, path->flow->count == 1);
	return IBV_WC_SUCCESS;
}

/* Fills in what the request says. */
static BASE_HOT void fill_request(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	struct hca_ud_path *path = &ud(qp)->path;
	struct hca_packet *pkt = &path->pkt;
	uint32_t qkey = wr->wr.ud.remote_qkey;
	uint8_t flags = path->ah->arrival_flags;

	pkt->qkey = qkey & IB_QKEY_CONTROLLED ? qp->qkey : qkey;
	pkt->a.imm = 0;
	if (wr->opcode == IBV_WR_SEND_WITH_IMM) {
		flags |= SHM_ARRIVAL_IMM;
		pkt->a.imm = wr->imm_data;
	}
	if (wr->send_flags & IBV_SEND_SOLICITED)
		flags |= SHM_ARRIVAL_SOLICITED;
	pkt->a.flags = flags;
}

/* Where to write the message: into the packet itself or a payload slot. NULL: none is free. */
static BASE_HOT char *make_room(struct hca_qp *qp, const struct hca_flow *f, struct hca_packet *pkt,
                                uint32_t length)
{
	pkt->a.length = length;
	if (length <= SHM_INLINE)
		return (char *)pkt->a.data;
	pkt->payload = hca_payload_get(&qp->sender);
	if (!pkt->payload || hca_payload_reserve(pkt->payload, f->count))
		return NULL;
	pkt->a.flags |= SHM_ARRIVAL_PAYLOAD;
	pkt->a.payload_off = pkt->payload->off;
	return shm_data_at(&qp->sender.process->region, pkt->payload->off);
}

/* Whether the link delivers the packet to the queue pairs that the flow lists. The link does not
 * report packets that it drops (hca_link_shm's address()). */
static bool reaches_list(const struct hca_flow *f, uint32_t remote_qpn)
{
	return f->is_mcast ? remote_qpn == IB_QPN_MCAST : f->to->qpn == remote_qpn;
}

/*
 * The request was carried out. If it named the same receiver as the one before it, more such may
 * follow: says what they have in common, if all that they need is a copy in one ring.
 */
static void expect_more(struct hca_ud_path *path, const struct ibv_send_wr *wr)
{
	struct hca_ud_repeat *r = &path->repeat;
	const struct hca_flow *f = path->flow;

	if (memcmp(&r->to, &wr->wr.ud, sizeof(r->to)) != 0) {
		memcpy(&r->to, &wr->wr.ud, sizeof(r->to));
		return;
	}
	if (f->link != &hca_link_shm || f->count != 1 || !hca_packet_is_small(&path->pkt) ||
	    !reaches_list(f, r->to.remote_qpn) || (r->to.remote_qkey & IB_QKEY_CONTROLLED) ||
	    !hca_receiver_is_plain(f->to) ||
	    !hca_receiver_lets_in(f->to, &path->pkt, f->is_mcast ? HCA_ANY_PORT : f->dest_port))
		return;
	r->receiver = f->to;
	r->opcode = wr->opcode;
	r->send_flags = wr->send_flags & ~(unsigned)IBV_SEND_SIGNALED;
}

/* Carries out one request; if it is a multicast message, those copies that @copies says. Returns
 * its completion status. */
static inline __attribute__((always_inline)) enum ibv_wc_status
transmit_copies(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length,
                enum hca_ud_copies copies, bool is_first)
{
	enum ibv_wc_status status = follow_path(qp, wr);
	struct hca_ud_path *path = &ud(qp)->path;
	char *to;

	if (base_unlikely(status != IBV_WC_SUCCESS))
		return status;
	if (base_unlikely(length > path->flow->mtu || !path->is_active)) {
		/* C10-93.1.1, and a port that is not active: no packet, and no error either */
		HCA_COUNT(qp->sender.process, qp->sender.port, xmit_discards);
		if (length > path->flow->mtu)
			HCA_COUNT(qp->sender.process, qp->sender.port, xmit_mtu);
		return IBV_WC_SUCCESS;
	}
	fill_request(qp, wr);
	to = make_room(qp, path->flow, &path->pkt, (uint32_t)length);
	if (base_unlikely(!to)) {
		HCA_COUNT(qp->sender.process, qp->sender.port, no_payload_slot);
		return IBV_WC_SUCCESS;
	}
	if (base_unlikely(!gather(qp, wr, to)))
		return IBV_WC_LOC_PROT_ERR;
	if (is_first)
		hca_flow_count(path->flow, (uint32_t)length);
	if (copies == HCA_UD_ALL)
		path->flow->link->send(&qp->sender, path->flow, &path->pkt, wr->wr.ud.remote_qpn);
	else if (path->flow->link == &hca_link_shm) /* else rules of faults hold by now */
		hca_deliver_copies(&qp->sender, path->flow, &path->pkt, copies == HCA_UD_OWN);
	expect_more(path, wr);
	return IBV_WC_SUCCESS;
}

static BASE_HOT enum ibv_wc_status transmit(struct hca_qp *qp, const struct ibv_send_wr *wr,
                                            uint64_t length)
{
	return transmit_copies(qp, wr, length, HCA_UD_ALL, true);
}

/* For a request that was kept: nothing is known of the one before. */
enum ibv_wc_status hca_ud_transmit(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length,
                                   enum hca_ud_copies copies, bool is_first)
{
	enum ibv_wc_status status;

	forget_path(&ud(qp)->path);
	ud(qp)->path.pkt.a.more = 0;
	status = transmit_copies(qp, wr, length, copies, is_first);
	forget_path(&ud(qp)->path); /* its copy of the address handle goes */
	if (qp->sender.unfinished)
		hca_sender_finish(&qp->sender);
	return status;
}

BASE_COLD bool hca_ud_has_both(struct hca_qp *qp, struct hca_ud_kept *k)
{
	struct hca_flow *f = hca_flow_get(&qp->sender, &k->ah);

	return f && reaches_list(f, k->wr.wr.ud.remote_qpn) && hca_deliver_has_both(&qp->sender, f);
}

BASE_COLD bool hca_ud_gather(struct hca_qp *qp, struct hca_ud_kept *k)
{
	char *to = k->length <= LARGEST_MTU ? malloc(k->length + 1) : NULL;

	if (!to || !gather(qp, &k->wr, to)) {
		free(to);
		return false;
	}
	k->gathered = to;
	k->whole = (struct ibv_sge){ .addr = (uintptr_t)to, .length = (uint32_t)k->length };
	k->wr.sg_list = &k->whole;
	k->wr.num_sge = 1;
	k->wr.send_flags |= IBV_SEND_INLINE;
	return true;
}

BASE_COLD enum ibv_wc_status hca_ud_lose(struct hca_qp *qp, const struct ibv_send_wr *wr,
                                         uint64_t length)
{
	char *to = length <= LARGEST_MTU ? malloc(length + 1) : NULL;
	const bool is_there = !to || gather(qp, wr, to);

	free(to);
	if (is_there)
		HCA_COUNT(qp->sender.process, qp->sender.port, xmit_discards);
	return is_there ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

BASE_COLD void hca_ud_fail(struct hca_qp *qp, const struct ibv_send_wr *wr,
                           enum ibv_wc_status status)
{
	hca_explain_failed_send(qp, wr, status);
	atomic_store_explicit(&qp->state, IBV_QPS_SQE, memory_order_relaxed);
}

static __attribute__((noinline)) void work(struct hca_qp *qp, const struct ibv_send_wr *wr,
                                           uint64_t length)
{
	enum ibv_wc_status status;

	ud(qp)->path.repeat.send_flags = HCA_UD_NONE;
	status = transmit(qp, wr, length);
	if (base_unlikely(status != IBV_WC_SUCCESS))
		hca_ud_fail(qp, wr, status);
	hca_qp_complete(qp, wr, (uint32_t)length, status);
}

/* Whether the request can be carried out as the last one was: all that was checked and found then
 * is so now. */
static BASE_HOT bool repeats(const struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	const struct hca_ud_path *path = &((const struct hca_ud_qp *)qp)->path;
	const struct hca_ud_repeat *r = &path->repeat;

	return base_likely((wr->send_flags & ~(unsigned)IBV_SEND_SIGNALED) == r->send_flags) &&
	       base_likely(wr->num_sge == 1) && base_likely(wr->opcode == r->opcode) &&
	       base_likely(!memcmp(&r->to, &wr->wr.ud, sizeof(r->to))) &&
	       base_likely(wr->sg_list->length <= SHM_INLINE) &&
	       base_likely(path->ah->serial == path->ah_serial) &&
	       base_likely(hca_qp_state(qp) == IBV_QPS_RTS) &&
	       base_likely(!hca_qp_sq_is_full(qp)) && base_likely(is_current(path)) &&
	       base_likely(hca_receiver_is_current(r->receiver));
}

/* Copies the message of a request that repeats() into the packet. False: it is not where the
 * request says. */
static BASE_HOT bool take_message(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	struct shm_arrival *a = &ud(qp)->path.pkt.a;

	if (base_unlikely(!gather_one(qp, wr, wr->sg_list, (char *)a->data)))
		return false;
	a->length = wr->sg_list->length;
	if (wr->opcode == IBV_WR_SEND_WITH_IMM)
		a->imm = wr->imm_data;
	return true;
}

/* Sends it. */
static BASE_HOT void repeat(struct hca_qp *qp, const struct ibv_send_wr *wr, struct hca_ahead ahead)
{
	const struct hca_ud_path *path = &ud(qp)->path;
	const uint32_t length = path->pkt.a.length;

	hca_flow_count(path->flow, length);
	hca_deliver_into(qp->sender.process, &path->pkt, path->repeat.receiver, ahead, true);
	hca_deliver_end(&path->pkt);
	hca_qp_complete(qp, wr, length, IBV_WC_SUCCESS);
}

struct hca_ud_kept *hca_ud_keep(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length)
{
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;
	size_t sges = (size_t)wr->num_sge * sizeof(struct ibv_sge);
	struct hca_ud_kept *k;
	char *copy;

	k = calloc(1, sizeof(*k) + sges + (is_inline ? length : 0));
	if (!k)
		return NULL;
	k->length = length;
	k->wr = *wr;
	k->wr.next = NULL;
	k->wr.sg_list = k->sge;
	hca_ah_copy(&k->ah, (const struct hca_ah *)wr->wr.ud.ah);
	k->wr.wr.ud.ah = &k->ah.ah;
	copy = (char *)k->sge + sges;
	for (int i = 0; i < wr->num_sge; i++) {
		k->sge[i] = wr->sg_list[i];
		if (!is_inline || !k->sge[i].length)
			continue;
		memcpy(copy, (const void *)(uintptr_t)k->sge[i].addr, k->sge[i].length);
		k->sge[i].addr = (uintptr_t)copy;
		copy += k->sge[i].length;
	}
	STAILQ_INSERT_TAIL(&ud(qp)->kept, k, entry);
	qp->sq_kept++;
	return k;
}

/* Not in RTS: SQD keeps the request, else it is flushed. Kept ones use room in the queue, as those
 * that were carried out do. */
static BASE_COLD int post_in_vain(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length)
{
	ud(qp)->path.pkt.a.more = 0;
	if (hca_qp_state(qp) != IBV_QPS_SQD) {
		hca_explain_failed_send(qp, wr, IBV_WC_WR_FLUSH_ERR);
		hca_qp_complete(qp, wr, (uint32_t)length, IBV_WC_WR_FLUSH_ERR);
		return 0;
	}
	if (hca_qp_sq_used(qp) >= qp->cap.max_send_wr)
		return -ENOMEM;
	return hca_ud_keep(qp, wr, length) ? 0 : -ENOMEM;
}

/* @checked: the request is known to be right. */
static __attribute__((noinline)) int post_one(struct hca_qp *qp, const struct ibv_send_wr *wr,
                                              bool checked)
{
	bool in_list = ud(qp)->path.pkt.a.more;
	uint64_t length = checked ? hca_message_length(wr) : 0;
	int ret = hca_qp_sq_is_full(qp) ? -ENOMEM : checked ? 0 : check(qp, wr, in_list, &length);

	if (base_unlikely(ret))
		return ret;
	if (base_unlikely(hca_qp_state(qp) != IBV_QPS_RTS))
		return post_in_vain(qp, wr, length);
	work(qp, wr, length);
	return 0;
}

static BASE_HOT bool is_alone(const struct ibv_send_wr *wr)
{
	return wr && !wr->next;
}

/* 0, or -errno: what is wrong with the request at *@wr. */
static BASE_HOT int post_list(struct hca_qp *qp, const struct ibv_send_wr **wr, bool checked)
{
	const struct ibv_send_wr *at = *wr;
	int ret = 0;

	ud(qp)->path.pkt.a.more = 0;
	for (; at; at = at->next) {
		if (base_likely(repeats(qp, at) && take_message(qp, at))) {
			repeat(qp, at, look_ahead(ud(qp), at, true));
			continue;
		}
		ret = post_one(qp, at, checked);
		if (base_unlikely(ret))
			break;
	}
	*wr = at;
	if (base_unlikely(qp->sender.unfinished))
		hca_sender_finish(&qp->sender);
	return ret;
}

/* ---- the transport's table ---- */

static int ud_init(struct hca_qp *qp)
{
	STAILQ_INIT(&ud(qp)->kept);
	forget_path(&ud(qp)->path);
	return 0;
}

int hca_ud_check(const struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t length;

	return check(qp, wr, false, &length);
}

/* Why nothing can be posted now; 0: it can. */
static BASE_HOT int refuses(const struct hca_qp *qp)
{
	if (base_unlikely(!hca_qp_can_post(hca_qp_state(qp))))
		return -EINVAL;
	return hca_process_gone(qp->sender.process) ? -EIO : 0;
}

static __attribute__((noinline)) int post_checked_list(struct hca_qp *qp,
                                                       const struct ibv_send_wr **wr)
{
	return post_list(qp, wr, true);
}

static int ud_post_checked(struct hca_qp *qp, const struct ibv_send_wr **wr)
{
	int ret = refuses(qp);

	return base_likely(!ret) ? post_checked_list(qp, wr) : ret;
}

/* With the send lock held, which is released. */
static __attribute__((noinline)) int post_and_unlock(struct hca_qp *qp, struct ibv_send_wr *wr,
                                                     struct ibv_send_wr **bad)
{
	const struct ibv_send_wr *at = wr;
	int ret = refuses(qp);

	if (base_likely(!ret))
		ret = post_list(qp, &at, false);
	base_unlock(&qp->send_lock);
	if (base_unlikely(ret)) {
		*bad = (struct ibv_send_wr *)at;
		hca_explain_send(qp, at, ret);
	}
	return ret;
}

static int ud_post(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	base_lock(&qp->send_lock);
	if (base_unlikely(hca_process_gone(qp->sender.process) || !is_alone(wr) ||
	                  !repeats(qp, wr) || !take_message(qp, wr)))
		return post_and_unlock(qp, wr, bad);
	ud(qp)->path.pkt.a.more = 0;
	repeat(qp, wr, look_behind_one(ud(qp)));
	base_unlock(&qp->send_lock);
	return 0;
}

struct hca_ud_kept *hca_ud_next_kept(struct hca_qp *qp)
{
	struct hca_ud_kept *k = STAILQ_FIRST(&ud(qp)->kept);

	if (k) {
		STAILQ_REMOVE_HEAD(&ud(qp)->kept, entry);
		qp->sq_kept--;
	}
	return k;
}

void hca_ud_free_kept(struct hca_ud_kept *k)
{
	hca_ah_release(&k->ah);
	free(k->gathered);
	free(k);
}

static void ud_progress(struct hca_qp *qp)
{
	struct hca_ud_kept *k;

	forget_path(&ud(qp)->path); /* the queue pair's attributes may be others now */
	while ((k = hca_ud_next_kept(qp))) {
		const struct ibv_send_wr *wr = &k->wr;

		post_checked_list(qp, &wr); /* it was checked when it was posted */
		forget_path(&ud(qp)->path);
		hca_ud_free_kept(k);
	}
}

void hca_ud_flush(struct hca_qp *qp)
{
	struct hca_ud_kept *k;

	while ((k = hca_ud_next_kept(qp)))
		hca_ud_free_kept(k);
}

/* Table 91 of the specification, volume 1, section 11.2.5.2, as ibv_modify_qp(3) lists it. */
const struct hca_transition hca_ud_transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
	{ IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RESET, IBV_QPS_RESET, 0, 0 },
};

const struct hca_transport hca_ud = {
	HCA_UD_TABLE,
	.init = ud_init,
	.post = ud_post,
	.post_checked = ud_post_checked,
	.progress = ud_progress,
};
