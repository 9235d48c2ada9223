/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of the verbs library: see verbs.h.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "base/eventfd.h"
#include "base/reason.h"
#include "base/util.h"
#include "daemon/clients/client.h"
#include "daemon/clients/keys.h"
#include "daemon/clients/reserve.h"
#include "daemon/network/roce_groups.h"
#include "daemon/network/roce_mad.h"
#include "daemon/network/roce_neighbours.h"
#include "daemon/network/roce_port.h"
#include "daemon/top/verbs.h"
#include "fabric/forwarding/attach.h"
#include "fabric/model/event.h"
#include "fabric/plan/ethernet.h"
#include "wire/mgid.h"
#include "wire/text.h"

#define MAX_REQUEST_BYTES 8192 /* scatter entries or inline data included */

/* ---- what requests are about: the client's own, or NULL ---- */

/* If it sends; a hidden one does no more than that. */
static void *own_sender(const struct daemon_call *call, uint32_t qpn)
{
	const struct daemon_verbs *v = call->module;
	struct daemon_qp *qp = daemon_qp_find(&v->objects->qps, qpn);

	return qp && qp->holder == call->client->holds ? qp : NULL;
}

static void *own_qp(const struct daemon_call *call, uint32_t qpn)
{
	struct daemon_qp *qp = own_sender(call, qpn);

	return qp && !qp->is_roce_sender ? qp : NULL;
}

/* Its queue pair, or an XRC target that it has open. */
static void *used_qp(const struct daemon_call *call, uint32_t qpn)
{
	const struct daemon_verbs *v = call->module;
	struct daemon_qp *qp = daemon_qp_find(&v->objects->qps, qpn);

	return qp && daemon_qp_user_of(qp, call->client->holds) ? qp : own_qp(call, qpn);
}

static void *own_hca(const struct daemon_call *call, uint32_t handle)
{
	const struct daemon_verbs *v = call->module;

	return daemon_hca_of(&v->objects->hcas, call->client->holds, handle);
}

static void *own_pd(const struct daemon_call *call, uint32_t domain)
{
	const struct daemon_verbs *v = call->module;

	return daemon_pd_of(&v->objects->pds, call->client->holds, domain);
}

static void *own_cq(const struct daemon_call *call, uint32_t id)
{
	const struct daemon_verbs *v = call->module;

	return daemon_cq_of(&v->objects->cqs, call->client->holds, id);
}

static void *own_srq(const struct daemon_call *call, uint32_t index)
{
	const struct daemon_verbs *v = call->module;
	struct daemon_srq *srq = daemon_srq_find(&v->objects->srqs, index);

	return srq && srq->holder == call->client->holds ? srq : NULL;
}

/* Anybody may ask for a channel: a sender wakes the receiver itself. */
static struct daemon_channel *any_channel(const struct daemon_call *call, uint32_t id)
{
	const struct daemon_verbs *v = call->module;

	return daemon_channel_find(&v->objects->channels, id);
}

static void *own_channel(const struct daemon_call *call, uint32_t id)
{
	struct daemon_channel *ch = any_channel(call, id);

	return ch && ch->holder == call->client->holds ? ch : NULL;
}

/* ---- requests ---- */

static int open_hca(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_open_hca *req = call->body;
	struct control_open_hca_reply *rep;
	struct daemon_hca *h;
	uint64_t users = 0;
	int ret, fd;

	if (req->hca >= v->f->region->control->n_hcas ||
	    !daemon_client_sees(call->client, shm_hca_at(v->f->region, req->hca)->host_index))
		return -ENODEV;
	ret = daemon_hca_open(&v->objects->hcas, call->client->holds, req->hca, &h, &fd);
	if (ret)
		return ret;
	if (fabric_hca_is_ethernet(v->f, h->hca))
		ret = daemon_hca_count_gids(&v->objects->hcas, &v->objects->memory, h, &users);
	if (ret) {
		close(fd);
		daemon_objects_close_hca(v->objects, h);
		return ret;
	}
	daemon_call_give(call, fd);
	rep = daemon_call_reply(call, sizeof(*rep));
	*rep = (struct control_open_hca_reply){ .handle = h->handle, .gid_users_off = users };
	return 0;
}

