/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fate of messages to LIDs: see paths.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/paths.h"

#define MAX_LID 0xBFFF

enum fate {
	FATE_ARRIVES,
	FATE_NO_ROUTE, /* the table has no port */
	FATE_ABOVE,    /* it is above LinearFDBTop */
	FATE_NO_LINK,  /* the port's link carries nothing */
	FATE_ASTRAY,   /* it reaches another port */
	FATE_LOOP,
};

/* A switch's step for the LID that is looked at. */
struct step {
	uint32_t turn;  /* which LID's this is */
	uint32_t chain; /* from which switch on it was followed */
	uint32_t next;  /* the next switch, or CHECK_NONE */
	uint32_t end;   /* the switch where it ends; in a circle, one on it */
	uint32_t lost;  /* of the end: hosts whose messages end there */
	uint8_t out, fate;
	uint8_t mtu;    /* the least of the links between switches from here on; 0: none is known */
	uint16_t links; /* between switches, from here on */
	uint16_t sls;   /* service levels of what passes */
	unsigned rate;
	uint64_t routes;          /* hosts whose messages pass */
	uint8_t lanes[CHECK_SLS]; /* by service level: bits of the lanes on which they leave */
};

/* The port that has the LID. */
struct target {
	const char *name;
	uint32_t host; /* CHECK_NONE: it is a switch */
	uint32_t sw;   /* where the host is, or that switch */
};

struct paths {
	const struct check_net *net;
	struct check_waits *w;
	struct check_report *r;
	struct step *step;
	uint32_t *order, n; /* of the switches: each behind the next one */
	uint32_t turn;
	unsigned lid;
	bool again;
	struct target to;
	struct target *target; /* by LID */
};

/* ---- whose LID it is ---- */

static void give_lid(struct paths *p, unsigned lid, const struct target *to)
{
	struct target *t = &p->target[lid];

	if (t->name && !p->again)
		check_found(p->r, CHECK_LIDS, "LID %u is that of %s and of %s", lid, t->name,
		            to->name);
	if (!t->name)
		*t = *to;
}

static void give_lids(struct paths *p)
{
	for (uint32_t i = 0; i < p->net->n_hosts; i++) {
		const struct check_host *h = &p->net->host[i];
		const struct target to = { h->name, i, h->at };

		p->r->result[CHECK_LIDS].checked += !p->again;
		if (!h->lid && h->at != CHECK_NONE && !p->again)
			check_found(p->r, CHECK_LIDS, "%s has no LID", h->name);
		for (unsigned k = 0; h->lid && k < h->n_lids && h->lid + k <= MAX_LID; k++)
			give_lid(p, h->lid + k, &to);
	}
	for (uint32_t i = 0; i < p->net->n; i++) {
		const struct check_switch *sw = &p->net->sw[i];
		const struct target to = { sw->name, CHECK_NONE, i };

		p->r->result[CHECK_LIDS].checked += !p->again;
		if (sw->lid && sw->lid <= MAX_LID)
			give_lid(p, sw->lid, &to);
	}
}

/* ---- the ways to one LID ---- */

/* How many hosts at switch @at send to it. */
static unsigned senders(const struct paths *p, uint32_t at)
{
	return p->net->sw[at].n_hosts - (p->to.host != CHECK_NONE && p->to.sw == at);
}

/* The step of switch @at. Returns the next switch, or CHECK_NONE. */
static uint32_t take_step(struct paths *p, uint32_t at, uint32_t chain)
{
	const struct check_switch *sw = &p->net->sw[at];
	unsigned out = p->lid < sw->n_lids ? sw->lft[p->lid] : CHECK_NO_ROUTE;
	struct step *s = &p->step[at];

	s->turn = p->turn;
	s->chain = chain;
	s->end = at;
	s->next = CHECK_NONE;
	s->lost = s->sls = s->links = s->mtu = 0;
	s->rate = 0;
	s->routes = 0;
	s->out = (uint8_t)out;
	if (sw->n_relayed && p->lid >= sw->n_relayed)
		s->fate = FATE_ABOVE;
	else if (!out)
		s->fate = p->to.host == CHECK_NONE && p->to.sw == at ? FATE_ARRIVES : FATE_ASTRAY;
	else if (out > sw->n_ports)
		s->fate = FATE_NO_ROUTE;
	else if (sw->port[out].end == CHECK_TO_NOTHING)
		s->fate = FATE_NO_LINK;
	else if (sw->port[out].end == CHECK_TO_HOST)
		s->fate = sw->port[out].to == p->to.host ? FATE_ARRIVES : FATE_ASTRAY;
	else
		s->next = sw->port[out].to;
	return s->next;
}

