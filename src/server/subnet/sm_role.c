/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Master, standby, and the transitions between them: see sm_role.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "subnet/sm_role.h"

#define RESPONSE_MS 200 /* the longest wait for a response */
#define MAX_MISSED  3   /* an SM is dead after so many polls in a row without a response */

/* A port with IsSM: probably another subnet manager. */
struct peer {
	struct fabric_port *port;
	uint64_t tid;   /* of the request without a response yet; 0: none */
	unsigned asked; /* requests since its last response */
	bool known;     /* it has responded: info is valid */
	struct wire_sm_info info;
};

struct sm_role {
	struct fabric *f;
	struct sm_role_ops ops;
	struct fabric_port *home;
	enum sm_state state;
	struct fabric_port *master; /* STANDBY: the master that it polls */
	struct peer *peer;
	unsigned n_peers, room;
	uint64_t due_ms; /* UINT64_MAX: nothing is due */
	uint32_t last_tid, act_count;
};

int sm_role_new(struct sm_role **out, struct fabric *f, struct fabric_port *home,
                const struct sm_role_ops *ops)
{
	struct sm_role *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->f = f;
	r->home = home;
	r->ops = *ops;
	r->due_ms = UINT64_MAX;
	*out = r;
	return 0;
}

void sm_role_free(struct sm_role *r)
{
	free(r->peer);
	free(r);
}

enum sm_state sm_role_state(const struct sm_role *r)
{
	return r->state;
}

struct fabric_port *sm_role_home(const struct sm_role *r)
{
	return r->home;
}

void sm_role_move(struct sm_role *r, struct fabric_port *home)
{
	r->home = home;
}

/* ---- the others ---- */

static bool is_higher(const struct sm_role *r, const struct wire_sm_info *other)
{
	if (other->priority != r->f->settings.sm_priority)
		return other->priority > r->f->settings.sm_priority;
	return other->guid < r->home->guid;
}

static struct peer *find_peer(struct sm_role *r, const struct fabric_port *port)
{
	for (unsigned i = 0; i < r->n_peers; i++)
		if (r->peer[i].port == port)
			return &r->peer[i];
	return NULL;
}

static void add_peer(struct sm_role *r, struct fabric_port *port)
{
	if (base_array_reserve(&r->peer, &r->room, (size_t)r->n_peers + 1))
		return; /* the next look may find it */
	r->peer[r->n_peers++] = (struct peer){ .port = port };
}

static bool says_is_sm(const struct sm_role *r, const struct fabric_port *p)
{
	return p != r->home && p->state != IB_PORT_DOWN && (p->capabilities & PORT_CAP_SM);
}

/* Makes the ports with IsSM the peers. */
static void list_peers(struct sm_role *r)
{
	for (unsigned i = r->n_peers; i--;)
		if (!says_is_sm(r, r->peer[i].port))
			r->peer[i] = r->peer[--r->n_peers];
	for (unsigned i = 0; i < r->f->n_ib_ports; i++)
		if (says_is_sm(r, r->f->hca_port[i]) && !find_peer(r, r->f->hca_port[i]))
			add_peer(r, r->f->hca_port[i]);
}

/* ---- asking ---- */

static void wake_at(struct sm_role *r, uint64_t now_ms, unsigned ms)
{
	r->due_ms = now_ms + ms;
	r->ops.wake(r->ops.arg, ms);
}

static struct wire_sm_info own_info(const struct sm_role *r)
{
	return (struct wire_sm_info){ .guid = r->home->guid,
		                      .sm_key = SM_KEY,
		                      .act_count = r->act_count,
		                      .priority = (uint8_t)r->f->settings.sm_priority,
		                      .sm_state = (uint8_t)r->state };
}

bool sm_role_known(const struct sm_role *r, unsigned i, struct fabric_port **at,
                   struct wire_sm_info *info)
{
	if (!i) {
		*at = r->home;
		*info = own_info(r);
		return true;
	}
	for (unsigned k = 0; k < r->n_peers; k++) {
		if (!r->peer[k].known || --i)
			continue;
		*at = r->peer[k].port;
		*info = r->peer[k].info;
		return true;
	}
	return false;
}