static int ring_hca(struct daemon_call *call)
{
	const struct control_ring_hca *req = call->body;
	struct daemon_hca *h = call->about;

	if (req->n > CONTROL_MAX_RING)
		return -EINVAL;
	for (uint32_t i = 0; i < req->n; i++)
		daemon_outbox_ring(h->events, 0);
	return 0;
}

static int close_hca(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	struct daemon_hca *h = call->about;

	if (h->n_users > (h->roce_sender ? 1 : 0))
		return -EBUSY;
	if (h->roce_sender)
		daemon_qp_free(&v->objects->qps, h->roce_sender);
	daemon_objects_close_hca(v->objects, h);
	return 0;
}

static int alloc_pd(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_pd *req = call->body;

	return daemon_pd_new(&v->objects->pds, call->about, req->domain);
}

static int free_pd(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;

	daemon_pd_free(&v->objects->pds, call->about);
	return 0;
}

static int create_channel(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	struct control_channel_reply *rep;
	struct daemon_channel *ch;
	int ret;

	ret = daemon_channel_new(&v->objects->channels, call->client->holds, &ch);
	if (ret)
		return ret;
	ret = daemon_call_give_copy(call, ch->eventfd);
	if (ret) {
		daemon_channel_free(&v->objects->channels, ch);
		return ret;
	}
	rep = daemon_call_reply(call, sizeof(*rep));
	rep->channel = ch->id;
	return 0;
}

static int destroy_channel(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;

	daemon_channel_free(&v->objects->channels, call->about);
	return 0;
}

static int get_channel(struct daemon_call *call)
{
	const struct control_get_channel *req = call->body;
	struct daemon_channel *ch = any_channel(call, req->channel);

	return ch ? daemon_call_give_copy(call, ch->eventfd) : -ENOENT;
}

/* For a sender that has no descriptor of it. */
static int wake(struct daemon_call *call)
{
	const struct control_get_channel *req = call->body;
	struct daemon_channel *ch = any_channel(call, req->channel);

	if (!ch)
		return -ENOENT;
	base_eventfd_add(ch->eventfd); /* one that is full wakes anyway */
	return 0;
}

static int create_cq(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_create_cq *req = call->body;
	struct control_create_cq_reply *rep;
	struct daemon_cq *cq;
	int ret;

	if (!req->cqe || req->cqe > v->f->settings.max_cqe)
		return -EINVAL;
	ret = daemon_cq_new(&v->objects->cqs, call->client->holds, call->about, &cq);
	if (ret)
		return ret == -ENOSPC ? -ENOMEM : ret;
	rep = daemon_call_reply(call, sizeof(*rep));
	rep->cq = cq->id;
	return 0;
}

static void tell_events(struct daemon_call *call, uint32_t events)
{
	struct control_destroy_reply *rep = daemon_call_reply(call, sizeof(*rep));

	rep->events = events;
}

static int destroy_cq(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	struct daemon_cq *cq = call->about;

	if (!LIST_EMPTY(&cq->qps))
		return base_because(-EBUSY, "queue pairs still use it: destroy them first");
	tell_events(call, cq->events);
	daemon_cq_free(&v->objects->cqs, cq);
	return 0;
}

/* Whether QPs of the type are connected, and have an XRC domain or not, as the request says. */
static bool is_connected_type(const struct daemon_call *call, const struct control_create_qp *req)
{
	switch (req->type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
		return !req->xrcd;
	case IBV_QPT_XRC_SEND:
		return !req->xrcd && !req->srq;
	case IBV_QPT_XRC_RECV:
	case SHM_QPT_XRC_SRQ:
		return daemon_xrcd_is_open(call->client->holds, req->xrcd) && !req->srq;
	default:
		return false;
	}
}

