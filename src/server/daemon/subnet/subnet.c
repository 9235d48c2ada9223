/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The life of the embedded subnet manager: see subnet.h.
 */
#include <errno.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon/subnet/subnet.h"
#include "fabric/forwarding/flow.h"
#include "fabric/model/event.h"
#include "fabric/plan/port_name.h"

static uint64_t now_ms(const struct daemon_subnet *s)
{
	return daemon_loop_now_ms(s->loop);
}

/* ---- time ---- */

static void on_sm_timer(struct base_timer *t)
{
	struct daemon_subnet *s = container_of(t, struct daemon_subnet, sm_timer);

	if (s->sm)
		sm_run_due(s->sm, now_ms(s));
}

static void wake_sm(void *arg, unsigned ms)
{
	struct daemon_subnet *s = arg;

	daemon_loop_wake_in(s->loop, &s->sm_timer, ms, on_sm_timer);
}

static void on_role_timer(struct base_timer *t)
{
	struct daemon_subnet *s = container_of(t, struct daemon_subnet, role_timer);

	sm_role_run_due(s->mad.role, now_ms(s));
	daemon_mads_send(s->mads);
}

static void wake_role(void *arg, unsigned ms)
{
	struct daemon_subnet *s = arg;

	daemon_loop_wake_in(s->loop, &s->role_timer, ms, on_role_timer);
}

/* ---- sweeps ---- */

/* Work of a slice, in table entries: some milliseconds; and in ports that are asked to register. */
#define SWEEP_SLICE    300000
#define REGISTER_SLICE 1000

static void on_sweep_turn(struct base_timer *t);
static void end_first_sweep(struct daemon_subnet *s);
static bool register_some(struct daemon_subnet *s);

/* The subnet manager has not swept yet, so there is no subnet administrator. */
static bool is_first_sweep(const struct daemon_subnet *s)
{
	return s->sm && !s->mad.sa;
}

/* All is as it is to be: the programs that the changes concern are told. */
static void end_sweep(struct daemon_subnet *s)
{
	int ret = 0;

	base_timer_stop(&s->sweep_timer);
	s->sweep = DAEMON_SWEEP_NONE;
	s->changes++;
	if (s->new_partitions && s->mad.sa)
		ret = sa_partitions_changed(s->mad.sa);
	if (s->new_partitions && (ret || s->swept))
		base_log_warning(sm, "the new partitions are not in all ports, or lack groups");
	s->new_partitions = false;
	daemon_ports_tell(s->ports);
	daemon_mads_send(s->mads); /* what rdma_cm asks the SA now */
}

static void tell_swept(const struct daemon_subnet *s)
{
	fabric_tell(s->f,
	            &(struct fabric_event){
	                    .kind = "sweep",
	                    .what = s->swept ? "failed" : "done",
	                    .engine = fabric_routing_name(s->f->settings.routing),
	                    .took_us = (base_timers_now(&s->loop->timers) - s->sweep_began_ns) /
	                               1000 });
}

static void sweep_slice(struct daemon_subnet *s)
{
	uint32_t budget = SWEEP_SLICE;

	if (!fabric_flow_follow(s->f, &budget, SM_FLOW_WORK)) {
		base_timer_set_in(&s->loop->timers, &s->sweep_timer, 0, on_sweep_turn);
		return;
	}
	if (s->sweep == DAEMON_SWEEP_FLOWS) {
		end_sweep(s);
	} else if (s->sweep == DAEMON_SWEEP_REGISTER) {
		if (register_some(s)) {
			tell_swept(s);
			end_sweep(s);
		}
	} else if (s->sweep == DAEMON_SWEEP_SM && sm_sweep_step(s->sm, &budget)) {
		s->swept = sm_sweep_result(s->sm);
		s->sweep_mlid = s->next_switch = 0;
		s->sweep = is_first_sweep(s) ? DAEMON_SWEEP_LEARN : DAEMON_SWEEP_SA;
	}
	if (s->sweep == DAEMON_SWEEP_LEARN && budget &&
	    sm_learn_step(s->sm, &s->next_switch, &budget))
		end_first_sweep(s);
	if (s->sweep == DAEMON_SWEEP_SA && budget &&
	    sa_swept_step(s->mad.sa, &s->sweep_mlid, &budget)) {
		tell_swept(s);
		end_sweep(s);
	}
	if (s->sweep != DAEMON_SWEEP_NONE)
		base_timer_set_in(&s->loop->timers, &s->sweep_timer, 0, on_sweep_turn);
}

