/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The embedded subnet manager and administrator as the fabric sees them: behind QP0 and
 * QP1 of the SM's port. Requests go to subnet/; answers go back over the fabric, long
 * ones in segments, each transaction until its last segment is acknowledged.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon/state.h"
#include "fabric/mads.h"
#include "subnet/sa_server.h"
#include "wire/rmpp.h"
#include "wire/sm_attr.h"

#define ACK_TIMEOUT_NS   1000000000ull
#define ACK_RETRIES      3
#define MAX_TRANSACTIONS 4096

/* An answer of several segments on its way. */
struct daemon_answer {
	LIST_ENTRY(daemon_answer) entry;
	struct daemon *d;
	struct fabric_port *from;
	struct fabric_mad mad; /* addresses of all segments; data: the header */
	uint64_t tid;
	uint8_t *payload;
	struct wire_rmpp_sender sender;
	sd_event_source *timer;
};

/* The addresses of what goes back to where @in came from. */
static void address_back(struct fabric_port *at, const struct fabric_mad *in,
                         struct fabric_mad *out)
{
	*out = (struct fabric_mad){ .slid = at->lid,
		                    .dlid = in->slid,
		                    .src_qpn = in->dest_qpn,
		                    .dest_qpn = in->src_qpn,
		                    .qkey = in->qkey,
		                    .pkey_index = in->pkey_index,
		                    .sl = in->sl };
}

/* ---- long answers ---- */

static void answer_free(struct daemon_answer *a)
{
	LIST_REMOVE(a, entry);
	a->d->n_answers--;
	sd_event_source_disable_unref(a->timer);
	free(a->payload);
	free(a);
}

static void send_segments(struct daemon_answer *a)
{
	struct fabric_mad mad = a->mad;

	while (wire_rmpp_send_next(&a->sender, base_now_ns(), mad.data))
		fabric_mad_send(a->d->f, a->from, &mad);
	if (a->timer) {
		sd_event_source_set_time(a->timer, a->sender.deadline / 1000);
		sd_event_source_set_enabled(a->timer, SD_EVENT_ONESHOT);
	}
}

/* What a state machine has made of something; true if the answer is over. */
static bool settle(struct daemon_answer *a, struct wire_rmpp_result r, struct fabric_mad *reply)
{
	if (r.reply)
		fabric_mad_send(a->d->f, a->from, reply);
	if (a->sender.state != RMPP_CONTINUE) {
		answer_free(a);
		return true;
	}
	send_segments(a);
	return false;
}

static int on_ack_late(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon_answer *a = arg;
	struct fabric_mad reply = a->mad;

	(void)s;
	(void)usec;
	settle(a, wire_rmpp_send_expire(&a->sender, base_now_ns(), reply.data), &reply);
	return 0;
}

/* An ACK, STOP or ABORT of an answer that is on its way. */
static bool take_ack(struct daemon *d, const struct fabric_mad *mad)
{
	struct daemon_answer *a;
	struct wire_mad h;

	wire_mad_decode(mad->data, &h);
	LIST_FOREACH(a, &d->answers, entry)
	{
		if (a->tid == h.transaction_id && a->mad.dlid == mad->slid &&
		    a->mad.dest_qpn == mad->src_qpn) {
			struct fabric_mad reply = a->mad;

			settle(a,
			       wire_rmpp_send_input(&a->sender, mad->data, base_now_ns(),
			                            reply.data),
			       &reply);
			return true;
		}
	}
	return false;
}

