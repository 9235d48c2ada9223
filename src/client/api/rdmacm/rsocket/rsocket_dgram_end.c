/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ends of a datagram rsocket: on each port one queue pair with receives posted, and slots for
 * datagrams that are being sent. See rsocket_dgram.h; rsocket.h has the rules of locking.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rsocket/rsocket_dgram.h"
#include "wire/ib.h"

#define SLOT_ALIGN 64

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint8_t *slot(const struct rsocket_end *end, uint32_t i)
{
	return end->memory + (size_t)i * end->slot_bytes;
}

/* ---- objects ---- */

static int open_buffers(struct rsocket_end *end)
{
	uint32_t slots = end->n_recv + end->n_send;
	size_t bytes;

	end->slot_bytes = (uint32_t)base_align_up(RSOCKET_GRH + end->mtu, SLOT_ALIGN);
	bytes = (size_t)slots * end->slot_bytes;
	end->memory = calloc(slots, end->slot_bytes);
	end->free_slot = calloc(end->n_send, sizeof(*end->free_slot));
	if (!end->memory || !end->free_slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < end->n_send; i++)
		end->free_slot[end->n_free++] = slots - 1 - i;
	end->mr = ibv_reg_mr(end->pd, end->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	return end->mr ? 0 : -errno;
}

static int open_queues(struct rsocket_end *end, uint32_t inline_bytes)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD,
		                         .sq_sig_all = 1,
		                         .cap = { .max_send_wr = end->n_send,
		                                  .max_recv_wr = end->n_recv,
		                                  .max_send_sge = 1,
		                                  .max_recv_sge = 1,
		                                  .max_inline_data = inline_bytes } };

	end->channel = ibv_create_comp_channel(end->verbs);
	if (!end->channel || fcntl(end->channel->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	end->recv_cq = ibv_create_cq(end->verbs, (int)end->n_recv, end, end->channel, 0);
	end->send_cq = ibv_create_cq(end->verbs, (int)end->n_send, end, end->channel, 0);
	if (!end->recv_cq || !end->send_cq)
		return -errno;
	attr.send_cq = end->send_cq;
	attr.recv_cq = end->recv_cq;
	end->qp = ibv_create_qp(end->pd, &attr);
	return end->qp ? 0 : -errno;
}

/* Where the default partition is in the port's table, as a full member if it is one. */
static uint16_t pkey_index(const struct rsocket_end *end, uint16_t n)
{
	uint16_t found = 0;
	bool any = false;
	__be16 pkey;

	for (uint16_t i = 0; i < n; i++) {
		if (ibv_query_pkey(end->verbs, end->port_num, i, &pkey))
			continue;
		if (be16toh(pkey) == IB_PKEY_DEFAULT)
			return i;
		if (!any && (be16toh(pkey) | IB_PKEY_FULL_MEMBER) == IB_PKEY_DEFAULT) {
			found = i;
			any = true;
		}
	}
	return found;
}

static int start_qp(struct rsocket_end *end, uint16_t n_pkeys)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		                    .pkey_index = pkey_index(end, n_pkeys),
		                    .port_num = end->port_num,
		                    .qkey = IB_QKEY_RDMACM_UDP };
	int ret = ibv_modify_qp(end->qp, &attr,
	                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!ret)
		ret = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!ret)
		ret = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return -ret;
}

static int post_receive(struct rsocket_end *end, uint32_t i)
{
	struct ibv_sge sge = { .addr = (uintptr_t)slot(end, i),
		               .length = RSOCKET_GRH + end->mtu,
		               .lkey = end->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };

	return -ibv_post_recv(end->qp, &wr, &bad);
}

/* ---- life ---- */

static int set_sizes(struct rsocket_end *end, const struct rsocket_dgram *d,
                     struct ibv_port_attr *port)
{
	struct ibv_device_attr device;
	int ret = ibv_query_device(end->verbs, &device);

	if (!ret)
		ret = ibv_query_port(end->verbs, end->port_num, port);
	if (ret)
		return -ret;
	end->mtu = IB_MTU_BYTES(port->active_mtu);
	end->n_recv = smaller(d->rs.options.n_recv, smaller(d->rs.options.rcvbuf / RSOCKET_BUFFER,
	                                                    (uint32_t)device.max_qp_wr));
	end->n_send = smaller(d->rs.options.n_send, smaller(d->rs.options.sndbuf / RSOCKET_BUFFER,
	                                                    (uint32_t)device.max_qp_wr));
	return 0;
}