/* Whether queue pairs may be so large. UD's have no requests that wait. */
static bool is_possible(const struct daemon_call *call, const struct control_qp_shape *shape)
{
	const struct daemon_verbs *v = call->module;

	if (shape->max_recv_wr > v->f->settings.max_qp_wr)
		return false;
	return !shape->request_bytes ||
	       (shape->request_bytes % 64 == 0 && shape->request_bytes <= MAX_REQUEST_BYTES &&
	        shape->max_send_wr <= v->f->settings.max_qp_wr &&
	        shape->max_recv_sge <= v->f->settings.max_sge && call->client->holds->keys_off);
}

/* Whether what the request says of a connected QP is right. */
static bool may_connect(const struct daemon_call *call, const struct control_create_qp *req)
{
	if (req->srq && !own_srq(call, req->srq - 1))
		return false;
	if (req->type == IBV_QPT_UD)
		return !req->request_bytes;
	return is_connected_type(call, req) && req->request_bytes && own_cq(call, req->send_cq);
}

static bool may_create(const struct daemon_call *call, const struct daemon_cq *cq,
                       const struct control_create_qp *req)
{
	const struct control_qp_shape shape = control_qp_shape(req);

	return cq && cq->hca == own_hca(call, req->hca_handle) &&
	       (req->ready_bit < SHM_CQ_READY_BITS || req->ready_bit == SHM_NO_READY_BIT) &&
	       is_possible(call, &shape) && may_connect(call, req);
}

static void tell_qp(struct daemon_call *call, const struct daemon_qp *qp)
{
	const struct daemon_verbs *v = call->module;

	fabric_tell_qp(v->f, qp->hca_index, qp->qpn, "made", NULL);
	daemon_qp_tell(&v->objects->qps, qp,
	               daemon_call_reply(call, sizeof(struct control_create_qp_reply)));
}

/* Makes a queue pair of what lies reserved. That is used up, also if the request is wrong. */
static int create_reserved(struct daemon_call *call, struct daemon_cq *cq,
                           const struct control_create_qp *req)
{
	struct daemon_verbs *v = call->module;
	const struct control_qp_shape shape = control_qp_shape(req);
	struct daemon_qp *qp =
	        daemon_reserve_take(&v->objects->qps, call->client->holds, req->reserved);

	if (!qp)
		return -EINVAL;
	if (memcmp(&shape, &qp->reserved.shape, sizeof(shape)) != 0 || req->xrcd ||
	    req->type == IBV_QPT_XRC_SEND || !may_create(call, cq, req)) {
		daemon_qp_give_up(&v->objects->qps, qp);
		return -EINVAL;
	}
	daemon_qp_enter(&v->objects->qps, qp, cq, req);
	tell_qp(call, qp);
	return 0;
}

static int create_qp(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_create_qp *req = call->body;
	struct daemon_cq *cq = own_cq(call, req->cq);
	struct daemon_qp *qp;
	int ret;

	if (req->reserved)
		return create_reserved(call, cq, req);
	if (!may_create(call, cq, req))
		return -EINVAL;
	ret = daemon_qp_new(&v->objects->qps, cq, req, &qp);
	if (!ret)
		tell_qp(call, qp);
	return ret;
}

static int reserve_qps(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_reserve_qps *req = call->body;

	if (!is_possible(call, &req->shape))
		return -EINVAL;
	daemon_reserve(&v->objects->qps, call->client->holds, req,
	               daemon_call_reply(call, sizeof(struct control_reserve_qps_reply)));
	return 0;
}

/* Another one's XRC target. */
static int open_qp(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_open_qp *req = call->body;
	struct daemon_hca *h = call->about;
	struct daemon_qp *qp = daemon_qp_find(&v->objects->qps, req->qpn);
	const struct shm_qp *s = shm_qp_at(v->f->region, SHM_QP_INDEX(req->qpn));
	int ret;

	if (!qp || s->type != IBV_QPT_XRC_RECV || s->connection.xrcd != req->xrcd ||
	    !daemon_xrcd_is_open(call->client->holds, req->xrcd) || qp->hca_index != h->hca)
		return -EINVAL;
	ret = daemon_qp_open(h, qp);
	if (!ret)
		tell_qp(call, qp);
	return ret;
}

