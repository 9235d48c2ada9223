/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of an HCA in pages: see list_objects.h.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "daemon/clients/client.h"
#include "daemon/show/list_objects.h"
#include "daemon/show/show_qp.h"
#include "shm/key.h"
#include "shm/packets.h"
#include "wire/headers.h"

/* Places of tables that one request looks at, which takes microseconds. */
#define PLACES 2048

static uint32_t pid_of(const struct daemon_holder *holder)
{
	return holder->pid > 0 ? (uint32_t)holder->pid : 0;
}

/* 1 + the number of what the process calls so; 0: it is not known. */
static uint32_t pd_of(const struct daemon_show *s, const struct daemon_holder *holder,
                      uint32_t domain)
{
	const struct daemon_pd *pd = daemon_pd_of(&s->objects->pds, holder, domain);

	return pd ? pd->id + 1 : 0;
}

/* ---- what the daemon has in a table: each fills in what is at that place, if it is an object of
 * the HCA */

typedef bool fill_object(const struct daemon_show *s, uint32_t hca, uint32_t at,
                         struct control_object *o);

static bool fill_qp(const struct daemon_show *s, uint32_t hca, uint32_t at,
                    struct control_object *o)
{
	struct show_at unused = { 0 };
	const struct daemon_qp *qp = show_qp_at(s, &unused, at);
	const struct shm_qp *q;
	const struct shm_wire *w;

	if (!qp || qp->hca->hca != hca)
		return false;
	q = shm_qp_at(s->f->region, SHM_QP_INDEX(qp->qpn));
	if (q->type == SHM_QPT_XRC_SRQ)
		return false;
	w = show_wire_of(s, q);
	*o = (struct control_object){
		.number = q->qpn & IB_QPN_MASK,
		.pid = pid_of(qp->holder),
		.pd = pd_of(s, qp->holder, q->connection.domain),
		.port_num = show_qp_own_port(s, qp),
		.type = q->type,
		.state = (uint8_t)show_qp_own_state(s, q),
		.qp = { .srq = qp->srq ? qp->srq->index + 1 : 0,
		        .peer = q->connection.dest_qpn & IB_QPN_MASK,
		        .next_psn = w ? w->psn & WIRE_PSN_MASK : 0,
		        .expected_psn = w ? w->in.expected & WIRE_PSN_MASK : 0 },
	};
	return true;
}

static bool fill_cq(const struct daemon_show *s, uint32_t hca, uint32_t at,
                    struct control_object *o)
{
	const struct daemon_cq *cq = base_idtable_get(&s->objects->cqs.ids, at);
	const struct shm_region *r = s->f->region;

	if (!cq || !cq->holder || cq->holder->dead || !cq->hca || cq->hca->hca != hca)
		return false;
	*o = (struct control_object){
		.number = cq->id,
		.pid = pid_of(cq->holder),
		.context = cq->hca->handle,
		.cq = { .size = atomic_load_explicit(&shm_cq_at(r, cq->id)->cqe,
		                                     memory_order_relaxed),
		        .users = cq->n_qps },
	};
	return true;
}

static bool fill_srq(const struct daemon_show *s, uint32_t hca, uint32_t at,
                     struct control_object *o)
{
	const struct daemon_srq *srq = base_idtable_get(&s->objects->srqs.ids, at);

	if (!srq || !srq->holder || srq->holder->dead || !srq->hca || srq->hca->hca != hca)
		return false;
	*o = (struct control_object){ .number = srq->index,
		                      .pid = pid_of(srq->holder),
		                      .pd = pd_of(s, srq->holder, srq->domain) };
	return true;
}

static bool fill_pd(const struct daemon_show *s, uint32_t hca, uint32_t at,
                    struct control_object *o)
{
	const struct daemon_pd *pd = base_idtable_get(&s->objects->pds.ids, at);

	if (!pd || pd->hca->hca != hca || pd->hca->holder->dead || !daemon_hca_is_open(pd->hca))
		return false;
	*o = (struct control_object){ .number = pd->id,
		                      .pid = pid_of(pd->hca->holder),
		                      .context = pd->hca->handle };
	return true;
}