static int open_end(struct rsocket_end *end, const struct rsocket_dgram *d)
{
	struct ibv_port_attr port;
	int ret = set_sizes(end, d, &port);

	if (ret)
		return ret;
	end->pd = ibv_alloc_pd(end->verbs);
	ret = end->pd ? open_buffers(end) : -errno;
	if (!ret)
		ret = open_queues(end, d->rs.options.inline_bytes);
	if (!ret)
		ret = start_qp(end, port.pkey_tbl_len);
	for (uint32_t i = 0; !ret && i < end->n_recv; i++)
		ret = post_receive(end, i);
	return ret;
}

/* From now on peers that ask for our port number at this port hear of the queue pair. */
static int serve(const struct rsocket_dgram *d, const struct rsocket_end *end)
{
	struct control_cm_serve request = { .id = rdmacm_id(d->rs.id)->handle,
		                            .qp_num = end->qp->qp_num };
	struct control_cm_id_reply reply;

	return rdmacm_id_call(rdmacm_id(d->rs.id), CONTROL_CM_SERVE, &request, sizeof(request),
	                      &reply, sizeof(reply));
}

void rsocket_end_free(struct rsocket_dgram *d, struct rsocket_end *end)
{
	if (end->channel)
		rsocket_unwatch(&d->rs, end->channel->fd);
	if (end->qp)
		ibv_destroy_qp(end->qp);
	if (end->send_cq)
		ibv_destroy_cq(end->send_cq);
	if (end->recv_cq)
		ibv_destroy_cq(end->recv_cq);
	if (end->channel)
		ibv_destroy_comp_channel(end->channel);
	if (end->mr)
		ibv_dereg_mr(end->mr);
	if (end->pd)
		ibv_dealloc_pd(end->pd);
	free(end->free_slot);
	free(end->memory);
	free(end);
}

static struct rsocket_end *find(const struct rsocket_dgram *d, const struct ibv_context *verbs,
                                uint8_t port_num)
{
	struct rsocket_end *end;

	TAILQ_FOREACH(end, &d->ends, entry)
	if (end->verbs == verbs && end->port_num == port_num)
		return end;
	return NULL;
}

int rsocket_end_get(struct rsocket_dgram *d, struct ibv_context *verbs, uint8_t port_num,
                    struct rsocket_end **out)
{
	struct rsocket_end *end = find(d, verbs, port_num);
	int ret;

	*out = end;
	if (end)
		return 0;
	end = calloc(1, sizeof(*end));
	if (!end)
		return -ENOMEM;
	end->verbs = verbs;
	end->port_num = port_num;
	ret = open_end(end, d);
	if (!ret)
		ret = serve(d, end);
	if (!ret)
		ret = rsocket_watch(&d->rs, end->channel->fd, end);
	if (ret) {
		rsocket_end_free(d, end);
		return ret;
	}
	TAILQ_INSERT_TAIL(&d->ends, end, entry);
	*out = end;
	return 0;
}

/* ---- sending ---- */

bool rsocket_end_can_send(struct rsocket_end *end)
{
	struct ibv_wc wc[16];
	int n = 1;

	while (!end->n_free && n > 0) {
		n = ibv_poll_cq(end->send_cq, (int)ARRAY_SIZE(wc), wc);
		for (int i = 0; i < n; i++)
			end->free_slot[end->n_free++] = (uint32_t)wc[i].wr_id;
	}
	return end->n_free;
}

/* Writes the header that a datagram begins with: it names the sender. Its length. */
static uint32_t put_header(const struct rsocket_dgram *d, const union control_cm_addr *src,
                           uint8_t *to)
{
	const bool is_6 = src->sa.sa_family == AF_INET6;
	const __be16 port = rdma_get_src_port(d->rs.id);

	to[0] = is_6 ? 6 : 4;
	to[1] = is_6 ? RSOCKET_HEADER_6 : RSOCKET_HEADER_4;
	memcpy(to + 2, &port, sizeof(port));
	if (is_6) {
		memcpy(to + 4, &src->in6.sin6_flowinfo, 4);
		memcpy(to + 8, &src->in6.sin6_addr, 16);
	} else {
		memcpy(to + 4, &src->in.sin_addr, 4);
	}
	return to[1];
}

