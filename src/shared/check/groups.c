/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The members that messages to groups reach, and what the messages wait for: see groups.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/groups.h"
#include "check/members.h"

#define NAMED 3 /* hosts that a finding names */

/* Where a message is: it came into a switch by a port, 0: from a host. */
struct place {
	uint32_t sw;
	uint8_t in;
};

struct walk {
	const struct check_net *net;
	struct check_report *r;
	struct check_members *m;
	uint32_t turn, class;
	const struct check_row **row; /* by switch: of the MLID; NULL: none */
	uint32_t *entered;  /* by channel, those of the ports that packets come in by: the turn */
	uint32_t *visited;  /* by switch: the turn */
	uint32_t *of_class; /* by switch: the turn since when it reaches what another switch does */
	uint32_t *copies, *counted; /* by host: how many it gets, in which turn */
	uint32_t *is_member;        /* by host: turn of the MLID */
	struct place *queue;
	uint32_t again; /* a switch that a message enters twice by one link; CHECK_NONE */
	bool whole; /* each link of the tree is in both tables, and no switch is reached twice */
};

static int walk_init(struct walk *w, const struct check_net *net, struct check_report *r)
{
	*w = (struct walk){ .net = net, .r = r };
	w->row = calloc((size_t)net->n + 1, sizeof(*w->row));
	w->entered = calloc((size_t)net->n_channels + 1, sizeof(*w->entered));
	w->visited = calloc((size_t)net->n + 1, sizeof(*w->visited));
	w->of_class = calloc((size_t)net->n + 1, sizeof(*w->of_class));
	w->copies = calloc((size_t)net->n_hosts + 1, sizeof(*w->copies));
	w->counted = calloc((size_t)net->n_hosts + 1, sizeof(*w->counted));
	w->is_member = calloc((size_t)net->n_hosts + 1, sizeof(*w->is_member));
	w->queue = calloc((size_t)net->n_channels + 1, sizeof(*w->queue));
	return w->row && w->entered && w->visited && w->of_class && w->copies && w->counted &&
	                       w->is_member && w->queue
	               ? 0
	               : -ENOMEM;
}

static void walk_fini(struct walk *w)
{
	free(w->row);
	free(w->entered);
	free(w->visited);
	free(w->of_class);
	free(w->copies);
	free(w->counted);
	free(w->is_member);
	free(w->queue);
}

/* ---- whom they reach ---- */

static unsigned copies_of(const struct walk *w, uint32_t host)
{
	return w->counted[host] == w->turn ? w->copies[host] : 0;
}

static void deliver(struct walk *w, uint32_t host)
{
	if (w->counted[host] != w->turn)
		w->copies[host] = 0;
	w->counted[host] = w->turn;
	w->copies[host]++;
}

static bool enter(struct walk *w, uint32_t sw, unsigned in)
{
	uint32_t channel = w->net->first[sw] + in;

	if (w->visited[sw] == w->turn)
		w->whole = false;
	w->visited[sw] = w->turn;
	if (w->entered[channel] == w->turn) {
		w->again = sw;
		return false;
	}
	w->entered[channel] = w->turn;
	return true;
}

/* The message leaves the switch by all ports of the row but that by which it came. How many wait in
 * the queue then. */
static uint32_t flood(struct walk *w, const struct place *at, uint32_t tail)
{
	const struct check_switch *sw = &w->net->sw[at->sw];
	const struct check_row *row = w->row[at->sw];

	for (unsigned k = 1; row && k <= sw->n_ports; k++) {
		const struct check_port *p = &sw->port[k];

		if (k == at->in || !check_row_has(row, k) || p->end == CHECK_TO_NOTHING)
			continue;
		if (p->end == CHECK_TO_HOST) {
			deliver(w, p->to);
			continue;
		}
		if (!w->row[p->to] || !check_row_has(w->row[p->to], p->to_port))
			w->whole = false;
		if (enter(w, p->to, p->to_port))
			w->queue[tail++] = (struct place){ p->to, p->to_port };
	}
	return tail;
}

/* Walks all packets of hosts at switch @sw. */
static void walk_from(struct walk *w, uint32_t sw)
{
	uint32_t head = 0, tail = 0;

	w->turn++;
	w->whole = true;
	w->again = CHECK_NONE;
	enter(w, sw, 0);
	w->queue[tail++] = (struct place){ sw, 0 };
	while (head < tail) {
		const struct place at = w->queue[head++];

		tail = flood(w, &at, tail);
	}
}

