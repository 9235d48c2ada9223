/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of several segments, for agents that leave RMPP to us: the program sends and gets
 * them whole. The protocol is wire/rmpp.h's; here are its memory, its time and its peers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon/umad.h"

#define NS_PER_MS          1000000ull
#define ACK_TIMEOUT_NS     (2000 * NS_PER_MS)
#define MESSAGE_TIMEOUT_NS (40000 * NS_PER_MS)
#define LINGER_NS          (10000 * NS_PER_MS) /* for segments that come again */
#define WINDOW             64
#define MAX_MEMORY         (512u << 20) /* of all messages */
#define MAX_REASSEMBLIES   1024         /* of an agent, under way */
#define MAX_LINGERING      1024         /* and done */
#define FIRST_ROOM         4096

/* ---- sending ---- */

int daemon_umad_message_new(struct umad_request *r, const uint8_t *data, size_t bytes)
{
	struct daemon_umad *u = r->agent->port->u;
	unsigned data_at = wire_rmpp_data_at(r->head.mgmt_class);
	const struct wire_rmpp_limits limits = {
		.timeout_ns = ACK_TIMEOUT_NS,
		.max_retries = r->retries > UINT8_MAX ? UINT8_MAX : (uint8_t)r->retries,
	};
	struct wire_rmpp_message message;
	size_t room = bytes < MAD_BYTES ? MAD_BYTES : bytes;
	int ret;

	if (bytes < data_at)
		return -EINVAL;
	if (room > MAX_MEMORY - u->message_bytes)
		return -ENOMEM;
	r->message = calloc(1, room);
	if (!r->message)
		return -ENOMEM;
	r->message_bytes = (uint32_t)room;
	u->message_bytes += room;
	memcpy(r->message, data, bytes);
	memcpy(r->message, r->mad.data, data_at); /* its transaction ID has been set */
	ret = wire_rmpp_message_init(&message, r->message, r->message + data_at, bytes - data_at);
	if (ret)
		return ret;
	wire_rmpp_send_init(&r->sender, &message, &limits, base_now_ns());
	r->sender.two_sided = r->head.method == MAD_GET_MULTI;
	return 0;
}

void daemon_umad_message_send(struct umad_request *r)
{
	struct daemon_umad *u = r->agent->port->u;
	struct fabric_mad mad = r->mad;

	while (wire_rmpp_send_next(&r->sender, base_now_ns(), mad.data))
		daemon_umad_queue(u, r->agent->port->at, &mad);
	r->deadline = r->sender.deadline;
	daemon_umad_wake_at(u, r->deadline);
}

/* All has arrived: done, or an answer is to come. */
static void message_sent(struct umad_request *r)
{
	if (!r->header.timeout_ms) {
		daemon_umad_request_free(r);
		return;
	}
	r->deadline = base_now_ns() + r->header.timeout_ms * NS_PER_MS;
	daemon_umad_wake_at(r->agent->port->u, r->deadline);
}

/* The kernel is silent about a message that was refused; who waits for an answer is told here. */
static void message_failed(struct umad_request *r)
{
	daemon_umad_request_fail(r, ETIMEDOUT);
}

static void reply_with(struct umad_request *r, const uint8_t *data)
{
	struct fabric_mad mad = r->mad;

	memcpy(mad.data, data, MAD_BYTES);
	daemon_umad_queue(r->agent->port->u, r->agent->port->at, &mad);
}

void daemon_umad_message_expire(struct umad_request *r, uint64_t now)
{
	uint8_t reply[MAD_BYTES];
	struct wire_rmpp_result result;

	if (r->sender.state == RMPP_DONE) { /* the answer has not come */
		message_failed(r);
		return;
	}
	result = wire_rmpp_send_expire(&r->sender, now, reply);
	if (result.reply)
		reply_with(r, reply);
	if (result.event == RMPP_FAILED)
		message_failed(r);
	else
		daemon_umad_message_send(r);
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
		daemon_umad_message_send(r);
}

/* ---- receiving ---- */

static uint64_t reassembly_hash(const struct umad_agent *agent, uint64_t tid)
{
	return base_hash_of(&tid, sizeof(tid), agent->tid_high);
}

static struct umad_reassembly *
reassembly_find(struct umad_agent *agent, const struct fabric_mad *mad, const struct wire_mad *head)
{
	struct daemon_umad *u = agent->port->u;
	uint64_t hash = reassembly_hash(agent, head->transaction_id);

	for (struct base_hash_node *n = base_hash_first(&u->reassemblies_by_tid, hash); n;
	     n = base_hash_next(n)) {
		struct umad_reassembly *a = container_of(n, struct umad_reassembly, by_tid);

		if (a->agent == agent && a->head.transaction_id == head->transaction_id &&
		    a->head.mgmt_class == head->mgmt_class && a->head.method == head->method &&
		    a->first.slid == mad->slid && a->first.src_qpn == mad->src_qpn)
			return a;
	}
	return NULL;
}

