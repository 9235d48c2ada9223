/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast groups: see groups.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "ipoib/groups.h"
#include "wire/mgid.h"

#define SECOND_NS   1000000000ull
#define RENEW_NS    (5 * SECOND_NS)
#define MAX_IDLE    12 /* times of it */
#define MAX_BACKOFF 4  /* 16 s */

static uint64_t hash_of(const struct ib_gid *mgid)
{
	return base_hash_of(mgid, sizeof(*mgid), 0);
}

static struct ipoib_group *find(const struct ipoib_groups *t, const struct ib_gid *mgid)
{
	struct ipoib_group *g;

	BASE_HASH_FOREACH(g, &t->by_mgid, hash_of(mgid), node)
		if (ib_gid_equal(&g->mgid, mgid))
			return g;
	return NULL;
}

static struct ipoib_group *get(struct ipoib_groups *t, const struct ib_gid *mgid)
{
	struct ipoib_group *g = find(t, mgid);

	if (g || t->by_mgid.n >= IPOIB_GROUPS_MAX)
		return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->table = t;
	g->mgid = *mgid;
	ipoib_queue_init(&g->queue, t->budget);
	if (base_hash_add(&t->by_mgid, &g->node, hash_of(mgid))) {
		free(g);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&t->all, g, entry);
	return g;
}

static void detach(struct ipoib_group *g)
{
	if (g->attached)
		ipoib_link_detach(g->table->link, &g->mgid, g->mlid);
	g->attached = false;
	ipoib_link_retire_ah(g->table->link, g->ah);
	g->ah = NULL;
}

static void forget(struct ipoib_group *g)
{
	struct ipoib_groups *t = g->table;

	t->dropped += ipoib_queue_drop(&g->queue);
	base_timer_stop(&g->timer);
	ipoib_sa_cancel(t->sa, &g->request);
	detach(g);
	TAILQ_REMOVE(&t->all, g, entry);
	base_hash_remove(&t->by_mgid, &g->node);
	free(g);
}

int ipoib_groups_init(struct ipoib_groups *t)
{
	struct ib_gid mgid;

	TAILQ_INIT(&t->all);
	wire_mgid_broadcast(&mgid, t->port->pkey | IB_PKEY_FULL_MEMBER);
	t->broadcast = get(t, &mgid);
	if (!t->broadcast)
		return -ENOMEM;
	t->broadcast->wanted = true;
	return 0;
}

void ipoib_groups_fini(struct ipoib_groups *t)
{
	struct ipoib_group *g;

	while ((g = TAILQ_FIRST(&t->all)))
		forget(g);
	base_hash_fini(&t->by_mgid);
}

/* ---- joining ---- */

#define JOIN_MASK      (SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_PKEY | SA_MCM_JOIN_STATE)
#define CREATE_MASK    (SA_MCM_QKEY | SA_MCM_TCLASS | SA_MCM_SL | SA_MCM_FLOW_LABEL)
#define BROADCAST_MASK (SA_MCM_MTU_SELECTOR | SA_MCM_MTU | SA_MCM_RATE_SELECTOR | SA_MCM_RATE)

static void joined(struct ipoib_sa_request *r, int status, const uint8_t *record);

/* With which components a request joins the group, or makes it: the broadcast group's parameters,
 * or, of the broadcast group itself once the SA does not have it, the usual ones. */
static uint64_t fill(const struct ipoib_group *g, struct wire_mcmember *rec)
{
	const struct ipoib_groups *t = g->table;
	bool is_broadcast = g == t->broadcast;

	*rec = t->parameters;
	if (is_broadcast)
		*rec = (struct wire_mcmember){ .qkey = IPOIB_QKEY };
	rec->mgid = g->mgid;
	rec->port_gid = t->port->gid;
	rec->pkey = t->port->pkey | IB_PKEY_FULL_MEMBER;
	rec->join_state = g->asked;
	rec->mtu_selector = rec->rate_selector = SA_EXACTLY;
	if (is_broadcast)
		return g->create ? JOIN_MASK | CREATE_MASK : JOIN_MASK;
	if (g->asked & IB_JOIN_FULL)
		return JOIN_MASK | CREATE_MASK | BROADCAST_MASK;
	return JOIN_MASK;
}

static void try_again(struct base_timer *timer);

