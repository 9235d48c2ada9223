/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The life of the embedded subnet manager: it starts, becomes the master or stands by for
 * another one (subnet/sm_role.h), takes the subnet over, gives it up, moves out of the way of
 * a program's that comes to its port, and is stopped. Subnet manager and administrator exist
 * only while it is the master.
 */
#include <errno.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon/state.h"
#include "daemon/umad.h"
#include "fabric/link.h"

static uint64_t now_ms(void)
{
	return base_now_ns() / 1000000;
}

/* ---- time ---- */

static int on_sm_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon *d = arg;

	(void)s;
	(void)usec;
	if (d->sm)
		sm_run_due(d->sm, now_ms());
	return 0;
}

static void wake_sm(void *arg, unsigned ms)
{
	struct daemon *d = arg;

	daemon_wake_in(d, &d->sm_timer, ms, on_sm_timer);
}

static int on_role_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon *d = arg;

	(void)s;
	(void)usec;
	sm_role_run_due(d->sm_role, now_ms());
	daemon_umad_send_queued(d->umad);
	return 0;
}

static void wake_role(void *arg, unsigned ms)
{
	struct daemon *d = arg;

	daemon_wake_in(d, &d->role_timer, ms, on_role_timer);
}

/* ---- master, and not any more ---- */

static void give_up(void *arg)
{
	struct daemon *d = arg;

	if (d->sa)
		sa_free(d->sa);
	if (d->sm)
		sm_free(d->sm);
	d->sa = NULL;
	d->sm = NULL;
}

static int take_over(struct daemon *d)
{
	const struct sm_ops ops = { .wake = wake_sm, .arg = d };
	int ret = sm_new(&d->sm, d->f, &ops);

	if (ret)
		return ret;
	sm_set_home(d->sm, sm_role_home(d->sm_role));
	sm_set_partitions(d->sm, d->partitions);
	sm_forget_groups(d->sm);
	ret = sm_sweep(d->sm);
	if (!ret)
		ret = sa_new(&d->sa, d->f, d->sm);
	if (ret)
		return ret;
	d->sa->role = d->sm_role;
	d->sa->reports = daemon_subnet_mad_reports(d);
	return 0;
}

/* The new one knows nobody: all are to register with it. */
static void ask_to_register(struct daemon *d)
{
	for (unsigned i = 0; i < d->f->n_hca_ports; i++) {
		struct fabric_port *p = d->f->hca_port[i];

		if (p->state != IB_PORT_ACTIVE)
			continue;
		daemon_tell_port(d, p, IBV_EVENT_SM_CHANGE);
		daemon_reset_port(d, p, IBV_EVENT_CLIENT_REREGISTER);
	}
}

static void on_master(void *arg)
{
	struct daemon *d = arg;
	int ret;

	if (d->sa) {
		d->sweep_wanted = true;
		return;
	}
	ret = take_over(d);
	if (ret) {
		base_log("the subnet manager cannot take the subnet over: error %d", -ret);
		give_up(d);
		return;
	}
	daemon_tell_states(d);
	ask_to_register(d);
}

int daemon_subnet_sweep(struct daemon *d)
{
	int ret;

	d->sweep_wanted = false;
	if (!d->sa)
		return 0;
	ret = sm_sweep(d->sm);
	sa_swept(d->sa);
	return ret;
}

/* ---- where it is ---- */

static void set_is_sm(struct daemon *d, bool is_sm)
{
	fabric_sma_set_capabilities(d->f, sm_role_home(d->sm_role), is_sm ? PORT_CAP_SM : 0,
	                            is_sm ? 0 : PORT_CAP_SM);
}

/* A port where no subnet manager is; rather one that is up. NULL: there is none. */
static struct fabric_port *free_port(const struct daemon *d)
{
	struct fabric_port *down = NULL;

	for (unsigned i = 0; i < d->f->n_hca_ports; i++) {
		struct fabric_port *p = d->f->hca_port[i];

		if (!p->peer || (p->capabilities & PORT_CAP_SM))
			continue;
		if (p->state != IB_PORT_DOWN)
			return p;
		if (!down)
			down = p;
	}
	return down;
}

static void start_sm(struct daemon *d)
{
	set_is_sm(d, true);
	sm_role_start(d->sm_role, now_ms());
	daemon_umad_send_queued(d->umad);
}

/* A program's subnet manager is at our port: we answer at another one. */
static void make_way(struct daemon *d)
{
	struct fabric_port *home = free_port(d);

	if (!home) {
		base_log("the embedded subnet manager ends: a program's has taken the only port");
		sm_role_stop(d->sm_role);
		return;
	}
	sm_role_move(d->sm_role, home);
	set_is_sm(d, true);
	if (!d->sm)
		return;
	sm_move_to(d->sm, home);
	for (unsigned i = 0; i < d->f->n_hca_ports; i++)
		if (d->f->hca_port[i]->state == IB_PORT_ACTIVE)
			daemon_tell_port(d, d->f->hca_port[i], IBV_EVENT_SM_CHANGE);
}