static void forget_message(struct umad_reassembly *a)
{
	a->agent->port->u->message_bytes -= a->room;
	free(a->message);
	a->message = NULL;
	a->bytes = a->room = 0;
}

void daemon_umad_reassembly_free(struct umad_reassembly *a)
{
	forget_message(a);
	base_hash_remove(&a->agent->port->u->reassemblies_by_tid, &a->by_tid);
	LIST_REMOVE(a, entry);
	a->agent->n_reassemblies--;
	a->agent->n_lingering -= a->lingers;
	free(a);
}

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
	LIST_INSERT_HEAD(&u->reassemblies, a, entry);
	agent->n_reassemblies++;
	wire_rmpp_receive_init(&a->receiver, &limits, base_now_ns());
	a->deadline = a->receiver.deadline;
	daemon_umad_wake_at(u, a->deadline);
	return a;
}

/* Back to whom @mad came from. */
static void answer(struct umad_agent *agent, const struct fabric_mad *mad, const uint8_t *data)
{
	struct fabric_mad reply = *mad;

	memcpy(reply.data, data, MAD_BYTES);
	reply.slid = mad->dlid;
	reply.dlid = mad->slid;
	reply.src_qpn = mad->dest_qpn;
	reply.dest_qpn = mad->src_qpn;
	reply.sgid = mad->dgid;
	reply.dgid = mad->sgid;
	daemon_umad_queue(agent->port->u, agent->port->at, &reply);
}

static void refuse(struct umad_agent *agent, const struct fabric_mad *mad)
{
	uint8_t reply[MAD_BYTES];

	wire_rmpp_refuse(mad->data, RMPP_STATUS_RESOURCES_EXHAUSTED, reply);
	answer(agent, mad, reply);
}

static bool append(struct umad_reassembly *a, const uint8_t *data, uint32_t bytes)
{
	struct daemon_umad *u = a->agent->port->u;
	uint32_t room = a->room ? a->room : FIRST_ROOM;
	uint8_t *message;

	while (room < a->bytes + bytes)
		room *= 2;
	if (room > a->room) {
		if (room - a->room > MAX_MEMORY - u->message_bytes)
			return false;
		message = realloc(a->message, room);
		if (!message)
			return false;
		u->message_bytes += room - a->room;
		a->message = message;
		a->room = room;
	}
	if (bytes)
		memcpy(a->message + a->bytes, data, bytes);
	a->bytes += bytes;
	return true;
}

/* Its time is prolonged: the answer is on its way. */
static void prolong_request(struct umad_agent *agent, const struct wire_mad *head)
{
	struct umad_request *r;
	uint64_t deadline;

	if (!daemon_umad_is_response(head))
		return;
	r = daemon_umad_request_find(agent, head, false);
	if (!r)
		return;
	deadline = base_now_ns() + r->header.timeout_ms * NS_PER_MS;
	if (r->deadline < deadline)
		r->deadline = deadline;
}

/* All of it is here. The machine stays for a while, if there are not too many already. */
static void reassembly_done(struct umad_reassembly *a)
{
	struct fabric_mad first = a->first;
	uint8_t *message = a->message;
	uint32_t bytes = a->bytes;

	a->lingers = true;
	a->agent->n_lingering++;
	a->deadline = base_now_ns() + LINGER_NS;
	daemon_umad_receive(a->agent, &first, message, bytes);
	forget_message(a);
	if (a->agent->n_lingering > MAX_LINGERING)
		daemon_umad_reassembly_free(a);
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
		daemon_umad_reassembly_free(a);
		return;
	}
	if (result.reply)
		answer(agent, mad, reply);
	if (result.event == RMPP_DONE)
		reassembly_done(a);
	else if (result.event == RMPP_FAILED)
		daemon_umad_reassembly_free(a);
}

void daemon_umad_reassembly_expire(struct umad_reassembly *a, uint64_t now)
{
	uint8_t reply[MAD_BYTES];
	struct wire_rmpp_result result = wire_rmpp_receive_expire(&a->receiver, now, reply);

	if (result.reply)
		answer(a->agent, &a->first, reply);
	daemon_umad_reassembly_free(a);
}

/* ---- both ---- */

void daemon_umad_segment(struct umad_agent *agent, const struct fabric_mad *mad)
{
	struct umad_reassembly *a;
	struct umad_request *r;
	struct wire_rmpp rmpp;
	struct wire_mad head;

	wire_mad_decode(mad->data, &head);
	wire_rmpp_decode(mad->data + RMPP_AT, &rmpp);
	if (rmpp.type != RMPP_DATA) {
		/* from the receiver of what we send: the R bit is the other way round */
		r = daemon_umad_request_find(agent, &head, !daemon_umad_is_response(&head));
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