static void ask(struct ipoib_group *g)
{
	struct ipoib_groups *t = g->table;
	struct wire_mcmember rec;
	struct ipoib_sa_query query = { .method = MAD_SET,
		                        .attribute = SA_ATTR_MCMEMBER,
		                        .layout = &wire_mcmember_layout,
		                        .record = &rec };

	g->asked = g->wanted ? IB_JOIN_FULL : IB_JOIN_SEND_ONLY_NON;
	g->request.done = joined;
	query.mask = fill(g, &rec);
	if (ipoib_sa_send(t->sa, &query, &g->request))
		base_timer_set_in(t->timers, &g->timer, SECOND_NS, try_again);
	else
		base_timer_stop(&g->timer);
}

/* Whether it may be joined now. */
static bool can_ask(const struct ipoib_group *g)
{
	const struct ipoib_groups *t = g->table;

	return t->active && !g->request.tid &&
	       (g == t->broadcast || !ib_gid_is_zero(&t->parameters.mgid));
}

static void try_again(struct base_timer *timer)
{
	struct ipoib_group *g = container_of(timer, struct ipoib_group, timer);

	if (!g->wanted && !g->used) {
		forget(g);
		return;
	}
	g->used = false;
	if (can_ask(g))
		ask(g);
}

static void leave(struct ipoib_group *g)
{
	struct ipoib_groups *t = g->table;
	struct wire_mcmember rec = { .mgid = g->mgid,
		                     .port_gid = t->port->gid,
		                     .join_state = g->joined };
	struct ipoib_sa_query query = { .method = MAD_DELETE,
		                        .attribute = SA_ATTR_MCMEMBER,
		                        .mask = SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE,
		                        .layout = &wire_mcmember_layout,
		                        .record = &rec };

	/* The SA may have let us in by a request whose response has not come. */
	if (g->request.tid)
		rec.join_state |= g->asked;
	if (t->active && rec.join_state)
		ipoib_sa_send(t->sa, &query, NULL);
	g->joined = 0;
}

/*
 * A group ends with its last full member, and nobody tells its senders. Another member may have
 * made it anew since, without us. So a sender joins again and again.
 */
static void renew(struct base_timer *timer)
{
	struct ipoib_group *g = container_of(timer, struct ipoib_group, timer);

	if (g->wanted)
		return;
	if (!g->used && ++g->idle == MAX_IDLE) {
		leave(g);
		forget(g);
		return;
	}
	base_timer_set_in(g->table->timers, &g->timer, RENEW_NS, renew);
	if (!g->used)
		return;
	g->used = false;
	g->idle = 0;
	if (can_ask(g))
		ask(g);
}

/* Whether the SA's status means that the group is not there, if the request does not say how to
 * make it. */
static bool is_missing(int status)
{
	return status == SA_REQ_INVALID || status == SA_NO_RECORDS ||
	       status == SA_INSUFFICIENT_COMPONENTS;
}

/* No member: packets that wait are dropped. The next packets do not have the SA asked again at
 * once. */
static void failed(struct ipoib_group *g, int status)
{
	struct ipoib_groups *t = g->table;
	unsigned backoff = g->failures < MAX_BACKOFF ? g->failures : MAX_BACKOFF;

	g->create = g == t->broadcast && !g->create && is_missing(status);
	if (g->create) {
		ask(g);
		return;
	}
	g->failures++;
	if (status > 0) { /* what we knew is over; without an SA it may still be true */
		g->joined = 0;
		detach(g);
	}
	t->dropped += ipoib_queue_drop(&g->queue);
	base_timer_set_in(t->timers, &g->timer, SECOND_NS << backoff, try_again);
}

/* Asks for what could not be asked for before. */
static void start_waiting(struct ipoib_groups *t)
{
	struct ipoib_group *g;

	TAILQ_FOREACH(g, &t->all, entry)
	{
		bool refused = g->failures && base_timer_is_set(&g->timer);
		bool waits = g->wanted ? !(g->joined & IB_JOIN_FULL) : g->queue.n > 0;

		if (waits && !refused && can_ask(g))
			ask(g);
	}
}

/* Makes the queue pair and the address handle fit the record. */
static int take_record(struct ipoib_group *g, const struct wire_mcmember *rec)
{
	struct ipoib_groups *t = g->table;
	struct ipoib_way way = { .gid = g->mgid,
		                 .lid = rec->mlid,
		                 .sl = rec->sl,
		                 .flow_label = rec->flow_label,
		                 .hop_limit = rec->hop_limit,
		                 .traffic_class = rec->tclass,
		                 .global = true };
	int ret = 0;

	if (g->attached && g->mlid != rec->mlid) {
		ipoib_link_detach(t->link, &g->mgid, g->mlid);
		g->attached = false;
	}
	g->mlid = rec->mlid;
	if ((g->joined & IB_JOIN_FULL) && !g->attached) {
		ret = ipoib_link_attach(t->link, &g->mgid, g->mlid);
		g->attached = !ret;
	}
	ipoib_link_retire_ah(t->link, g->ah);
	g->ah = ipoib_link_ah(t->link, &way);
	return g->ah ? ret : -ENOMEM;
}

