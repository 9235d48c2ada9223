/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The property of multicast on a whole fabric: ports join and leave, links and switches fail and
 * return, as chance has it, and after each step what a port sends reaches each full member that
 * it can reach once, and nobody else; no packet goes in a circle; the counters of the ports along
 * its way add up.
 *
 *	multicast topology SEED
 *	multicast walk SEED STEPS [settling]
 *
 * The former prints a topology for `umbel up`, the latter runs on a fabric of it, sees all hosts,
 * joins by MADs and by librdmacm, and takes all from public interfaces. Settling: the subnet
 * manager is not the embedded one, which has done all when a request is answered, but one that
 * takes its time. multicast.sh calls it.
 */
#include "fab.h"
#include "cm.h"
#include "sa.h"
#include "topology.h"
#include "ud.h"

#define GROUPS      3
#define MAX_PORTS   32
#define MAX_MEMBERS 256
#define SETTLE_S    30
#define FULL        1
#define NON         2
#define SEND_ONLY   4
#define SEND_FULL   8
#define MEMBER      0 /* the queue pair that is attached where the port is a member that receives */
#define STRAY       1 /* the one that is attached for no reason */

/* A port of an HCA with a cable, and what has been made of it. */
struct port {
	int end;
	struct ud ud;
	struct sa_port sa;
	struct cm cm;
	uint8_t joined[GROUPS];
	bool by_cm[GROUPS];                /* librdmacm has joined it, even if it is lost */
	uint16_t attached[GROUPS][UD_QPS]; /* the MLID it was done with; 0: it is not */
};

struct world {
	unsigned seed, rng, step;
	bool settling; /* the subnet manager takes its time */
	bool leaving;  /* librdmacm does: it does not wait for a response */
	char why[256]; /* what did not hold */
	struct fab f;
	bool cut[FAB_ENDS], dead[FAB_NODES];
	bool restarted[FAB_NODES]; /* since it was reached last */
	unsigned island[FAB_ENDS];
	struct port port[MAX_PORTS];
	unsigned n_ports;
	uint16_t mlid[GROUPS]; /* 0: nobody has made it */
	struct fab_counts counted;
	uint32_t number; /* of the last message */
};

/* The messages sent in one go: where they should go, and where they came out. */
struct round {
	unsigned n;
	uint32_t first;
	struct sent {
		unsigned from, group;
		struct fab_trip trip;
		unsigned copies[MAX_PORTS][UD_QPS];
	} sent[GROUPS * MAX_PORTS];
	unsigned taker; /* port that takes its messages */
	bool odd;       /* something came that was not sent in this round */
};

static unsigned any(struct world *w, unsigned n)
{
	return (unsigned)rand_r(&w->rng) % n;
}

static _Noreturn void fail(const struct world *w)
{
	printf("seed %u, step %u: %s\n", w->seed, w->step, w->why);
	exit(EXIT_FAILURE);
}

