/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Transactions on QP1: see mad.h.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cm/cm.h"
#include "cm/mad.h"
#include "cm/state.h"

struct cm_transaction {
	struct base_hash_node by_tid;
	struct cm *cm;
	struct fabric_port *port;
	struct fabric_mad mad;
	struct wire_mad head;
	bool to_sa;
	struct base_timer again;
	unsigned tries; /* that are left */
	uint64_t try_ms;
	void (*done)(void *arg, int status, const struct fabric_mad *response);
	void *arg;
};

static void transaction_free(struct cm_transaction *t)
{
	base_timer_stop(&t->again);
	base_hash_remove(&t->cm->transactions, &t->by_tid);
	free(t);
}

static void finish(struct cm_transaction *t, int status, const struct fabric_mad *response)
{
	void (*done)(void *arg, int status, const struct fabric_mad *response) = t->done;
	void *arg = t->arg;

	transaction_free(t);
	done(arg, status, response);
}

/* ---- sending ---- */

/* By the P_Key of the default partition, which every port has. */
static uint16_t default_pkey_index(const struct fabric_port *p)
{
	for (uint16_t i = 0; i < SHM_PKEYS; i++)
		if (!((p->pkey[i] ^ IB_PKEY_DEFAULT) & IB_PKEY_BASE_MASK))
			return i;
	return 0;
}

static void on_time(struct base_timer *timer);

/* Where the subnet administrator is, may have changed since the last try. */
static void address_to_sa(struct cm_transaction *t)
{
	t->mad.slid = t->port->lid;
	t->mad.dlid = t->port->sm_lid;
	t->mad.sl = t->port->sm_sl;
	t->mad.pkey_index = default_pkey_index(t->port);
}

static void send_try(struct cm_transaction *t)
{
	t->tries--;
	base_timer_set_in(t->cm->ops.timers, &t->again, t->try_ms * CM_NS_PER_MS, on_time);
	if (t->to_sa && !t->port->sm_lid)
		return; /* there may be one at the next try */
	if (t->to_sa)
		address_to_sa(t);
	t->cm->ops.mad_send(t->cm->ops.arg, t->port, &t->mad);
}

static void on_time(struct base_timer *timer)
{
	struct cm_transaction *t = container_of(timer, struct cm_transaction, again);

	if (t->tries)
		send_try(t);
	else
		finish(t, -ETIMEDOUT, NULL);
}

static uint64_t tid_hash(uint64_t tid)
{
	return base_hash_of(&tid, sizeof(tid), 0);
}

uint64_t cm_mad_new_tid(struct cm *cm)
{
	return (uint64_t)cm->ops.tid_high << 32 | ++cm->last_tid;
}

/* With all that @r says, and the header of @mad decoded. NULL: no memory. */
static struct cm_transaction *transaction_new(struct cm *cm, const struct cm_repetition *r)
{
	struct cm_transaction *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->cm = cm;
	t->port = r->port;
	t->mad = *r->mad;
	t->tries = r->tries;
	t->try_ms = r->try_ms;
	t->done = r->done;
	t->arg = r->arg;
	wire_mad_decode(t->mad.data, &t->head);
	if (base_hash_add(&cm->transactions, &t->by_tid, tid_hash(t->head.transaction_id))) {
		free(t);
		return NULL;
	}
	return t;
}

int cm_mad_repeat(struct cm *cm, const struct cm_repetition *r, struct cm_transaction **out)
{
	struct cm_transaction *t = transaction_new(cm, r);

	if (!t)
		return -ENOMEM;
	*out = t;
	send_try(t);
	return 0;
}

void cm_mad_postpone(struct cm_transaction *t, uint64_t ms)
{
	base_timer_set_in(t->cm->ops.timers, &t->again, ms * CM_NS_PER_MS, on_time);
}

/* A request that a program has made goes out with a transaction ID of ours. */
static void copy_request(const uint8_t *request, uint64_t tid, uint8_t *mad)
{
	const uint64_t wire_tid = htobe64(tid);

	memcpy(mad, request, MAD_BYTES);
	memcpy(mad + MAD_TID_AT, &wire_tid, sizeof(wire_tid));
}

