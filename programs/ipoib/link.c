/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The UD queue pair: see link.h. A slot is busy from its first work request on until the completion
 * of a later one. Only the last request of a list is signaled: the packet that its wr_id names has
 * left, with all packets before it. The others' wr_id name their packets likewise: completions of
 * failures have these.
 *
 * A request that cannot be posted, or fails, is lost, as any packet may be; those behind it are
 * sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "ipoib/encapsulation.h"
#include "ipoib/link.h"

#define RECEIVES      1024
#define RECEIVE_AREA  128  /* receives that are added at once */
#define RECEIVE_BYTES 4224 /* GRH and the largest packet, in whole cache lines */
#define SEND_DEPTH    512
#define MAX_DEAD      64
#define MOST_TRIES    16 /* of a call that fails */

/* Counts that only grow: of slots, and of work requests. */
struct progress {
	uint32_t slots, requests;
};

struct ipoib_link {
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *receive_cq;
	struct ibv_qp *qp;
	struct ipoib_area receive_area[RECEIVES / RECEIVE_AREA];
	unsigned n_receive_areas;
	unsigned mtu;
	bool failed;

	struct ipoib_slots slots;
	uint8_t busy[IPOIB_SLOTS];  /* those that were handed to the queue, by ->used.slots */
	struct progress used, left; /* handed to the queue; left it */
	struct progress flushed;    /* handed to it by the last list */
	uint64_t lost;              /* requests that could not be posted, or have failed */
	struct ibv_send_wr wr[SEND_DEPTH];
	struct ibv_sge sge[SEND_DEPTH][2];
	unsigned n_wr; /* of a list that was not posted yet */
	struct {
		struct ibv_ah *ah;
		uint32_t until; /* this many requests have left */
	} dead[MAX_DEAD];
	unsigned n_dead;

	struct ibv_recv_wr receive[IPOIB_POLL_MAX];
	struct ibv_sge receive_sge[IPOIB_POLL_MAX];
	unsigned n_received;
	bool crowded; /* so many had come at once that more may */
};

/* ---- opening and closing ---- */

static int make_ready(struct ipoib_link *l, const struct ipoib_link_options *o)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		                    .pkey_index = o->pkey_index,
		                    .port_num = o->port,
		                    .qkey = o->qkey };
	int ret = ibv_modify_qp(l->qp, &attr,
	                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!ret)
		ret = ibv_modify_qp(l->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 0;
	if (!ret)
		ret = ibv_modify_qp(l->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return -ret;
}

static int make_queues(struct ipoib_link *l, const struct ipoib_link_options *o)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
		                         .cap = { .max_send_wr = SEND_DEPTH,
		                                  .max_recv_wr = RECEIVES,
		                                  .max_send_sge = 2,
		                                  .max_recv_sge = 1 } };

	l->pd = ibv_alloc_pd(o->context);
	l->channel = ibv_create_comp_channel(o->context);
	if (!l->pd || !l->channel)
		return -errno;
	if (fcntl(l->channel->fd, F_SETFL, fcntl(l->channel->fd, F_GETFL) | O_NONBLOCK))
		return -errno;
	l->send_cq = ibv_create_cq(o->context, SEND_DEPTH, NULL, l->channel, 0);
	l->receive_cq = ibv_create_cq(o->context, RECEIVES, NULL, l->channel, 0);
	if (!l->send_cq || !l->receive_cq)
		return -errno;
	init.send_cq = l->send_cq;
	init.recv_cq = l->receive_cq;
	l->qp = ibv_create_qp(l->pd, &init);
	return l->qp ? make_ready(l, o) : -errno;
}

static uint8_t *receive_memory(const struct ipoib_link *l, uint64_t place)
{
	return l->receive_area[place / RECEIVE_AREA].memory + place % RECEIVE_AREA * RECEIVE_BYTES;
}

/* wr_id: the receive's place in the areas. */
static void describe_receive(struct ipoib_link *l, unsigned i, uint64_t place)
{
	l->receive_sge[i] =
	        (struct ibv_sge){ .addr = (uintptr_t)receive_memory(l, place),
		                  .length = RECEIVE_BYTES,
		                  .lkey = l->receive_area[place / RECEIVE_AREA].mr->lkey };
	l->receive[i] = (struct ibv_recv_wr){ .wr_id = place,
		                              .sg_list = &l->receive_sge[i],
		                              .num_sge = 1,
		                              .next = &l->receive[i + 1] };
}