static void on_sweep_turn(struct base_timer *t)
{
	sweep_slice(container_of(t, struct daemon_subnet, sweep_timer));
}

void daemon_subnet_sweep(struct daemon_subnet *s)
{
	if (daemon_subnet_is_sweeping(s)) {
		s->mad.sweep_wanted = true;
		return;
	}
	s->mad.sweep_wanted = false;
	s->swept = 0;
	s->sweep = s->mad.sa ? DAEMON_SWEEP_SM : DAEMON_SWEEP_FLOWS;
	if (s->mad.sa) {
		s->sweep_began_ns = base_timers_now(&s->loop->timers);
		sm_sweep_begin(s->sm);
	}
	sweep_slice(s);
}

/* The loop has come round; the slice comes with the end of the turn. */
static void on_follow(struct base_timer *t)
{
	(void)t;
}

void daemon_subnet_follow(struct daemon_subnet *s)
{
	uint32_t budget = SWEEP_SLICE;

	if (daemon_subnet_is_sweeping(s)) /* then it does that */
		return;
	if (!fabric_flow_follow(s->f, &budget, SM_FLOW_WORK))
		base_timer_set_in(&s->loop->timers, &s->follow_timer, 0, on_follow);
}

void daemon_subnet_lid_changed(struct daemon_subnet *s)
{
	s->mad.sweep_wanted |= daemon_subnet_is_sweeping(s);
}

/* The SM goes in mid-sweep: the next one's first sweep mends what is left. Only flows still follow.
 */
static void drop_sweep(struct daemon_subnet *s)
{
	if (s->sweep != DAEMON_SWEEP_NONE)
		s->sweep = DAEMON_SWEEP_FLOWS;
	s->new_partitions = false;
}

/* ---- taking the subnet over, and giving it up ---- */

/* Time for ports to register their memberships again: they begin at once, and programs that do so
 * by themselves have to be scheduled. A port that registers later joins a group as a new member. */
#define LEARN_MS 1000

/* A slice: of the groups that other subnet managers have left tables of. */
static void on_learned(struct base_timer *t)
{
	struct daemon_subnet *s = container_of(t, struct daemon_subnet, learn_timer);
	uint32_t budget = SWEEP_SLICE;

	if (s->mad.sa && !sa_learned_step(s->mad.sa, &s->learned, &budget))
		base_timer_set_in(&s->loop->timers, &s->learn_timer, 0, on_learned);
}

static void tell_role(const struct daemon_subnet *s, const char *what)
{
	fabric_tell(s->f, &(struct fabric_event){ .kind = "sm", .what = what });
}

static void give_up(void *arg)
{
	struct daemon_subnet *s = arg;

	if (s->mad.sa)
		tell_role(s, "resigned");
	base_timer_stop(&s->learn_timer);
	drop_sweep(s);
	if (s->mad.sa) {
		daemon_subnet_mad_forget(&s->mad);
		sa_free(s->mad.sa);
	}
	if (s->sm)
		sm_free(s->sm);
	s->mad.sa = NULL;
	s->mad.is_taking_over = false;
	s->sm = NULL;
}

static void end_take_over(struct daemon_subnet *s, int error)
{
	s->swept = error;
	if (!error)
		return;
	base_log_warning(sm, "the subnet manager cannot take the subnet over: error %d", -error);
	give_up(s);
}

