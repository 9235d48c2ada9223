/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Groups that reach beyond the subnet. Each end of a router tells the other which groups are wanted
 * there: those to which queue pairs are attached in its subnet, or in one behind it, with the
 * number of subnets up to the nearest. So what nobody wants any more ends, in circles of routers
 * too. A router's port is a member of all groups that are wanted on any side, as a sender and as a
 * receiver, by MADs to its SA. It does not create them: until somebody joins in this subnet, the SA
 * refuses, and is asked again.
 *
 * A subnet may have thousands: changes are served in slices.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon/router/router.h"
#include "wire/sa_records.h"

#define MOST_GROUPS 16384
#define MOST_WANTED 12288                     /* by others: so that some are left for this subnet */
#define AT_ONCE     64                        /* groups, before others have a turn */
#define ANSWER_NS   (3000 * DAEMON_NS_PER_MS) /* so long the SA is waited for */
#define RETRY_NS    (100 * DAEMON_NS_PER_MS)  /* and then asked again; twice as long each time, */
#define RETRIES     5                         /* up to so many times */
#define LATER_NS    (100 * DAEMON_NS_PER_MS)
#define JOIN_MASK   (SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE)

enum membership { OUT, ASKED, IN };

struct router_wide {
	struct base_hash_node node; /* by MGID */
	struct daemon_routers *all;
	struct ib_gid mgid;
	uint32_t number;
	unsigned attached; /* queue pairs of this subnet */
	TAILQ_ENTRY(router_wide) entry;
	bool is_busy;
	struct base_timer again;
	struct place {
		uint8_t wanted; /* hops, that the other end has told; 0: it is not */
		uint8_t told;   /* likewise, that it was told */
		uint8_t member; /* enum membership */
		uint8_t refused;
		uint16_t mlid;   /* kept while the SA is asked again */
		uint8_t sl;      /* likewise: the group's */
		uint16_t serial; /* of the last request */
		uint64_t due_ns; /* ASKED: the answer; OUT: the next request */
	} at[FABRIC_ROUTERS];
};

static struct router_wide *find(const struct daemon_routers *all, const struct ib_gid *mgid)
{
	struct router_wide *g;

	BASE_HASH_FOREACH(g, &all->groups, base_hash_of(mgid, 16, 0), node)
		if (ib_gid_equal(&g->mgid, mgid))
			return g;
	return NULL;
}

static const struct place *place_of(const struct daemon_router *r, const struct ib_gid *mgid)
{
	const struct router_wide *g = find(r->all, mgid);

	return g ? &g->at[r->port->router - 1] : NULL;
}

bool router_group_is_wanted(const struct daemon_router *r, const struct ib_gid *mgid)
{
	const struct place *p = place_of(r, mgid);

	return p && p->wanted;
}

uint16_t router_group_mlid(const struct daemon_router *r, const struct ib_gid *mgid, uint8_t *sl)
{
	const struct place *p = place_of(r, mgid);

	if (p)
		*sl = p->sl;
	return p ? p->mlid : 0;
}

unsigned router_groups_count(const struct daemon_router *r)
{
	const struct base_hash *h = &r->all->groups;
	unsigned n = 0;

	for (struct base_hash_node *at = base_hash_walk(h, NULL); at; at = base_hash_walk(h, at))
		n += container_of(at, struct router_wide, node)->at[r->port->router - 1].member ==
		     IN;
	return n;
}

/* ---- what is to be done ---- */

static void work(struct daemon_routers *all);

static void on_work(struct base_timer *t)
{
	work(container_of(t, struct daemon_routers, work));
}

static void set_busy(struct router_wide *g)
{
	struct daemon_routers *all = g->all;

	base_timer_stop(&g->again);
	if (!g->is_busy)
		TAILQ_INSERT_TAIL(&all->busy, g, entry);
	g->is_busy = true;
	if (!base_timer_is_set(&all->work))
		base_timer_set_in(&all->loop->timers, &all->work, 0, on_work);
}

