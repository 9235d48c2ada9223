/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The embedded subnet manager and administrator as the fabric sees them: see subnet_mad.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "daemon/core/chores.h"
#include "daemon/subnet/subnet_mad.h"
#include "subnet/sa_server.h"
#include "wire/rmpp.h"
#include "wire/sm_attr.h"

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

/* ---- requests ---- */

/* Sends the response to what came as @mad, with the header @sa. */
static void respond(struct daemon_subnet_mad *m, struct fabric_port *at,
                    const struct fabric_mad *mad, const struct wire_sa_mad *request,
                    const struct sa_response *response)
{
	struct wire_sa_mad sa = *request;
	struct fabric_mad out;

	if (!response->method)
		return;
	address_back(at, mad, &out);
	sa.mad.method = response->method;
	sa.mad.status = response->status;
	sa.mad.attribute_id = response->attribute;
	sa.sm_key = 0; /* C15-0.1.5 */
	sa.attribute_offset = response->record_bytes / 8;
	memset(&sa.rmpp, 0, sizeof(sa.rmpp));
	if (response->records && response->bytes <= sizeof(sa.data)) {
		memset(sa.data, 0, sizeof(sa.data));
		memcpy(sa.data, response->records, response->bytes);
	}
	wire_sa_mad_encode(&sa, out.data);
	if (response->method != MAD_GET_RESP && response->method != MAD_DELETE_RESP &&
	    !response->status) {
		daemon_response_send(&m->responses, at, &out, response->records, response->bytes);
		return;
	}
	free(response->records);
	daemon_mads_queue(m->mads, at, &out);
}

/* A request that is being served and takes more than a slice. */
struct subnet_job {
	TAILQ_ENTRY(subnet_job) entry;
	struct sa_job *work;
	struct fabric_port *at;
	struct fabric_mad mad;
	struct wire_sa_mad sa;
};

static void job_free(struct daemon_subnet_mad *m, struct subnet_job *job)
{
	TAILQ_REMOVE(&m->jobs, job, entry);
	sa_job_free(job->work);
	free(job);
}

void daemon_subnet_mad_forget(struct daemon_subnet_mad *m)
{
	while (!TAILQ_EMPTY(&m->jobs))
		job_free(m, TAILQ_FIRST(&m->jobs));
	base_timer_stop(&m->turn);
	base_timer_stop(&m->report_turn);
}

static struct daemon_response_bytes bytes_coming(const struct daemon_subnet_mad *m, uint16_t lid)
{
	struct daemon_response_bytes bytes = { 0, 0 };
	const struct subnet_job *job;

	TAILQ_FOREACH(job, &m->jobs, entry)
	{
		/* one that has just begun is taken for what many have at the end */
		size_t n = sa_job_bytes(job->work) + (1u << 20);

		bytes.to_all += n;
		bytes.to_lid += job->mad.slid == lid ? n : 0;
	}
	return bytes;
}

static bool is_busy(const struct daemon_subnet_mad *m, uint16_t lid)
{
	return daemon_responses_are_busy(&m->responses, lid, bytes_coming(m, lid));
}

static void on_turn(struct base_timer *t);

/* Does a slice of the first job, which is then the last. */
static void run_job(struct daemon_subnet_mad *m)
{
	struct subnet_job *job = TAILQ_FIRST(&m->jobs);
	struct sa_response response;

	if (sa_job_run(job->work, DAEMON_SLICE, &response)) {
		respond(m, job->at, &job->mad, &job->sa, &response);
		job_free(m, job);
	} else {
		TAILQ_REMOVE(&m->jobs, job, entry);
		TAILQ_INSERT_TAIL(&m->jobs, job, entry);
		if (sa_job_bytes(job->work) && is_busy(m, 0)) /* all memory is used up */
			sa_job_stop(job->work);
	}
	if (!TAILQ_EMPTY(&m->jobs))
		base_timer_set_in(&m->loop->timers, &m->turn, 0, on_turn);
}