static bool complain(struct world *w, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static bool complain(struct world *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(w->why, sizeof(w->why), format, args);
	va_end(args);
	return false;
}

static void tell(const struct world *w, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static void tell(const struct world *w, const char *format, ...)
{
	va_list args;

	printf("step %u: ", w->step);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

static const uint8_t *mgid(unsigned group)
{
	static const uint8_t gids[GROUPS][16] = { { 0xFF, 0x12, 0xBE, 0x4C, [15] = 1 },
		                                  { 0xFF, 0x12, 0xBE, 0x4C, [15] = 2 },
		                                  { 0xFF, 0x12, 0xBE, 0x4C, [15] = 3 } };

	return gids[group];
}

/* "s1:4" */
static const char *name_of(const struct world *w, int end)
{
	static char text[4][96];
	static unsigned next;
	char *out = text[next++ % 4];

	snprintf(out, sizeof(text[0]), "%s:%u", w->f.node[w->f.end[end].node].name,
	         w->f.end[end].port);
	return out;
}

/* ---- the model: which ports are in the subnet, and members ---- */

/* Whether its cable and the switches at both ends are whole. */
static bool is_whole(const struct world *w, int end)
{
	int peer = w->f.end[end].peer;

	return !w->cut[end] && !w->cut[peer] && !w->dead[w->f.end[end].node] &&
	       !w->dead[w->f.end[peer].node];
}

/* Port 1 of h1, where the subnet administrator is. */
static bool is_reached(const struct world *w, int end)
{
	return is_whole(w, end) && w->island[end] == w->island[w->port[0].end];
}

/* Whether the subnet manager has it. The embedded one needs no links to get there. */
static bool is_managed(const struct world *w, int end)
{
	return w->settling ? is_reached(w, end) : is_whole(w, end);
}

static bool is_back_to_back(const struct world *w, int end)
{
	return !w->f.node[w->f.end[w->f.end[end].peer].node].is_switch;
}

static unsigned count_members(const struct world *w, unsigned group)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->n_ports; i++)
		n += w->port[i].joined[group] != 0;
	return n;
}

/* With its last full member a group goes. */
static void bury(struct world *w, unsigned group)
{
	for (unsigned i = 0; i < w->n_ports; i++)
		if (w->port[i].joined[group] & (FULL | SEND_FULL))
			return;
	for (unsigned i = 0; i < w->n_ports; i++)
		w->port[i].joined[group] = 0;
	w->mlid[group] = 0;
}

/* Ports that the subnet manager cannot see are members no more. */
static void lose_members(struct world *w)
{
	for (unsigned g = 0; g < GROUPS; g++) {
		for (unsigned i = 0; i < w->n_ports; i++)
			if (!is_managed(w, w->port[i].end))
				w->port[i].joined[g] = 0;
		bury(w, g);
	}
}

/* Islands of the model: the states of the ends may lag behind. */
static void find_islands(struct world *w)
{
	static struct fab f;

	f = w->f;
	for (unsigned i = 0; i < f.n_ends; i++)
		f.end[i].down = !is_whole(w, (int)i);
	fab_find_islands(&f, w->island);
}

/* ---- steps ---- */

static void attach(struct world *w, struct port *p, unsigned group, unsigned qp)
{
	p->attached[group][qp] = w->mlid[group];
	ud_attach(&p->ud, qp, mgid(group), w->mlid[group]);
}

static void detach(struct port *p, unsigned group, unsigned qp)
{
	if (p->attached[group][qp])
		ud_detach(&p->ud, qp, mgid(group), p->attached[group][qp]);
	p->attached[group][qp] = 0;
}

/* Asks again as long as a slow subnet manager may have reasons to refuse. */
static bool ask_again(bool takes_time, time_t *deadline)
{
	struct timespec moment = { .tv_nsec = 10000000 };

	if (!*deadline)
		*deadline = time(NULL) + SETTLE_S;
	if (!takes_time || time(NULL) > *deadline)
		return false;
	nanosleep(&moment, NULL);
	return true;
}

/*
 * librdmacm has two kinds of membership, and is asked for half of those. It needs to know the
 * port's broadcast group, which may take a while when the port has just been cut off.
 */
static int ask_to_join(struct world *w, struct port *p, unsigned group, uint8_t kind)
{
	uint16_t mlid;
	int status;

	if (p->by_cm[group])
		status = cm_join(&p->cm, mgid(group), kind == SEND_FULL, &mlid);
	else
		status = sa_join(&p->sa, mgid(group), kind, &mlid);
	if (!status)
		w->mlid[group] = mlid;
	return status;
}

static void join(struct world *w, struct port *p, unsigned group)
{
	static const uint8_t kinds[] = { FULL, FULL, FULL, NON, SEND_ONLY, SEND_FULL };
	uint8_t kind = kinds[any(w, sizeof(kinds))];
	bool refused = !w->mlid[group] && !(kind & (FULL | SEND_FULL));
	time_t deadline = 0;
	int status;

	p->by_cm[group] = (kind & (FULL | SEND_FULL)) && any(w, 2);
	tell(w, "%s joins group %u as %u%s", name_of(w, p->end), group, kind,
	     p->by_cm[group] ? " by librdmacm" : "");
	do
		status = ask_to_join(w, p, group, kind);
	while (status && (status < 0 || !refused) &&
	       ask_again(w->settling || (p->by_cm[group] && status == -EADDRNOTAVAIL), &deadline));
	if (refused != (status > 0) || status < 0) {
		complain(w, "the response to the join is %d", status);
		fail(w);
	}
	if (refused)
		return;
	p->joined[group] = kind;
	detach(p, group, MEMBER);
	if (kind & (FULL | NON))
		attach(w, p, group, MEMBER);
}

static void leave_by_cm(struct world *w, struct port *p, unsigned group)
{
	cm_leave(&p->cm, mgid(group));
	p->by_cm[group] = false;
	w->leaving = true;
}

static void leave_by_mad(struct world *w, struct port *p, unsigned group)
{
	time_t deadline = 0;
	int status;

	do
		status = sa_leave(&p->sa, mgid(group), p->joined[group]);
	while (status == SA_NO_RESPONSE && ask_again(w->settling, &deadline));
	if (status) {
		complain(w, "the response to the leave is %d", status);
		fail(w);
	}
}

static void leave(struct world *w, struct port *p, unsigned group)
{
	tell(w, "%s leaves group %u", name_of(w, p->end), group);
	if (p->by_cm[group])
		leave_by_cm(w, p, group);
	else
		leave_by_mad(w, p, group);
	p->joined[group] = 0;
	detach(p, group, MEMBER);
	bury(w, group);
}

/* Groups that librdmacm has joined and the subnet manager lost are left, when the port is reached
 * again. */
static void leave_lost(struct world *w)
{
	w->leaving = false;
	for (unsigned i = 0; i < w->n_ports; i++)
		for (unsigned g = 0; g < GROUPS; g++)
			if (w->port[i].by_cm[g] && !w->port[i].joined[g] &&
			    is_reached(w, w->port[i].end))
				leave_by_cm(w, &w->port[i], g);
}

static bool step_membership(struct world *w)
{
	struct port *p = &w->port[any(w, w->n_ports)];
	unsigned group = any(w, GROUPS);

	if (!is_reached(w, p->end))
		return false;
	if (p->joined[group])
		leave(w, p, group);
	else
		join(w, p, group);
	return true;
}

static bool step_stray(struct world *w)
{
	struct port *p = &w->port[any(w, w->n_ports)];
	unsigned group = any(w, GROUPS);
	bool attached = p->attached[group][STRAY];

	if (!attached && !w->mlid[group])
		return false;
	tell(w, "the stray of %s is %s group %u", name_of(w, p->end),
	     attached ? "detached from" : "attached to", group);
	if (attached)
		detach(p, group, STRAY);
	else
		attach(w, p, group, STRAY);
	return true;
}

/* Not h1's, where the subnet administrator is. */
static bool step_link(struct world *w)
{
	int end = (int)any(w, w->f.n_ends), peer = w->f.end[end].peer;
	bool cut = w->cut[end] || w->cut[peer];

	if (end == w->port[0].end || peer == w->port[0].end || w->dead[w->f.end[end].node] ||
	    w->dead[w->f.end[peer].node])
		return false;
	tell(w, "link %s at %s", cut ? "up" : "down", name_of(w, end));
	fab_umbel("link %s %s", cut ? "up" : "down", name_of(w, end));
	w->cut[end] = !cut;
	w->cut[peer] = false;
	return true;
}

/* Sooner revived than killed; not h1's. */
static bool step_switch(struct world *w)
{
	unsigned node = any(w, w->f.n_nodes);
	bool dead = w->dead[node];

	if (!w->f.node[node].is_switch || node == w->f.end[w->f.end[w->port[0].end].peer].node ||
	    (!dead && any(w, 2)))
		return false;
	tell(w, "switch %s %s", dead ? "revive" : "kill", w->f.node[node].name);
	fab_umbel("switch %s %s", dead ? "revive" : "kill", w->f.node[node].name);
	w->dead[node] = !dead;
	return true;
}

static void step(struct world *w)
{
	static bool (*const steps[])(struct world * w) = {
		step_membership, step_membership, step_membership, step_membership,
		step_stray,      step_link,       step_link,       step_switch,
	};

	while (!steps[any(w, sizeof(steps) / sizeof(*steps))](w))
		; /* it was not possible; to join or to leave is, always */
	find_islands(w);
	lose_members(w);
}

/* ---- what must hold of the subnet ---- */

static bool check_states(struct world *w)
{
	for (unsigned i = 0; i < w->f.n_ends; i++) {
		const struct fab_end *e = &w->f.end[i];

		if (e->down == is_whole(w, (int)i))
			return complain(w, "%s is %s", name_of(w, (int)i), e->down ? "down" : "up");
		if (is_managed(w, (int)i) && !e->active)
			return complain(w, "%s is not active", name_of(w, (int)i));
	}
	return true;
}

static const struct sa_member *find_member(const struct sa_member *all, int n, const uint8_t *group,
                                           const struct port *p)
{
	for (int i = 0; i < n; i++)
		if (!memcmp(all[i].mgid, group, 16) && !memcmp(all[i].port_gid, p->sa.gid, 16))
			return &all[i];
	return NULL;
}

/* The subnet administrator's members are the model's. */
static bool check_members(struct world *w)
{
	static struct sa_member all[MAX_MEMBERS];
	int n = sa_list(&w->port[0].sa, all, MAX_MEMBERS);

	if (n == SA_NO_RESPONSE)
		return complain(w, "no list of members");
	for (unsigned g = 0; g < GROUPS; g++)
		for (unsigned i = 0; i < w->n_ports; i++) {
			const struct port *p = &w->port[i];
			const struct sa_member *m = find_member(all, n, mgid(g), p);

			if ((m ? m->join_state : 0) != p->joined[g])
				return complain(w, "%s is in group %u as %u, not as %u",
				                name_of(w, p->end), g, m ? m->join_state : 0,
				                p->joined[g]);
		}
	return true;
}

/* Ports that links join reach each other, so that the first request gets a response. */
static bool check_unicast(struct world *w, const struct fab_tables *t)
{
	for (unsigned i = 0; i < w->n_ports; i++)
		for (unsigned k = 0; k < w->n_ports; k++) {
			int from = w->port[i].end, to = w->port[k].end;

			if (is_managed(w, from) && is_managed(w, to) &&
			    w->island[from] == w->island[to] &&
			    fab_walk_unicast(&w->f, t, from, w->f.end[to].lid) != to)
				return complain(w, "no path from %s to %s", name_of(w, from),
				                name_of(w, to));
		}
	return true;
}

static bool is_switch_reached(const struct world *w, unsigned node)
{
	for (unsigned i = 0; i < w->f.n_ends; i++)
		if (w->f.end[i].node == node && is_reached(w, (int)i))
			return true;
	return false;
}

/* The subnet manager has noticed which nodes are there. */
static bool check_nodes(struct world *w)
{
	int n = sa_count_nodes(&w->port[0].sa), want = 0;

	for (unsigned i = 0; i < w->n_ports; i++)
		want += is_reached(w, w->port[i].end);
	for (unsigned i = 0; i < w->f.n_nodes; i++)
		want += w->f.node[i].is_switch && is_switch_reached(w, i);
	return !w->settling || n == want || complain(w, "%d records of nodes, not %d", n, want);
}

/* How often what @from sends may come out at another port, at least and at most. */
static void expect_copies(const struct world *w, const struct sent *s, const struct port *to,
                          unsigned *least, unsigned *most)
{
	const struct port *from = &w->port[s->from];
	uint8_t joined = to->joined[s->group];
	/* OpenSM's trees lead to members that only send as well, and join no lone member */
	bool receives = joined & (FULL | NON) || (w->settling && joined);
	bool serves = !w->settling || (joined & (FULL | NON) && count_members(w, s->group) > 1);

	*least = *most = 0;
	if (w->f.end[from->end].peer == to->end) { /* nobody is in between to say no */
		*least = *most = 1;
	} else if (from == to && is_back_to_back(w, from->end)) {
		*most = 1;
	} else if (w->island[from->end] == w->island[to->end] && receives) {
		*most = 1;
		*least = from->joined[s->group] && serves; /* what others send may reach it */
	}
}

static bool check_trip(struct world *w, const struct sent *s)
{
	const char *from = name_of(w, w->port[s->from].end);

	if (s->trip.looped)
		return complain(w, "what %s sends to group %u goes in a circle", from, s->group);
	for (unsigned i = 0; i < w->n_ports; i++) {
		unsigned copies = s->trip.copies[w->port[i].end], least, most;

		expect_copies(w, s, &w->port[i], &least, &most);
		if (copies < least || copies > most)
			return complain(w, "%s gets %u copies of what %s sends to group %u, not %u",
			                name_of(w, w->port[i].end), copies, from, s->group, least);
	}
	return true;
}

/* Lists what there is to send, each by the path that the tables have for it. */
static bool plan(struct world *w, const struct fab_tables *t, struct round *r)
{
	r->n = 0;
	for (unsigned g = 0; g < GROUPS; g++)
		for (unsigned i = 0; i < w->n_ports; i++) {
			struct sent *s = &r->sent[r->n];

			if (!w->mlid[g] || !is_managed(w, w->port[i].end))
				continue;
			memset(s, 0, sizeof(*s));
			s->from = i;
			s->group = g;
			fab_walk(&w->f, t, w->port[i].end, w->mlid[g], &s->trip);
			if (!check_trip(w, s))
				return false;
			r->n++;
		}
	return true;
}

/* ---- what must hold of messages ---- */

static void on_message(void *arg, unsigned qp, uint32_t number)
{
	struct round *r = arg;

	if (number - r->first < r->n)
		r->sent[number - r->first].copies[r->taker][qp]++;
	else
		r->odd = true;
}

static void send_all(struct world *w, struct round *r)
{
	r->odd = false;
	r->first = w->number + 1;
	for (unsigned i = 0; i < r->n; i++) {
		const struct sent *s = &r->sent[i];

		ud_send(&w->port[s->from].ud, mgid(s->group), w->mlid[s->group], ++w->number);
	}
	for (r->taker = 0; r->taker < w->n_ports; r->taker++)
		ud_take(&w->port[r->taker].ud, on_message, r);
}

/* Each queue pair that is attached has what came out at its port, the others nothing. */
static bool check_copies(struct world *w, const struct round *r)
{
	if (r->odd)
		return complain(w, "a message came that nobody has sent just now");
	for (unsigned i = 0; i < r->n; i++)
		for (unsigned k = 0; k < w->n_ports * UD_QPS; k++) {
			const struct sent *s = &r->sent[i];
			const struct port *to = &w->port[k / UD_QPS];
			unsigned qp = k % UD_QPS, copies = s->copies[k / UD_QPS][qp];
			unsigned want = to->attached[s->group][qp] ? s->trip.copies[to->end] : 0;

			if (copies != want)
				return complain(
				        w,
				        "QP %u of %s has %u copies, not %u, of what %s sent "
				        "to group %u",
				        qp, name_of(w, to->end), copies, want,
				        name_of(w, w->port[s->from].end), s->group);
		}
	return true;
}

static bool check_counts(struct world *w, const struct round *r, const struct fab_counts *now)
{
	for (unsigned i = 0; i < w->f.n_ends; i++) {
		const struct fab_count *a = &w->counted.end[i], *b = &now->end[i];
		uint64_t xmit = 0, recv = 0;

		for (unsigned k = 0; k < r->n; k++) {
			xmit += r->sent[k].trip.xmit[i];
			recv += r->sent[k].trip.recv[i];
		}
		if (b->xmit - a->xmit != xmit || b->recv - a->recv != recv ||
		    b->xmit_bytes - a->xmit_bytes != xmit * UD_BYTES ||
		    b->recv_bytes - a->recv_bytes != recv * UD_BYTES)
			return complain(w,
			                "%s counts %lu out and %lu in (%lu and %lu bytes), not %lu "
			                "and %lu",
			                name_of(w, (int)i), (unsigned long)(b->xmit - a->xmit),
			                (unsigned long)(b->recv - a->recv),
			                (unsigned long)(b->xmit_bytes - a->xmit_bytes),
			                (unsigned long)(b->recv_bytes - a->recv_bytes),
			                (unsigned long)xmit, (unsigned long)recv);
	}
	return true;
}

/* ---- both ---- */

/* The verdict of `umbel check`, which has not seen any of this program. Where a subnet manager does
 * not get to, old tables may lead anywhere. */
static bool check_verdict(struct world *w)
{
	char why[200];

	for (unsigned i = 0; i < w->f.n_ends; i++)
		if (w->f.end[i].active && !is_managed(w, (int)i))
			return true;
	return fab_is_right(why, sizeof(why)) || complain(w, "%s", why);
}

enum outcome { HOLDS, NOT_YET, NEVER };

/* Whether all holds. NOT_YET: a slow subnet manager may still mend it. */
static enum outcome look(struct world *w)
{
	static struct fab_tables before, after;
	static struct fab_counts counted;
	static struct round round;
	bool right;

	fab_read(&w->f);
	fab_read_tables(&w->f, &before);
	if (!check_states(w) || !check_nodes(w) || !check_members(w) ||
	    !check_unicast(w, &before) || !plan(w, &before, &round) || !check_verdict(w))
		return NOT_YET;
	send_all(w, &round);
	fab_read_counts(&w->f, &counted);
	right = check_copies(w, &round) && check_counts(w, &round, &counted);
	w->counted = counted;
	fab_read_tables(&w->f, &after);
	if (!memcmp(&before, &after, sizeof(before)))
		return right ? HOLDS : NEVER;
	complain(w, "tables change");
	return NOT_YET;
}

static void check(struct world *w)
{
	enum outcome outcome;
	time_t deadline = 0;

	do
		outcome = look(w);
	while (outcome == NOT_YET && ask_again(w->settling || w->leaving, &deadline));
	if (outcome != HOLDS)
		fail(w);
}

/*
 * A switch that OpenSM has lost is restarted: when it finds one again with rows of old in its
 * multicast table, it takes them for empty (3.3.23), and members of the past get copies.
 */
static void restart_lost(struct world *w)
{
	for (unsigned i = 0; i < w->f.n_nodes; i++) {
		bool reached = is_switch_reached(w, i);

		if (w->f.node[i].is_switch && !w->dead[i] && !reached && !w->restarted[i]) {
			fab_umbel("switch kill %s", w->f.node[i].name);
			fab_umbel("switch revive %s", w->f.node[i].name);
		}
		w->restarted[i] = !reached;
	}
}

/* ---- the whole ---- */

static void open_port(struct world *w, int end, struct ibv_context *context)
{
	struct port *p = &w->port[w->n_ports++];
	unsigned num = w->f.end[end].port;
	char *address;

	if (w->n_ports > MAX_PORTS)
		errx(EXIT_FAILURE, "more than %d ports", MAX_PORTS);
	p->end = end;
	sa_open(&p->sa, ibv_get_device_name(context->device), (int)num);
	ud_open(&p->ud, context, (int)num);
	address = fab_read_address(ibv_get_device_name(context->device), num);
	cm_open(&p->cm, address);
	free(address);
}

static unsigned find_node(const struct world *w, const char *name)
{
	for (unsigned i = 0; i < w->f.n_nodes; i++)
		if (!strcmp(w->f.node[i].name, name))
			return i;
	errx(EXIT_FAILURE, "no node %s", name);
}

/* All HCAs, h1's first. */
static void open_all(struct world *w)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list)
		err(EXIT_FAILURE, "ibv_get_device_list");
	for (unsigned i = 0; list[i]; i++) {
		unsigned node = find_node(w, ibv_get_device_name(list[i]));
		struct ibv_context *context = ibv_open_device(list[i]);

		if (!context)
			err(EXIT_FAILURE, "ibv_open_device");
		for (unsigned k = 1; k < FAB_PORTS; k++)
			if (w->f.node[node].end[k] != FAB_NO_END)
				open_port(w, w->f.node[node].end[k], context);
	}
	ibv_free_device_list(list);
}

static void walk(unsigned seed, unsigned steps, bool settling)
{
	static struct world w;

	w.seed = w.rng = seed;
	w.settling = settling;
	fab_read(&w.f);
	open_all(&w);
	find_islands(&w);
	check(&w);
	while (w.step++ < steps) {
		if (settling)
			restart_lost(&w);
		leave_lost(&w);
		step(&w);
		check(&w);
	}
	printf("seed %u: %u steps, %u messages\n", seed, steps, w.number);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "topology"))
		topology_print((unsigned)atoi(argv[2]));
	else if (argc >= 4 && !strcmp(argv[1], "walk"))
		walk((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]),
		     argc == 5 && !strcmp(argv[4], "settling"));
	else
		errx(2, "topology SEED, or walk SEED STEPS [settling]");
	return 0;
}