static void report_loop(struct paths *p, uint32_t at)
{
	char names[400];
	size_t len = 0;
	uint32_t i = at;

	if (p->again)
		return;
	do {
		int n = snprintf(names + len, sizeof(names) - len, "%s > ", p->net->sw[i].name);

		len += (size_t)n < sizeof(names) - len ? (size_t)n : 0;
		i = p->step[i].next;
	} while (i != at && len + 80 < sizeof(names));
	check_found(p->r, CHECK_LOOPS, "LID %u (%s) goes round: %s%s%s", p->lid, p->to.name, names,
	            i != at ? "... > " : "", p->net->sw[at].name);
}

static unsigned lesser(unsigned a, unsigned b)
{
	return a && (!b || a < b) ? a : b;
}

/* Switch @at is before the next one, of which all is known. */
static void go_on(struct paths *p, uint32_t at)
{
	struct step *s = &p->step[at];
	const struct step *next = &p->step[s->next];
	const struct check_port *port = &p->net->sw[at].port[s->out];

	s->fate = next->fate;
	s->end = next->end;
	s->links = next->links + 1;
	s->mtu = (uint8_t)lesser(port->mtu, next->mtu);
	s->rate = lesser(port->rate, next->rate);
}

/* Follows it from switch @from up to one that was seen. */
static void follow(struct paths *p, uint32_t from)
{
	uint32_t begin = p->n, at = from;

	while (at != CHECK_NONE && p->step[at].turn != p->turn) {
		p->order[p->n++] = at;
		at = take_step(p, at, from);
	}
	for (uint32_t i = begin, k = p->n; i + 1 < k; i++) {
		uint32_t swap = p->order[i];

		p->order[i] = p->order[--k];
		p->order[k] = swap;
	}
	if (at != CHECK_NONE && p->step[at].chain == from) {
		p->step[at].fate = FATE_LOOP; /* as are all that were followed now */
		report_loop(p, at);
		for (uint32_t i = begin; i < p->n; i++) {
			p->step[p->order[i]].fate = FATE_LOOP;
			p->step[p->order[i]].end = at;
		}
		return;
	}
	for (uint32_t i = begin; i < p->n; i++)
		if (p->step[p->order[i]].next != CHECK_NONE)
			go_on(p, p->order[i]);
}

/* ---- what it waits for ---- */

/* Packets that came into switch @at by port @in, 0: from some host, leave on @lane. */
static void pass_lane(struct paths *p, uint32_t at, unsigned in, unsigned sl)
{
	const struct check_switch *sw = &p->net->sw[at];
	struct step *s = &p->step[at];
	unsigned lane = check_lane(p->net, at, s->out, in, sl);

	if (lane >= CHECK_LANES) {
		if (!p->again && s->fate == FATE_ARRIVES) /* else it is lost anyway */
			check_found(p->r,
			            p->to.host != CHECK_NONE ? CHECK_PATHS : CHECK_SWITCH_PATHS,
			            "%s:%u has no lane for SL %u from port %u, for %s (LID %u)",
			            sw->name, s->out, sl, in, p->to.name, p->lid);
		return;
	}
	if (!(s->sls >> sl & 1)) {
		s->sls |= (uint16_t)(1u << sl);
		s->lanes[sl] = 0;
	}
	s->lanes[sl] |= (uint8_t)(1u << lane);
}