/* The subnet administrator, for all that the first sweep has put in order. 0 or -errno. */
static int begin_to_serve(struct daemon_subnet *s)
{
	int ret = subnet_state_check_lids(&s->saved, s->f, &s->misfits);

	if (!ret)
		ret = sa_new_restored(&s->mad.sa, s->f, s->sm, &s->saved, &s->misfits);
	if (ret)
		return ret;
	s->mad.sa->role = s->mad.role;
	s->mad.sa->reports = daemon_subnet_mad_reports(&s->mad);
	return 0;
}

/* The new subnet administrator knows no members of groups: all ports have to register with it. */
static void end_first_sweep(struct daemon_subnet *s)
{
	int ret = s->swept ? s->swept : begin_to_serve(s);

	s->mad.is_taking_over = false;
	subnet_state_fini(&s->saved); /* the next subnet manager takes over what is there */
	end_take_over(s, ret);
	if (ret)
		return;
	tell_role(s, "master");
	s->sweep = DAEMON_SWEEP_REGISTER;
	s->next_port = 0;
	s->mad.sa->registering = true;
}

/* A slice. Whether all ports have been asked, and rdma_cm has sent what its members ask then: if
 * others were served before, they might create a group with another MLID than its members have. */
static bool register_some(struct daemon_subnet *s)
{
	for (unsigned n = 0; n < REGISTER_SLICE && s->next_port < s->f->n_ib_ports; n++) {
		struct fabric_port *p = s->f->hca_port[s->next_port++];

		daemon_port_swept(s->ports, p);
		if (p->state != IB_PORT_ACTIVE)
			continue;
		daemon_port_tell(s->ports, p, IBV_EVENT_SM_CHANGE);
		daemon_port_reregister(s->ports, p);
	}
	if (s->next_port < s->f->n_ib_ports || cm_ports_have_news(s->ports->cm))
		return false;
	s->mad.sa->registering = false;
	s->learned = 0;
	daemon_loop_wake_in(s->loop, &s->learn_timer, LEARN_MS, on_learned);
	return true;
}

/* The first sweep, with the state that was saved when the fabric ended last. */
static int take_over(struct daemon_subnet *s)
{
	const struct sm_ops ops = { .wake = wake_sm, .arg = s };
	int ret = sm_new(&s->sm, s->f, &ops);

	if (!ret)
		ret = subnet_state_restore_ports(&s->saved, s->f, s->partitions, &s->misfits);
	if (ret)
		return ret;
	sm_set_home(s->sm, sm_role_home(s->mad.role));
	sm_set_partitions(s->sm, s->partitions);
	sm_sweep_begin(s->sm);
	s->sweep = DAEMON_SWEEP_SM;
	s->sweep_began_ns = base_timers_now(&s->loop->timers);
	s->swept = 0; /* the SM counts as started, even if it then gives way to another SM */
	s->mad.sweep_wanted = false;
	s->mad.is_taking_over = true;
	return 0;
}

static void on_master(void *arg)
{
	struct daemon_subnet *s = arg;
	int ret;

	if (s->sm) {
		s->mad.sweep_wanted = true;
		return;
	}
	ret = take_over(s);
	if (ret)
		end_take_over(s, ret);
	else
		sweep_slice(s);
}

bool daemon_subnet_wants_sweep(const struct daemon_subnet *s)
{
	return s->mad.sweep_wanted && !daemon_subnet_is_sweeping(s);
}

int daemon_subnet_set_partitions(struct daemon_subnet *s, struct partitions *p, char *why,
                                 size_t len)
{
	int ret = sm_partitions_check(s->f, p, why, len);

	if (ret)
		return ret;
	s->partitions = p;
	if (s->sm)
		sm_set_partitions(s->sm, p);
	return 0;
}

void daemon_subnet_partitions_changed(struct daemon_subnet *s)
{
	if (!s->mad.sa)
		return;
	s->new_partitions = true;
	daemon_subnet_sweep(s);
}

/* ---- where it is ---- */