static void on_again(struct base_timer *t)
{
	set_busy(container_of(t, struct router_wide, again));
}

static void group_free(struct router_wide *g)
{
	struct daemon_routers *all = g->all;

	if (g->is_busy)
		TAILQ_REMOVE(&all->busy, g, entry);
	base_timer_stop(&g->again);
	base_hash_remove(&all->groups, &g->node);
	base_idtable_remove(&all->numbers, g->number);
	free(g);
}

/* NULL: no memory, or too many. */
static struct router_wide *group_new(struct daemon_routers *all, const struct ib_gid *mgid)
{
	struct router_wide *g = NULL;
	int ret = -ENOSPC;

	if (all->numbers.used < MOST_GROUPS) {
		g = calloc(1, sizeof(*g));
		ret = -ENOMEM;
	}
	if (g) {
		g->all = all;
		g->mgid = *mgid;
		ret = base_idtable_add(&all->numbers, g, &g->number);
	}
	if (!ret && base_hash_add(&all->groups, &g->node, base_hash_of(mgid, 16, 0))) {
		base_idtable_remove(&all->numbers, g->number);
		ret = -ENOMEM;
	}
	if (!ret)
		return g;
	free(g);
	if (!all->said_many)
		base_log_warning(daemon, "routers: no room for more than %u groups", MOST_GROUPS);
	all->said_many = true;
	return NULL;
}

/* ---- the SA ---- */

static uint64_t tid_of(const struct router_wide *g, unsigned i)
{
	return (uint64_t)g->at[i].serial << 32 | g->number << 4 | i;
}

static void ask(struct router_wide *g, struct daemon_router *r, uint8_t method)
{
	const unsigned i = r->port->router - 1u;
	struct wire_mcmember rec = { .mgid = g->mgid, .join_state = IB_JOIN_FULL };
	struct wire_sa_mad sa = { .mad = { .base_version = MAD_BASE_VERSION,
		                           .mgmt_class = MAD_CLASS_SUBN_ADM,
		                           .class_version = MAD_VERSION_SUBN_ADM,
		                           .method = method,
		                           .attribute_id = SA_ATTR_MCMEMBER },
		                  .component_mask = JOIN_MASK };
	struct fabric_mad mad = { .slid = r->port->lid,
		                  .dlid = r->port->sm_lid,
		                  .src_qpn = IB_QPN_GSI,
		                  .dest_qpn = IB_QPN_GSI,
		                  .qkey = IB_QKEY_GSI,
		                  .sl = r->port->sm_sl };

	g->at[i].serial++;
	sa.mad.transaction_id = tid_of(g, i);
	fabric_gid_make(r->all->f, r->port->guid, &rec.port_gid);
	wire_mcmember_encode(&rec, sa.data);
	wire_sa_mad_encode(&sa, mad.data);
	if (cm_program_wants(r->program, &mad))
		cm_program_send(r->program, &mad);
}

/* At the latest after 3.2 s; with thousands of groups after up to 51 s, some 300 requests a second.
 */
static uint64_t retry_ns(const struct place *p, const struct daemon_routers *all)
{
	const unsigned most = RETRIES + all->numbers.used / 4096;

	return base_now_ns() + (RETRY_NS << (p->refused < most ? p->refused : most));
}

/* The SA's response to what the port has asked: of type cm_program_ops.respond. */
static void on_response(void *arg, struct fabric_port *port, const struct fabric_mad *mad)
{
	struct daemon_routers *all = arg;
	struct wire_mcmember rec;
	struct wire_sa_mad sa;
	struct router_wide *g;
	struct place *p;

	wire_sa_mad_decode(mad->data, &sa);
	g = base_idtable_get(&all->numbers, (uint32_t)sa.mad.transaction_id >> 4);
	if (!g || !port->router)
		return;
	p = &g->at[port->router - 1];
	if (p->member != ASKED || sa.mad.transaction_id != tid_of(g, port->router - 1u))
		return;
	wire_mcmember_decode(sa.data, &rec);
	if (!sa.mad.status && ib_lid_is_mcast(rec.mlid)) {
		p->member = IN;
		p->mlid = rec.mlid;
		p->sl = rec.sl;
		p->refused = 0;
	} else {
		p->member = OUT;
		p->mlid = 0;
		p->due_ns = retry_ns(p, all);
		p->refused += p->refused < UINT8_MAX;
	}
	set_busy(g);
}