/* The daemon has HCAs open itself, which are nobody's. */
static bool fill_context(const struct daemon_show *s, uint32_t hca, uint32_t at,
                         struct control_object *o)
{
	const struct daemon_hca *h = base_idtable_get(&s->objects->hcas.ids, at);
	const struct daemon_client *c;

	if (!h || h->hca != hca || h->holder->dead)
		return false;
	c = base_idtable_get(&s->clients->ids, h->holder->client);
	if (!c || !daemon_client_is_program(c))
		return false;
	*o = (struct control_object){ .number = h->handle, .pid = pid_of(h->holder) };
	return true;
}

/* ---- what clients have: likewise, at a place of a client's */

typedef bool fill_of_client(const struct daemon_show *s, uint32_t hca,
                            const struct daemon_client *c, uint32_t at, struct control_object *o);

/* A number for an object that has one of its own, of so many bits, in its client. Two may have the
 * same if thousands of programs have come and gone between theirs: an object without another number
 * shows it. */
static uint32_t number_of(const struct daemon_client *c, uint32_t own, unsigned bits)
{
	return c->id << bits | own;
}

#define MR_BITS 20
static_assert(SHM_KEY_CHUNK * SHM_KEY_CHUNKS == 1 << MR_BITS, "every key's index");

static uint32_t end_of_mrs(const struct daemon_show *s, const struct daemon_client *c)
{
	const uint64_t off = c->holds->keys_off;
	const struct shm_keys *keys = off ? shm_data_at(s->f->region, off) : NULL;
	const uint32_t end = keys ? atomic_load_explicit(&keys->key_end, memory_order_relaxed) : 0;

	return end < 1 << MR_BITS ? end : 1 << MR_BITS; /* as the client says */
}

static bool fill_mr(const struct daemon_show *s, uint32_t hca, const struct daemon_client *c,
                    uint32_t at, struct control_object *o)
{
	struct shm_key *k = shm_key_at(s->f->region, c->holds->keys_off, at << 8);
	const uint32_t key = k ? atomic_load_explicit(&k->key, memory_order_relaxed) : 0;
	const struct daemon_pd *pd;
	struct shm_reach reach;

	if (!shm_key_read_at(k, key, &reach) || reach.access & SHM_KEY_WINDOW)
		return false;
	pd = daemon_pd_of(&s->objects->pds, c->holds, reach.domain);
	if (!pd || pd->hca->hca != hca)
		return false;
	*o = (struct control_object){ .number = number_of(c, at, MR_BITS),
		                      .pid = pid_of(c->holds),
		                      .pd = pd->id + 1,
		                      .mr = { .length = reach.length, .key = key } };
	return true;
}

#define CM_ID_BITS 17

static uint32_t end_of_cm_ids(const struct daemon_show *s, const struct daemon_client *c)
{
	(void)s;
	return c->holds->cm ? cm_client_end(c->holds->cm) : 0;
}

static struct control_object_address address_of(const union control_cm_addr *a)
{
	struct control_object_address out = { 0 };

	if (a->sa.sa_family == AF_INET) {
		out.family = AF_INET;
		out.port = a->in.sin_port;
		memcpy(out.addr, &a->in.sin_addr, sizeof(a->in.sin_addr));
	} else if (a->sa.sa_family == AF_INET6) {
		out.family = AF_INET6;
		out.port = a->in6.sin6_port;
		memcpy(out.addr, &a->in6.sin6_addr, sizeof(a->in6.sin6_addr));
	}
	return out;
}

/* Whether the identifier is of the HCA: one that listens on all is of each. */
static bool is_of(const struct daemon_show *s, uint32_t hca, const struct daemon_client *c,
                  const struct cm_shown *id)
{
	if (id->port)
		return id->port->node->hca == hca;
	return id->listens && daemon_client_sees(c, shm_hca_at(s->f->region, hca)->host_index);
}