static void set_is_sm(struct daemon_subnet *s, bool is_sm)
{
	fabric_sma_set_capabilities(s->f, sm_role_home(s->mad.role), is_sm ? PORT_CAP_SM : 0,
	                            is_sm ? 0 : PORT_CAP_SM);
}

/* A port where no subnet manager is; one that is up if there is one. NULL: there is none. */
static struct fabric_port *free_port(const struct daemon_subnet *s)
{
	struct fabric_port *down = NULL;

	for (unsigned i = 0; i < s->f->n_ib_ports; i++) {
		struct fabric_port *p = s->f->hca_port[i];

		if (!p->peer || (p->capabilities & PORT_CAP_SM))
			continue;
		if (p->state != IB_PORT_DOWN)
			return p;
		if (!down)
			down = p;
	}
	return down;
}

static void start_sm(struct daemon_subnet *s)
{
	set_is_sm(s, true);
	sm_role_start(s->mad.role, now_ms(s));
	daemon_mads_send(s->mads);
}

/* A program's subnet manager has come to our port: ours moves to another one. */
static void move_away(struct daemon_subnet *s)
{
	struct fabric_port *home = free_port(s);

	if (!home) {
		base_log_warning(
		        sm,
		        "the embedded subnet manager ends: a program's has taken the only port");
		sm_role_stop(s->mad.role);
		return;
	}
	sm_role_move(s->mad.role, home);
	set_is_sm(s, true);
	if (!s->sm)
		return;
	sm_move_to(s->sm, home);
	for (unsigned i = 0; i < s->f->n_ib_ports; i++)
		if (s->f->hca_port[i]->state == IB_PORT_ACTIVE)
			daemon_port_tell(s->ports, s->f->hca_port[i], IBV_EVENT_SM_CHANGE);
}

void daemon_subnet_issm(struct daemon_subnet *s, struct fabric_port *at, bool is_sm)
{
	if (!s->mad.role || sm_role_state(s->mad.role) == SM_NOT_ACTIVE)
		return;
	if (is_sm && at == sm_role_home(s->mad.role))
		move_away(s);
	sm_role_look(s->mad.role, now_ms(s));
	daemon_mads_send(s->mads);
}

/* ---- commands ---- */

static int start_by_command(struct daemon_subnet *s)
{
	if (sm_role_state(s->mad.role) != SM_NOT_ACTIVE)
		return -EALREADY;
	if (sm_role_home(s->mad.role)->capabilities & PORT_CAP_SM) {
		struct fabric_port *home = free_port(s);

		if (!home)
			return -EBUSY;
		sm_role_move(s->mad.role, home);
	}
	start_sm(s);
	return daemon_subnet_is_sweeping(s) ? DAEMON_REPLY_RESULT : 0;
}

static int stop_by_command(struct daemon_subnet *s)
{
	if (sm_role_state(s->mad.role) == SM_NOT_ACTIVE)
		return -EALREADY;
	sm_role_stop(s->mad.role);
	set_is_sm(s, false);
	return 0;
}

/* The subnet manager moves, and has no members of groups there. */
static int change_sm(struct daemon_subnet *s)
{
	set_is_sm(s, false);
	sm_move(s->sm);
	sm_role_move(s->mad.role, sm_port(s->sm));
	set_is_sm(s, true);
	for (unsigned i = 0; i < s->f->n_ib_ports; i++)
		if (s->f->hca_port[i]->state == IB_PORT_ACTIVE)
			daemon_port_reset(s->ports, s->f->hca_port[i], IBV_EVENT_SM_CHANGE);
	return 0;
}

static int change_lid(struct daemon_subnet *s, struct fabric_port *p)
{
	int ret = sm_give_other_lid(s->sm, p);

	if (ret)
		return ret;
	daemon_subnet_sweep(s);
	return daemon_subnet_result(s);
}