static void on_turn(struct base_timer *t)
{
	struct daemon_subnet_mad *m = container_of(t, struct daemon_subnet_mad, turn);

	run_job(m);
	daemon_mads_send(m->mads);
}

/* Whether it has asked before and cannot wait. */
static bool is_repeated(const struct daemon_subnet_mad *m, const struct fabric_mad *mad,
                        const struct wire_mad *h)
{
	const struct subnet_job *job;

	TAILQ_FOREACH(job, &m->jobs, entry)
	if (job->mad.slid == mad->slid && job->mad.src_qpn == mad->src_qpn &&
	    job->sa.mad.transaction_id == h->transaction_id)
		return true;
	return false;
}

/* A request that has taken a slice goes on later. False: there is no memory. */
static bool go_on_later(struct daemon_subnet_mad *m, struct fabric_port *at,
                        const struct fabric_mad *mad, const struct wire_sa_mad *sa,
                        struct sa_job *work)
{
	struct subnet_job *job = calloc(1, sizeof(*job));

	if (!job)
		return false;
	job->work = work;
	job->at = at;
	job->mad = *mad;
	job->sa = *sa;
	TAILQ_INSERT_TAIL(&m->jobs, job, entry);
	base_timer_set_in(&m->loop->timers, &m->turn, 0, on_turn);
	return true;
}

/* A query: a short one is served now. False: it cannot be served. */
static bool serve_in_slices(struct daemon_subnet_mad *m, struct fabric_port *at,
                            const struct fabric_mad *mad, const struct sa_request *request)
{
	struct sa_job *work = sa_job_new(m->sa, request);
	struct sa_response response;

	if (!work)
		return false;
	if (!sa_job_run(work, DAEMON_SLICE, &response)) {
		if (!is_busy(m, mad->slid) && go_on_later(m, at, mad, request->mad, work))
			return true;
		sa_job_free(work);
		return false;
	}
	respond(m, at, mad, request->mad, &response);
	sa_job_free(work);
	return true;
}

static void serve_sa_request(struct daemon_subnet_mad *m, struct fabric_port *at,
                             const struct fabric_mad *mad, const struct sa_request *request)
{
	const struct wire_mad *h = &request->mad->mad;
	struct sa_response response;

	if (h->method == MAD_SET || h->method == MAD_DELETE) {
		sa_serve(m->sa, request, &response);
		respond(m, at, mad, request->mad, &response);
		return;
	}
	if (is_repeated(m, mad, h))
		return;
	/* a Get is one record, for which there is always room */
	if ((h->method != MAD_GET && is_busy(m, mad->slid)) ||
	    !serve_in_slices(m, at, mad, request)) {
		response = (struct sa_response){ .method = wire_mad_response_method(h->method),
			                         .attribute = h->attribute_id,
			                         .status = MAD_STATUS_BUSY };
		respond(m, at, mad, request->mad, &response);
	}
}

static void serve_request(struct daemon_subnet_mad *m, struct fabric_port *at,
                          const struct fabric_mad *mad, struct sa_request *request)
{
	request->slid = mad->slid;
	request->qpn = mad->src_qpn;
	request->now_s = base_now_ns() / 1000000000;
	serve_sa_request(m, at, mad, request);
}

/* A request that comes by RMPP itself, as GetMulti does: served when it is whole. */
static void serve_segment(struct daemon_subnet_mad *m, struct fabric_port *at,
                          const struct fabric_mad *mad)
{
	struct sa_segment_step step;
	struct fabric_mad reply;

	sa_segments_receive(m->segments, mad, base_now_ns(), &step);
	if (step.replied) {
		address_back(at, mad, &reply);
		memcpy(reply.data, step.reply, sizeof(reply.data));
		daemon_mads_queue(m->mads, at, &reply);
	}
	if (step.whole)
		serve_request(m, at, mad,
		              &(struct sa_request){
		                      .mad = &step.mad, .data = step.data, .bytes = step.bytes });
}