static bool fill_cm_id(const struct daemon_show *s, uint32_t hca, const struct daemon_client *c,
                       uint32_t at, struct control_object *o)
{
	struct cm_shown id;

	if (!cm_client_show(c->holds->cm, at, &id) || !is_of(s, hca, c, &id))
		return false;
	*o = (struct control_object){ .number = number_of(c, id.number, CM_ID_BITS),
		                      .pid = pid_of(c->holds),
		                      .port_num = id.port ? (uint8_t)id.port->num : 0,
		                      .type = (uint8_t)id.qp_type,
		                      .state = id.step,
		                      .cm_id = { .qpn = id.qpn & IB_QPN_MASK,
		                                 .space = id.ps,
		                                 .src = address_of(&id.src),
		                                 .dst = address_of(&id.dst) } };
	return true;
}

/* ---- pages */

/* Either in a table of the daemon, or of each client. */
static const struct kind {
	fill_object *fill;
	size_t table; /* where in struct daemon_objects */
	fill_of_client *fill_of_client;
	uint32_t (*end)(const struct daemon_show *s, const struct daemon_client *c);
} kinds[CONTROL_OBJECT_KINDS] = {
	[CONTROL_PDS] = { fill_pd, offsetof(struct daemon_objects, pds.ids) },
	[CONTROL_CQS] = { fill_cq, offsetof(struct daemon_objects, cqs.ids) },
	[CONTROL_QPS] = { fill_qp, offsetof(struct daemon_objects, qps.ids) },
	[CONTROL_CM_IDS] = { .fill_of_client = fill_cm_id, .end = end_of_cm_ids },
	[CONTROL_MRS] = { .fill_of_client = fill_mr, .end = end_of_mrs },
	[CONTROL_CONTEXTS] = { fill_context, offsetof(struct daemon_objects, hcas.ids) },
	[CONTROL_SRQS] = { fill_srq, offsetof(struct daemon_objects, srqs.ids) },
};

/* Both go on where @rep says. */
static void walk_table(const struct daemon_show *s, const struct control_list_objects *req,
                       struct control_list_objects_reply *rep)
{
	const struct kind *kind = &kinds[req->kind];
	const struct base_idtable *table =
	        (const struct base_idtable *)((const char *)s->objects + kind->table);

	for (unsigned i = 0; rep->from < table->size; i++) {
		if (i == PLACES || rep->n == CONTROL_OBJECTS_PAGE) {
			rep->more = 1;
			return;
		}
		rep->n += kind->fill(s, req->hca, rep->from++, &rep->object[rep->n]);
	}
}

static void walk_clients(const struct daemon_show *s, const struct control_list_objects *req,
                         struct control_list_objects_reply *rep)
{
	const struct kind *kind = &kinds[req->kind];

	for (unsigned i = 0; rep->from < s->clients->ids.size; i++) {
		const struct daemon_client *c = base_idtable_get(&s->clients->ids, rep->from);

		if (i == PLACES || rep->n == CONTROL_OBJECTS_PAGE) {
			rep->more = 1;
			return;
		}
		if (!c || !daemon_client_is_program(c) || rep->at >= kind->end(s, c)) {
			rep->from++;
			rep->at = 0;
			continue;
		}
		rep->n += kind->fill_of_client(s, req->hca, c, rep->at++, &rep->object[rep->n]);
	}
}

static int list_objects(struct daemon_call *call)
{
	const struct control_list_objects req = *(const struct control_list_objects *)call->body;
	const struct daemon_show *s = call->module;
	const struct shm_region *r = s->f->region;
	struct control_list_objects_reply *rep;

	if (req.kind >= CONTROL_OBJECT_KINDS)
		return -EINVAL;
	if (req.hca >= r->control->n_hcas ||
	    !daemon_client_sees(call->client, shm_hca_at(r, req.hca)->host_index))
		return -ENODEV;
	rep = daemon_call_reply(call, sizeof(*rep));
	*rep = (struct control_list_objects_reply){ .from = req.from, .at = req.at };
	if (kinds[req.kind].fill)
		walk_table(s, &req, rep);
	else
		walk_clients(s, &req, rep);
	return 0;
}

static const struct daemon_request requests[] = {
	DAEMON_REQUEST(LIST_OBJECTS, control_list_objects, DAEMON_SYSFS, list_objects),
};

void daemon_list_objects_init(struct daemon_show *s, struct daemon_requests *all)
{
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), s);
}
