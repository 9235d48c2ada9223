/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How connections are made, by rdma_cm: see connections.h. Addresses are GIDs (AF_IB), as the
 * service IDs of IPoIB are in none of the port spaces of IP. Queue pairs are the interface's own,
 * on its own protection domain; rdma_cm says what to set.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>

#include "ipoib/connections.h"

#define RESOLVE_MS  1000
#define BACKLOG     64
#define MOST_EVENTS 16 /* at once */
/* As long as a path is not there; RFC 4755, section 7.1, and Linux have TCP repeat what got lost.
 */
#define TIMEOUT 16 /* 4.096 us << 16: 0.27 s */
#define RETRIES 0
/* The receiver may have no time for us: each is 0.66 s */
#define RNR_RETRIES 6
#define BRIEF_NS    1000000000ull /* a connection that lived no longer has failed */

/* ---- addresses ---- */

static struct sockaddr_ib address_of(const struct ipoib_connections *t, const struct ib_gid *gid)
{
	struct sockaddr_ib a = { .sib_family = AF_IB, .sib_pkey = htobe16(t->port->pkey) };

	memcpy(a.sib_addr.sib_raw, gid->raw, sizeof(gid->raw));
	return a;
}

static void set_service(struct sockaddr_ib *a, uint32_t qpn)
{
	a->sib_sid = htobe64(ipoib_service_id(qpn));
	a->sib_sid_mask = UINT64_MAX;
}

int ipoib_connections_listen(struct ipoib_connections *t)
{
	struct sockaddr_ib a = address_of(t, &t->port->gid);

	set_service(&a, ipoib_link_qpn(t->link));
	if (t->listener)
		rdma_destroy_id(t->listener);
	t->listener = NULL;
	if (rdma_create_id(t->channel, &t->listener, NULL, RDMA_PS_IB))
		return -errno;
	t->gid = t->port->gid;
	if (rdma_bind_addr(t->listener, (struct sockaddr *)&a) || rdma_listen(t->listener, BACKLOG))
		return -errno;
	return 0;
}

/* ---- queue pairs ---- */

/* To a state, with the attributes that rdma_cm has for it. */
static int move(struct ipoib_connection *c, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(c->id, &attr, &mask))
		return -errno;
	if (state == IBV_QPS_INIT)
		attr.qp_access_flags = 0; /* nobody reads or writes our memory */
	if (state == IBV_QPS_RTS) {
		attr.timeout = TIMEOUT;
		attr.retry_cnt = RETRIES;
		attr.rnr_retry = RNR_RETRIES;
	}
	return -ibv_modify_qp(c->qp, &attr, mask);
}

/* Our offer, as a parameter of a REQ or a REP. */
static struct rdma_conn_param offer_of(const struct ipoib_connection *c,
                                       uint8_t data[static IPOIB_OFFER_BYTES])
{
	const struct ipoib_offer offer = { .qpn = ipoib_link_qpn(c->table->link),
		                           .bytes = IPOIB_CONNECTED_BYTES };

	ipoib_offer_encode(&offer, data);
	return (struct rdma_conn_param){ .private_data = data,
		                         .private_data_len = IPOIB_OFFER_BYTES,
		                         .retry_count = RETRIES,
		                         .rnr_retry_count = RNR_RETRIES,
		                         .srq = 1,
		                         .qp_num = c->qp->qp_num };
}

/* ---- asking ---- */

int ipoib_connections_ask(struct ipoib_connection *c)
{
	struct ipoib_connections *t = c->table;
	struct sockaddr_ib from = address_of(t, &t->port->gid), to = address_of(t, &c->peer.gid);

	set_service(&to, c->peer.qpn);
	if (rdma_create_id(t->channel, &c->id, c, RDMA_PS_IB)) {
		c->id = NULL;
		return -errno;
	}
	if (rdma_resolve_addr(c->id, (struct sockaddr *)&from, (struct sockaddr *)&to, RESOLVE_MS))
		return -errno;
	return 0;
}

static int send_request(struct ipoib_connection *c)
{
	uint8_t data[IPOIB_OFFER_BYTES];
	struct rdma_conn_param param;
	int ret = ipoib_connection_add_qp(c);

	if (!ret)
		ret = move(c, IBV_QPS_INIT);
	if (ret)
		return ret;
	c->lid = be16toh(c->id->route.path_rec->dlid);
	param = offer_of(c, data);
	return rdma_connect(c->id, &param) ? -errno : 0;
}