/* Sends SubnGet(SMInfo), or SubnSet(SMInfo) with @control. */
static void send_info(struct sm_role *r, struct peer *p, uint32_t control)
{
	struct fabric_mad mad = { .slid = r->home->lid,
		                  .dlid = IB_LID_PERMISSIVE,
		                  .src_qpn = IB_QPN_SMI,
		                  .dest_qpn = IB_QPN_SMI };
	struct wire_smp smp = { .mad = { .base_version = MAD_BASE_VERSION,
		                         .mgmt_class = MAD_CLASS_SUBN_DIRECTED,
		                         .class_version = MAD_VERSION_SUBN,
		                         .method = control ? MAD_SET : MAD_GET,
		                         .attribute_id = SMP_ATTR_SM_INFO,
		                         .attribute_modifier = control },
		                .m_key = p->port->m_key,
		                .dr_slid = IB_LID_PERMISSIVE,
		                .dr_dlid = IB_LID_PERMISSIVE };
	const struct wire_sm_info own = own_info(r);

	p->asked++;
	p->tid = (uint64_t)r->ops.tid_high << 32 | ++r->last_tid;
	if (!fabric_mad_path(r->f, r->home, p->port, &smp))
		return; /* no path, so no response either */
	smp.mad.transaction_id = p->tid;
	if (control)
		wire_sm_info_encode(&own, smp.data);
	wire_smp_encode(&smp, mad.data);
	r->ops.send(r->ops.arg, &mad);
}

static bool is_worth_asking(const struct sm_role *r, const struct peer *p)
{
	return r->state != SM_STANDBY || p->port == r->master;
}

static void ask_all(struct sm_role *r)
{
	for (unsigned i = 0; i < r->n_peers; i++)
		if (is_worth_asking(r, &r->peer[i]))
			send_info(r, &r->peer[i], 0);
}

/* ---- changing state ---- */

static void become_master(struct sm_role *r, uint64_t now_ms)
{
	r->state = SM_MASTER;
	base_log_info(sm, "master, at port %u of '%s'", r->home->num, r->home->node->name);
	r->due_ms = UINT64_MAX;
	if (r->n_peers)
		wake_at(r, now_ms, r->f->settings.sm_poll_ms);
	r->ops.master(r->ops.arg);
}

static void stand_by(struct sm_role *r, struct fabric_port *master, uint64_t now_ms)
{
	bool was_master = r->state == SM_MASTER;

	r->state = SM_STANDBY;
	base_log_info(sm, "standby: the master is at '%s'",
	              master ? master->node->name : "an unknown port");
	r->master = master;
	for (unsigned i = 0; i < r->n_peers; i++)
		r->peer[i].asked = 0;
	wake_at(r, now_ms, r->f->settings.sm_poll_ms);
	if (was_master)
		r->ops.resign(r->ops.arg);
}

static void discover(struct sm_role *r, uint64_t now_ms)
{
	r->state = SM_DISCOVERING;
	base_log_info(sm, "discovering: it asks the others who they are");
	list_peers(r);
	for (unsigned i = 0; i < r->n_peers; i++) {
		r->peer[i].known = false;
		r->peer[i].asked = 0;
	}
	if (!r->n_peers) {
		become_master(r, now_ms);
		return;
	}
	ask_all(r);
	wake_at(r, now_ms, RESPONSE_MS);
}

/* DISCOVERING: whether no response is missing that could still come. */
static bool all_have_responded(const struct sm_role *r)
{
	for (unsigned i = 0; i < r->n_peers; i++)
		if (!r->peer[i].known && r->peer[i].asked < MAX_MISSED)
			return false;
	return true;
}

/* Becomes standby if there is a master, of any priority, or a higher SM; else master. */
static void decide(struct sm_role *r, uint64_t now_ms)
{
	struct fabric_port *higher = NULL;

	for (unsigned i = 0; i < r->n_peers; i++) {
		const struct peer *p = &r->peer[i];

		if (!p->known || p->info.sm_state == SM_NOT_ACTIVE)
			continue;
		if (p->info.sm_state == SM_MASTER) {
			stand_by(r, p->port, now_ms);
			return;
		}
		if (is_higher(r, &p->info))
			higher = p->port;
	}
	if (higher)
		stand_by(r, higher, now_ms);
	else
		become_master(r, now_ms);
}