static void tell_srq(struct daemon_call *call, const struct daemon_srq *srq)
{
	const struct daemon_verbs *v = call->module;
	struct control_create_srq_reply *rep = daemon_call_reply(call, sizeof(*rep));

	*rep = (struct control_create_srq_reply){
		.ring_off = srq->ring.off,
		.entries_off = srq->ring.entries_off,
		.srq = srq->index,
		.ring_gen = shm_srq_at(v->f->region, srq->index)->ring_gen,
		.ring_shift = srq->ring.shift,
	};
}

static int create_srq(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_create_srq *req = call->body;
	struct daemon_srq *srq;
	int ret;

	if (!req->max_wr || req->max_wr > v->f->settings.max_qp_wr || !req->max_sge ||
	    req->max_sge > v->f->settings.max_sge)
		return base_because(-EINVAL,
		                    "max_wr is %u and max_sge %u: 1 to %u and to %u are possible",
		                    req->max_wr, req->max_sge, v->f->settings.max_qp_wr,
		                    v->f->settings.max_sge);
	ret = daemon_srq_new(&v->objects->srqs, call->about, req, &srq);
	if (!ret)
		tell_srq(call, srq);
	return ret;
}

static int resize_srq(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_resize_srq *req = call->body;
	struct daemon_srq *srq = call->about;
	int ret;

	if (req->max_wr > v->f->settings.max_qp_wr)
		return -EINVAL;
	ret = daemon_srq_resize(&v->objects->srqs, srq, req->max_wr);
	if (ret)
		return ret;
	daemon_qps_renew(&v->objects->qps, srq);
	tell_srq(call, srq);
	return 0;
}

static int destroy_srq(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	struct daemon_srq *srq = call->about;

	if (!LIST_EMPTY(&srq->qps))
		return base_because(-EBUSY, "queue pairs still use it: destroy them first");
	tell_events(call, srq->events);
	daemon_srq_free(&v->objects->srqs, srq);
	return 0;
}

static int serve_open_xrcd(struct daemon_call *call, int fd)
{
	struct daemon_verbs *v = call->module;
	const struct control_open_xrcd *req = call->body;
	struct control_open_xrcd_reply *rep;
	uint32_t number;
	int ret = daemon_xrcd_open(&v->objects->xrcds, call->about, fd, req, &number);

	if (ret)
		return ret;
	rep = daemon_call_reply(call, sizeof(*rep));
	rep->xrcd = number;
	return 0;
}

static int open_xrcd(struct daemon_call *call)
{
	return serve_open_xrcd(call, -1);
}

static int open_xrcd_file(struct daemon_call *call)
{
	return serve_open_xrcd(call, call->request->fd[0]);
}

static int close_xrcd(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_handle *req = call->body;

	return daemon_xrcd_close(&v->objects->xrcds, call->client->holds, req->handle);
}

static int get_target(struct daemon_call *call)
{
	const struct daemon_qp *qp = call->about;

	*(struct control_target *)daemon_call_reply(call, sizeof(qp->target)) = qp->target;
	return 0;
}

/* A change of a group is complete when flows have followed it. @before: how many there were. */
static int when_followed(const struct daemon_verbs *v, uint64_t before)
{
	return v->f->flows->changes.added == before ? 0 : DAEMON_REPLY_FOLLOWED;
}

static int modify_qp(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const uint64_t before = v->f->flows->changes.added;
	int ret = daemon_qp_modify(&v->objects->qps, call->about, call->body);

	return ret ? ret : when_followed(v, before);
}

static int destroy_qp(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	struct daemon_qp *qp = call->about;
	struct daemon_qp_user *user = daemon_qp_user_of(qp, call->client->holds);

	if (user) {
		tell_events(call, user->events);
		daemon_qp_close(user);
		return 0;
	}
	if (fabric_attach_count(v->f, qp->qpn))
		return base_because(-EBUSY,
		                    "QP 0x%06x is still attached to %u multicast group(s): "
		                    "ibv_detach_mcast() first",
		                    qp->qpn, fabric_attach_count(v->f, qp->qpn));
	tell_events(call, qp->events);
	daemon_qp_free(&v->objects->qps, qp);
	daemon_chores_slice(&v->objects->chores);
	return 0;
}