static void post_described(struct ipoib_link *l)
{
	struct ibv_recv_wr *wr = l->receive, *bad;
	unsigned tries = 0;

	if (!l->n_received)
		return;
	wr[l->n_received - 1].next = NULL;
	while (!l->failed && ibv_post_recv(l->qp, wr, &bad)) {
		tries = bad == wr ? tries + 1 : 0;
		l->failed = tries == MOST_TRIES;
		wr = bad;
	}
	l->n_received = 0;
}

/* Posts more receives. 0 or -errno; those that there are stay. */
static int add_receives(struct ipoib_link *l)
{
	unsigned first = l->n_receive_areas * RECEIVE_AREA;
	int ret = ipoib_area_make(&l->receive_area[l->n_receive_areas], l->pd,
	                          RECEIVE_AREA * (size_t)RECEIVE_BYTES);

	if (ret)
		return ret;
	l->n_receive_areas++;
	for (unsigned i = first; i < first + RECEIVE_AREA; i++) {
		describe_receive(l, l->n_received++, i);
		if (l->n_received == IPOIB_POLL_MAX)
			post_described(l);
	}
	post_described(l);
	return l->failed ? -EIO : 0;
}

void ipoib_link_repost(struct ipoib_link *l)
{
	post_described(l);
	if (l->crowded && l->n_receive_areas < ARRAY_SIZE(l->receive_area))
		add_receives(l); /* if there is no memory, another crowd asks again */
	l->crowded = false;
}

int ipoib_link_open(struct ipoib_link **link, const struct ipoib_link_options *options)
{
	struct ipoib_link *l = calloc(1, sizeof(*l));
	int ret;

	if (!l)
		return -ENOMEM;
	ret = make_queues(l, options);
	if (!ret)
		ret = ipoib_slots_open(&l->slots, l->pd);
	if (!ret)
		ret = add_receives(l);
	if (ret) {
		ipoib_link_close(l);
		return ret;
	}
	*link = l;
	return 0;
}

void ipoib_link_close(struct ipoib_link *l)
{
	if (l->qp)
		ibv_destroy_qp(l->qp);
	for (unsigned i = 0; i < l->n_dead; i++)
		ibv_destroy_ah(l->dead[i].ah);
	for (unsigned i = 0; i < l->n_receive_areas; i++)
		ipoib_area_free(&l->receive_area[i]);
	ipoib_slots_close(&l->slots);
	if (l->send_cq)
		ibv_destroy_cq(l->send_cq);
	if (l->receive_cq)
		ibv_destroy_cq(l->receive_cq);
	if (l->channel)
		ibv_destroy_comp_channel(l->channel);
	if (l->pd)
		ibv_dealloc_pd(l->pd);
	free(l);
}

uint32_t ipoib_link_qpn(const struct ipoib_link *l)
{
	return l->qp->qp_num;
}

struct ibv_pd *ipoib_link_pd(const struct ipoib_link *l)
{
	return l->pd;
}

struct ibv_comp_channel *ipoib_link_channel(const struct ipoib_link *l)
{
	return l->channel;
}

struct ipoib_slots *ipoib_link_slots(struct ipoib_link *l)
{
	return &l->slots;
}

int ipoib_link_fd(const struct ipoib_link *l)
{
	return l->channel->fd;
}

int ipoib_link_set_qkey(struct ipoib_link *l, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qkey = qkey };

	return -ibv_modify_qp(l->qp, &attr, IBV_QP_QKEY);
}

/* Only a queue pair that does not send may move to another partition; it receives meanwhile. */
int ipoib_link_set_pkey_index(struct ipoib_link *l, uint16_t index)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .pkey_index = index };
	int ret;

	ipoib_link_flush(l);
	ret = ibv_modify_qp(l->qp, &attr, IBV_QP_STATE);
	if (!ret)
		ret = ibv_modify_qp(l->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX);
	attr.qp_state = IBV_QPS_RTS;
	return -(ret ? ret : ibv_modify_qp(l->qp, &attr, IBV_QP_STATE));
}

void ipoib_link_set_mtu(struct ipoib_link *l, unsigned mtu)
{
	l->mtu = mtu;
}

/* ---- destinations ---- */