void sm_role_start(struct sm_role *r, uint64_t now_ms)
{
	if (r->state == SM_NOT_ACTIVE)
		discover(r, now_ms);
}

void sm_role_stop(struct sm_role *r)
{
	bool was_master = r->state == SM_MASTER;

	r->state = SM_NOT_ACTIVE;
	base_log_info(sm, "stopped");
	r->n_peers = 0;
	r->due_ms = UINT64_MAX;
	if (was_master)
		r->ops.resign(r->ops.arg);
}

void sm_role_look(struct sm_role *r, uint64_t now_ms)
{
	if (r->state == SM_NOT_ACTIVE)
		return;
	list_peers(r);
	if (r->state == SM_STANDBY && !find_peer(r, r->master)) {
		discover(r, now_ms);
		return;
	}
	if (!r->n_peers)
		return;
	ask_all(r);
	wake_at(r, now_ms, r->state == SM_DISCOVERING ? RESPONSE_MS : r->f->settings.sm_poll_ms);
}

/* ---- responses ---- */

/* Whether that SM is the master, or higher than we and will be it. */
static bool is_alive(const struct sm_role *r, const struct wire_sm_info *info)
{
	return info->sm_state == SM_MASTER ||
	       (info->sm_state != SM_NOT_ACTIVE && is_higher(r, info));
}

static void hear_of(struct sm_role *r, struct peer *p, uint64_t now_ms)
{
	switch (r->state) {
	case SM_DISCOVERING:
		if (all_have_responded(r))
			decide(r, now_ms);
		break;
	case SM_STANDBY:
		if (p->port == r->master && !is_alive(r, &p->info))
			discover(r, now_ms);
		break;
	case SM_MASTER:
		/* a lower SM that is master too hands over to us */
		if ((p->info.sm_state == SM_MASTER || p->info.sm_state == SM_STANDBY) &&
		    is_higher(r, &p->info))
			send_info(r, p, SM_CONTROL_HANDOVER);
		break;
	case SM_NOT_ACTIVE:
		break;
	}
}

/* A port with IsSM responded that it has no SM: that has just ended or not started yet. */
static void hear_nothing(struct sm_role *r, struct peer *p, uint64_t now_ms)
{
	p->known = false;
	p->asked = MAX_MISSED;
	if (r->state == SM_STANDBY && p->port == r->master)
		discover(r, now_ms);
	else if (r->state == SM_DISCOVERING && all_have_responded(r))
		decide(r, now_ms);
}

static void receive_response(struct sm_role *r, const struct wire_smp *smp, uint64_t now_ms)
{
	struct peer *p = NULL;

	for (unsigned i = 0; i < r->n_peers; i++)
		if (r->peer[i].tid == smp->mad.transaction_id)
			p = &r->peer[i];
	if (!p)
		return; /* too late */
	p->tid = 0;
	if (smp->mad.attribute_modifier == SM_CONTROL_HANDOVER) {
		/* refused: the next poll tries again */
		if (r->state == SM_MASTER && !smp->mad.status)
			stand_by(r, p->port, now_ms);
		return;
	}
	if (smp->mad.status) {
		hear_nothing(r, p, now_ms);
		return;
	}
	p->asked = 0;
	p->known = true;
	wire_sm_info_decode(smp->data, &p->info);
	hear_of(r, p, now_ms);
}

/* ---- requests ---- */

/* Whether the state machine allows a Set in the sender's state and in ours. */
static bool may_control(const struct sm_role *r, uint32_t control, const struct wire_sm_info *from)
{
	if (from->sm_state != (control == SM_CONTROL_ACKNOWLEDGE ? SM_STANDBY : SM_MASTER))
		return false;
	switch (control) {
	case SM_CONTROL_HANDOVER:
		return r->state != SM_NOT_ACTIVE;
	case SM_CONTROL_ACKNOWLEDGE:
		return r->state == SM_STANDBY || r->state == SM_MASTER;
	case SM_CONTROL_DISABLE:
	case SM_CONTROL_DISCOVER:
		return r->state == SM_STANDBY;
	case SM_CONTROL_STANDBY:
		return r->state == SM_NOT_ACTIVE;
	default:
		return false;
	}
}