/* 0, or -EINVAL: @req does not name a multicast group of the link layer of @qp; -ENOSYS: there are
 * none. */
static int check_group(const struct daemon_verbs *v, const struct daemon_qp *qp,
                       const struct control_attach *req)
{
	const bool is_ethernet = fabric_hca_is_ethernet(v->f, qp->hca->hca);

	if (!v->f->settings.max_mcast_grp)
		return base_because(-ENOSYS, "the device has no multicast (max_mcast_grp is 0)");
	if (is_ethernet ? !wire_mgid_ethernet_lid(&req->mgid) : !ib_gid_is_mcast(&req->mgid))
		return base_because(-EINVAL, "%s is not a multicast GID",
		                    wire_gid_text(&req->mgid));
	if (!is_ethernet && !ib_lid_is_mcast(req->mlid)) /* Ethernet has no LIDs */
		return base_because(-EINVAL,
		                    "0x%04x is no multicast LID: the MLID that the join gave is "
		                    "one of 0xc000 to 0xfffe",
		                    req->mlid);
	return 0;
}

static enum daemon_roce_joined how_joined(const struct daemon_call *call,
                                          const struct daemon_qp *qp, const struct ib_gid *mgid)
{
	const struct daemon_verbs *v = call->module;
	const struct daemon_client *c = call->client;
	const struct fabric_port *port =
	        v->f->hca_port[shm_hca_at(v->f->region, qp->hca->hca)->first_port];

	if (cm_joined(c->all->cm, port, mgid, NULL) & IB_JOIN_FULL)
		return DAEMON_ROCE_IS_MEMBER;
	return c->holds->cm && cm_joined(c->all->cm, port, mgid, c->holds->cm)
	               ? DAEMON_ROCE_SENDS_ONLY
	               : DAEMON_ROCE_NOBODY;
}

static int change_attachment(struct daemon_call *call, bool attaches)
{
	struct daemon_verbs *v = call->module;
	const struct control_attach *req = call->body;
	struct daemon_qp *qp = call->about;
	const uint64_t before = v->f->flows->changes.added;
	int ret = check_group(v, qp, req);

	if (ret)
		return ret;
	if (!attaches)
		ret = fabric_attach_remove(v->f, qp->hca->hca, qp->qpn, &req->mgid, req->mlid);
	else if (fabric_hca_is_ethernet(v->f, qp->hca->hca))
		ret = daemon_roce_attach(v->roce, qp, req, how_joined(call, qp, &req->mgid));
	else
		ret = fabric_attach_add(v->f, qp->hca->hca, qp->qpn, &req->mgid, req->mlid);
	if (!ret)
		fabric_tell_qp(v->f, qp->hca->hca, qp->qpn, attaches ? "attached" : "detached",
		               &req->mgid);
	return ret ? ret : when_followed(v, before);
}

static int attach(struct daemon_call *call)
{
	return change_attachment(call, true);
}

static int detach(struct daemon_call *call)
{
	return change_attachment(call, false);
}

static int get_flow(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_get_flow *req = call->body;
	struct daemon_qp *qp = call->about;
	struct fabric_flow_key key = { .qpn = req->qpn,
		                       .dlid = req->dlid,
		                       .path_bits = req->path_bits,
		                       .is_global = req->is_global,
		                       .sl = (uint8_t)req->sl };
	struct control_get_flow_reply *rep;
	uint32_t id;
	int ret;

	if (req->sl >= IB_SLS)
		return -EINVAL;
	if (key.is_global)
		key.dgid = req->dgid;
	if (fabric_hca_is_ethernet(v->f, qp->hca->hca))
		key.dlid = wire_mgid_ethernet_lid(&key.dgid);
	ret = daemon_qp_flow(&v->objects->qps, qp, &key, &id);
	if (ret)
		return ret;
	rep = daemon_call_reply(call, sizeof(*rep));
	rep->flow = id;
	return 0;
}