static void joined(struct ipoib_sa_request *r, int status, const uint8_t *record)
{
	struct ipoib_group *g = container_of(r, struct ipoib_group, request);
	struct ipoib_groups *t = g->table;
	struct wire_mcmember rec;
	struct ipoib_held *held;

	if (status) {
		failed(g, status);
		return;
	}
	wire_mcmember_decode(record, &rec);
	g->joined |= g->asked;
	if (!ib_lid_is_mcast(rec.mlid) || take_record(g, &rec)) {
		failed(g, SA_OK);
		return;
	}
	g->failures = 0;
	g->create = false;
	if (g == t->broadcast) {
		t->parameters = rec;
		t->ready(t->arg, &rec);
		start_waiting(t);
	} else {
		g->used = true;
		base_timer_set_in(t->timers, &g->timer, RENEW_NS, renew);
	}
	while ((held = ipoib_queue_take(&g->queue))) {
		t->send(t->arg, g->ah, &held->packet);
		ipoib_held_free(held);
	}
	/* a socket has joined meanwhile */
	if (g->wanted && !(g->joined & IB_JOIN_FULL) && can_ask(g))
		ask(g);
}

void ipoib_groups_rejoin(struct ipoib_groups *t)
{
	struct ipoib_group *g;

	t->active = true;
	TAILQ_FOREACH(g, &t->all, entry)
	{
		g->joined = 0;
		g->failures = 0;
		ipoib_sa_cancel(t->sa, &g->request);
		if ((g->wanted || g->ah || g->queue.n) && can_ask(g))
			ask(g);
	}
}

void ipoib_groups_stop(struct ipoib_groups *t)
{
	struct ipoib_group *g, *next;

	t->active = false;
	for (g = TAILQ_FIRST(&t->all); g; g = next) {
		next = TAILQ_NEXT(g, entry);
		ipoib_sa_cancel(t->sa, &g->request);
		base_timer_stop(&g->timer);
		g->joined = 0;
		if (!g->wanted)
			forget(g);
	}
}

struct ibv_ah *ipoib_groups_use(struct ipoib_groups *t, const struct ib_gid *mgid,
                                const struct ipoib_packet *p)
{
	struct ipoib_group *g = get(t, mgid);

	if (!g || !t->active) {
		t->dropped++;
		return NULL;
	}
	g->used = true;
	if (g->ah)
		return g->ah;
	if (!g->request.tid && base_timer_is_set(&g->timer)) { /* refused a moment ago */
		t->dropped++;
		return NULL;
	}
	if (can_ask(g))
		ask(g);
	t->dropped += !ipoib_queue_add(&g->queue, p, IB_QPN_MCAST);
	return NULL;
}

/* ---- what sockets have joined ---- */

void ipoib_groups_want_begin(struct ipoib_groups *t)
{
	struct ipoib_group *g;

	TAILQ_FOREACH(g, &t->all, entry)
	g->mark = g == t->broadcast;
}

/* Forgets the oldest group that is only sent to. */
static bool make_room(struct ipoib_groups *t)
{
	struct ipoib_group *g;

	TAILQ_FOREACH(g, &t->all, entry)
	{
		if (g->wanted)
			continue;
		leave(g);
		forget(g);
		return true;
	}
	return false;
}

void ipoib_groups_want(struct ipoib_groups *t, const struct ib_gid *mgid)
{
	struct ipoib_group *g = get(t, mgid);

	if (!g &&
	    make_room(t)) /* a sender to ever more groups must not keep sockets from joining */
		g = get(t, mgid);
	if (!g)
		return;
	if (!g->wanted) /* what was refused was to send */
		g->failures = 0;
	g->mark = true;
	g->wanted = true;
}

void ipoib_groups_want_end(struct ipoib_groups *t)
{
	struct ipoib_group *g, *next;

	for (g = TAILQ_FIRST(&t->all); g; g = next) {
		next = TAILQ_NEXT(g, entry);
		if (!g->wanted || g->mark)
			continue;
		g->wanted = false;
		leave(g);
		forget(g);
	}
	start_waiting(t);
}