/* The peer accepts. */
static int take_response(struct ipoib_connection *c, const struct ipoib_offer *offer)
{
	int ret = ipoib_offer_valid(offer) ? 0 : -EPROTO;

	if (!ret)
		ret = move(c, IBV_QPS_RTR);
	if (!ret)
		ret = move(c, IBV_QPS_RTS);
	if (ret)
		return ret;
	if (rdma_establish(c->id))
		return -errno;
	c->mtu = IPOIB_CONNECTED_MTU;
	if (offer->bytes < IPOIB_CONNECTED_BYTES)
		c->mtu = offer->bytes - IPOIB_HEADER_BYTES;
	ipoib_connection_ready(c);
	return 0;
}

/* ---- being asked ---- */

/* The port has as many as it may have: the oldest makes room. */
static void make_room(struct ipoib_connections *t, uint16_t lid)
{
	struct ipoib_connection *c, *oldest = NULL;
	unsigned n = 0;

	TAILQ_FOREACH(c, &t->incoming, entry)
	{
		if (c->lid != lid)
			continue;
		if (!oldest)
			oldest = c;
		n++;
	}
	if (n >= IPOIB_CONNECTIONS_OF_PORT)
		ipoib_connection_end(oldest);
}

static int accept_request(struct ipoib_connection *c)
{
	uint8_t data[IPOIB_OFFER_BYTES];
	struct rdma_conn_param param;
	int ret = ipoib_connection_add_qp(c);

	if (!ret)
		ret = move(c, IBV_QPS_INIT);
	if (!ret)
		ret = move(c, IBV_QPS_RTR);
	if (ret)
		return ret;
	param = offer_of(c, data);
	return rdma_accept(c->id, &param) ? -errno : 0;
}

/* Whether the request is what RFC 4755 has, in our partition. */
static bool is_sound(const struct ipoib_connections *t, const struct rdma_cm_id *id,
                     const struct ipoib_offer *offer)
{
	uint16_t pkey = be16toh(id->route.addr.addr.ibaddr.pkey);

	return ipoib_offer_valid(offer) && id->route.num_paths &&
	       !((pkey ^ t->port->pkey) & IB_PKEY_BASE_MASK);
}

static void take_request(struct ipoib_connections *t, struct rdma_cm_id *id,
                         const struct ipoib_offer *offer)
{
	struct ipoib_connection *c = NULL;

	if (is_sound(t, id, offer)) {
		make_room(t, be16toh(id->route.path_rec->dlid));
		c = ipoib_connection_new(t, true);
	}
	if (!c) {
		t->refused++;
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return;
	}
	c->id = id;
	c->lid = be16toh(id->route.path_rec->dlid);
	c->peer.qpn = offer->qpn;
	memcpy(c->peer.gid.raw, id->route.addr.addr.ibaddr.dgid.raw, sizeof(c->peer.gid.raw));
	id->context = c;
	if (accept_request(c))
		ipoib_connection_fail(c);
	else
		ipoib_connection_ready(c);
}

/* ---- events ---- */

/* The part of an event that is kept when it has been acknowledged. */
struct news {
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	struct ipoib_offer offer; /* of zeros: there is none */
};

static struct news read_event(const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;
	struct news news = { .type = event->event, .id = event->id };

	if (param->private_data && param->private_data_len >= IPOIB_OFFER_BYTES)
		ipoib_offer_decode(param->private_data, &news.offer);
	return news;
}

/* The connection is over, if the peer has ended it: well, unless it does that all the time. */
static void disconnected(struct ipoib_connection *c)
{
	bool brief = base_timers_now(c->table->timers) - c->since_ns < BRIEF_NS;

	if (brief)
		ipoib_connection_fail(c);
	else
		ipoib_connection_end(c);
}

static void take(struct ipoib_connections *t, const struct news *news)
{
	struct ipoib_connection *c = news->id->context;
	int ret = 0;

	if (news->type == RDMA_CM_EVENT_CONNECT_REQUEST)
		take_request(t, news->id, &news->offer);
	if (!c) /* the listener's */
		return;
	switch (news->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = rdma_resolve_route(c->id, RESOLVE_MS) ? -errno : 0;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = send_request(c);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		ret = take_response(c, &news->offer);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		ret = -ECONNREFUSED;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		disconnected(c);
		return;
	default:
		return;
	}
	if (ret)
		ipoib_connection_fail(c);
}

void ipoib_connections_dispatch(struct ipoib_connections *t)
{
	struct rdma_cm_event *event;

	/* packets do not wait for a flood of requests */
	for (unsigned n = 0; n < MOST_EVENTS && !rdma_get_cm_event(t->channel, &event); n++) {
		struct news news = read_event(event);

		rdma_ack_cm_event(event);
		take(t, &news);
	}
}