static int put_flow(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_put_flow *req = call->body;
	struct daemon_qp *qp = call->about;
	int ret = 0;

	if (req->n > CONTROL_MAX_PUT_FLOWS)
		return -EINVAL;
	for (uint32_t i = 0; i < req->n && !ret; i++)
		ret = daemon_qp_put_flow(&v->objects->qps, qp, req->flow[i]);
	return ret;
}

/* Replies @off, if @ret is 0. Returns @ret. */
static int tell_offset(struct daemon_call *call, int ret, const uint64_t *off)
{
	struct control_offset_reply *rep;

	if (ret)
		return ret;
	rep = daemon_call_reply(call, sizeof(*rep));
	rep->off = *off;
	return 0;
}

static int get_payload(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_get_payload *req = call->body;
	uint64_t off;

	if (!req->bytes || req->bytes > 1u << 30)
		return -EINVAL;
	return tell_offset(call, daemon_qp_payload(&v->objects->qps, call->about, req->bytes, &off),
	                   &off);
}

static int raise_event(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_raise_event *req = call->body;
	struct daemon_qp *qp;

	if (req->type == IBV_EVENT_CQ_ERR)
		return daemon_cq_overrun(&v->objects->cqs, req->element);
	if (req->type == IBV_EVENT_SRQ_LIMIT_REACHED && (req->element & SHM_XRC_SRQ))
		return daemon_qp_limit(&v->objects->qps, req->element & ~SHM_XRC_SRQ);
	if (req->type == IBV_EVENT_SRQ_LIMIT_REACHED)
		return daemon_srq_limit(&v->objects->srqs, req->element);
	if (req->type == IBV_EVENT_QP_REQ_ERR || req->type == IBV_EVENT_QP_ACCESS_ERR ||
	    req->type == IBV_EVENT_COMM_EST)
		return daemon_qp_peer_event(&v->objects->qps, req->element, req->type);
	if (req->type != IBV_EVENT_QP_FATAL && req->type != IBV_EVENT_SQ_DRAINED &&
	    req->type != IBV_EVENT_QP_LAST_WQE_REACHED)
		return -EINVAL;
	/* reported by the process that receives for the port, not always by the owner */
	if (req->type == IBV_EVENT_SQ_DRAINED && !daemon_qp_drained(&v->objects->qps, req->element))
		return 0;
	qp = own_qp(call, req->element);
	if (!qp)
		return -EINVAL;
	daemon_qp_event(&v->objects->qps, qp, (enum ibv_event_type)req->type);
	return 0;
}

static int open_roce(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	struct daemon_hca *h = call->about;
	struct control_open_roce_reply *rep;
	struct daemon_qp *qp;
	int ret;

	if (h->roce_sender)
		return -EINVAL;
	/* the daemon itself delivers what makes the detour, on any HCA */
	if (call->client->sock >= 0 && !fabric_hca_is_ethernet(v->f, h->hca))
		return -EOPNOTSUPP;
	ret = daemon_qp_new_roce(&v->objects->qps, h, &qp);
	if (ret)
		return ret;
	rep = daemon_call_reply(call, sizeof(*rep));
	rep->qpn = qp->qpn;
	return 0;
}

static int roce_socket(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_roce_socket *req = call->body;
	struct daemon_hca *h = call->about;
	struct control_roce_socket_reply *rep;
	uint32_t source_port = 0;
	int fd;

	if (req->is_ipv6 > 1)
		return -EINVAL;
	if (!fabric_hca_is_ethernet(v->f, h->hca))
		return -EOPNOTSUPP;
	fd = daemon_roce_socket(v->roce, shm_hca_at(v->f->region, h->hca)->first_port, req,
	                        &source_port);
	if (fd < 0)
		return fd;
	daemon_call_give(call, fd);
	rep = daemon_call_reply(call, sizeof(*rep));
	rep->source_port = source_port;
	return 0;
}

