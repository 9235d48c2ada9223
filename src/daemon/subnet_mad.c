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
#include "daemon/umad.h"
#include "subnet/sa_segments.h"
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

/*
 * MADs go by the queue that programs' go by: what they bring about, even the end of the answer
 * that they belong to, does not happen under the feet of who sends.
 */
static void send_mad(struct daemon *d, struct fabric_port *from, const struct fabric_mad *mad)
{
	daemon_umad_queue(d->umad, from, mad);
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
		send_mad(a->d, a->from, &mad);
	if (a->timer) {
		sd_event_source_set_time(a->timer, a->sender.deadline / 1000);
		sd_event_source_set_enabled(a->timer, SD_EVENT_ONESHOT);
	}
}

/* What a state machine has made of something; true if the answer is over. */
static bool settle(struct daemon_answer *a, struct wire_rmpp_result r, struct fabric_mad *reply)
{
	if (r.reply)
		send_mad(a->d, a->from, reply);
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
	struct daemon *d = a->d;
	struct fabric_mad reply = a->mad;

	(void)s;
	(void)usec;
	settle(a, wire_rmpp_send_expire(&a->sender, base_now_ns(), reply.data), &reply);
	daemon_umad_send_queued(d->umad);
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

static void answer_sa(struct daemon *d, struct fabric_port *at, const struct fabric_mad *mad,
                      const struct sa_request *request)
{
	struct wire_sa_mad sa = *request->mad;
	struct sa_answer answer;
	struct fabric_mad out;

	sa_serve(d->sa, request, &answer);
	if (!answer.method)
		return;
	address_back(at, mad, &out);
	sa.mad.method = answer.method;
	sa.mad.status = answer.status;
	sa.mad.attribute_id = answer.attribute;
	sa.sm_key = 0; /* C15-0.1.5 */
	sa.attribute_offset = answer.record_bytes / 8;
	memset(&sa.rmpp, 0, sizeof(sa.rmpp));
	if (answer.records && answer.bytes <= sizeof(sa.data)) {
		memset(sa.data, 0, sizeof(sa.data));
		memcpy(sa.data, answer.records, answer.bytes);
	}
	wire_sa_mad_encode(&sa, out.data);
	if (answer.method != MAD_GET_RESP && answer.method != MAD_DELETE_RESP && !answer.status) {
		send_long(d, at, &out, answer.records, answer.bytes);
		return;
	}
	free(answer.records);
	send_mad(d, at, &out);
}

static void serve_request(struct daemon *d, struct fabric_port *at, const struct fabric_mad *mad,
                          struct sa_request *request)
{
	request->slid = mad->slid;
	request->qpn = mad->src_qpn;
	request->now_s = base_now_ns() / 1000000000;
	answer_sa(d, at, mad, request);
}

/* A request that comes by RMPP itself, as GetMulti does: served when it is whole. */
static void serve_segment(struct daemon *d, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct sa_segment_step step;
	struct fabric_mad reply;

	sa_segments_take(d->segments, mad, base_now_ns(), &step);
	if (step.replied) {
		address_back(at, mad, &reply);
		memcpy(reply.data, step.reply, sizeof(reply.data));
		send_mad(d, at, &reply);
	}
	if (step.whole)
		serve_request(d, at, mad,
		              &(struct sa_request){
		                      .mad = &step.mad, .data = step.data, .bytes = step.bytes });
}

static void serve_sa(struct daemon *d, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct wire_sa_mad sa;

	if (wire_rmpp_is_active(mad->data)) {
		serve_segment(d, at, mad);
		return;
	}
	wire_sa_mad_decode(mad->data, &sa);
	serve_request(d, at, mad,
	              &(struct sa_request){ .mad = &sa, .data = sa.data, .bytes = SA_DATA_BYTES });
}

/* SMInfo: who is the subnet manager here, and who is to be. */
static bool take_sm_info(struct daemon *d, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct fabric_mad out;
	bool taken, reply;

	address_back(at, mad, &out);
	taken = sm_role_input(d->sm_role, mad, base_now_ns() / 1000000, &out, &reply);
	if (reply)
		send_mad(d, at, &out);
	return taken;
}

/* ---- traps ---- */

struct report {
	struct daemon *d;
	struct fabric_mad mad;
};

static void report_to(void *arg, uint16_t lid, uint32_t qpn)
{
	struct report *r = arg;

	r->mad.dlid = lid;
	r->mad.dest_qpn = qpn;
	send_mad(r->d, sm_role_home(r->d->sm_role), &r->mad);
}

/* What a node tells the subnet manager, it passes on to who subscribed (section 13.4.11). */
static void forward(struct daemon *d, const struct wire_notice *notice)
{
	struct report r = { .d = d };
	struct wire_sa_mad sa = { .mad = { .base_version = MAD_BASE_VERSION,
		                           .mgmt_class = MAD_CLASS_SUBN_ADM,
		                           .class_version = MAD_VERSION_SUBN_ADM,
		                           .method = MAD_REPORT,
		                           .attribute_id = MAD_ATTR_NOTICE } };
	struct wire_notice n = *notice;

	sa.mad.transaction_id = ++d->n_reports;
	fabric_gid_make(d->f, sm_role_home(d->sm_role)->guid, &n.issuer_gid);
	wire_notice_encode(&n, sa.data);
	r.mad.slid = sm_role_home(d->sm_role)->lid;
	r.mad.src_qpn = IB_QPN_GSI;
	r.mad.qkey = IB_QKEY_GSI;
	wire_sa_mad_encode(&sa, r.mad.data);
	sa_each_subscriber(d->sa, notice, report_to, &r);
}

/* What the SA has to tell goes out at the end of this turn of the loop (link.c). */
static void forward_report(void *arg, const struct wire_notice *notice)
{
	struct daemon *d = arg;

	if (d->umad)
		forward(d, notice);
}

struct sa_reports daemon_subnet_mad_reports(struct daemon *d)
{
	return (struct sa_reports){ .tell = forward_report, .arg = d };
}

/* The node need not say it again. A link asks for a sweep, unless who broke it sweeps itself. */
static void take_trap(struct daemon *d, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct wire_notice notice;
	struct fabric_mad out;
	struct wire_smp smp;

	wire_smp_decode(mad->data, &smp);
	wire_smp_notice_decode(smp.data, &notice);
	address_back(at, mad, &out);
	smp.mad.method = MAD_TRAP_REPRESS;
	smp.m_key = sa_m_key(d->sa, mad->slid);
	wire_smp_encode(&smp, out.data);
	send_mad(d, at, &out);
	if (notice.is_generic && notice.trap_number == TRAP_LINK_STATE_CHANGED)
		d->sweep_wanted = true;
	if (notice.is_generic && notice.trap_number == TRAP_LOCAL_CHANGES)
		sm_role_look(d->sm_role, base_now_ns() / 1000000);
	forward(d, &notice);
}

/* Whether it was for us. */
static bool take(struct daemon *d, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct wire_rmpp rmpp;
	struct wire_mad h;

	wire_mad_decode(mad->data, &h);
	if (h.mgmt_class == MAD_CLASS_SUBN_ADM && mad->dest_qpn == IB_QPN_GSI && d->sa) {
		wire_rmpp_decode(mad->data + RMPP_AT, &rmpp);
		/* the kernel's RMPP has no response bit in what it says to an answer */
		if (wire_rmpp_is_active(mad->data) && rmpp.type != RMPP_DATA) {
			if (!take_ack(d, mad))
				serve_segment(d, at, mad); /* it ends a request, or nothing */
			return true;
		}
		if (h.method == MAD_REPORT_RESP)
			return true;
		if (!wire_mad_response_method(h.method))
			return false;
		serve_sa(d, at, mad);
		return true;
	}
	if (mad->dest_qpn != IB_QPN_SMI)
		return false;
	if (h.method == MAD_TRAP && h.attribute_id == SMP_ATTR_NOTICE && d->sa) {
		take_trap(d, at, mad);
		return true;
	}
	return take_sm_info(d, at, mad);
}

bool daemon_subnet_mad(struct daemon *d, struct fabric_port *at, const struct fabric_mad *mad)
{
	bool taken;

	if (!d->sm_role || sm_role_state(d->sm_role) == SM_NOT_ACTIVE ||
	    at != sm_role_home(d->sm_role))
		return false;
	taken = take(d, at, mad);
	daemon_umad_send_queued(d->umad);
	return taken;
}

int daemon_subnet_mad_init(struct daemon *d)
{
	return sa_segments_new(&d->segments);
}

void daemon_subnet_mad_fini(struct daemon *d)
{
	while (!LIST_EMPTY(&d->answers))
		answer_free(LIST_FIRST(&d->answers));
	sa_segments_free(d->segments);
}