/* ---- one group, one router ---- */

/* The hops to where it is wanted, as @r's other end is to be told; 0: nowhere. */
static uint8_t hops_for(const struct router_wide *g, const struct daemon_router *r)
{
	unsigned least = g->attached ? 0 : ROUTER_MAX_HOPS;

	for (unsigned i = 0; i < FABRIC_ROUTERS; i++)
		if (g->at[i].wanted && g->at[i].wanted < least &&
		    g->all->of[i].prefix != r->prefix) /* not what it has told itself */
			least = g->at[i].wanted;
	return least < ROUTER_MAX_HOPS ? (uint8_t)(least + 1) : 0;
}

static bool is_wanted(const struct router_wide *g)
{
	bool is = g->attached;

	for (unsigned i = 0; i < FABRIC_ROUTERS; i++)
		is |= g->at[i].wanted;
	return is;
}

/* False: the other end takes no more now. */
static bool tell(struct router_wide *g, struct daemon_router *r)
{
	struct place *p = &g->at[r->port->router - 1];
	struct router_message m = { .type = ROUTER_GROUP,
		                    .group = { .mgid = g->mgid, .hops = hops_for(g, r) } };

	if (m.group.hops == p->told)
		return true;
	if (r->link.waiting_bytes > ROUTER_MOST_TOLD || !router_link_send(&r->link, &m))
		return false;
	p->told = (uint8_t)m.group.hops;
	return true;
}

/* Joins or leaves. When there will be more to do; 0: not before something changes. */
static uint64_t join(struct router_wide *g, struct daemon_router *r, bool wanted)
{
	struct place *p = &g->at[r->port->router - 1];

	if (p->member == IN && !wanted) {
		ask(g, r, MAD_DELETE);
		*p = (struct place){ .wanted = p->wanted, .told = p->told, .serial = p->serial };
		return 0;
	}
	if (p->member == ASKED && base_now_ns() >= p->due_ns)
		p->member = OUT;
	if (p->member == OUT && wanted && base_now_ns() >= p->due_ns) {
		p->member = ASKED;
		p->due_ns = base_now_ns() + ANSWER_NS;
		ask(g, r, MAD_SET);
	}
	return p->member == IN || (p->member == OUT && !wanted) ? 0 : p->due_ns;
}

/* Serves the changes of one group; the group may be freed. */
static void go_on(struct router_wide *g)
{
	struct daemon_routers *all = g->all;
	const bool wanted = is_wanted(g);
	bool is_idle = !wanted, is_told = true;
	uint64_t next = 0;

	for (unsigned i = 0; i < all->f->routers->n; i++) {
		struct daemon_router *r = &all->of[i];
		uint64_t due;

		if (!r->is_up)
			continue;
		is_told &= tell(g, r);
		due = join(g, r, wanted);
		if (due && (!next || due < next))
			next = due;
		is_idle &= g->at[i].member == OUT && !g->at[i].told;
	}
	if (!is_told && (!next || next > base_now_ns() + LATER_NS))
		next = base_now_ns() + LATER_NS;
	if (is_idle && is_told)
		group_free(g);
	else if (next && !g->is_busy)
		base_timer_set(&all->loop->timers, &g->again, next, on_again);
}