static int roce_mad(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_roce_mad *req = call->body;
	struct daemon_hca *h = call->about;

	if (!fabric_hca_is_ethernet(v->f, h->hca))
		return -EINVAL;
	daemon_roce_mad(v->roce, shm_hca_at(v->f->region, h->hca)->first_port, req);
	return 0;
}

static int find_neighbour(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_find_neighbour *req = call->body;
	struct daemon_hca *h = call->about;
	uint32_t port = shm_hca_at(v->f->region, h->hca)->first_port;

	if (!fabric_hca_is_ethernet(v->f, h->hca))
		return -EINVAL;
	return daemon_roce_neighbour(v->roce, v->f->hca_port[port], &req->sgid, &req->dgid);
}

static int open_keys(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	uint64_t off;

	return tell_offset(call, daemon_keys_open(&v->objects->memory, call->client->holds, &off),
	                   &off);
}

static int add_keys(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_add_keys *req = call->body;
	uint64_t off;

	return tell_offset(
	        call, daemon_keys_add(&v->objects->memory, call->client->holds, req->chunk, &off),
	        &off);
}

static int offer_memory(struct daemon_call *call)
{
	const struct control_offer_memory *req = call->body;

	if (req->kind >= CONTROL_MEMORY_KINDS)
		return -EINVAL;
	return daemon_keys_offer(call->client->holds, req->kind, call->request->fd[0]);
}

/* Whether one of the client's queue pairs is the peer of that one. */
static bool is_peer(const struct daemon_call *call, const struct daemon_qp *qp)
{
	const struct daemon_verbs *v = call->module;
	const struct shm_qp *s = shm_qp_at(v->f->region, SHM_QP_INDEX(qp->qpn));

	return s->connection.dest_qpn && own_qp(call, s->connection.dest_qpn);
}

/* Whether the memory of the process that has this queue pair is for the client: a process of the
 * same user could reach it anyway, and the daemon works for all. To others a process gives it by
 * connecting to them. */
static bool may_reach(const struct daemon_call *call, const struct daemon_qp *of)
{
	const struct daemon_qp *qp;

	if (of->holder->uid == call->client->holds->uid || call->client->sock < 0 ||
	    is_peer(call, of))
		return true;
	TAILQ_FOREACH(qp, &of->holder->qps, entry)
	if (is_peer(call, qp))
		return true;
	return false;
}

static int get_memory(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_get_memory *req = call->body;
	const struct daemon_qp *qp = daemon_qp_find(&v->objects->qps, req->qpn);

	if (!qp)
		return -ENOENT;
	if (req->kind >= CONTROL_MEMORY_KINDS)
		return -EINVAL;
	if (!may_reach(call, qp))
		return base_because(-ENOTCONN, "the process is another user's, and not connected");
	if (qp->holder->memory_fd[req->kind] < 0)
		return -ENODATA;
	daemon_call_give(call, qp->holder->memory_fd[req->kind]);
	return 0;
}

static int wake_later(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_wait *req = call->body;

	if (!own_cq(call, req->cq))
		return -EINVAL;
	return daemon_qp_wait(&v->objects->qps, call->about, req->cq, req->ns);
}

static int moderate_cq(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;
	const struct control_moderate_cq *req = call->body;

	return daemon_cq_moderate(&v->objects->cqs, req->cq);
}

static int count_arrivals(struct daemon_call *call)
{
	struct daemon_verbs *v = call->module;

	daemon_qps_count_arrivals(&v->objects->qps, call->about);
	return 0;
}

#define ROW(request, body, function) DAEMON_REQUEST(request, body, DAEMON_VERBS, function)
/* A request about what @member of @body names; @own finds it. */
#define ABOUT(request, body, member, own, function)                                           \
	{                                                                                     \
		.type = CONTROL_##request, .bytes = sizeof(struct body), .who = DAEMON_VERBS, \
		.about_at = offsetof(struct body, member), .find = (own), .serve = (function) \
	}

