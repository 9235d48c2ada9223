/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The groups that ports are members of. The SA knows one membership for each port and group. All
 * joins of all processes share it, and so do programs that join by MADs (program.c): they are
 * counted by join state, and the port leaves when the last one ends.
 *
 * A group sends one request to the SA at a time: a join, for the first of the pending joins, or
 * the first of programs' requests, by turns; if there is none, a leave, for the states that nobody
 * holds. A join may end while its request is out. If the SA then grants it, nobody holds the state,
 * and the port leaves again.
 *
 * A new subnet administrator knows no members. The port then renews its memberships, with the
 * values and the MLID that the group had, and the joins hear of it only if that fails.
 *
 * A port may have a million joins. So what happens to the port is noted, and groups hear of it one
 * after the other in slices (cm_sweep_begin()), or before they do anything else. Nor does a group
 * do more than some of its joins at a time. Its members when it is reset go to a list of those that
 * are lost, which have another generation than the group.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cm/cm.h"
#include "cm/group.h"
#include "cm/mad.h"
#include "cm/state.h"
#include "wire/text.h"

#define TIMEOUT_MS    3000
#define LEAVE_RETRIES 3  /* after that the SA keeps a member that is none */
#define AT_ONCE       64 /* joins of a group, until others have a turn */

#define RENEW_MS     1000 /* for the first ten requests; each further round is twice as long */
#define RENEW_ROUNDS 4
#define RENEW_MASK                                                                       \
	(SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE | SA_MCM_QKEY | SA_MCM_MLID | \
	 SA_MCM_MTU | SA_MCM_MTU_SELECTOR | SA_MCM_TCLASS | SA_MCM_PKEY | SA_MCM_RATE |  \
	 SA_MCM_RATE_SELECTOR | SA_MCM_SL | SA_MCM_FLOW_LABEL | SA_MCM_HOP_LIMIT)

/* ---- groups of a port ---- */

static uint64_t group_hash(const struct cm_port *p, const struct ib_gid *mgid)
{
	return base_hash_of(mgid, sizeof(*mgid), p->port->index);
}

static struct cm_group *group_find(const struct cm_port *p, const struct ib_gid *mgid)
{
	struct cm_group *g;

	BASE_HASH_FOREACH(g, &p->cm->groups, group_hash(p, mgid), node)
		if (g->port == p && ib_gid_equal(&g->rec.mgid, mgid))
			return g;
	return NULL;
}

/* Other joins find it from now on. -ENOMEM: they do not. */
static int group_hash_in(struct cm_group *g)
{
	int ret = base_hash_add(&g->port->cm->groups, &g->node, group_hash(g->port, &g->rec.mgid));

	g->is_hashed = !ret;
	return ret;
}

static bool has_mgid(const struct wire_mcmember *rec)
{
	return !ib_gid_is_zero(&rec->mgid);
}

static struct cm_group *group_new(struct cm_port *p, const struct wire_mcmember *want)
{
	struct cm_group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->port = p;
	g->rec = *want;
	g->rec.join_state = 0;
	g->leave_retries = LEAVE_RETRIES;
	TAILQ_INIT(&g->members);
	TAILQ_INIT(&g->pending);
	TAILQ_INIT(&g->lost);
	TAILQ_INIT(&g->requests);
	g->seen = p->changes;
	if (has_mgid(want) && group_hash_in(g)) {
		free(g);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&p->groups, g, of_port);
	return g;
}

static void group_free(struct cm_group *g)
{
	cm_mad_cancel(&g->asked);
	cm_program_drop_requests(g);
	if (g->is_hashed)
		base_hash_remove(&g->port->cm->groups, &g->node);
	if (g->is_busy)
		TAILQ_REMOVE(&g->port->cm->busy, g, of_busy);
	TAILQ_REMOVE(&g->port->groups, g, of_port);
	free(g);
}

struct cm_group *cm_group_get(struct cm_port *p, const struct wire_mcmember *want)
{
	struct cm_group *g = has_mgid(want) ? group_find(p, &want->mgid) : NULL;

	return g ? g : group_new(p, want);
}