void daemon_subnet_issm(struct daemon *d, struct fabric_port *at, bool is_sm)
{
	if (!d->sm_role || sm_role_state(d->sm_role) == SM_NOT_ACTIVE)
		return;
	if (is_sm && at == sm_role_home(d->sm_role))
		make_way(d);
	sm_role_look(d->sm_role, now_ms());
	daemon_umad_send_queued(d->umad);
}

/* ---- commands ---- */

static int start_by_command(struct daemon *d)
{
	if (sm_role_state(d->sm_role) != SM_NOT_ACTIVE)
		return -EALREADY;
	if (sm_role_home(d->sm_role)->capabilities & PORT_CAP_SM) {
		struct fabric_port *home = free_port(d);

		if (!home)
			return -EBUSY;
		sm_role_move(d->sm_role, home);
	}
	start_sm(d);
	return 0;
}

static int stop_by_command(struct daemon *d)
{
	if (sm_role_state(d->sm_role) == SM_NOT_ACTIVE)
		return -EALREADY;
	sm_role_stop(d->sm_role);
	set_is_sm(d, false);
	return 0;
}

/* It moves, and knows no member there. */
static int change_sm(struct daemon *d)
{
	set_is_sm(d, false);
	sm_move(d->sm);
	sm_role_move(d->sm_role, sm_port(d->sm));
	set_is_sm(d, true);
	for (unsigned i = 0; i < d->f->n_hca_ports; i++)
		if (d->f->hca_port[i]->state == IB_PORT_ACTIVE)
			daemon_reset_port(d, d->f->hca_port[i], IBV_EVENT_SM_CHANGE);
	return 0;
}

static int change_lid(struct daemon *d, struct fabric_port *p)
{
	int ret = sm_change_lid(d->sm, p);

	if (!ret)
		daemon_reset_port(d, p, IBV_EVENT_LID_CHANGE);
	return ret;
}

static int port_event(struct daemon *d, const struct control_sm_event *request)
{
	struct fabric_port *p;
	int ret = daemon_port_find(d, &request->at, &p);

	if (ret)
		return ret;
	if (p->node->type != FABRIC_HCA)
		return -ENOTTY;
	if (p->state != IB_PORT_ACTIVE)
		return -ENETDOWN;
	if (request->type == CONTROL_SM_LID_CHANGE)
		return change_lid(d, p);
	daemon_reset_port(d, p, IBV_EVENT_CLIENT_REREGISTER);
	return 0;
}

static int sm_event(struct daemon *d, const struct control_sm_event *request)
{
	if (!d->sm_role) /* Ethernet ports: nobody manages their subnets */
		return -EOPNOTSUPP;
	switch (request->type) {
	case CONTROL_SM_START:
		return start_by_command(d);
	case CONTROL_SM_STOP:
		return stop_by_command(d);
	case CONTROL_SM_CHANGE:
		return d->sa ? change_sm(d) : -ESRCH;
	case CONTROL_SM_LID_CHANGE:
	case CONTROL_SM_CLIENT_REREGISTER:
		return d->sa ? port_event(d, request) : -ESRCH;
	default:
		return -EINVAL;
	}
}

int daemon_sm_event(struct daemon *d, const struct control_sm_event *request)
{
	int ret = sm_event(d, request);

	daemon_umad_send_queued(d->umad); /* rdma_cm's, of what it has been told */
	return ret;
}

/* ---- the manager's start and end ---- */

static void send_mad(void *arg, const struct fabric_mad *mad)
{
	struct daemon *d = arg;

	daemon_umad_queue(d->umad, sm_role_home(d->sm_role), mad);
}

int daemon_subnet_init(struct daemon *d)
{
	const struct sm_role_ops ops = { .send = send_mad,
		                         .master = on_master,
		                         .resign = give_up,
		                         .wake = wake_role,
		                         .tid_high = DAEMON_TID_SM,
		                         .arg = d };
	struct fabric_port *home = free_port(d);
	int ret;

	if (d->roce) /* nobody manages that subnet */
		return 0;
	ret = daemon_subnet_mad_init(d);
	if (ret)
		return ret;
	ret = sm_role_new(&d->sm_role, d->f, home ? home : d->f->hca_port[0], &ops);
	if (ret || !d->f->settings.sm_embedded)
		return ret;
	start_sm(d);
	return d->sa ? 0 : -ENOMEM;
}

void daemon_subnet_fini(struct daemon *d)
{
	daemon_subnet_mad_fini(d);
	give_up(d);
	sd_event_source_disable_unref(d->sm_timer);
	sd_event_source_disable_unref(d->role_timer);
	if (d->sm_role)
		sm_role_free(d->sm_role);
}