static void work(struct daemon_routers *all)
{
	struct router_wide *g;

	for (unsigned n = 0; n < AT_ONCE && (g = TAILQ_FIRST(&all->busy)); n++) {
		TAILQ_REMOVE(&all->busy, g, entry);
		g->is_busy = false;
		go_on(g);
	}
	if (!TAILQ_EMPTY(&all->busy) && !base_timer_is_set(&all->work))
		base_timer_set_in(&all->loop->timers, &all->work, DAEMON_NS_PER_MS, on_work);
}

/* ---- what changes ---- */

/* Has all routers ask at once that the SA has refused: the group may exist now. Whether there are
 * any. */
static bool is_refused(struct router_wide *g)
{
	bool is = false;

	for (unsigned i = 0; i < FABRIC_ROUTERS; i++) {
		struct place *p = &g->at[i];

		if (p->member != OUT || !p->refused)
			continue;
		p->due_ns = p->refused = 0;
		is = true;
	}
	return is;
}

/* A queue pair was attached to a group, or detached: of type fabric_routers.attached. The router
 * asks to be a member before anybody else has a turn, so that it misses none of what the program
 * then sends. */
static void on_attached(void *arg, const struct ib_gid *mgid, int change)
{
	struct daemon_routers *all = arg;
	struct router_wide *g = find(all, mgid);

	if (!g && change > 0)
		g = group_new(all, mgid);
	if (!g)
		return;
	if (change > 0)
		g->attached++;
	else if (g->attached)
		g->attached--;
	if (change > 0 && (g->attached == 1 || is_refused(g)))
		go_on(g);
	else if (!g->attached)
		set_busy(g);
}

void router_group_heard(struct daemon_router *r, const struct router_group *m)
{
	struct router_wide *g = find(r->all, &m->mgid);

	if (!g && m->hops && r->all->numbers.used < MOST_WANTED)
		g = group_new(r->all, &m->mgid);
	if (!g)
		return;
	g->at[r->port->router - 1].wanted = (uint8_t)m->hops;
	set_busy(g);
}

/* Has all groups looked at, after @change has been done to each one's place of @r. */
static void change_all(struct daemon_router *r, void (*change)(struct place *p))
{
	const struct base_hash *h = &r->all->groups;

	for (struct base_hash_node *n = base_hash_walk(h, NULL); n; n = base_hash_walk(h, n)) {
		struct router_wide *g = container_of(n, struct router_wide, node);

		change(&g->at[r->port->router - 1]);
		set_busy(g);
	}
}

static void leave_all(struct place *p)
{
	*p = (struct place){ .serial = p->serial };
}

static void lose_membership(struct place *p)
{
	p->member = OUT;
	p->due_ns = p->refused = 0;
}

int router_groups_begin(struct daemon_router *r)
{
	const struct cm_program_ops ops = { .respond = on_response, .arg = r->all };
	int ret = cm_program_new(r->all->cm, r->port, &ops, &r->program);

	if (ret)
		return ret;
	cm_program_leave_at_end(r->program);
	change_all(r, leave_all);
	return 0;
}

void router_groups_end(struct daemon_router *r)
{
	if (!r->program)
		return;
	cm_program_free(r->program);
	r->program = NULL;
	change_all(r, leave_all);
}

void router_groups_reset(struct daemon_router *r)
{
	change_all(r, lose_membership);
}

void router_groups_init(struct daemon_routers *all)
{
	TAILQ_INIT(&all->busy);
	base_idtable_init(&all->numbers, MOST_GROUPS);
	if (!all->f->routers->n)
		return;
	all->f->routers->attached = on_attached;
	all->f->routers->arg = all;
}

void router_groups_fini(struct daemon_routers *all)
{
	struct base_hash_node *n;

	if (all->f)
		all->f->routers->attached = NULL;
	while ((n = base_hash_walk(&all->groups, NULL)))
		group_free(container_of(n, struct router_wide, node));
	base_timer_stop(&all->work);
	base_hash_fini(&all->groups);
	base_idtable_fini(&all->numbers);
}