uint8_t cm_joined(const struct cm *cm, const struct fabric_port *port, const struct ib_gid *mgid,
                  const struct cm_client *client)
{
	const struct cm_group *g = group_find(cm_port_of(cm, port), mgid);
	uint8_t states = 0;
	unsigned n = 0;
	struct cm_join *j;

	for (unsigned bit = 0; g && !client && bit < CM_GROUP_STATES; bit++)
		if (g->held[bit].joins)
			states |= (uint8_t)(1u << bit);
	if (!g || !client)
		return states;
	TAILQ_FOREACH(j, &g->members, of_group)
	{
		if (j->id->client == client)
			states |= j->want.join_state;
		if (++n == CM_JOINS_LOOKED_AT)
			break;
	}
	return states;
}

uint8_t cm_membership(const struct cm *cm, const struct fabric_port *port,
                      const struct ib_gid *mgid, struct wire_mcmember *rec, uint64_t *age_ns)
{
	const struct cm_port *p = cm_port_of(cm, port);
	const struct cm_group *g = group_find(p, mgid);

	*age_ns = p->changed[CM_PORT_RESET] ? base_timers_now(cm->ops.timers) - p->reset_ns
	                                    : UINT64_MAX;
	if (!g || g->seen < p->changed[CM_PORT_RESET]) /* it has yet to hear of that */
		return 0;
	*rec = g->rec;
	return g->rec.join_state;
}

/* It has more joins to see to, later: after other groups that have. */
static void set_busy(struct cm_group *g, bool busy)
{
	struct cm *cm = g->port->cm;

	if (g->is_busy)
		TAILQ_REMOVE(&cm->busy, g, of_busy);
	if (busy)
		TAILQ_INSERT_TAIL(&cm->busy, g, of_busy);
	g->is_busy = busy;
}

void cm_groups_fini(struct cm *cm)
{
	for (unsigned i = 0; i < cm->f->n_hca_ports; i++)
		while (!TAILQ_EMPTY(&cm->port[i].groups))
			group_free(TAILQ_FIRST(&cm->port[i].groups));
}

/* ---- asking the SA ---- */

static void step(struct cm_group *g, enum cm_group_event event)
{
	const enum cm_group_state next = cm_group_next(g->state, event);

	if (next == CM_GROUP_N_STATES) /* a mistake of ours: the state stays */
		base_log_error(cm, "a group in state %d has no event %d", g->state, event);
	else
		g->state = next;
}

static void on_response(void *arg, int status, const struct fabric_mad *response);

/* @sent: as the group's request. */
static int send_request(struct cm_group *g, struct cm_sa_request *request, enum cm_group_event sent,
                        uint8_t states)
{
	int ret;

	request->port = g->port->port;
	request->done = on_response;
	request->arg = g;
	ret = cm_sa_ask(g->port->cm, request, &g->asked);
	g->port->cm->worked++;
	base_log_trace(join, "%s:%u: %s(MCMemberRecord) of %s to the SA at LID %u",
	               request->port->node->name, request->port->num,
	               request->method == MAD_SET ? "SubnAdmSet" : "SubnAdmDelete",
	               wire_gid_text(&g->rec.mgid), request->port->sm_lid);
	g->asked_states = states;
	if (!ret)
		step(g, sent);
	return ret;
}

static int ask_within(struct cm_group *g, enum cm_group_event sent, uint64_t mask,
                      const struct wire_mcmember *rec, int timeout_ms)
{
	struct cm_sa_request request = { .method = sent == CM_GROUP_DELETES ? MAD_DELETE : MAD_SET,
		                         .attribute = SA_ATTR_MCMEMBER,
		                         .layout = &wire_mcmember_layout,
		                         .record = rec,
		                         .mask = mask,
		                         .timeout_ms = timeout_ms };

	return send_request(g, &request, sent, rec->join_state);
}

void cm_group_ask(struct cm_group *g, const uint8_t *mad, uint8_t method, uint8_t states)
{
	struct cm_sa_request request = { .mad = mad, .method = method, .timeout_ms = TIMEOUT_MS };

	send_request(g, &request,
	             method == MAD_SET ? CM_GROUP_PROGRAM_SETS : CM_GROUP_PROGRAM_DELETES, states);
}