static void serve_sa(struct daemon_subnet_mad *m, struct fabric_port *at,
                     const struct fabric_mad *mad)
{
	struct wire_sa_mad sa;

	if (wire_rmpp_is_active(mad->data)) {
		serve_segment(m, at, mad);
		return;
	}
	wire_sa_mad_decode(mad->data, &sa);
	if (!sa_is_too_early(m->sa, sa.mad.attribute_id, sa.component_mask))
		serve_request(m, at, mad,
		              &(struct sa_request){
		                      .mad = &sa, .data = sa.data, .bytes = SA_DATA_BYTES });
}

/* SMInfo: which of the subnet managers is the master, or is to become it. */
static bool sm_info_input(struct daemon_subnet_mad *m, struct fabric_port *at,
                          const struct fabric_mad *mad)
{
	struct fabric_mad out;
	bool is_ours, reply;

	address_back(at, mad, &out);
	is_ours = sm_role_input(m->role, mad, base_now_ns() / DAEMON_NS_PER_MS, &out, &reply);
	if (reply)
		daemon_mads_queue(m->mads, at, &out);
	return is_ours;
}

/* ---- traps ---- */

/* Queues a Report to a subscriber. */
static void report(void *arg, const struct sa_told *told)
{
	struct daemon_subnet_mad *m = arg;
	struct fabric_port *home = sm_role_home(m->role);
	struct fabric_mad mad = { .slid = home->lid,
		                  .dlid = told->lid,
		                  .src_qpn = IB_QPN_GSI,
		                  .dest_qpn = told->qpn,
		                  .qkey = IB_QKEY_GSI };
	struct wire_sa_mad sa = { .mad = { .base_version = MAD_BASE_VERSION,
		                           .mgmt_class = MAD_CLASS_SUBN_ADM,
		                           .class_version = MAD_VERSION_SUBN_ADM,
		                           .method = MAD_REPORT,
		                           .transaction_id = told->number,
		                           .attribute_id = MAD_ATTR_NOTICE } };
	struct wire_notice n = *told->notice;

	fabric_gid_make(m->f, home->guid, &n.issuer_gid);
	wire_notice_encode(&n, sa.data);
	wire_sa_mad_encode(&sa, mad.data);
	daemon_mads_queue(m->mads, home, &mad);
}

/* A slice of the Reports. They do not fill the queue: MADs that are in it go first. */
static void on_report_turn(struct base_timer *t)
{
	struct daemon_subnet_mad *m = container_of(t, struct daemon_subnet_mad, report_turn);
	uint32_t budget = DAEMON_SLICE;

	if (!STAILQ_EMPTY(&m->mads->queue) || !sa_notices_step(m->sa, &budget, report, m))
		base_timer_set_in(&m->loop->timers, &m->report_turn, 0, on_report_turn);
	daemon_mads_send(m->mads);
}

/* Sends a node's notice on to those that have subscribed to it (section 13.4.11). */
static void forward(struct daemon_subnet_mad *m, const struct wire_notice *notice)
{
	if (!sa_has_subscribers(m->sa)) /* thousands of ports may come or go at once */
		return;
	if (!sa_notice_add(m->sa, notice, ++m->n_notices))
		m->f->mads->stats.unreported++;
	else if (!base_timer_is_set(&m->report_turn))
		base_timer_set_in(&m->loop->timers, &m->report_turn, 0, on_report_turn);
}

/* Notices of the SA itself. */
static void forward_report(void *arg, const struct wire_notice *notice)
{
	forward(arg, notice);
}

struct sa_reports daemon_subnet_mad_reports(struct daemon_subnet_mad *m)
{
	return (struct sa_reports){ .tell = forward_report, .arg = m };
}

/* TrapRepress: the node need not send it again. When a link has changed, the subnet is swept at the
 * end of this turn of the loop, unless the command that changed the link has done so. */