static struct fabric_port *port_of(const struct sm_role *r, uint64_t guid)
{
	struct ib_gid gid;

	fabric_gid_make(r->f, guid, &gid);
	return fabric_port_by_gid(r->f, &gid);
}

static void follow(struct sm_role *r, uint32_t control, const struct wire_sm_info *from,
                   uint64_t now_ms)
{
	switch (control) {
	case SM_CONTROL_HANDOVER:
		list_peers(r);
		become_master(r, now_ms);
		break;
	case SM_CONTROL_DISABLE:
		r->state = SM_NOT_ACTIVE;
		base_log_info(sm, "stopped: another subnet manager has disabled it");
		r->due_ms = UINT64_MAX;
		break;
	case SM_CONTROL_STANDBY:
		list_peers(r);
		stand_by(r, port_of(r, from->guid), now_ms);
		break;
	case SM_CONTROL_DISCOVER:
		discover(r, now_ms);
		break;
	}
}

/* Whether the MAD has the port's M_Key, if there is one. The SM_Key and Sets require it. */
static bool has_m_key(const struct sm_role *r, const struct wire_smp *smp)
{
	return !r->home->m_key || smp->m_key == r->home->m_key;
}

static void fill_response(const struct sm_role *r, struct wire_smp *smp)
{
	struct wire_sm_info info = own_info(r);

	if (!has_m_key(r, smp))
		info.sm_key = 0;
	memset(smp->data, 0, sizeof(smp->data));
	wire_sm_info_encode(&info, smp->data);
	smp->mad.method = MAD_GET_RESP;
	if (smp->mad.mgmt_class == MAD_CLASS_SUBN_DIRECTED)
		smp->direction = 1;
}

static void respond(struct sm_role *r, struct wire_smp *smp, uint64_t now_ms,
                    struct fabric_mad *out)
{
	struct wire_sm_info from;
	bool act = false;

	wire_sm_info_decode(smp->data, &from);
	r->act_count++;
	smp->mad.status = MAD_STATUS_OK;
	if (smp->mad.class_version != MAD_VERSION_SUBN) {
		smp->mad.status = MAD_STATUS_BAD_VERSION;
	} else if (smp->mad.method == MAD_SET) {
		act = has_m_key(r, smp) && may_control(r, smp->mad.attribute_modifier, &from);
		if (!act)
			smp->mad.status = MAD_STATUS_BAD_FIELD;
	}
	fill_response(r, smp);
	wire_smp_encode(smp, out->data);
	if (act)
		follow(r, smp->mad.attribute_modifier, &from, now_ms);
}

bool sm_role_input(struct sm_role *r, const struct fabric_mad *in, uint64_t now_ms,
                   struct fabric_mad *out, bool *reply)
{
	struct wire_smp smp;

	*reply = false;
	wire_smp_decode(in->data, &smp);
	if (smp.mad.attribute_id != SMP_ATTR_SM_INFO)
		return false;
	if (smp.mad.method == MAD_GET_RESP && smp.mad.transaction_id >> 32 == r->ops.tid_high) {
		receive_response(r, &smp, now_ms);
		return true;
	}
	if (smp.mad.method != MAD_GET && smp.mad.method != MAD_SET)
		return false;
	respond(r, &smp, now_ms, out);
	*reply = true;
	return true;
}

/* ---- time ---- */

/* STANDBY: whether the master has not responded for too long. */
static bool is_orphaned(struct sm_role *r)
{
	const struct peer *p = find_peer(r, r->master);

	return !p || p->asked >= MAX_MISSED;
}

void sm_role_run_due(struct sm_role *r, uint64_t now_ms)
{
	if (now_ms < r->due_ms) {
		if (r->due_ms != UINT64_MAX)
			r->ops.wake(r->ops.arg, (unsigned)(r->due_ms - now_ms));
		return;
	}
	r->due_ms = UINT64_MAX;
	if (r->state == SM_STANDBY) {
		list_peers(r);
		if (is_orphaned(r)) {
			discover(r, now_ms);
			return;
		}
	} else if (r->state == SM_DISCOVERING && all_have_responded(r)) {
		decide(r, now_ms);
		return;
	}
	sm_role_look(r, now_ms);
}