/* ---- what is wrong ---- */

/* Hosts that a finding is about. */
struct list {
	char text[200];
	size_t len;
	unsigned n;
};

static void list_add(struct list *l, const char *name)
{
	int n = 0;

	if (l->n++ < NAMED)
		n = snprintf(l->text + l->len, sizeof(l->text) - l->len, "%s%s", l->len ? ", " : "",
		             name);
	l->len += (size_t)n < sizeof(l->text) - l->len ? (size_t)n : 0;
}

static void report_list(struct walk *w, const struct list *l, const char *what, uint32_t from)
{
	char more[40] = "";

	if (!l->n)
		return;
	if (l->n > NAMED)
		snprintf(more, sizeof(more), " and %u more", l->n - NAMED);
	check_found(w->r, CHECK_GROUPS, "group %s, from %s: %s%s %s", w->m->name,
	            w->net->sw[from].name, l->text, more, what);
}

static bool other_sends(const struct walk *w, uint32_t from, uint32_t host);

/* Compares those that a message from switch @from has reached with the members. */
static void compare(struct walk *w, uint32_t from)
{
	const struct check_members *m = w->m;
	struct list missed = { .n = 0 }, twice = { .n = 0 }, strangers = { .n = 0 };

	for (uint32_t i = 0; i < m->n; i++) {
		const struct check_host *h = &w->net->host[m->member[i].host];
		unsigned n = copies_of(w, m->member[i].host);

		if (!m->member[i].receives || h->at == CHECK_NONE ||
		    w->net->sw[h->at].island != w->net->sw[from].island)
			continue;
		if (!n && other_sends(w, from, m->member[i].host))
			list_add(&missed, h->name);
		else if (n > 1)
			list_add(&twice, h->name);
	}
	for (uint32_t i = 0; m->tree && i < m->tree->n; i++) {
		const struct check_switch *sw = &w->net->sw[m->tree->row[i].sw];

		for (unsigned k = 1; k <= sw->n_ports; k++) {
			const struct check_port *p = &sw->port[k];

			unsigned n = p->end == CHECK_TO_HOST ? copies_of(w, p->to) : 0;

			/* one copy of its own does not leave the switch by its port */
			if (n && w->is_member[p->to] != w->class &&
			    (n > 1 || other_sends(w, from, p->to)))
				list_add(&strangers, w->net->host[p->to].name);
		}
	}
	if (w->again != CHECK_NONE)
		check_found(w->r, CHECK_GROUPS,
		            "group %s, from %s: goes round, or twice to %s by one link", m->name,
		            w->net->sw[from].name, w->net->sw[w->again].name);
	report_list(w, &missed, "not reached", from);
	report_list(w, &twice, "reached more than once", from);
	report_list(w, &strangers, "reached, and no member", from);
}

/* Whether a host that is not @host sends what was walked from switch @from. */
static bool other_sends(const struct walk *w, uint32_t from, uint32_t host)
{
	for (uint32_t i = 0; i < w->m->n; i++) {
		const struct check_member *m = &w->m->member[i];
		uint32_t at = w->net->host[m->host].at;

		if (m->sends && m->host != host && at != CHECK_NONE &&
		    (at == from || (w->whole && w->visited[at] == w->turn)))
			return true;
	}
	return false;
}

/* Links of the tree that are too slow for the group, or block its partition. */
static void judge_links(struct walk *w)
{
	const struct check_group *g = w->m->group;

	for (uint32_t i = 0; g && w->m->tree && i < w->m->tree->n; i++) {
		const struct check_row *row = &w->m->tree->row[i];
		const struct check_switch *sw = &w->net->sw[row->sw];

		for (unsigned k = 1; k <= sw->n_ports; k++) {
			const struct check_port *p = &sw->port[k];

			if (!check_row_has(row, k) || p->end == CHECK_TO_NOTHING)
				continue;
			if (p->mtu && p->mtu < g->mtu)
				check_found(w->r, CHECK_GROUPS,
				            "group %s: MTU %u, but %s:%u has %u", w->m->name,
				            128u << g->mtu, sw->name, k, 128u << p->mtu);
			if (p->rate && p->rate < g->rate)
				check_found(w->r, CHECK_GROUPS,
				            "group %s: %g Gb/s, but %s:%u has %g", w->m->name,
				            g->rate / 10.0, sw->name, k, p->rate / 10.0);
			if (g->pkey && (p->outbound || p->inbound) &&
			    !check_has_key(&p->keys, g->pkey))
				check_found(w->r, CHECK_GROUPS,
				            "group %s: %s:%u blocks its partition 0x%04x",
				            w->m->name, sw->name, k, g->pkey);
		}
	}
}