static void trap_input(struct daemon_subnet_mad *m, struct fabric_port *at,
                       const struct fabric_mad *mad)
{
	struct wire_notice notice;
	struct fabric_mad out;
	struct wire_smp smp;

	wire_smp_decode(mad->data, &smp);
	wire_smp_notice_decode(smp.data, &notice);
	address_back(at, mad, &out);
	smp.mad.method = MAD_TRAP_REPRESS;
	smp.m_key = sa_m_key(m->sa, mad->slid);
	wire_smp_encode(&smp, out.data);
	daemon_mads_queue(m->mads, at, &out);
	if (notice.is_generic && notice.trap_number == TRAP_LINK_STATE_CHANGED)
		m->sweep_wanted = true;
	if (notice.is_generic && notice.trap_number == TRAP_LOCAL_CHANGES)
		sm_role_look(m->role, base_now_ns() / DAEMON_NS_PER_MS);
	forward(m, &notice);
}

/* Before the first sweep is done it sees to links alone: the trap is repeated, as nobody responds.
 */
static bool trap_too_early(struct daemon_subnet_mad *m, const struct fabric_mad *mad)
{
	struct wire_notice notice;
	struct wire_smp smp;

	wire_smp_decode(mad->data, &smp);
	wire_smp_notice_decode(smp.data, &notice);
	if (notice.is_generic && notice.trap_number == TRAP_LINK_STATE_CHANGED)
		m->sweep_wanted = true;
	return true;
}

/* Whether it was for us. */
static bool input(struct daemon_subnet_mad *m, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct wire_rmpp rmpp;
	struct wire_mad h;

	wire_mad_decode(mad->data, &h);
	if (h.mgmt_class == MAD_CLASS_SUBN_ADM && mad->dest_qpn == IB_QPN_GSI && m->sa) {
		wire_rmpp_decode(mad->data + RMPP_AT, &rmpp);
		/* the kernel's RMPP sets no response bit in its ACKs of a response */
		if (wire_rmpp_is_active(mad->data) && rmpp.type != RMPP_DATA) {
			if (!daemon_response_input(&m->responses, mad))
				serve_segment(m, at, mad); /* it may end a request */
			return true;
		}
		if (h.method == MAD_REPORT_RESP)
			return true;
		if (!wire_mad_response_method(h.method))
			return false;
		serve_sa(m, at, mad);
		return true;
	}
	if (h.mgmt_class == MAD_CLASS_SUBN_ADM && mad->dest_qpn == IB_QPN_GSI)
		return m->is_taking_over; /* a requester without an answer asks again */
	if (mad->dest_qpn != IB_QPN_SMI)
		return false;
	if (h.method == MAD_TRAP && h.attribute_id == SMP_ATTR_NOTICE && m->sa) {
		trap_input(m, at, mad);
		return true;
	}
	if (h.method == MAD_TRAP && h.attribute_id == SMP_ATTR_NOTICE &&
	    sm_role_state(m->role) == SM_MASTER)
		return trap_too_early(m, mad);
	return sm_info_input(m, at, mad);
}

bool daemon_subnet_mad(struct daemon_subnet_mad *m, struct fabric_port *at,
                       const struct fabric_mad *mad)
{
	bool was_ours;

	if (!m->role || sm_role_state(m->role) == SM_NOT_ACTIVE || at != sm_role_home(m->role))
		return false;
	was_ours = input(m, at, mad);
	daemon_mads_send(m->mads);
	return was_ours;
}

int daemon_subnet_mad_init(struct daemon_subnet_mad *m, struct fabric *f, struct daemon_loop *loop,
                           struct daemon_mads *mads)
{
	m->f = f;
	m->mads = mads;
	m->loop = loop;
	TAILQ_INIT(&m->jobs);
	daemon_responses_init(&m->responses, loop, mads);
	return sa_segments_new(&m->segments);
}