/* The service level of what the host there, NULL: each one of @n, sends to it from switch @sw. */
static unsigned level_of(const struct paths *p, const struct check_switch *sw,
                         const struct check_host *host, unsigned n)
{
	unsigned sl = CHECK_ANY_SL;

	if (host && host->sl && p->lid < host->n_sls)
		sl = host->sl[p->lid];
	if (sl == CHECK_ANY_SL && sw->sl && p->lid < sw->n_sls)
		sl = sw->sl[p->lid];
	if (sl != CHECK_ANY_SL)
		return sl;
	p->r->assumed += p->again ? 0 : n;
	return p->net->sl;
}

/* The packets of hosts at switch @at leave it on some lanes. */
static void enter(struct paths *p, uint32_t at)
{
	const struct check_switch *sw = &p->net->sw[at];
	const struct step *s = &p->step[at];

	if (!sw->port[s->out].map && !sw->own_levels) {
		pass_lane(p, at, 0, level_of(p, sw, NULL, senders(p, at)));
		return;
	}
	for (unsigned k = 1; k <= sw->n_ports; k++)
		if (sw->port[k].end == CHECK_TO_HOST && sw->port[k].to != p->to.host)
			pass_lane(p, at, k, level_of(p, sw, &p->net->host[sw->port[k].to], 1));
}

/* Whether lanes decide if it leaves switch @at: it does not end there. */
static bool needs_lane(const struct paths *p, uint32_t at)
{
	const struct step *s = &p->step[at];

	return s->next != CHECK_NONE ||
	       (s->out && s->fate == FATE_ARRIVES && p->net->sw[at].port[s->out].map);
}

/* Packets that leave switch @at leave the next one, too. 0 or -ENOMEM. */
static int pass_on(struct paths *p, uint32_t at)
{
	const struct step *s = &p->step[at], *next = &p->step[s->next];
	unsigned in = p->net->sw[at].port[s->out].to_port;
	uint32_t channel = p->net->first[at] + s->out;
	int ret = 0;

	for (unsigned sls = s->sls; sls; sls &= sls - 1) {
		unsigned sl = (unsigned)__builtin_ctz(sls);
		unsigned out = check_lane(p->net, s->next, next->out, in, sl);

		pass_lane(p, s->next, in, sl);
		if (next->next == CHECK_NONE)
			continue; /* a host waits for nobody */
		for (unsigned lanes = s->lanes[sl]; lanes && out < CHECK_LANES; lanes &= lanes - 1)
			ret |= check_waits_add(p->w, channel, (unsigned)__builtin_ctz(lanes),
			                       next->out, out);
	}
	return ret ? -ENOMEM : 0;
}

/* ---- what is wrong ---- */

static void report_end(struct paths *p, uint32_t end)
{
	static const char *const what[] = {
		[FATE_NO_ROUTE] = "has no route to",
		[FATE_ABOVE] = "has a LinearFDBTop too low, and discards what is for",
		[FATE_NO_LINK] = "sends out of a port without a link what is for",
		[FATE_ASTRAY] = "sends to another port what is for",
		[FATE_LOOP] = "is on a circle of what is for",
	};
	const struct step *s = &p->step[end];
	bool is_host = p->to.host != CHECK_NONE;

	check_found(p->r, is_host ? CHECK_PATHS : CHECK_SWITCH_PATHS,
	            "%s %s %s (LID %u): %u host%s not reach it", p->net->sw[end].name,
	            what[s->fate], p->to.name, p->lid, s->lost, s->lost == 1 ? " does" : "s do");
}

/* Between hosts a link has less than both of them. */
static void compare_links(struct paths *p, uint32_t at)
{
	const struct check_host *to = &p->net->host[p->to.host];
	const struct check_switch *sw = &p->net->sw[at];
	const struct step *s = &p->step[at];
	bool mtu = s->mtu && s->mtu < to->mtu, rate = s->rate && s->rate < to->rate;

	for (unsigned k = 1; k <= sw->n_ports && (mtu || rate); k++) {
		const struct check_host *from;

		if (sw->port[k].end != CHECK_TO_HOST || sw->port[k].to == p->to.host)
			continue;
		from = &p->net->host[sw->port[k].to];
		if (mtu && s->mtu < from->mtu)
			check_found(p->r, CHECK_MTU, "%s to %s: a link between has MTU %u",
			            from->name, to->name, 128u << s->mtu);
		if (rate && s->rate < from->rate)
			check_found(p->r, CHECK_RATE, "%s to %s: a link between has %g Gb/s",
			            from->name, to->name, s->rate / 10.0);
	}
}