static int ask(struct cm_group *g, enum cm_group_event sent, uint64_t mask,
               const struct wire_mcmember *rec)
{
	return ask_within(g, sent, mask, rec, TIMEOUT_MS);
}

static uint8_t states_held(const struct cm_group *g)
{
	uint8_t states = g->left_behind;

	for (unsigned i = 0; i < CM_GROUP_STATES; i++)
		if (g->held[i].joins || g->held[i].programs)
			states |= (uint8_t)(1u << i);
	return states;
}

/* Leaves the states that nobody holds. A port that is down need not: the SA removes it. */
static void ask_to_leave(struct cm_group *g)
{
	struct wire_mcmember rec = { .mgid = g->rec.mgid, .port_gid = g->rec.port_gid };

	rec.join_state = (uint8_t)((g->rec.join_state | g->doubtful) & ~states_held(g));
	g->rec.join_state &= states_held(g);
	g->doubtful = 0;
	if (g->port->port->ethernet) {
		cm_roce_leave(g->port, &rec.mgid, rec.join_state);
		return;
	}
	if (rec.join_state && has_mgid(&rec) && g->port->port->state == IB_PORT_ACTIVE)
		ask(g, CM_GROUP_DELETES, SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE, &rec);
}

/* ---- the queue ---- */

static unsigned *held(struct cm_group *g, const struct cm_join *j)
{
	return &g->held[__builtin_ctz(j->want.join_state)].joins;
}

/* Whether the port is a member already as the join wants it. */
static bool fits(const struct wire_mcmember *g, const struct cm_join *j)
{
	const struct wire_mcmember *r = &j->want;

	if (g->qkey != r->qkey || g->tclass != r->tclass || g->sl != r->sl ||
	    g->flow_label != r->flow_label || !ib_pkey_match(g->pkey, r->pkey))
		return false;
	if (!(j->mask & SA_MCM_MTU))
		return true;
	return g->mtu == r->mtu && g->rate == r->rate && g->hop_limit == r->hop_limit;
}

static void fail(struct cm_group *g, struct cm_join *j, int status)
{
	TAILQ_REMOVE(&g->pending, j, of_group);
	j->group = NULL;
	cm_multicast_done(j, status, NULL);
}

/* The port is a member in the join's state. The join is done, if it fits the group. */
static void admit(struct cm_group *g, struct cm_join *j)
{
	if (!fits(&g->rec, j)) {
		fail(g, j, -EINVAL);
		return;
	}
	TAILQ_REMOVE(&g->pending, j, of_group);
	TAILQ_INSERT_TAIL(&g->members, j, of_group);
	base_log_trace(join, "%s:%u: member of %s; joins that share it: %u",
	               g->port->port->node->name, g->port->port->num, wire_gid_text(&g->rec.mgid),
	               *held(g, j) + 1);
	j->is_member = true;
	j->generation = g->generation;
	++*held(g, j);
	cm_multicast_done(j, 0, &g->rec);
}

/* Ethernet: there is no SA to ask. */
static void join_ethernet(struct cm_group *g, struct cm_join *j)
{
	int ret = cm_roce_join(g->port, &j->want);

	if (ret) {
		fail(g, j, ret);
		return;
	}
	g->rec.join_state |= j->want.join_state;
	admit(g, j);
}

/* Tells the SA of the states that somebody holds. */
static void ask_to_renew(struct cm_group *g)
{
	struct wire_mcmember rec = g->rec;

	rec.join_state = g->rec.join_state & states_held(g);
	rec.mtu_selector = rec.rate_selector = SA_EXACTLY;
	if (rec.join_state &&
	    ask_within(g, CM_GROUP_REREGISTERS, RENEW_MASK, &rec, RENEW_MS << g->renew_round))
		base_log_warning(cm, "out of memory: a member is not registered again");
	if (!cm_group_is_asking(g->state))
		step(g, CM_GROUP_WITHDRAWN);
}

