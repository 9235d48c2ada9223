/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Master, standby and the way from one to the other: see sm_role.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "subnet/sm_role.h"

#define ANSWER_MS  200 /* how long an answer may take */
#define MAX_MISSED 3   /* so many questions in a row without an answer: it is dead */

/* Another subnet manager, or what looks like one: a port with IsSM. */
struct peer {
	struct fabric_port *port;
	uint64_t tid;   /* of the question that waits for its answer; 0: none does */
	unsigned asked; /* questions since it answered last */
	bool known;     /* it has answered: info is valid */
	struct wire_sm_info info;
};

struct sm_role {
	struct fabric *f;
	struct sm_role_ops ops;
	struct fabric_port *home;
	enum sm_state state;
	struct fabric_port *master; /* STANDBY: whose life is watched */
	struct peer *peer;
	unsigned n_peers, room;
	uint64_t due_ms; /* UINT64_MAX: nothing is to be done */
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
	if (r->n_peers == r->room) {
		unsigned room = r->room ? 2 * r->room : 4;
		struct peer *grown = realloc(r->peer, room * sizeof(*grown));

		if (!grown)
			return; /* the next look may find it */
		r->peer = grown;
		r->room = room;
	}
	r->peer[r->n_peers++] = (struct peer){ .port = port };
}

static bool says_is_sm(const struct sm_role *r, const struct fabric_port *p)
{
	return p != r->home && p->state != IB_PORT_DOWN && (p->capabilities & PORT_CAP_SM);
}

/* Those that say so are peers, and no others. */
static void list_peers(struct sm_role *r)
{
	for (unsigned i = r->n_peers; i--;)
		if (!says_is_sm(r, r->peer[i].port))
			r->peer[i] = r->peer[--r->n_peers];
	for (unsigned i = 0; i < r->f->n_hca_ports; i++)
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

/* SubnGet(SMInfo), or SubnSet with @control. */
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
		return; /* no way there: no answer either */
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
	r->due_ms = UINT64_MAX;
	if (r->n_peers)
		wake_at(r, now_ms, r->f->settings.sm_poll_ms);
	r->ops.master(r->ops.arg);
}

static void stand_by(struct sm_role *r, struct fabric_port *master, uint64_t now_ms)
{
	bool was_master = r->state == SM_MASTER;

	r->state = SM_STANDBY;
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
	wake_at(r, now_ms, ANSWER_MS);
}

/* DISCOVERING: whether nobody is to be waited for any longer. */
static bool all_have_answered(const struct sm_role *r)
{
	for (unsigned i = 0; i < r->n_peers; i++)
		if (!r->peer[i].known && r->peer[i].asked < MAX_MISSED)
			return false;
	return true;
}

/* Who is there decides: a master, whatever its priority; or else who is higher than we. */
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
	wake_at(r, now_ms, r->state == SM_DISCOVERING ? ANSWER_MS : r->f->settings.sm_poll_ms);
}

/* ---- answers ---- */

/* The master is there, and master; or higher than we, so that it will be. */
static bool is_alive(const struct sm_role *r, const struct wire_sm_info *info)
{
	return info->sm_state == SM_MASTER ||
	       (info->sm_state != SM_NOT_ACTIVE && is_higher(r, info));
}

static void hear_of(struct sm_role *r, struct peer *p, uint64_t now_ms)
{
	switch (r->state) {
	case SM_DISCOVERING:
		if (all_have_answered(r))
			decide(r, now_ms);
		break;
	case SM_STANDBY:
		if (p->port == r->master && !is_alive(r, &p->info))
			discover(r, now_ms);
		break;
	case SM_MASTER:
		/* a lower one that is master as well hands over to us, not we to it */
		if ((p->info.sm_state == SM_MASTER || p->info.sm_state == SM_STANDBY) &&
		    is_higher(r, &p->info))
			send_info(r, p, SM_CONTROL_HANDOVER);
		break;
	case SM_NOT_ACTIVE:
		break;
	}
}

/* The port has IsSM, and an agent that says there is no SM: it has just ended, or not begun. */
static void hear_nothing(struct sm_role *r, struct peer *p, uint64_t now_ms)
{
	p->known = false;
	p->asked = MAX_MISSED;
	if (r->state == SM_STANDBY && p->port == r->master)
		discover(r, now_ms);
	else if (r->state == SM_DISCOVERING && all_have_answered(r))
		decide(r, now_ms);
}

static void take_answer(struct sm_role *r, const struct wire_smp *smp, uint64_t now_ms)
{
	struct peer *p = NULL;

	for (unsigned i = 0; i < r->n_peers; i++)
		if (r->peer[i].tid == smp->mad.transaction_id)
			p = &r->peer[i];
	if (!p)
		return; /* too late */
	p->tid = 0;
	if (smp->mad.attribute_modifier == SM_CONTROL_HANDOVER) {
		/* refused: it is asked again */
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

/* Whether a Set makes sense from an SM in the state that it says it has, and in ours. */
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

/* The port's M_Key, if it has one, opens what SMInfo protects: the SM_Key, and Sets. */
static bool has_m_key(const struct sm_role *r, const struct wire_smp *smp)
{
	return !r->home->m_key || smp->m_key == r->home->m_key;
}

static void fill_answer(const struct sm_role *r, struct wire_smp *smp)
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

static void answer(struct sm_role *r, struct wire_smp *smp, uint64_t now_ms, struct fabric_mad *out)
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
	fill_answer(r, smp);
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
		take_answer(r, &smp, now_ms);
		return true;
	}
	if (smp.mad.method != MAD_GET && smp.mad.method != MAD_SET)
		return false;
	answer(r, &smp, now_ms, out);
	*reply = true;
	return true;
}

/* ---- time ---- */

/* STANDBY: whether the master has not answered for too long. */
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
	} else if (r->state == SM_DISCOVERING && all_have_answered(r)) {
		decide(r, now_ms);
		return;
	}
	sm_role_look(r, now_ms);
}
