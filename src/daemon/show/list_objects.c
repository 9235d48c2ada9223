/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of an HCA in pages: see list_objects.h.
 */
#include <errno.h>

#include "base/util.h"
#include "daemon/clients/client.h"
#include "daemon/show/list_objects.h"
#include "daemon/show/show_qp.h"
#include "shm/wire.h"
#include "wire/headers.h"

/* Places of a table that one request looks at, which takes microseconds. */
#define PLACES 2048

static uint32_t pid_of(const struct daemon_holder *holder)
{
	return holder->pid > 0 ? (uint32_t)holder->pid : 0;
}

/* Each fills in what is at that place of the table, if it is an object of the HCA. */
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
	q = &s->f->region->qps[SHM_QP_INDEX(qp->qpn)];
	if (q->type == SHM_QPT_XRC_SRQ)
		return false;
	w = show_wire_of(s, q);
	*o = (struct control_object){ .number = q->qpn & IB_QPN_MASK,
		                      .pid = pid_of(qp->holder),
		                      .srq = qp->srq ? qp->srq->index + 1 : 0,
		                      .peer = q->connection.dest_qpn & IB_QPN_MASK,
		                      .next_psn = w ? w->psn & WIRE_PSN_MASK : 0,
		                      .expected_psn = w ? w->expected & WIRE_PSN_MASK : 0,
		                      .port_num = show_qp_own_port(s, qp),
		                      .type = q->type,
		                      .state = (uint8_t)show_qp_own_state(s, q) };
	return true;
}

static bool fill_cq(const struct daemon_show *s, uint32_t hca, uint32_t at,
                    struct control_object *o)
{
	const struct daemon_cq *cq = base_idtable_get(&s->objects->cqs.ids, at);

	if (!cq || !cq->holder || cq->holder->dead || !cq->hca || cq->hca->hca != hca)
		return false;
	*o = (struct control_object){ .number = cq->id,
		                      .pid = pid_of(cq->holder),
		                      .users = cq->n_qps,
		                      .size = atomic_load_explicit(&s->f->region->cqs[cq->id].cqe,
		                                                   memory_order_relaxed) };
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
		                      .size = srq->max_wr };
	return true;
}

static const struct base_idtable *table_of(const struct daemon_objects *o, uint32_t kind)
{
	const struct base_idtable *const tables[CONTROL_OBJECT_KINDS] = {
		[CONTROL_QPS] = &o->qps.ids,
		[CONTROL_CQS] = &o->cqs.ids,
		[CONTROL_SRQS] = &o->srqs.ids,
	};

	return tables[kind];
}

static int list_objects(struct daemon_call *call)
{
	static fill_object *const fill[CONTROL_OBJECT_KINDS] = {
		[CONTROL_QPS] = fill_qp,
		[CONTROL_CQS] = fill_cq,
		[CONTROL_SRQS] = fill_srq,
	};
	const struct control_list_objects req = *(const struct control_list_objects *)call->body;
	const struct daemon_show *s = call->module;
	const struct shm_region *r = s->f->region;
	struct control_list_objects_reply *rep;
	uint32_t at = req.from, end;

	if (req.kind >= CONTROL_OBJECT_KINDS)
		return -EINVAL;
	if (req.hca >= r->control->n_hcas ||
	    !daemon_client_sees(call->client, r->hcas[req.hca].host_index))
		return -ENODEV;
	rep = daemon_call_reply(call, sizeof(*rep));
	*rep = (struct control_list_objects_reply){ 0 };
	end = table_of(s->objects, req.kind)->size;
	for (unsigned i = 0; at < end && i < PLACES && rep->n < CONTROL_OBJECTS_PAGE; i++)
		rep->n += fill[req.kind](s, req.hca, at++, &rep->object[rep->n]);
	rep->next = at < end ? at : 0;
	return 0;
}

static const struct daemon_request requests[] = {
	{ .type = CONTROL_LIST_OBJECTS,
	  .bytes = sizeof(struct control_list_objects),
	  .who = DAEMON_SYSFS,
	  .serve = list_objects },
};

void daemon_list_objects_init(struct daemon_show *s, struct daemon_requests *all)
{
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), s);
}