/* The group's former members hear that it was reset: up to @n. Returns their number. */
static unsigned tell_lost(struct cm_group *g, unsigned n)
{
	struct cm_join *j;
	unsigned told = 0;

	for (; told < n && (j = TAILQ_FIRST(&g->lost)); told++) {
		TAILQ_REMOVE(&g->lost, j, of_group);
		j->group = NULL;
		cm_multicast_lost(j);
	}
	return told;
}

/* Lets a pending join in, or asks the SA to. */
static void begin_join(struct cm_group *g, struct cm_join *j)
{
	if (g->rec.join_state & j->want.join_state) {
		admit(g, j);
	} else if (g->port->port->ethernet) {
		join_ethernet(g, j);
	} else if (ask(g, CM_GROUP_SETS, j->mask, &j->want)) {
		fail(g, j, -ENOMEM);
	} else {
		g->asking = j;
		g->programs_turn = true;
	}
}

static bool has_work(const struct cm_group *g)
{
	return !TAILQ_EMPTY(&g->pending) || !TAILQ_EMPTY(&g->requests);
}

/* By turns, but for a join that needs no request. */
static bool is_programs_turn(const struct cm_group *g)
{
	const struct cm_join *j = TAILQ_FIRST(&g->pending);

	if (!j || TAILQ_EMPTY(&g->requests))
		return !j;
	return g->programs_turn && !(g->rec.join_state & j->want.join_state);
}

/* Begins with what is asked of the group, up to @n, until a request is out. How many. */
static unsigned begin_some(struct cm_group *g, unsigned n)
{
	unsigned begun = 0;

	for (; begun < n && !cm_group_is_asking(g->state) && has_work(g); begun++) {
		if (is_programs_turn(g))
			cm_program_begin(g);
		else
			begin_join(g, TAILQ_FIRST(&g->pending));
	}
	return begun;
}

/* Works until a request is out, nothing is left to do, or others are to have a turn. The group may
 * be freed. */
static void go_on(struct cm_group *g)
{
	unsigned n = tell_lost(g, AT_ONCE);

	if (g->state == CM_GROUP_REREGISTER_DUE)
		ask_to_renew(g);
	n += begin_some(g, AT_ONCE - n);
	g->port->cm->worked += n;
	set_busy(g, !TAILQ_EMPTY(&g->lost) || (!cm_group_is_asking(g->state) && has_work(g)));
	if (g->is_busy) {
		cm_sweep_later(g->port->cm);
		return;
	}
	if (!cm_group_is_asking(g->state))
		ask_to_leave(g);
	if (!cm_group_is_asking(g->state) && TAILQ_EMPTY(&g->members) && !g->n_memberships &&
	    !g->left_behind)
		group_free(g);
}

/* The SA has let the port in. */
static void use_record(struct cm_group *g, const struct fabric_mad *response)
{
	const uint8_t ours = g->rec.join_state | g->asked_states;
	struct wire_mcmember rec;

	wire_mcmember_decode(cm_sa_record(response), &rec);
	if (g->is_hashed)
		rec.mgid = g->rec.mgid;
	rec.port_gid = g->rec.port_gid;
	rec.join_state = ours; /* a proxy may have joined in other states */
	g->rec = rec;
	g->doubtful &= (uint8_t)~ours;
	g->leave_retries = LEAVE_RETRIES;
	if (!g->is_hashed)
		group_hash_in(g); /* without memory it is its first join's alone */
}

static void reset(struct cm_group *g);
static bool hear_of_changes(struct cm_group *g);

/* Whether what the members have been told of the group still holds. */
static bool is_unchanged(const struct cm_group *g, const struct fabric_mad *response)
{
	struct wire_mcmember rec;

	wire_mcmember_decode(cm_sa_record(response), &rec);
	return rec.mlid == g->rec.mlid && rec.qkey == g->rec.qkey && rec.sl == g->rec.sl &&
	       rec.tclass == g->rec.tclass && rec.flow_label == g->rec.flow_label &&
	       rec.hop_limit == g->rec.hop_limit;
}