static int port_event(struct daemon_subnet *s, const struct control_sm_event *request)
{
	struct fabric_port *p;
	int ret = fabric_port_named(s->f, request->at.node, request->at.port, &p);

	if (ret)
		return ret;
	if (p->node->type != FABRIC_HCA)
		return -ENOTTY;
	if (p->state != IB_PORT_ACTIVE)
		return -ENETDOWN;
	if (request->type == CONTROL_SM_LID_CHANGE)
		return change_lid(s, p);
	daemon_port_reset(s->ports, p, IBV_EVENT_CLIENT_REREGISTER);
	return 0;
}

/* Tells of a request that the subnet manager carries out. */
static void tell_event(const struct daemon_subnet *s, const struct control_sm_event *request)
{
	static const char *const names[] = {
		[CONTROL_SM_LID_CHANGE] = "lid-change",
		[CONTROL_SM_CHANGE] = "sm-change",
		[CONTROL_SM_CLIENT_REREGISTER] = "client-reregister",
		[CONTROL_SM_START] = "start",
		[CONTROL_SM_STOP] = "stop",
	};
	struct fabric_port *p = NULL;

	if (request->type == CONTROL_SM_LID_CHANGE || request->type == CONTROL_SM_CLIENT_REREGISTER)
		fabric_port_named(s->f, request->at.node, request->at.port, &p);
	fabric_tell(s->f, &(struct fabric_event){
	                          .kind = "sm", .what = names[request->type], .port = p });
}

static int sm_event(struct daemon_subnet *s, const struct control_sm_event *request)
{
	if (!s->mad.role) /* Ethernet ports: nobody manages their subnets */
		return -EOPNOTSUPP;
	switch (request->type) {
	case CONTROL_SM_START:
		return start_by_command(s);
	case CONTROL_SM_STOP:
		return stop_by_command(s);
	case CONTROL_SM_CHANGE:
		return s->mad.sa ? change_sm(s) : -ESRCH;
	case CONTROL_SM_LID_CHANGE:
	case CONTROL_SM_CLIENT_REREGISTER:
		return s->mad.sa ? port_event(s, request) : -ESRCH;
	default:
		return -EINVAL;
	}
}

int daemon_subnet_cause(struct daemon_subnet *s, const struct control_sm_event *event)
{
	int ret;

	if (daemon_subnet_is_sweeping(s))
		return DAEMON_SERVE_AGAIN;
	ret = sm_event(s, event);
	if (ret >= 0)
		tell_event(s, event);
	daemon_mads_send(s->mads); /* what rdma_cm asks the SA now */
	return ret;
}

static int serve_sm_event(struct daemon_call *call)
{
	return daemon_subnet_cause(call->module, call->body);
}

static const struct daemon_request requests[] = {
	DAEMON_OWNERS_REQUEST(SM_EVENT, control_sm_event, DAEMON_CLI, serve_sm_event),
};

/* ---- the daemon's start and end ---- */

static void send_mad(void *arg, const struct fabric_mad *mad)
{
	struct daemon_subnet *s = arg;

	daemon_mads_queue(s->mads, sm_role_home(s->mad.role), mad);
}

void daemon_subnet_init(struct daemon_subnet *s, struct daemon_requests *all)
{
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), s);
}

int daemon_subnet_start(struct daemon_subnet *s)
{
	const struct sm_role_ops ops = { .send = send_mad,
		                         .master = on_master,
		                         .resign = give_up,
		                         .wake = wake_role,
		                         .tid_high = DAEMON_TID_SM,
		                         .arg = s };
	struct fabric_port *home = free_port(s);
	int ret = daemon_subnet_mad_init(&s->mad, s->f, s->loop, s->mads);

	if (ret)
		return ret;
	ret = sm_role_new(&s->mad.role, s->f, home ? home : s->f->hca_port[0], &ops);
	if (ret || !s->f->settings.sm_embedded)
		return ret;
	start_sm(s);
	while (daemon_subnet_is_sweeping(s)) /* no client is there yet that would wait for a turn */
		sweep_slice(s);
	return s->mad.sa ? 0 : -ENOMEM;
}
