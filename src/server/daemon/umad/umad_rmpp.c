/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of several segments: see umad_rmpp.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "daemon/umad/umad_memory.h"
#include "daemon/umad/umad_request.h"
#include "daemon/umad/umad_rmpp.h"

#define ACK_TIMEOUT_NS     (2000 * DAEMON_NS_PER_MS)
#define MESSAGE_TIMEOUT_NS (40000 * DAEMON_NS_PER_MS)
#define LINGER_NS          (10000 * DAEMON_NS_PER_MS) /* for segments that come again */
#define WINDOW             64
#define MAX_REASSEMBLIES   1024 /* of an agent, under way */
#define MAX_LINGERING      1024 /* and done */
#define FIRST_ROOM         4096

/* ---- sending ---- */

static int message_new(struct umad_request *r, size_t bytes)
{
	unsigned data_at = wire_rmpp_data_at(r->head.mgmt_class);
	const struct wire_rmpp_limits limits = {
		.timeout_ns = ACK_TIMEOUT_NS,
		.max_retries = r->retries > UINT8_MAX ? UINT8_MAX : (uint8_t)r->retries,
	};
	struct wire_rmpp_message message;
	int ret;

	if (bytes < data_at)
		return -EINVAL;
	memcpy(r->message, r->mad.data, data_at); /* its transaction ID has been set */
	ret = wire_rmpp_message_init(&message, r->message, r->message + data_at, bytes - data_at);
	if (ret)
		return ret;
	wire_rmpp_send_init(&r->sender, &message, &limits, base_now_ns());
	r->sender.two_sided = r->head.method == MAD_GET_MULTI;
	return 0;
}

static void on_message_late(struct base_timer *t);

static void wait_until(struct umad_request *r, uint64_t deadline_ns)
{
	base_timer_set(&r->agent->port->u->d.loop->timers, &r->timer, deadline_ns, on_message_late);
}

static void message_send(struct umad_request *r)
{
	struct daemon_umad *u = r->agent->port->u;
	struct fabric_mad mad = r->mad;

	while (wire_rmpp_send_next(&r->sender, base_now_ns(), mad.data))
		daemon_mads_queue(u->d.mads, r->agent->port->at, &mad);
	wait_until(r, r->sender.deadline);
}

/* All segments are acknowledged: it is done, or a response is to come. */
static void message_sent(struct umad_request *r)
{
	if (!r->header.timeout_ms) {
		umad_request_free(r);
		return;
	}
	wait_until(r, base_now_ns() + r->header.timeout_ms * DAEMON_NS_PER_MS);
}

/* The kernel says nothing of a message that was refused; here its sender is told. */
static void message_failed(struct umad_request *r)
{
	umad_request_fail(r, ETIMEDOUT);
}

static void reply_with(struct umad_request *r, const uint8_t *data)
{
	struct fabric_mad mad = r->mad;

	memcpy(mad.data, data, MAD_BYTES);
	daemon_mads_queue(r->agent->port->u->d.mads, r->agent->port->at, &mad);
}

/* No ACK has come in time, or no response. */
static void message_expire(struct umad_request *r)
{
	uint8_t reply[MAD_BYTES];
	struct wire_rmpp_result result;

	if (r->sender.state == RMPP_DONE) { /* the response has not come */
		message_failed(r);
		return;
	}
	result = wire_rmpp_send_expire(&r->sender, base_now_ns(), reply);
	if (result.reply)
		reply_with(r, reply);
	if (result.event == RMPP_FAILED)
		message_failed(r);
	else
		message_send(r);
}

static void on_message_late(struct base_timer *t)
{
	struct umad_request *r = container_of(t, struct umad_request, timer);
	struct daemon_mads *mads = r->agent->port->u->d.mads;

	if (r->agent->ended)
		umad_request_free(r);
	else
		message_expire(r);
	daemon_mads_send(mads);
}

int umad_rmpp_send(struct umad_request *r, uint8_t *message, size_t bytes)
{
	int ret;

	r->message = message;
	r->message_bytes = (uint32_t)bytes;
	ret = message_new(r, bytes);
	if (!ret)
		message_send(r);
	return ret;
}

