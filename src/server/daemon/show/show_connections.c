/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The view "connections": identifiers of rdma_cm that listen or have a connection, client by
 * client, and then the queue pairs that programs have connected by hand. A part is a look at one
 * place where there may be one.
 */
#include "daemon/show/show_qp.h"
#include "wire/text.h"

/* Units of work (chores.h). */
#define EMPTY_COST 1
#define ID_COST    32

struct position {
	bool by_hand;                   /* the clients are done */
	uint32_t client, at;            /* identifier; or, by hand, queue pair */
	uint64_t had[SHM_MAX_QPS / 64]; /* queue pairs that identifiers have, by index */
};

static const struct daemon_qp *find_qp(const struct daemon_show *s, uint32_t qpn,
                                       const struct daemon_holder *holder)
{
	const struct daemon_qp *qp = qpn ? daemon_qp_find(&s->objects->qps, qpn) : NULL;

	/* the number is what the program says that it is */
	return qp && qp->hca && qp->holder == holder ? qp : NULL;
}

static void add_peer(const struct daemon_show *s, struct show_json *o, uint32_t qpn)
{
	const struct daemon_qp *peer = daemon_qp_find(&s->objects->qps, qpn);

	show_add_text(o, "peer", "0x%06x", qpn);
	if (peer && peer->hca)
		show_add_text(o, "peer_host", "%s", shm_hca_at(s->f->region, peer->hca->hca)->host);
}

/* "10.0.0.1:7471", "[fe80::1]:7471". */
static void add_address(struct show_json *o, const char *key, const union control_cm_addr *a)
{
	bool v4 = a->sa.sa_family == AF_INET;

	if (v4)
		show_add_text(o, key, "%s:%u", wire_address_text(&a->sa), be16toh(a->in.sin_port));
	else if (a->sa.sa_family == AF_INET6)
		show_add_text(o, key, "[%s]:%u", wire_address_text(&a->sa),
		              be16toh(a->in6.sin6_port));
	else if (a->sa.sa_family == AF_IB)
		show_add_text(o, key, "[%s]:%u", wire_address_text(&a->sa),
		              (uint16_t)be64toh(a->ib.sib_sid));
}

static void add_place(const struct daemon_show *s, struct show_json *o, uint32_t hca, unsigned port)
{
	show_add_text(o, "host", "%s", shm_hca_at(s->f->region, hca)->host);
	show_add_text(o, "hca", "%s", shm_hca_at(s->f->region, hca)->name);
	show_add_u64(o, "port", port);
}

static void add_qp(const struct daemon_show *s, struct show_at *at, struct show_json *o,
                   const struct daemon_qp *qp)
{
	const struct shm_qp *q = shm_qp_at(s->f->region, SHM_QP_INDEX(qp->qpn));

	show_add_string(o, "type", show_qp_type(q));
	show_add_string(o, "qp_state", show_qp_state(s, q));
	show_add_room(o, q);
	show_add_sent(s, at, o, qp);
}

static void add_identifier(const struct daemon_show *s, struct show_at *at, struct show_json *o,
                           const struct daemon_client *c, const struct cm_shown *id)
{
	const struct daemon_qp *qp = find_qp(s, id->qpn, c->holds);

	show_open(o, NULL, '{');
	if (id->port)
		add_place(s, o, id->port->node->hca, id->port->num);
	else if (c->host_index >= 0)
		show_add_text(o, "host", "%s", s->f->host[c->host_index].name);
	if (c->pid > 0)
		show_add_u64(o, "pid", (uint32_t)c->pid);
	show_add_string(o, "by", "rdma_cm");
	show_add_string(o, "state", id->state);
	show_add_string(o, "space", id->space);
	add_address(o, "source", &id->src);
	if (id->listens)
		show_add_u64(o, "backlog", id->backlog);
	else
		add_address(o, "destination", &id->dst);
	if (id->qpn)
		show_add_text(o, "qpn", "0x%06x", id->qpn);
	if (id->peer_qpn)
		add_peer(s, o, id->peer_qpn);
	if (qp)
		add_qp(s, at, o, qp);
	show_close(o, '}');
}

/* The next place of the clients. False: there is none left. */
static bool show_next_identifier(const struct daemon_show *s, struct show_at *at,
                                 struct show_json *o)
{
	struct position *p = at->state;
	const struct daemon_client *c = base_idtable_get(&s->clients->ids, p->client);
	struct cm_shown id;

	at->work += EMPTY_COST;
	if (p->client >= s->clients->ids.size)
		return false;
	if (!c || !c->holds->cm || p->at >= cm_client_end(c->holds->cm)) {
		p->client++;
		p->at = 0;
		return true;
	}
	if (!cm_client_show(c->holds->cm, p->at++, &id) || !(id.listens || id.connects))
		return true;
	at->work += ID_COST;
	if (find_qp(s, id.qpn, c->holds))
		p->had[SHM_QP_INDEX(id.qpn) / 64] |= 1ull << SHM_QP_INDEX(id.qpn) % 64;
	add_identifier(s, at, o, c, &id);
	return true;
}

static bool show_next_by_hand(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	struct position *p = at->state;
	const uint32_t index = p->at++;
	const struct daemon_qp *qp;
	const struct shm_qp *q;

	if (index >= s->objects->qps.ids.size)
		return false;
	qp = show_qp_at(s, at, index);
	if (!qp || p->had[index / 64] >> index % 64 & 1)
		return true;
	q = shm_qp_at(s->f->region, index);
	if (!q->connection.dest_qpn)
		return true;
	show_open(o, NULL, '{');
	add_place(s, o, qp->hca->hca, q->port_num);
	if (qp->holder->pid > 0)
		show_add_u64(o, "pid", (uint32_t)qp->holder->pid);
	show_add_string(o, "by", "hand");
	show_add_string(o, "state", show_qp_state(s, q));
	show_add_text(o, "qpn", "0x%06x", q->qpn);
	add_peer(s, o, q->connection.dest_qpn);
	add_qp(s, at, o, qp);
	show_close(o, '}');
	return true;
}

bool daemon_show_connections(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	struct position *p = show_state(at, o, sizeof(*p));

	if (!p)
		return false;
	if (!p->by_hand && show_next_identifier(s, at, o))
		return true;
	if (!p->by_hand)
		p->at = 0;
	p->by_hand = true;
	return show_next_by_hand(s, at, o);
}
