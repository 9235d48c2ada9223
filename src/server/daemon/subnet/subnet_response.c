/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Long responses: see subnet_response.h.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon/subnet/subnet_response.h"
#include "wire/rmpp.h"

#define ACK_TIMEOUT_NS (1000 * DAEMON_NS_PER_MS)
#define ACK_RETRIES    3
#define MAX_RESPONSES  4096
/* Of responses on their way: to one LID, and to all. A response that has begun may exceed them. */
#define MAX_BYTES_TO_LID (64u << 20)
#define MAX_BYTES        (512u << 20)

struct daemon_response {
	LIST_ENTRY(daemon_response) entry;
	struct daemon_responses *all;
	struct fabric_port *from;
	struct fabric_mad mad; /* addresses of all segments; data: the header */
	uint64_t tid;
	uint8_t *payload;
	size_t bytes;
	struct wire_rmpp_sender sender;
	struct base_timer ack_late;
};

void daemon_responses_init(struct daemon_responses *all, struct daemon_loop *loop,
                           struct daemon_mads *mads)
{
	all->loop = loop;
	all->mads = mads;
}

static void response_free(struct daemon_response *r)
{
	LIST_REMOVE(r, entry);
	r->all->n--;
	base_timer_stop(&r->ack_late);
	free(r->payload);
	free(r);
}

static void on_ack_late(struct base_timer *t);

static void send_segments(struct daemon_response *r)
{
	struct fabric_mad mad = r->mad;

	while (wire_rmpp_send_next(&r->sender, base_now_ns(), mad.data))
		daemon_mads_queue(r->all->mads, r->from, &mad);
	base_timer_set(&r->all->loop->timers, &r->ack_late, r->sender.deadline, on_ack_late);
}

/* Does what the RMPP sender has made of something: @reply is a MAD of its own, if there is one. */
static void settle(struct daemon_response *r, struct wire_rmpp_result result,
                   const struct fabric_mad *reply)
{
	if (result.reply)
		daemon_mads_queue(r->all->mads, r->from, reply);
	if (r->sender.state == RMPP_CONTINUE)
		send_segments(r);
	else
		response_free(r);
}

static void on_ack_late(struct base_timer *t)
{
	struct daemon_response *r = container_of(t, struct daemon_response, ack_late);
	struct daemon_mads *mads = r->all->mads;
	struct fabric_mad reply = r->mad;

	settle(r, wire_rmpp_send_expire(&r->sender, base_now_ns(), reply.data), &reply);
	daemon_mads_send(mads);
}

/* The response that an ACK, STOP or ABORT belongs to, or NULL. */
static struct daemon_response *find(const struct daemon_responses *all,
                                    const struct fabric_mad *mad)
{
	struct daemon_response *r;
	struct wire_mad h;

	wire_mad_decode(mad->data, &h);
	LIST_FOREACH(r, &all->all, entry)
	if (r->tid == h.transaction_id && r->mad.dlid == mad->slid &&
	    r->mad.dest_qpn == mad->src_qpn)
		return r;
	return NULL;
}

bool daemon_response_input(struct daemon_responses *all, const struct fabric_mad *mad)
{
	struct daemon_response *r = find(all, mad);
	struct fabric_mad reply;

	if (!r)
		return false;
	reply = r->mad;
	settle(r, wire_rmpp_send_input(&r->sender, mad->data, base_now_ns(), reply.data), &reply);
	return true;
}

static struct daemon_response *response_new(struct daemon_responses *all)
{
	struct daemon_response *r = all->n < MAX_RESPONSES ? calloc(1, sizeof(*r)) : NULL;

	if (!r)
		return NULL;
	r->all = all;
	LIST_INSERT_HEAD(&all->all, r, entry);
	all->n++;
	return r;
}

void daemon_response_send(struct daemon_responses *all, struct fabric_port *from,
                          const struct fabric_mad *mad, uint8_t *payload, size_t bytes)
{
	static const struct wire_rmpp_limits limits = { .timeout_ns = ACK_TIMEOUT_NS,
		                                        .max_retries = ACK_RETRIES };
	struct daemon_response *r = response_new(all);
	struct wire_rmpp_message message;
	struct wire_mad h;

	if (!r) {
		free(payload);
		return;
	}
	r->from = from;
	r->mad = *mad;
	r->payload = payload;
	r->bytes = bytes;
	wire_mad_decode(mad->data, &h);
	r->tid = h.transaction_id;
	if (wire_rmpp_message_init(&message, r->mad.data, payload, bytes)) {
		base_log_warning(sa, "a response of %zu bytes is too long for RMPP", bytes);
		response_free(r);
		return;
	}
	wire_rmpp_send_init(&r->sender, &message, &limits, base_now_ns());
	send_segments(r);
}

bool daemon_responses_are_busy(const struct daemon_responses *all, uint16_t lid,
                               struct daemon_response_bytes coming)
{
	const struct daemon_response *r;
	uint64_t to_lid = coming.to_lid, to_all = coming.to_all;

	LIST_FOREACH(r, &all->all, entry)
	{
		to_all += r->bytes;
		to_lid += r->mad.dlid == lid ? r->bytes : 0;
	}
	return to_lid >= MAX_BYTES_TO_LID || to_all >= MAX_BYTES;
}