static uint32_t header_bytes(const struct rsocket_peer *peer)
{
	return peer->src.sa.sa_family == AF_INET6 ? RSOCKET_HEADER_6 : RSOCKET_HEADER_4;
}

static int post_send(struct rsocket_end *end, const struct rsocket_peer *peer, uint32_t i,
                     uint32_t bytes, bool is_inline)
{
	struct ibv_sge sge = { .addr = (uintptr_t)slot(end, i),
		               .length = bytes,
		               .lkey = end->mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = i,
		                        .sg_list = &sge,
		                        .num_sge = 1,
		                        .opcode = IBV_WR_SEND,
		                        .send_flags = is_inline ? IBV_SEND_INLINE : 0 };

	wr.wr.ud.ah = peer->ah;
	wr.wr.ud.remote_qpn = peer->qpn;
	wr.wr.ud.remote_qkey = peer->qkey;
	return -ibv_post_send(end->qp, &wr, &bad);
}

int rsocket_end_send(const struct rsocket_dgram *d, const struct rsocket_peer *peer,
                     const struct iovec *iov, size_t n)
{
	struct rsocket_end *end = peer->end;
	ssize_t payload = rsocket_iov_bytes(iov, n);
	uint32_t i, bytes;
	int ret;

	if (payload < 0)
		return (int)payload;
	if ((size_t)payload + header_bytes(peer) > peer->mtu)
		return -EMSGSIZE;
	if (!rsocket_end_can_send(end))
		return -EAGAIN;
	i = end->free_slot[--end->n_free];
	bytes = put_header(d, &peer->src, slot(end, i));
	for (size_t k = 0; k < n; k++) {
		if (iov[k].iov_len)
			memcpy(slot(end, i) + bytes, iov[k].iov_base, iov[k].iov_len);
		bytes += (uint32_t)iov[k].iov_len;
	}
	ret = post_send(end, peer, i, bytes, bytes <= d->rs.options.inline_bytes);
	if (ret)
		end->free_slot[end->n_free++] = i;
	return ret;
}

/* ---- receiving ---- */

/* Whether the header is one of ours. Its other fields are believed. */
static bool is_valid(const struct rsocket_end *end, const struct ibv_wc *wc)
{
	const uint8_t *d = slot(end, (uint32_t)wc->wr_id) + RSOCKET_GRH;
	uint32_t bytes = wc->byte_len - RSOCKET_GRH;

	if (wc->byte_len < RSOCKET_GRH + RSOCKET_HEADER_4)
		return false;
	return (d[0] == 4 && d[1] == RSOCKET_HEADER_4) ||
	       (d[0] == 6 && d[1] == RSOCKET_HEADER_6 && bytes >= RSOCKET_HEADER_6);
}

void rsocket_end_pop(struct rsocket_end *end)
{
	end->has_arrival = false;
	/* with an error the queue pair is in ERR, and there is nothing to receive any more */
	post_receive(end, (uint32_t)end->arrival.wr_id);
}

const uint8_t *rsocket_end_peek(struct rsocket_end *end, uint32_t *bytes)
{
	while (!end->has_arrival) {
		if (ibv_poll_cq(end->recv_cq, 1, &end->arrival) <= 0)
			return NULL;
		if (end->arrival.status != IBV_WC_SUCCESS)
			continue;
		if (is_valid(end, &end->arrival))
			end->has_arrival = true;
		else
			rsocket_end_pop(end);
	}
	*bytes = end->arrival.byte_len - RSOCKET_GRH;
	return slot(end, (uint32_t)end->arrival.wr_id) + RSOCKET_GRH;
}

void rsocket_end_arm(struct rsocket_end *end)
{
	ibv_req_notify_cq(end->recv_cq, 0);
	if (!end->n_free)
		ibv_req_notify_cq(end->send_cq, 0);
}

void rsocket_end_disarm(struct rsocket_end *end)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(end->channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
}
