/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of the verbs library: one handler each, in a table by type. A request is
 * input: its length is checked before the handler runs, every number in the handler.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "daemon/state.h"
#include "fabric/ethernet.h"
#include "wire/mgid.h"

/* The object under a number, if it is this client's; else NULL. */
#define OWN(c, table, type, number)                                             \
	({                                                                      \
		struct type *own_ = base_idtable_get(&(c)->d->table, (number)); \
		own_ && own_->client == (c) ? own_ : NULL;                      \
	})

/* The QP of this client, if it sends; a hidden one does no more than that. */
static struct daemon_qp *own_sender(struct daemon_client *c, uint32_t qpn)
{
	struct daemon_qp *qp = daemon_qp_find(c->d, qpn);

	return qp && qp->client == c ? qp : NULL;
}

static struct daemon_qp *own_qp(struct daemon_client *c, uint32_t qpn)
{
	struct daemon_qp *qp = own_sender(c, qpn);

	return qp && !qp->is_wire ? qp : NULL;
}

/* Hands a copy of @fd over with the reply. */
static int give_fd(struct control_packet *reply, int fd)
{
	int copy = dup(fd);

	if (copy < 0)
		return -errno;
	reply->fd[reply->n_fds++] = copy;
	return 0;
}

static void *answer(struct control_packet *reply, size_t bytes)
{
	reply->header.bytes = (uint32_t)bytes;
	return reply->body;
}

static int open_hca(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_open_hca *req = body;
	struct control_open_hca_reply *rep;
	struct fabric *f = c->d->f;
	struct daemon_hca *h;
	int ret, fd;

	if (req->hca >= f->region->control->n_hcas)
		return -ENODEV;
	if (c->host_index >= 0 && f->region->hcas[req->hca].host_index != (uint32_t)c->host_index)
		return -ENODEV;
	ret = daemon_hca_open(c, req->hca, &h, &fd);
	if (ret)
		return ret;
	reply->fd[reply->n_fds++] = fd;
	rep = answer(reply, sizeof(*rep));
	rep->handle = h->handle;
	return 0;
}

/* The hidden QP of @h, or NULL. */
static struct daemon_qp *wire_qp_of(const struct daemon_client *c, const struct daemon_hca *h)
{
	struct daemon_qp *qp;

	LIST_FOREACH(qp, &c->qps, entry)
	if (qp->is_wire && qp->hca == h)
		return qp;
	return NULL;
}

static int close_hca(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_handle *req = body;
	struct daemon_hca *h = OWN(c, hcas, daemon_hca, req->handle);
	struct daemon_cq *cq;
	struct daemon_qp *qp;

	(void)reply;
	if (!h)
		return -EINVAL;
	LIST_FOREACH(cq, &c->cqs, entry)
	if (cq->hca == h)
		return -EBUSY;
	while ((qp = wire_qp_of(c, h)))
		daemon_qp_free(c, qp);
	daemon_hca_free(c, h);
	return 0;
}

static int create_channel(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	struct control_channel_reply *rep;
	struct daemon_channel *ch;
	int ret;

	(void)body;
	ret = daemon_channel_new(c, &ch);
	if (ret)
		return ret;
	ret = give_fd(reply, ch->eventfd);
	if (ret) {
		daemon_channel_free(c, ch);
		return ret;
	}
	rep = answer(reply, sizeof(*rep));
	rep->channel = ch->id;
	return 0;
}

static int destroy_channel(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_handle *req = body;
	struct daemon_channel *ch = daemon_channel_find(c->d, req->handle);

	(void)reply;
	if (!ch || ch->client != c)
		return -EINVAL;
	daemon_channel_free(c, ch);
	return 0;
}

/* Anybody may ask: a sender wakes the receiver itself. */
static int get_channel(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_get_channel *req = body;
	struct daemon_channel *ch = daemon_channel_find(c->d, req->channel);

	return ch ? give_fd(reply, ch->eventfd) : -ENOENT;
}

static int create_cq(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_create_cq *req = body;
	struct daemon_hca *h = OWN(c, hcas, daemon_hca, req->hca_handle);
	struct control_create_cq_reply *rep;
	struct daemon_cq *cq;
	int ret;

	if (!h || !req->cqe || req->cqe > c->d->f->settings.max_cqe)
		return -EINVAL;
	ret = daemon_cq_new(c, h, &cq);
	if (ret)
		return ret == -ENOSPC ? -ENOMEM : ret;
	rep = answer(reply, sizeof(*rep));
	rep->cq = cq->id;
	return 0;
}

static int destroy_cq(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_handle *req = body;
	struct daemon_cq *cq = OWN(c, cqs, daemon_cq, req->handle);

	(void)reply;
	if (!cq)
		return -EINVAL;
	if (cq->n_qps)
		return -EBUSY;
	daemon_cq_free(c, cq);
	return 0;
}