static void judge_members(struct walk *w)
{
	const struct check_group *g = w->m->group;

	for (uint32_t i = 0; g && g->pkey && i < w->m->n; i++) {
		const struct check_host *h = &w->net->host[w->m->member[i].host];

		if (!check_has_key(&h->keys, g->pkey))
			check_found(w->r, CHECK_GROUPS,
			            "group %s: %s is not in its partition 0x%04x", w->m->name,
			            h->name, g->pkey);
	}
}

static void set_rows(const struct check_net *net, const struct check_row **row,
                     const struct check_members *m, bool set)
{
	const struct check_tree *t = m->tree;

	for (uint32_t i = 0; t && i < t->n; i++)
		if (!check_is_beyond(&net->sw[t->row[i].sw], m->mlid))
			row[t->row[i].sw] = set ? &t->row[i] : NULL;
}

/* Switches whose row for the group does not count. Whether nobody can say where it goes then. */
static bool judge_tops(struct walk *w)
{
	const struct check_tree *t = w->m->tree;
	bool has_default = false;

	for (uint32_t i = 0; t && i < t->n; i++) {
		const struct check_switch *sw = &w->net->sw[t->row[i].sw];

		if (!check_is_beyond(sw, w->m->mlid))
			continue;
		check_found(w->r, CHECK_GROUPS,
		            "group %s: %s has a MulticastFDBTop too low (0x%04x), and %s",
		            w->m->name, sw->name, sw->mlid_top,
		            sw->has_default ? "sends it to a default port" : "discards it");
		has_default |= sw->has_default;
	}
	return has_default;
}

/* Follows what each member sends. */
static void judge_senders(struct walk *w, const struct check_members *m)
{
	const uint32_t before = w->turn;

	set_rows(w->net, w->row, m, true);
	for (uint32_t i = 0; i < m->n; i++)
		w->is_member[m->member[i].host] = m->member[i].receives ? w->class : 0;
	for (uint32_t i = 0; m->tree && i < m->tree->n; i++)
		w->r->trees[m->tree->row[i].sw]++;
	for (uint32_t i = 0; i < m->n; i++) {
		uint32_t at = w->net->host[m->member[i].host].at;

		if (!m->member[i].sends || at == CHECK_NONE || w->of_class[at] > before)
			continue;
		walk_from(w, at);
		compare(w, at);
		w->of_class[at] = w->turn;
		for (uint32_t k = 0; m->tree && w->whole && k < m->tree->n; k++)
			if (w->visited[m->tree->row[k].sw] == w->turn)
				w->of_class[m->tree->row[k].sw] = w->turn;
	}
	set_rows(w->net, w->row, m, false);
}

static int judge_mlid(void *arg, struct check_members *m)
{
	struct walk *w = arg;

	w->m = m;
	w->class ++;
	w->r->result[CHECK_GROUPS].checked++;
	w->r->guessed += m->tree && m->is_open;
	if (!judge_tops(w))
		judge_senders(w, m);
	judge_links(w);
	judge_members(w);
	return 0;
}

int check_groups(const struct check_net *net, struct check_report *r)
{
	struct walk w;
	int ret = walk_init(&w, net, r);

	if (!ret)
		ret = check_each_mlid(net, judge_mlid, &w);
	walk_fini(&w);
	return ret;
}

/* ---- what they wait for ---- */

struct flight {
	const struct check_net *net;
	struct check_report *r; /* of ports without a lane; NULL: they are known */
	const char *name;
	struct check_waits *w;
	const struct check_row **row;
	uint32_t *seen; /* by lane of a link: the turn */
	uint32_t *told; /* by channel, likewise: it has no lane */
	uint32_t turn;
	check_lane_t *queue;
	uint32_t n;
};