/* An ACK, STOP or ABORT for what we send. */
static void sender_input(struct umad_request *r, const struct fabric_mad *mad)
{
	uint8_t reply[MAD_BYTES];
	enum rmpp_event before = r->sender.state;
	struct wire_rmpp_result result =
	        wire_rmpp_send_input(&r->sender, mad->data, base_now_ns(), reply);

	if (result.reply)
		reply_with(r, reply);
	if (result.event == RMPP_FAILED)
		message_failed(r);
	else if (result.event == RMPP_DONE)
		message_sent(r);
	else if (before == RMPP_CONTINUE)
		message_send(r);
}

/* ---- receiving ---- */

static uint64_t reassembly_hash(const struct umad_agent *agent, uint64_t tid)
{
	return base_hash_of(&tid, sizeof(tid), agent->tid_high);
}

static struct umad_reassembly *
reassembly_find(struct umad_agent *agent, const struct fabric_mad *mad, const struct wire_mad *head)
{
	struct umad_reassembly *a;
	struct daemon_umad *u = agent->port->u;
	uint64_t hash = reassembly_hash(agent, head->transaction_id);

	BASE_HASH_FOREACH(a, &u->reassemblies_by_tid, hash, by_tid)
		if (a->agent == agent && a->head.transaction_id == head->transaction_id &&
		    a->head.mgmt_class == head->mgmt_class && a->head.method == head->method &&
		    a->first.slid == mad->slid && a->first.src_qpn == mad->src_qpn)
			return a;
	return NULL;
}

static void forget_message(struct umad_reassembly *a)
{
	umad_memory_release(a->agent->port, a->room);
	free(a->message);
	a->message = NULL;
	a->bytes = a->room = 0;
}

static void reassembly_free(struct umad_reassembly *a)
{
	forget_message(a);
	base_timer_stop(&a->timer);
	base_hash_remove(&a->agent->port->u->reassemblies_by_tid, &a->by_tid);
	LIST_REMOVE(a, entry);
	a->agent->n_reassemblies--;
	a->agent->n_lingering -= a->lingers;
	free(a);
}

static void on_reassembly_late(struct base_timer *t);

static struct umad_reassembly *
reassembly_new(struct umad_agent *agent, const struct fabric_mad *mad, const struct wire_mad *head)
{
	const struct wire_rmpp_limits limits = { .timeout_ns = MESSAGE_TIMEOUT_NS,
		                                 .max_bytes = CONTROL_UMAD_MAX_BYTES - MAD_BYTES,
		                                 .window = WINDOW };
	struct daemon_umad *u = agent->port->u;
	struct umad_reassembly *a;

	if (agent->n_reassemblies - agent->n_lingering >= MAX_REASSEMBLIES)
		return NULL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->agent = agent;
	a->first = *mad;
	a->head = *head;
	if (base_hash_add(&u->reassemblies_by_tid, &a->by_tid,
	                  reassembly_hash(agent, head->transaction_id))) {
		free(a);
		return NULL;
	}
	LIST_INSERT_HEAD(&agent->reassemblies, a, entry);
	agent->n_reassemblies++;
	wire_rmpp_receive_init(&a->receiver, &limits, base_now_ns());
	base_timer_set(&u->d.loop->timers, &a->timer, a->receiver.deadline, on_reassembly_late);
	return a;
}

/* Sends @data back to where @mad came from. */
static void send_back(struct umad_agent *agent, const struct fabric_mad *mad, const uint8_t *data)
{
	struct fabric_mad reply = *mad;

	memcpy(reply.data, data, MAD_BYTES);
	reply.slid = mad->dlid;
	reply.dlid = mad->slid;
	reply.src_qpn = mad->dest_qpn;
	reply.dest_qpn = mad->src_qpn;
	reply.sgid = mad->dgid;
	reply.dgid = mad->sgid;
	daemon_mads_queue(agent->port->u->d.mads, agent->port->at, &reply);
}

static void refuse(struct umad_agent *agent, const struct fabric_mad *mad)
{
	uint8_t reply[MAD_BYTES];

	wire_rmpp_refuse(mad->data, RMPP_STATUS_RESOURCES_EXHAUSTED, reply);
	send_back(agent, mad, reply);
}