static int create_qp(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_create_qp *req = body;
	struct daemon_hca *h = OWN(c, hcas, daemon_hca, req->hca_handle);
	struct daemon_cq *cq = OWN(c, cqs, daemon_cq, req->cq);
	struct control_create_qp_reply *rep;
	struct daemon_qp *qp;
	int ret;

	if (!h || !cq || cq->hca != h || req->max_recv_wr > c->d->f->settings.max_qp_wr ||
	    (req->ready_bit >= SHM_CQ_READY_BITS && req->ready_bit != SHM_NO_READY_BIT))
		return -EINVAL;
	ret = daemon_qp_new(c, h, cq, req, &qp);
	if (ret)
		return ret;
	rep = answer(reply, sizeof(*rep));
	*rep = (struct control_create_qp_reply){
		.ring_off = qp->ring_off,
		.qpn = qp->qpn,
		.ring_gen = c->d->f->region->qps[SHM_QP_INDEX(qp->qpn)].ring_gen,
		.ring_shift = qp->ring_shift,
	};
	return 0;
}

static int modify_qp(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_modify_qp *req = body;
	struct daemon_qp *qp = own_qp(c, req->qpn);

	(void)reply;
	return qp ? daemon_qp_modify(c->d, qp, req) : -EINVAL;
}

static int destroy_qp(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_handle *req = body;
	struct daemon_qp *qp = own_qp(c, req->handle);

	(void)reply;
	if (!qp)
		return -EINVAL;
	if (fabric_attach_count(c->d->f, qp->qpn))
		return -EBUSY;
	daemon_qp_free(c, qp);
	return 0;
}

/* What an attachment of @qp is to be known by. -EINVAL: that is no group on its link layer. */
static int group_of(struct daemon *d, const struct daemon_qp *qp, const struct control_attach *req,
                    uint16_t *mlid)
{
	*mlid = req->mlid;
	if (fabric_hca_is_ethernet(d->f, qp->hca->hca)) {
		*mlid = wire_mgid_ethernet_lid(&req->mgid); /* whatever was given */
		return *mlid ? 0 : -EINVAL;
	}
	return ib_gid_is_mcast(&req->mgid) && ib_lid_is_mcast(req->mlid) ? 0 : -EINVAL;
}

static int attach(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_attach *req = body;
	struct daemon_qp *qp = own_qp(c, req->qpn);
	uint16_t mlid;

	(void)reply;
	if (!c->d->f->settings.max_mcast_grp)
		return -ENOSYS;
	if (!qp || group_of(c->d, qp, req, &mlid))
		return -EINVAL;
	if (c->d->roce)
		return daemon_roce_attach(c->d->roce, qp, &req->mgid);
	return fabric_attach_add(c->d->f, qp->hca->hca, qp->qpn, &req->mgid, mlid);
}

static int detach(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_attach *req = body;
	struct daemon_qp *qp = own_qp(c, req->qpn);
	uint16_t mlid;

	(void)reply;
	if (!c->d->f->settings.max_mcast_grp)
		return -ENOSYS;
	if (!qp || group_of(c->d, qp, req, &mlid))
		return -EINVAL;
	return fabric_attach_remove(c->d->f, qp->hca->hca, qp->qpn, &req->mgid, mlid);
}

static int get_flow(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_get_flow *req = body;
	struct daemon_qp *qp = own_sender(c, req->qpn);
	struct fabric_flow_key key = { .qpn = req->qpn,
		                       .dlid = req->dlid,
		                       .path_bits = req->path_bits,
		                       .is_global = req->is_global };
	struct control_get_flow_reply *rep;
	uint32_t id;
	int ret;

	if (!qp)
		return -EINVAL;
	if (key.is_global)
		key.dgid = req->dgid;
	if (fabric_hca_is_ethernet(c->d->f, qp->hca->hca))
		key.dlid = wire_mgid_ethernet_lid(&key.dgid);
	ret = daemon_qp_flow(c->d, qp, &key, &id);
	if (ret)
		return ret;
	rep = answer(reply, sizeof(*rep));
	rep->flow = id;
	return 0;
}

static int get_payload(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_get_payload *req = body;
	struct daemon_qp *qp = own_sender(c, req->qpn);
	struct control_get_payload_reply *rep;
	uint64_t off;
	int ret;

	if (!qp || !req->bytes || req->bytes > 1u << 30)
		return -EINVAL;
	ret = daemon_qp_payload(c->d, qp, req->bytes, &off);
	if (ret)
		return ret;
	rep = answer(reply, sizeof(*rep));
	rep->off = off;
	return 0;
}

/* A sender has found a CQ overrun: its owner is told, once. */
static int raise_overrun(struct daemon *d, uint32_t id)
{
	struct daemon_cq *cq = base_idtable_get(&d->cqs, id);

	if (!cq)
		return -EINVAL;
	/* the shared mark is what anybody can check; without it this is a stray request */
	if (!atomic_load_explicit(&d->f->region->cqs[id].overrun, memory_order_acquire))
		return -EINVAL;
	if (!cq->overrun_told)
		daemon_hca_event(cq->hca, IBV_EVENT_CQ_ERR, id);
	cq->overrun_told = true;
	return 0;
}