static const struct daemon_request requests[] = {
	ROW(OPEN_HCA, control_open_hca, open_hca),
	ABOUT(CLOSE_HCA, control_handle, handle, own_hca, close_hca),
	ABOUT(RING_HCA, control_ring_hca, hca_handle, own_hca, ring_hca),
	ABOUT(ALLOC_PD, control_pd, hca_handle, own_hca, alloc_pd),
	ABOUT(FREE_PD, control_pd, domain, own_pd, free_pd),
	{ .type = CONTROL_CREATE_CHANNEL, .who = DAEMON_VERBS, .serve = create_channel },
	ABOUT(DESTROY_CHANNEL, control_handle, handle, own_channel, destroy_channel),
	ROW(GET_CHANNEL, control_get_channel, get_channel),
	ROW(WAKE, control_get_channel, wake),
	ABOUT(CREATE_CQ, control_create_cq, hca_handle, own_hca, create_cq),
	ABOUT(DESTROY_CQ, control_handle, handle, own_cq, destroy_cq),
	ROW(MODERATE_CQ, control_moderate_cq, moderate_cq),
	ABOUT(COUNT_ARRIVALS, control_handle, handle, own_cq, count_arrivals),
	/* about no HCA: a reserved place is used up even if it is of another HCA */
	ROW(CREATE_QP, control_create_qp, create_qp),
	ROW(RESERVE_QPS, control_reserve_qps, reserve_qps),
	ABOUT(MODIFY_QP, control_modify_qp, qpn, used_qp, modify_qp),
	ABOUT(DESTROY_QP, control_handle, handle, used_qp, destroy_qp),
	ABOUT(ATTACH, control_attach, qpn, own_qp, attach),
	ABOUT(DETACH, control_attach, qpn, own_qp, detach),
	ABOUT(GET_FLOW, control_get_flow, qpn, own_sender, get_flow),
	ABOUT(PUT_FLOW, control_put_flow, qpn, own_sender, put_flow),
	ABOUT(GET_PAYLOAD, control_get_payload, qpn, own_sender, get_payload),
	ABOUT(OPEN_ROCE, control_handle, handle, own_hca, open_roce),
	ABOUT(ROCE_SOCKET, control_roce_socket, hca_handle, own_hca, roce_socket),
	ABOUT(ROCE_MAD, control_roce_mad, hca_handle, own_hca, roce_mad),
	ABOUT(FIND_NEIGHBOUR, control_find_neighbour, hca_handle, own_hca, find_neighbour),
	ABOUT(CREATE_SRQ, control_create_srq, hca_handle, own_hca, create_srq),
	ABOUT(RESIZE_SRQ, control_resize_srq, srq, own_srq, resize_srq),
	ABOUT(DESTROY_SRQ, control_handle, handle, own_srq, destroy_srq),
	ABOUT(OPEN_XRCD, control_open_xrcd, hca_handle, own_hca, open_xrcd),
	{ .type = CONTROL_OPEN_XRCD_FILE,
	  .bytes = sizeof(struct control_open_xrcd),
	  .n_fds = 1,
	  .about_at = offsetof(struct control_open_xrcd, hca_handle),
	  .who = DAEMON_VERBS,
	  .find = own_hca,
	  .serve = open_xrcd_file },
	ROW(CLOSE_XRCD, control_handle, close_xrcd),
	ABOUT(OPEN_QP, control_open_qp, hca_handle, own_hca, open_qp),
	ABOUT(GET_TARGET, control_get_target, qpn, used_qp, get_target),
	{ .type = CONTROL_OPEN_KEYS, .who = DAEMON_VERBS, .serve = open_keys },
	ROW(ADD_KEYS, control_add_keys, add_keys),
	{ .type = CONTROL_OFFER_MEMORY,
	  .bytes = sizeof(struct control_offer_memory),
	  .n_fds = 1,
	  .who = DAEMON_VERBS,
	  .serve = offer_memory },
	ROW(GET_MEMORY, control_get_memory, get_memory),
	ABOUT(WAIT, control_wait, qpn, own_qp, wake_later),
	ROW(RAISE_EVENT, control_raise_event, raise_event),
};

void daemon_verbs_init(struct daemon_verbs *v, struct daemon_requests *all)
{
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), v);
}