/* Counts the senders at switch @at. */
static void judge(struct paths *p, uint32_t at, unsigned own)
{
	struct step *s = &p->step[at];
	bool is_host = p->to.host != CHECK_NONE;

	if (p->net->sw[at].island != p->net->sw[p->to.sw].island) {
		p->r->unconnected += is_host ? own : 0;
		return;
	}
	p->r->result[is_host ? CHECK_PATHS : CHECK_SWITCH_PATHS].checked += own;
	if (is_host)
		p->r->result[CHECK_SWITCH_PATHS].checked++;
	if (s->fate != FATE_ARRIVES) {
		p->step[s->end].lost += own;
		if (is_host)
			check_found(p->r, CHECK_SWITCH_PATHS,
			            "%s itself does not reach %s (LID %u)", p->net->sw[at].name,
			            p->to.name, p->lid);
		return;
	}
	if (!is_host || !own)
		return;
	p->r->result[CHECK_MTU].checked += own;
	p->r->result[CHECK_RATE].checked += own;
	if (s->links + 2u > p->r->longest)
		p->r->longest = s->links + 2u;
	if (s->mtu || s->rate)
		compare_links(p, at);
}

static void judge_all(struct paths *p)
{
	p->r->result[CHECK_LOOPS].checked++;
	for (uint32_t i = p->n; i-- > 0;)
		judge(p, p->order[i], senders(p, p->order[i]));
	for (uint32_t i = 0; i < p->n; i++)
		if (p->step[p->order[i]].lost)
			report_end(p, p->order[i]);
}

/* ---- all LIDs ---- */

static int look_at(struct paths *p, unsigned lid)
{
	int ret = 0;

	p->to = p->target[lid];
	p->lid = lid;
	p->turn++;
	p->n = 0;
	for (uint32_t i = 0; i < p->net->n; i++)
		if (p->step[i].turn != p->turn)
			follow(p, i);
	if (!p->again)
		judge_all(p);
	if (p->to.host == CHECK_NONE && p->net->hosts_only)
		return 0;
	p->w->cause = lid;
	for (uint32_t i = p->n; i-- > 0 && !ret;) {
		uint32_t at = p->order[i];
		struct step *s = &p->step[at];
		unsigned own = senders(p, at);

		if (s->fate == FATE_LOOP || !needs_lane(p, at))
			continue;
		if (own)
			enter(p, at);
		if (s->next == CHECK_NONE)
			continue;
		s->routes += own;
		p->step[s->next].routes += s->routes;
		if (!p->again && p->to.host != CHECK_NONE)
			p->r->routes[p->net->first[at] + s->out] += s->routes;
		if (needs_lane(p, s->next))
			ret = pass_on(p, at);
	}
	return ret;
}

int check_paths(const struct check_net *net, struct check_waits *w, struct check_report *r,
                bool again)
{
	struct paths p = { .net = net, .w = w, .r = r, .again = again };
	int ret = 0;

	p.step = calloc((size_t)net->n + 1, sizeof(*p.step));
	p.order = calloc((size_t)net->n + 1, sizeof(*p.order));
	p.target = calloc(MAX_LID + 1, sizeof(*p.target));
	if (!p.step || !p.order || !p.target)
		ret = -ENOMEM;
	else
		give_lids(&p);
	for (unsigned lid = 1; lid <= MAX_LID && !ret; lid++)
		if (p.target[lid].name && p.target[lid].sw != CHECK_NONE)
			ret = look_at(&p, lid);
	free(p.step);
	free(p.order);
	free(p.target);
	return ret;
}