static int raise_event(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_raise_event *req = body;
	struct daemon_qp *qp;

	(void)reply;
	if (req->type == IBV_EVENT_CQ_ERR)
		return raise_overrun(c->d, req->element);
	if (req->type != IBV_EVENT_QP_FATAL && req->type != IBV_EVENT_SQ_DRAINED)
		return -EINVAL;
	qp = own_qp(c, req->element);
	if (!qp)
		return -EINVAL;
	daemon_hca_event(qp->hca, req->type, qp->qpn);
	return 0;
}

static int open_wire(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_handle *req = body;
	struct daemon_hca *h = OWN(c, hcas, daemon_hca, req->handle);
	struct control_open_wire_reply *rep;
	struct daemon_qp *qp;
	int ret;

	if (!h || wire_qp_of(c, h))
		return -EINVAL;
	if (!fabric_hca_is_ethernet(c->d->f, h->hca))
		return -EOPNOTSUPP;
	ret = daemon_wire_qp_new(c, h, &qp);
	if (ret)
		return ret;
	rep = answer(reply, sizeof(*rep));
	rep->qpn = qp->qpn;
	return 0;
}

static int wire_socket(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_wire_socket *req = body;
	struct daemon_hca *h = OWN(c, hcas, daemon_hca, req->hca_handle);
	struct control_wire_socket_reply *rep;
	uint32_t source_port = 0;
	int fd;

	if (!h || req->is_ipv6 > 1)
		return -EINVAL;
	if (!fabric_hca_is_ethernet(c->d->f, h->hca))
		return -EOPNOTSUPP;
	fd = daemon_roce_socket(c->d->roce, c->d->f->region->hcas[h->hca].first_port, req,
	                        &source_port);
	if (fd < 0)
		return fd;
	reply->fd[reply->n_fds++] = fd;
	rep = answer(reply, sizeof(*rep));
	rep->source_port = source_port;
	return 0;
}

static int wire_mad(struct daemon_client *c, const void *body, struct control_packet *reply)
{
	const struct control_wire_mad *req = body;
	struct daemon_hca *h = OWN(c, hcas, daemon_hca, req->hca_handle);

	(void)reply;
	if (!h || !fabric_hca_is_ethernet(c->d->f, h->hca))
		return -EINVAL;
	daemon_roce_mad(c->d->roce, c->d->f->region->hcas[h->hca].first_port, req);
	return 0;
}

static const struct handler {
	size_t bytes; /* of the request's body */
	int (*serve)(struct daemon_client *c, const void *body, struct control_packet *reply);
} handlers[] = {
	[CONTROL_OPEN_HCA] = { sizeof(struct control_open_hca), open_hca },
	[CONTROL_CLOSE_HCA] = { sizeof(struct control_handle), close_hca },
	[CONTROL_CREATE_CHANNEL] = { 0, create_channel },
	[CONTROL_DESTROY_CHANNEL] = { sizeof(struct control_handle), destroy_channel },
	[CONTROL_GET_CHANNEL] = { sizeof(struct control_get_channel), get_channel },
	[CONTROL_CREATE_CQ] = { sizeof(struct control_create_cq), create_cq },
	[CONTROL_DESTROY_CQ] = { sizeof(struct control_handle), destroy_cq },
	[CONTROL_CREATE_QP] = { sizeof(struct control_create_qp), create_qp },
	[CONTROL_MODIFY_QP] = { sizeof(struct control_modify_qp), modify_qp },
	[CONTROL_DESTROY_QP] = { sizeof(struct control_handle), destroy_qp },
	[CONTROL_ATTACH] = { sizeof(struct control_attach), attach },
	[CONTROL_DETACH] = { sizeof(struct control_attach), detach },
	[CONTROL_GET_FLOW] = { sizeof(struct control_get_flow), get_flow },
	[CONTROL_GET_PAYLOAD] = { sizeof(struct control_get_payload), get_payload },
	[CONTROL_OPEN_WIRE] = { sizeof(struct control_handle), open_wire },
	[CONTROL_WIRE_SOCKET] = { sizeof(struct control_wire_socket), wire_socket },
	[CONTROL_WIRE_MAD] = { sizeof(struct control_wire_mad), wire_mad },
	[CONTROL_RAISE_EVENT] = { sizeof(struct control_raise_event), raise_event },
};

int daemon_verbs_request(struct daemon_client *c, const struct control_packet *request,
                         struct control_packet *reply)
{
	uint32_t type = request->header.type;

	if (type >= ARRAY_SIZE(handlers) || !handlers[type].serve)
		return -ENOSYS;
	if (request->header.bytes != handlers[type].bytes)
		return -EPROTO;
	return handlers[type].serve(c, request->body, reply);
}