/* Takes @payload over. */
static void send_long(struct daemon *d, struct fabric_port *from, const struct fabric_mad *mad,
                      uint8_t *payload, size_t bytes)
{
	static const struct wire_rmpp_limits limits = { .timeout_ns = ACK_TIMEOUT_NS,
		                                        .max_retries = ACK_RETRIES };
	struct daemon_answer *a = d->n_answers < MAX_TRANSACTIONS ? calloc(1, sizeof(*a)) : NULL;
	struct wire_rmpp_message message;
	struct wire_mad h;

	if (!a) {
		free(payload);
		return; /* the client asks again */
	}
	a->d = d;
	a->from = from;
	a->mad = *mad;
	a->payload = payload;
	wire_mad_decode(mad->data, &h);
	a->tid = h.transaction_id;
	LIST_INSERT_HEAD(&d->answers, a, entry);
	d->n_answers++;
	if (wire_rmpp_message_init(&message, a->mad.data, payload, bytes)) {
		base_log("an answer of %zu bytes is too long for RMPP", bytes);
		answer_free(a);
		return;
	}
	wire_rmpp_send_init(&a->sender, &message, &limits, base_now_ns());
	if (sd_event_add_time(d->loop, &a->timer, CLOCK_MONOTONIC, a->sender.deadline / 1000, 0,
	                      on_ack_late, a) < 0) {
		answer_free(a);
		return;
	}
	send_segments(a);
}

/* ---- requests ---- */

static void serve_sa(struct daemon *d, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct wire_sa_mad sa;
	struct sa_answer answer;
	struct fabric_mad out;

	wire_sa_mad_decode(mad->data, &sa);
	if (sa_serve(d->sa, mad->slid, &sa, &answer) || !answer.method) {
		free(answer.records);
		return;
	}
	address_back(at, mad, &out);
	sa.mad.method = answer.method;
	sa.mad.status = answer.status;
	sa.attribute_offset = answer.record_bytes / 8;
	memset(&sa.rmpp, 0, sizeof(sa.rmpp));
	if (answer.method == MAD_GET_TABLE_RESP && !answer.status) {
		wire_sa_mad_encode(&sa, out.data);
		send_long(d, at, &out, answer.records, answer.bytes);
		return;
	}
	if (answer.records && answer.n) {
		memset(sa.data, 0, sizeof(sa.data));
		memcpy(sa.data, answer.records,
		       answer.bytes < sizeof(sa.data) ? answer.bytes : sizeof(sa.data));
	}
	free(answer.records);
	wire_sa_mad_encode(&sa, out.data);
	fabric_mad_send(d->f, at, &out);
}

/* SMInfo: who is the subnet manager here. */
static void serve_sm_info(struct daemon *d, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct wire_sm_info info = { .guid = at->guid,
		                     .act_count = ++d->sm_act_count,
		                     .sm_state = SM_MASTER };
	struct fabric_mad out;
	struct wire_smp smp;

	wire_smp_decode(mad->data, &smp);
	address_back(at, mad, &out);
	if (smp.mad.method == MAD_SET) {
		smp.mad.status = MAD_STATUS_BAD_METHOD_ATTRIBUTE; /* it hands over to nobody */
	} else {
		memset(smp.data, 0, sizeof(smp.data));
		wire_sm_info_encode(&info, smp.data);
		smp.mad.status = MAD_STATUS_OK;
	}
	smp.mad.method = MAD_GET_RESP;
	if (smp.mad.mgmt_class == MAD_CLASS_SUBN_DIRECTED)
		smp.direction = 1;
	wire_smp_encode(&smp, out.data);
	fabric_mad_send(d->f, at, &out);
}

bool daemon_subnet_mad(struct daemon *d, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct wire_mad h;

	wire_mad_decode(mad->data, &h);
	if (h.mgmt_class == MAD_CLASS_SUBN_ADM && mad->dest_qpn == IB_QPN_GSI) {
		if (h.method & MAD_METHOD_RESPONSE)
			return wire_rmpp_is_active(mad->data) && take_ack(d, mad);
		serve_sa(d, at, mad);
		return true;
	}
	if ((h.mgmt_class == MAD_CLASS_SUBN_LID || h.mgmt_class == MAD_CLASS_SUBN_DIRECTED) &&
	    h.attribute_id == SMP_ATTR_SM_INFO && (h.method == MAD_GET || h.method == MAD_SET)) {
		serve_sm_info(d, at, mad);
		return true;
	}
	return false;
}

void daemon_subnet_fini(struct daemon *d)
{
	while (!LIST_EMPTY(&d->answers))
		answer_free(LIST_FIRST(&d->answers));
}