struct ibv_ah *ipoib_link_ah(struct ipoib_link *l, const struct ipoib_way *way)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_ah_attr ah = { .dlid = way->lid,
		                  .sl = way->sl,
		                  .is_global = way->global,
		                  .grh = { .flow_label = way->flow_label,
		                           .hop_limit = way->hop_limit,
		                           .traffic_class = way->traffic_class } };

	if (ibv_query_qp(l->qp, &attr, IBV_QP_PORT, &init))
		return NULL;
	ah.port_num = attr.port_num;
	memcpy(ah.grh.dgid.raw, way->gid.raw, sizeof(way->gid.raw));
	return ibv_create_ah(l->pd, &ah);
}

static void bury(struct ipoib_link *l)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l->n_dead; i++) {
		if ((int32_t)(l->left.requests - l->dead[i].until) >= 0)
			ibv_destroy_ah(l->dead[i].ah);
		else
			l->dead[n++] = l->dead[i];
	}
	l->n_dead = n;
}

static void take_sent(struct ipoib_link *l);

void ipoib_link_retire_ah(struct ipoib_link *l, struct ibv_ah *ah)
{
	if (!ah)
		return;
	ipoib_link_flush(l);
	do {
		take_sent(l);
	} while (l->n_dead == MAX_DEAD && !l->failed);
	if (l->n_dead == MAX_DEAD)
		return;
	l->dead[l->n_dead].ah = ah;
	l->dead[l->n_dead++].until = l->used.requests;
	bury(l);
}

int ipoib_link_attach(struct ipoib_link *l, const struct ib_gid *mgid, uint16_t mlid)
{
	union ibv_gid gid;

	memcpy(gid.raw, mgid->raw, sizeof(gid.raw));
	return -ibv_attach_mcast(l->qp, &gid, mlid);
}

void ipoib_link_detach(struct ipoib_link *l, const struct ib_gid *mgid, uint16_t mlid)
{
	union ibv_gid gid;

	memcpy(gid.raw, mgid->raw, sizeof(gid.raw));
	ibv_detach_mcast(l->qp, &gid, mlid);
}

/* ---- sending ---- */

/* Everything up to there has left. */
static void leave(struct ipoib_link *l, struct progress until)
{
	while (l->left.slots != until.slots)
		ipoib_slots_give(&l->slots, l->busy[l->left.slots++ % IPOIB_SLOTS]);
	l->left = until;
}

/* A request has failed, and the queue sends nothing until it is told to go on. */
static void go_on(struct ipoib_link *l)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int ret = ibv_query_qp(l->qp, &attr, IBV_QP_STATE, &init);

	if (!ret && attr.qp_state == IBV_QPS_SQE) {
		attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
		ret = ibv_modify_qp(l->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE);
	}
	l->failed |= ret || attr.qp_state != IBV_QPS_RTS;
}

static void take_sent(struct ipoib_link *l)
{
	struct ibv_wc wc[16];
	uint64_t lost = l->lost;
	int n;

	do {
		n = ibv_poll_cq(l->send_cq, ARRAY_SIZE(wc), wc);
		for (int i = 0; i < n; i++) {
			leave(l, (struct progress){ (uint32_t)(wc[i].wr_id >> 32),
			                            (uint32_t)wc[i].wr_id });
			l->lost += wc[i].status != IBV_WC_SUCCESS;
		}
	} while (n == ARRAY_SIZE(wc));
	l->failed |= n < 0;
	if (l->lost != lost)
		go_on(l);
	if (l->n_dead)
		bury(l);
}

uint8_t *ipoib_link_slot(struct ipoib_link *l)
{
	uint8_t *packet = ipoib_slots_next(&l->slots);

	if (packet)
		return packet;
	ipoib_link_flush(l);
	take_sent(l);
	/* a burst; without memory for more, these have to do */
	ipoib_slots_grow(&l->slots);
	return ipoib_slots_next(&l->slots);
}

static uint64_t id_of(struct progress p)
{
	return (uint64_t)p.slots << 32 | p.requests;
}

/* Posts the list but for those that cannot be posted. Returns how many it has posted. The last one,
 * whose completion is waited for, is tried more than once. */
static unsigned post_list(struct ipoib_link *l)
{
	struct ibv_send_wr *wr = l->wr, *bad;
	unsigned posted = 0, tries = 0;

	while (wr && ibv_post_send(l->qp, wr, &bad)) {
		posted += (unsigned)(bad - wr);
		wr = bad;
		if (!wr->next && posted && ++tries < MOST_TRIES)
			continue;
		l->lost++;
		wr = wr->next;
	}
	return wr ? l->n_wr : posted;
}