static bool append(struct umad_reassembly *a, const uint8_t *data, uint32_t bytes)
{
	uint32_t room = a->room ? a->room : FIRST_ROOM;
	uint8_t *message;

	while (room < a->bytes + bytes)
		room *= 2;
	if (room > a->room) {
		if (!umad_memory_reserve(a->agent->port, room - a->room))
			return false;
		message = realloc(a->message, room);
		if (!message) {
			umad_memory_release(a->agent->port, room - a->room);
			return false;
		}
		a->message = message;
		a->room = room;
	}
	if (bytes)
		memcpy(a->message + a->bytes, data, bytes);
	a->bytes += bytes;
	return true;
}

/* The first segments of a response have come: its request waits longer for the rest. */
static void prolong_request(struct umad_agent *agent, const struct wire_mad *head)
{
	struct umad_request *r;
	uint64_t deadline;

	if (!umad_is_response(head))
		return;
	r = umad_request_find(agent, head, false);
	if (!r)
		return;
	deadline = base_now_ns() + r->header.timeout_ms * DAEMON_NS_PER_MS;
	if (r->timer.due_ns < deadline)
		base_timer_set(&agent->port->u->d.loop->timers, &r->timer, deadline, r->timer.due);
}

/* All segments are here. The receiver stays for a while, to acknowledge segments that come again,
 * unless too many stay already. */
static void reassembly_done(struct umad_reassembly *a)
{
	struct fabric_mad first = a->first;
	uint8_t *message = a->message;
	uint32_t bytes = a->bytes;

	a->lingers = true;
	a->agent->n_lingering++;
	base_timer_set_in(&a->agent->port->u->d.loop->timers, &a->timer, LINGER_NS,
	                  on_reassembly_late);
	umad_request_receive(a->agent, &first, message, bytes);
	forget_message(a);
	if (a->agent->n_lingering > MAX_LINGERING)
		reassembly_free(a);
}

static void reassembly_input(struct umad_reassembly *a, const struct fabric_mad *mad)
{
	uint8_t reply[MAD_BYTES];
	bool first = a->receiver.expected == 1;
	struct wire_rmpp_result result = wire_rmpp_receive_input(&a->receiver, mad->data, reply);
	struct umad_agent *agent = a->agent;
	bool kept = true;

	if (first && a->receiver.expected > 1)
		kept = append(a, a->receiver.header, a->receiver.data_at);
	if (kept && result.bytes)
		kept = append(a, result.data, result.bytes);
	if (!kept) {
		refuse(agent, mad);
		reassembly_free(a);
		return;
	}
	if (result.reply)
		send_back(agent, mad, reply);
	if (result.event == RMPP_DONE)
		reassembly_done(a);
	else if (result.event == RMPP_FAILED)
		reassembly_free(a);
}

static void on_reassembly_late(struct base_timer *t)
{
	struct umad_reassembly *a = container_of(t, struct umad_reassembly, timer);
	struct daemon_mads *mads = a->agent->port->u->d.mads;
	uint8_t reply[MAD_BYTES];
	struct wire_rmpp_result result =
	        wire_rmpp_receive_expire(&a->receiver, base_now_ns(), reply);

	if (result.reply && !a->agent->ended)
		send_back(a->agent, &a->first, reply);
	reassembly_free(a);
	daemon_mads_send(mads);
}

/* ---- both ---- */

void umad_rmpp_receive(struct umad_agent *agent, const struct fabric_mad *mad)
{
	struct umad_reassembly *a;
	struct umad_request *r;
	struct wire_rmpp rmpp;
	struct wire_mad head;

	wire_mad_decode(mad->data, &head);
	wire_rmpp_decode(mad->data + RMPP_AT, &rmpp);
	if (rmpp.type != RMPP_DATA) {
		/* from the receiver of what we send: its R bit is the opposite */
		r = umad_request_find(agent, &head, !umad_is_response(&head));
		if (r && r->message) {
			sender_input(r, mad);
			return;
		}
	}
	a = reassembly_find(agent, mad, &head);
	if (!a && rmpp.type == RMPP_DATA && (rmpp.flags & RMPP_FIRST)) {
		a = reassembly_new(agent, mad, &head);
		if (!a)
			refuse(agent, mad);
	}
	if (!a)
		return;
	prolong_request(agent, &head);
	reassembly_input(a, mad);
}

bool umad_rmpp_forget(struct umad_agent *agent, uint32_t *budget)
{
	struct umad_reassembly *a;

	while ((a = LIST_FIRST(&agent->reassemblies)) &&
	       daemon_chore_spend(budget, umad_memory_work(a->room)))
		reassembly_free(a);
	return !a;
}