/* The SA has responded, or not, to a renewal. The group may be freed. */
static void renewed(struct cm_group *g, int status, const struct fabric_mad *response)
{
	if (!status && is_unchanged(g, response)) {
		go_on(g);
		return;
	}
	if (status == -ETIMEDOUT && ++g->renew_round < RENEW_ROUNDS) {
		step(g, CM_GROUP_HAS_NEW_SA);
		go_on(g);
		return;
	}
	reset(g);
}

static void asked_to_join(struct cm_group *g, int status, const struct fabric_mad *response)
{
	if (!status)
		use_record(g, response);
	if (status == -ETIMEDOUT) /* the response may be what was lost */
		g->doubtful |= g->asked_states;
}

static void asked_to_leave(struct cm_group *g, int status)
{
	if (status != -EINVAL)
		g->rec.join_state &= (uint8_t)~g->asked_states;
	if (status != -ETIMEDOUT || !g->leave_retries)
		return;
	g->leave_retries--;
	g->doubtful |= g->asked_states;
}

static void on_response(void *arg, int status, const struct fabric_mad *response)
{
	struct cm_group *g = arg;
	struct cm_join *j = g->asking;
	const enum cm_group_state was = g->state;

	g->asked = NULL;
	g->asking = NULL;
	step(g, CM_GROUP_ANSWERED);
	base_log_trace(join, "%s:%u: the SA's response for %s: %s", g->port->port->node->name,
	               g->port->port->num, wire_gid_text(&g->rec.mgid),
	               status ? strerror(-status) : "done");
	if (g->seen != g->port->changes && hear_of_changes(g)) {
		g->doubtful |= g->asked_states; /* the response is from before the change */
		go_on(g);
		return;
	}
	if (was == CM_GROUP_REREGISTERING) {
		renewed(g, status, response);
		return;
	}
	if (was == CM_GROUP_JOINING || was == CM_GROUP_PROGRAM_JOINING)
		asked_to_join(g, status, response);
	else
		asked_to_leave(g, status);
	if (cm_group_asks_for_program(was))
		cm_program_answered(g, status, response);
	else if (status && j)
		fail(g, j, status);
	go_on(g);
}

/* ---- joins ---- */

int cm_group_join(struct cm_join *j)
{
	struct cm_port *p = cm_port_of(j->id->client->cm, j->id->port);
	struct cm_group *g = cm_group_get(p, &j->want);

	if (!g)
		return -ENOMEM;
	j->group = g;
	j->is_member = false;
	TAILQ_INSERT_TAIL(&g->pending, j, of_group);
	cm_group_go_on(g);
	return 0;
}

void cm_group_leave(struct cm_join *j)
{
	struct cm_group *g = j->group;

	if (!g)
		return;
	hear_of_changes(g);
	j->group = NULL;
	if (j->is_member && j->generation == g->generation) {
		TAILQ_REMOVE(&g->members, j, of_group);
		--*held(g, j);
	} else if (j->is_member) {
		TAILQ_REMOVE(&g->lost, j, of_group);
	} else {
		TAILQ_REMOVE(&g->pending, j, of_group);
	}
	if (g->asking == j)
		g->asking = NULL;
	go_on(g);
}

/* ---- changes of the port ---- */

static void withdraw_request(struct cm_group *g)
{
	if (cm_group_is_asking(g->state))
		g->doubtful |= g->asked_states;
	cm_mad_cancel(&g->asked);
	g->asking = NULL;
	step(g, CM_GROUP_WITHDRAWN);
}

/* The states of @g that programs have joined in. */
static uint8_t states_of_programs(const struct cm_group *g)
{
	uint8_t states = g->left_behind;

	for (unsigned i = 0; i < CM_GROUP_STATES; i++)
		if (g->held[i].programs)
			states |= (uint8_t)(1u << i);
	return states;
}

/* Its members are lost, and pending joins and requests start again, by go_on(). States in which a
 * program has joined are not left: the SA may still know it. */
