/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of programs: see umad_request.h.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "daemon/umad/umad_memory.h"
#include "daemon/umad/umad_program.h"
#include "daemon/umad/umad_request.h"

bool umad_is_response(const struct wire_mad *head)
{
	return (head->method & MAD_METHOD_RESPONSE) || head->method == MAD_TRAP_REPRESS ||
	       (head->mgmt_class == MAD_CLASS_BM && (head->attribute_modifier & 1));
}

static uint64_t request_hash(const struct umad_agent *agent, uint64_t tid)
{
	return base_hash_of(&tid, sizeof(tid), agent->tid_high);
}

struct umad_request *umad_request_find(struct umad_agent *agent, const struct wire_mad *head,
                                       bool sent_response)
{
	struct umad_request *r;
	struct daemon_umad *u = agent->port->u;
	uint64_t hash = request_hash(agent, head->transaction_id);

	BASE_HASH_FOREACH(r, &u->requests_by_tid, hash, by_tid)
		if (r->agent == agent && r->head.transaction_id == head->transaction_id &&
		    r->head.mgmt_class == head->mgmt_class &&
		    umad_is_response(&r->head) == sent_response)
			return r;
	return NULL;
}

void umad_request_free(struct umad_request *r)
{
	struct daemon_umad *u = r->agent->port->u;

	base_timer_stop(&r->timer);
	base_hash_remove(&u->requests_by_tid, &r->by_tid);
	LIST_REMOVE(r, entry);
	umad_memory_free(r->agent->port, r->message, r->message_bytes);
	umad_memory_release(r->agent->port, sizeof(*r));
	free(r);
}

void umad_request_fail(struct umad_request *r, int status)
{
	umad_program_return(r->agent, &r->header, r->mad.data, status);
	umad_request_free(r);
}

int umad_request_new(struct umad_agent *agent, const struct ib_user_mad *header,
                     const struct fabric_mad *mad, struct umad_request **out)
{
	struct daemon_umad *u = agent->port->u;
	struct umad_request *r;
	int ret;

	if (!umad_memory_reserve(agent->port, sizeof(*r)))
		return -ENOMEM;
	r = calloc(1, sizeof(*r));
	if (!r) {
		umad_memory_release(agent->port, sizeof(*r));
		return -ENOMEM;
	}
	r->agent = agent;
	r->header = *header;
	r->mad = *mad;
	r->retries = header->retries;
	wire_mad_decode(mad->data, &r->head);
	ret = base_hash_add(&u->requests_by_tid, &r->by_tid,
	                    request_hash(agent, r->head.transaction_id));
	if (ret) {
		umad_memory_release(agent->port, sizeof(*r));
		free(r);
		return ret;
	}
	LIST_INSERT_HEAD(&agent->requests, r, entry);
	*out = r;
	return 0;
}

static void on_late(struct base_timer *t)
{
	struct umad_request *r = container_of(t, struct umad_request, timer);
	struct daemon_mads *mads = r->agent->port->u->d.mads;

	if (r->agent->ended) {
		umad_request_free(r);
	} else if (r->retries) {
		r->retries--;
		umad_request_send(r);
	} else {
		umad_request_fail(r, ETIMEDOUT);
	}
	daemon_mads_send(mads);
}

void umad_request_send_mad(struct umad_open *port, const struct fabric_mad *mad)
{
	if (cm_program_wants(port->program, mad))
		cm_program_send(port->program, mad);
	else
		daemon_mads_queue(port->u->d.mads, port->at, mad);
}

void umad_request_send(struct umad_request *r)
{
	struct daemon_umad *u = r->agent->port->u;

	base_timer_set_in(&u->d.loop->timers, &r->timer, r->header.timeout_ms * DAEMON_NS_PER_MS,
	                  on_late);
	umad_request_send_mad(r->agent->port, &r->mad);
}

bool umad_request_forget(struct umad_agent *agent, uint32_t *budget)
{
	struct umad_request *r;

	while ((r = LIST_FIRST(&agent->requests)) &&
	       daemon_chore_spend(budget, umad_memory_work(r->message_bytes)))
		umad_request_free(r);
	return !r;
}

/* ---- to the program ---- */

/* A response that nobody waits for is dropped, but for the later segments that an agent with an
 * RMPP of its own gets. */
static bool is_awaited(struct umad_agent *agent, const struct wire_mad *head, const uint8_t *data)
{
	struct umad_request *r = umad_request_find(agent, head, false);

	if (r && r->header.timeout_ms) {
		umad_request_free(r);
		return true;
	}
	return !agent->reassembles && wire_rmpp_is_active(data);
}

void umad_request_receive(struct umad_agent *agent, const struct fabric_mad *mad,
                          const uint8_t *data, size_t bytes)
{
	const struct fabric_port *at = agent->port->at;
	struct ib_user_mad header = { 0 };
	struct wire_mad head;

	wire_mad_decode(mad->data, &head);
	if (umad_is_response(&head) && !is_awaited(agent, &head, mad->data))
		return;
	header.addr.qpn = htobe32(mad->src_qpn);
	header.addr.lid = htobe16(mad->slid);
	header.addr.sl = mad->sl;
	header.addr.path_bits = (uint8_t)(mad->dlid & ((1u << at->lmc) - 1));
	header.addr.pkey_index = mad->pkey_index;
	header.addr.grh_present = mad->has_grh;
	if (mad->has_grh)
		memcpy(header.addr.gid, mad->sgid.raw, sizeof(header.addr.gid));
	umad_program_send(agent, &header, data, bytes);
}