/* A copy is dropped, as port @out has no lane for it. */
static void report_lane(struct flight *f, uint32_t at, unsigned out, unsigned in, unsigned sl)
{
	uint32_t *told = &f->told[f->net->first[at] + out];

	if (f->r && *told != f->turn)
		check_found(f->r, CHECK_GROUPS,
		            "group %s: %s:%u has no lane for SL %u from port %u", f->name,
		            f->net->sw[at].name, out, sl, in);
	*told = f->turn;
}

/* The lane by which a packet leaves the switch by port @out of the row; CHECK_LANES or more: it
 * does not. */
static unsigned lane_out(struct flight *f, uint32_t at, unsigned out, unsigned in, unsigned sl)
{
	const struct check_switch *sw = &f->net->sw[at];
	unsigned lane = CHECK_LANES;

	if (out != in && check_row_has(f->row[at], out) && sw->port[out].end != CHECK_TO_NOTHING) {
		lane = check_lane(f->net, at, out, in, sl);
		if (lane >= CHECK_LANES)
			report_lane(f, at, out, in, sl);
	}
	return lane;
}

/* A packet that came into the switch leaves it by the other ports of the row. @from: the link by
 * which it came, and its lane; CHECK_NONE: from a host. */
static int leave(struct flight *f, uint32_t at, unsigned in, unsigned sl, check_lane_t from)
{
	const struct check_switch *sw = &f->net->sw[at];
	int ret = 0;

	for (unsigned k = 1; f->row[at] && k <= sw->n_ports && !ret; k++) {
		unsigned lane = lane_out(f, at, k, in, sl);
		check_lane_t v;

		if (lane >= CHECK_LANES || sw->port[k].end != CHECK_TO_SWITCH)
			continue;
		if (from != CHECK_NONE)
			ret = check_waits_add(f->w, from / CHECK_LANES, from % CHECK_LANES, k,
			                      lane);
		v = (f->net->first[at] + k) * CHECK_LANES + lane;
		if (f->seen[v] == f->turn)
			continue;
		f->seen[v] = f->turn;
		f->queue[f->n++] = v;
	}
	return ret;
}

/* Follows the packets that all members send with one service level. */
static int fly(struct flight *f, const struct check_members *m, unsigned sl)
{
	uint32_t head = 0;
	int ret = 0;

	f->turn++;
	f->n = 0;
	f->w->cause = m->mlid;
	f->name = m->name;
	for (uint32_t i = 0; i < m->n && !ret; i++) {
		const struct check_host *h = &f->net->host[m->member[i].host];

		if (m->member[i].sends && h->at != CHECK_NONE)
			ret = leave(f, h->at, h->at_port, sl, CHECK_NONE);
	}
	while (head < f->n && !ret) {
		check_lane_t v = f->queue[head++];
		uint32_t channel = v / CHECK_LANES, at = f->net->channel_at[channel];
		const struct check_port *p = &f->net->sw[at].port[channel - f->net->first[at]];

		ret = leave(f, p->to, p->to_port, sl, v);
	}
	return ret;
}

static int fly_mlid(void *arg, struct check_members *m)
{
	struct flight *f = arg;
	int ret = 0;

	set_rows(f->net, f->row, m, true);
	for (unsigned sls = m->sls; sls && !ret; sls &= sls - 1)
		ret = fly(f, m, (unsigned)__builtin_ctz(sls));
	set_rows(f->net, f->row, m, false);
	return ret;
}

int check_groups_wait(const struct check_net *net, struct check_waits *w, struct check_report *r)
{
	size_t lanes = (size_t)net->n_channels * CHECK_LANES + 1;
	struct flight f = { .net = net, .r = r, .w = w };
	int ret = -ENOMEM;

	f.row = calloc((size_t)net->n + 1, sizeof(*f.row));
	f.seen = calloc(lanes, sizeof(*f.seen));
	f.told = calloc((size_t)net->n_channels + 1, sizeof(*f.told));
	f.queue = calloc(lanes, sizeof(*f.queue));
	if (f.row && f.seen && f.told && f.queue)
		ret = check_each_mlid(net, fly_mlid, &f);
	free(f.row);
	free(f.seen);
	free(f.told);
	free(f.queue);
	return ret;
}