static void lose_members(struct cm_group *g)
{
	TAILQ_CONCAT(&g->lost, &g->members, of_group);
	g->generation++;
	g->doubtful |= g->rec.join_state & (uint8_t)~states_of_programs(g);
	memset(g->held, 0, sizeof(g->held));
	g->left_behind = 0;
	g->rec.join_state = 0;
	withdraw_request(g);
}

/* The group may be freed. */
static void reset(struct cm_group *g)
{
	lose_members(g);
	go_on(g);
}

/* The SA is to be told of its members again, by go_on(). States that only a leave was to end are in
 * doubt no more: the new SA knows of none. */
static void renew(struct cm_group *g)
{
	withdraw_request(g);
	g->doubtful = 0;
	g->left_behind = 0;
	g->rec.join_state &= states_held(g);
	g->renew_round = 0;
	if (g->rec.join_state)
		step(g, CM_GROUP_HAS_NEW_SA);
}

/* Whether it concerns the group. */
static bool change(struct cm_group *g, enum cm_port_change what)
{
	uint16_t index;

	if (what == CM_PORT_PKEYS && !cm_port_pkey_index(g->port->port, g->rec.pkey, &index))
		return false;
	if (what == CM_PORT_RENEW)
		renew(g);
	else
		lose_members(g);
	return true;
}

/* The oldest change of the port after number @seen; there is one. */
static enum cm_port_change next_change(const struct cm_port *p, uint64_t seen)
{
	unsigned next = 0;

	for (unsigned i = 1; i < CM_PORT_CHANGES; i++)
		if (p->changed[i] > seen &&
		    (p->changed[next] <= seen || p->changed[i] < p->changed[next]))
			next = i;
	return (enum cm_port_change)next;
}

/* Changes of the port that the group has not seen yet, in their order. Whether one concerns it:
 * then go_on() is due. */
static bool hear_of_changes(struct cm_group *g)
{
	struct cm_port *p = g->port;
	bool concerned = false;

	while (g->seen != p->changes) {
		enum cm_port_change next = next_change(p, g->seen);

		g->seen = p->changed[next];
		concerned |= change(g, next);
	}
	TAILQ_REMOVE(&p->groups, g, of_port);
	TAILQ_INSERT_TAIL(&p->groups, g, of_port);
	return concerned;
}

void cm_group_go_on(struct cm_group *g)
{
	hear_of_changes(g);
	go_on(g);
}

static void note_change(struct cm_port *p, enum cm_port_change what)
{
	struct cm *cm = p->cm;

	if (TAILQ_EMPTY(&p->groups))
		return;
	p->changed[what] = ++p->changes;
	if (!p->has_changed)
		TAILQ_INSERT_TAIL(&cm->changed, p, of_changed);
	p->has_changed = true;
	cm_sweep_begin(cm);
}

void cm_group_port_changed(struct cm_port *p)
{
	p->reset_ns = base_timers_now(p->cm->ops.timers);
	note_change(p, CM_PORT_RESET);
}

void cm_group_pkeys_changed(struct cm_port *p)
{
	note_change(p, CM_PORT_PKEYS);
}

void cm_group_renew(struct cm_port *p)
{
	note_change(p, CM_PORT_RENEW);
}

/* ---- slices ---- */

bool cm_groups_wait(const struct cm *cm)
{
	return !TAILQ_EMPTY(&cm->changed) || !TAILQ_EMPTY(&cm->busy);
}

/* The next group of the next port that has changed hears of it. */
static void tell_next(struct cm *cm)
{
	struct cm_port *p = TAILQ_FIRST(&cm->changed);
	struct cm_group *g = p ? TAILQ_FIRST(&p->groups) : NULL;

	if (!p)
		return;
	TAILQ_REMOVE(&cm->changed, p, of_changed);
	p->has_changed = g && g->seen != p->changes;
	if (!p->has_changed)
		return;
	TAILQ_INSERT_TAIL(&cm->changed, p, of_changed);
	if (hear_of_changes(g))
		go_on(g);
}

void cm_groups_work(struct cm *cm)
{
	struct cm_group *g;

	tell_next(cm);
	g = TAILQ_FIRST(&cm->busy);
	if (g)
		cm_group_go_on(g);
}