/* Nothing of the list is on its way. */
static void take_back(struct ipoib_link *l)
{
	while (l->used.slots != l->flushed.slots)
		ipoib_slots_give(&l->slots, l->busy[--l->used.slots % IPOIB_SLOTS]);
	l->used = l->flushed;
}

void ipoib_link_flush(struct ipoib_link *l)
{
	struct ibv_send_wr *last;

	if (!l->n_wr)
		return;
	take_sent(l); /* if something has failed, this must not be lost with it */
	last = &l->wr[l->n_wr - 1];
	last->next = NULL;
	last->send_flags = IBV_SEND_SIGNALED;
	last->wr_id = id_of(l->used);
	if (!post_list(l))
		take_back(l);
	l->flushed = l->used;
	l->n_wr = 0;
}

uint64_t ipoib_link_lost(const struct ipoib_link *l)
{
	return l->lost;
}

/* Whether @n more requests fit into the queue. */
static bool has_room(struct ipoib_link *l, unsigned n)
{
	if (l->n_wr + n > SEND_DEPTH)
		ipoib_link_flush(l);
	if (l->used.requests - l->left.requests + n <= SEND_DEPTH)
		return true;
	ipoib_link_flush(l);
	take_sent(l);
	return l->used.requests - l->left.requests + n <= SEND_DEPTH;
}

/* Adds a request to the list. */
static void add_request(struct ipoib_link *l, const struct ibv_send_wr *like,
                        const struct ipoib_piece *piece)
{
	unsigned i = l->n_wr++;

	memcpy(l->sge[i], piece->sge, sizeof(l->sge[i]));
	l->wr[i] = *like;
	l->wr[i].sg_list = l->sge[i];
	l->wr[i].num_sge = piece->n;
	l->wr[i].next = i + 1 < SEND_DEPTH ? &l->wr[i + 1] : NULL;
	l->used.requests++;
	l->wr[i].wr_id = id_of(l->used);
}

bool ipoib_link_send(struct ipoib_link *l, struct ibv_ah *ah, uint32_t qpn,
                     const struct ipoib_packet *p)
{
	struct ibv_send_wr like = {
		.opcode = IBV_WR_SEND,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = IB_QKEY_CONTROLLED }
	};
	struct ipoib_piece piece[IPOIB_MAX_SEGMENT];
	unsigned n = ipoib_slots_describe(&l->slots, p, l->mtu, piece);

	if (!n || !has_room(l, n))
		return false;
	for (unsigned i = 0; i < n; i++)
		add_request(l, &like, &piece[i]);
	l->busy[l->used.slots++ % IPOIB_SLOTS] = (uint8_t)ipoib_slots_use(&l->slots);
	return true;
}

/* ---- receiving ---- */

int ipoib_link_poll(struct ipoib_link *l, struct ipoib_received got[static IPOIB_POLL_MAX])
{
	struct ibv_wc wc[IPOIB_POLL_MAX];
	int n = ibv_poll_cq(l->receive_cq, IPOIB_POLL_MAX, wc), good = 0;

	if (n < 0 || l->failed)
		return -EIO;
	l->crowded = n == IPOIB_POLL_MAX;
	for (int i = 0; i < n; i++) {
		uint8_t *data = receive_memory(l, wc[i].wr_id);

		describe_receive(l, l->n_received++, wc[i].wr_id);
		if (wc[i].status == IBV_WC_WR_FLUSH_ERR)
			return -EIO;
		if (wc[i].status != IBV_WC_SUCCESS || wc[i].byte_len < IB_GRH_BYTES)
			continue;
		got[good++] = (struct ipoib_received){
			.data = data + IB_GRH_BYTES,
			.bytes = wc[i].byte_len - IB_GRH_BYTES,
			.grh = wc[i].wc_flags & IBV_WC_GRH ? data : NULL,
			.qpn = wc[i].src_qp,
			.lid = wc[i].slid,
		};
	}
	/* the caller need not hand out what is none */
	if (!good)
		ipoib_link_repost(l);
	return good;
}

int ipoib_link_arm(struct ipoib_link *l)
{
	int ret = ibv_req_notify_cq(l->receive_cq, 0);

	if (!ret && !ipoib_slots_next(&l->slots))
		ret = ibv_req_notify_cq(l->send_cq, 0);
	return -ret;
}

void ipoib_link_woken(struct ipoib_link *l)
{
	struct ibv_cq *cq;
	void *arg;

	/* of several queues at once: the descriptor stays readable */
	if (!ibv_get_cq_event(l->channel, &cq, &arg))
		ibv_ack_cq_events(cq, 1);
}