static void encode_request(struct cm *cm, const struct cm_sa_request *r, struct fabric_mad *mad)
{
	struct wire_sa_mad sa = { .mad = { .base_version = MAD_BASE_VERSION,
		                           .mgmt_class = MAD_CLASS_SUBN_ADM,
		                           .class_version = MAD_VERSION_SUBN_ADM,
		                           .method = r->method,
		                           .transaction_id = cm_mad_new_tid(cm),
		                           .attribute_id = r->attribute },
		                  .component_mask = r->mask };

	*mad = (struct fabric_mad){ .src_qpn = IB_QPN_GSI,
		                    .dest_qpn = IB_QPN_GSI,
		                    .qkey = IB_QKEY_GSI };
	if (r->mad) {
		copy_request(r->mad, sa.mad.transaction_id, mad->data);
		return;
	}
	if (r->record)
		wire_encode(r->layout, r->record, sa.data);
	wire_sa_mad_encode(&sa, mad->data);
}

int cm_sa_ask(struct cm *cm, const struct cm_sa_request *r, struct cm_transaction **out)
{
	struct fabric_mad mad;
	struct cm_repetition repetition = {
		.port = r->port, .mad = &mad, .tries = CM_SA_TRIES, .done = r->done, .arg = r->arg
	};
	struct cm_transaction *t;

	if (r->timeout_ms < CM_SA_TRIES)
		repetition.tries = r->timeout_ms ? (unsigned)r->timeout_ms : 1;
	repetition.try_ms = r->timeout_ms / repetition.tries;
	encode_request(cm, r, &mad);
	t = transaction_new(cm, &repetition);
	if (!t)
		return -ENOMEM;
	t->to_sa = true;
	*out = t;
	send_try(t);
	return 0;
}

void cm_mad_cancel(struct cm_transaction **t)
{
	if (*t)
		transaction_free(*t);
	*t = NULL;
}

/* ---- receiving ---- */

/* The request that @head, received at @port, is the response to; NULL: none. */
static struct cm_transaction *transaction_of(const struct cm *cm, const struct fabric_port *port,
                                             const struct wire_mad *head)
{
	struct cm_transaction *t;

	BASE_HASH_FOREACH(t, &cm->transactions, tid_hash(head->transaction_id), by_tid)
		if (t->port == port && t->head.transaction_id == head->transaction_id &&
		    t->head.mgmt_class == head->mgmt_class &&
		    t->head.attribute_id == head->attribute_id &&
		    wire_mad_response_method(t->head.method) == head->method)
			return t;
	return NULL;
}

bool cm_mad_response(struct cm *cm, struct fabric_port *port, const struct wire_mad *head,
                     const struct fabric_mad *mad)
{
	struct cm_transaction *t;

	if (!(head->method & MAD_METHOD_RESPONSE) || head->transaction_id >> 32 != cm->ops.tid_high)
		return false;
	t = transaction_of(cm, port, head);
	if (!t)
		return true; /* it comes too late */
	if (head->status & MAD_STATUS_BUSY)
		return true; /* to be asked again: when the time for this try is over */
	finish(t, head->status ? -EINVAL : 0, mad);
	return true;
}

/* ---- communication management ---- */

struct cm_peer cm_peer_of(const struct fabric_mad *mad)
{
	struct cm_peer peer = { .lid = mad->slid,
		                .has_grh = mad->has_grh,
		                .sl = mad->sl,
		                .pkey_index = mad->pkey_index };

	if (mad->has_grh) {
		peer.gid = mad->sgid;
		peer.own = mad->dgid;
	}
	return peer;
}

void cm_mad_begin(const struct cm *cm, struct fabric_port *port, const struct cm_peer *to,
                  const struct wire_mad *head, struct fabric_mad *mad)
{
	struct wire_mad h = *head;

	*mad = (struct fabric_mad){ .slid = port->lid,
		                    .dlid = to->lid,
		                    .src_qpn = IB_QPN_GSI,
		                    .dest_qpn = IB_QPN_GSI,
		                    .qkey = IB_QKEY_GSI,
		                    .pkey_index = to->pkey_index,
		                    .sl = to->sl,
		                    .has_grh = to->has_grh,
		                    .dgid = to->gid };
	if (port->ethernet)
		mad->sgid = to->own; /* one of many, and the other end knows us by it */
	else
		cm_port_gid(cm, port, &mad->sgid);
	h.base_version = MAD_BASE_VERSION;
	h.mgmt_class = MAD_CLASS_COM_MGT;
	h.class_version = MAD_VERSION_COM_MGT;
	h.method = MAD_SEND;
	wire_mad_encode(&h, mad->data);
}
