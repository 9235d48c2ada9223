/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All properties of a subnet, one after the other: see check.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "check/check.h"
#include "check/groups.h"
#include "check/paths.h"

#define SHOWN 12 /* links of a circle that are named */

/* ---- circles of links that wait for each other ---- */

static int name_link(const struct check_waits *w, uint32_t i, char *text, size_t len)
{
	const struct check_net *net = w->net;
	check_lane_t v = w->circle[i];
	uint32_t channel = v / CHECK_LANES, at = net->channel_at[channel];
	unsigned port = channel - net->first[at];
	char lane[8] = "", cause[32] = "";

	if (v % CHECK_LANES)
		snprintf(lane, sizeof(lane), "/VL%u", v % CHECK_LANES);
	if (w->causes[i])
		snprintf(cause, sizeof(cause), w->causes[i] >= CHECK_MLID ? " (0x%04x)" : " (%u)",
		         w->causes[i]);
	return snprintf(text, len, "%s:%u%s%s > ", net->sw[at].name, port, lane, cause);
}

static void report_circle(const struct check_waits *w, struct check_report *r,
                          enum check_property what)
{
	char text[1000] = "";
	size_t len = 0;

	for (uint32_t i = 0; i < w->n_circle && i < SHOWN; i++) {
		int n = name_link(w, i, text + len, sizeof(text) - len);

		len += (size_t)n < sizeof(text) - len ? (size_t)n : 0;
	}
	check_found(r, what, "%u links wait for each other: %s%s; %ju are in such circles",
	            w->n_circle, text, w->n_circle > SHOWN ? "..." : "around",
	            (uintmax_t)w->n_left);
}

static int judge_waits(const struct check_net *net, struct check_report *r)
{
	struct check_waits w;
	int ret = check_waits_init(&w, net);
	bool unicast = true;

	if (!ret)
		ret = check_paths(net, &w, r, false);
	r->result[CHECK_DEADLOCK].checked = check_waits_count(&w);
	for (unsigned lane = 0; lane < CHECK_LANES; lane++)
		r->lanes += w.dep[lane] != NULL;
	if (!ret)
		ret = check_waits_search(&w);
	if (ret > 0) {
		ret = check_paths(net, &w, r, true);
		report_circle(&w, r, CHECK_DEADLOCK);
		check_waits_clear(&w); /* groups are judged by themselves then */
		unicast = false;
	}
	if (!ret)
		ret = check_groups_wait(net, &w, r);
	r->result[CHECK_DEADLOCK_GROUPS].checked = check_waits_count(&w);
	if (!ret)
		ret = check_waits_search(&w);
	if (ret > 0) {
		ret = check_groups_wait(net, &w, NULL);
		if (!ret && unicast)
			ret = check_paths(net, &w, r, true);
		report_circle(&w, r, CHECK_DEADLOCK_GROUPS);
	}
	check_waits_fini(&w);
	return ret;
}

/* ---- links ---- */

static void judge_links(const struct check_net *net, struct check_report *r)
{
	struct check_result *links = &r->result[CHECK_LINKS];

	for (uint32_t i = 0; i < net->n_hosts; i++) {
		links->checked += net->host[i].at != CHECK_NONE || net->host[i].idle;
		if (net->host[i].idle)
			check_found(r, CHECK_LINKS, "%s is not active", net->host[i].name);
	}
	for (uint32_t i = 0; i < net->n; i++)
		for (unsigned k = 1; k <= net->sw[i].n_ports; k++) {
			const struct check_port *p = &net->sw[i].port[k];

			links->checked += p->end != CHECK_TO_NOTHING || p->idle;
			if (p->idle)
				check_found(r, CHECK_LINKS, "%s:%u is not active", net->sw[i].name,
				            k);
		}
}

/* ---- management keys ---- */

/* @first: that of the first port; a subnet manager has one key for all. */
static void judge_m_key(struct check_report *r, const char *name, const struct check_m_key *k,
                        const char *first_name, const struct check_m_key *first)
{
	r->result[CHECK_M_KEYS].checked++;
	if (k->key != first->key)
		check_found(r, CHECK_M_KEYS, "%s has another M_Key than %s", name, first_name);
	if (k->key && !k->protect)
		check_found(r, CHECK_M_KEYS, "%s shows its M_Key to everybody (M_KeyProtectBits 0)",
		            name);
	if (k->key && k->protect && !k->lease_s)
		check_found(r, CHECK_M_KEYS,
		            "%s is locked for ever if its M_Key is lost (M_KeyLeasePeriod 0)",
		            name);
}

/* A subnet manager reaches no host without a link. */
static void judge_m_keys(const struct check_net *net, struct check_report *r)
{
	const struct check_m_key *first = NULL;
	const char *name = NULL;

	for (uint32_t i = 0; i < net->n_hosts && net->has_m_keys; i++) {
		const struct check_host *h = &net->host[i];

		if (h->at == CHECK_NONE)
			continue;
		name = first ? name : h->name;
		first = first ? first : &h->m_key;
		judge_m_key(r, h->name, &h->m_key, name, first);
	}
	for (uint32_t i = 0; i < net->n && net->has_m_keys; i++) {
		const struct check_switch *sw = &net->sw[i];

		name = first ? name : sw->name;
		first = first ? first : &sw->m_key;
		judge_m_key(r, sw->name, &sw->m_key, name, first);
	}
}

/* ---- partitions ---- */

/* The P_Keys of hosts that the port of a switch blocks. */
static void judge_port(const struct check_net *net, struct check_report *r, uint32_t at, unsigned k)
{
	const struct check_switch *sw = &net->sw[at];
	const struct check_port *p = &sw->port[k];
	bool to_host = p->end == CHECK_TO_HOST;
	uint32_t first = to_host ? p->to : 0, last = to_host ? p->to + 1 : net->n_hosts;
	const uint16_t *told = NULL;

	r->result[CHECK_PARTITIONS].checked++;
	for (uint32_t i = first; i < last; i++) {
		const struct check_keys *keys = &net->host[i].keys;

		for (unsigned n = 0; n < keys->n; n++) {
			if (check_has_key(&p->keys, keys->key[n]) ||
			    (told && *told == keys->key[n]))
				continue;
			told = &keys->key[n];
			check_found(r, CHECK_PARTITIONS, "%s:%u blocks partition 0x%04x of %s",
			            sw->name, k, keys->key[n], net->host[i].name);
		}
	}
}

static void judge_partitions(const struct check_net *net, struct check_report *r)
{
	for (uint32_t i = 0; i < net->n; i++)
		for (unsigned k = 1; k <= net->sw[i].n_ports; k++) {
			const struct check_port *p = &net->sw[i].port[k];

			if (p->end != CHECK_TO_NOTHING && (p->inbound || p->outbound) && p->keys.n)
				judge_port(net, r, i, k);
		}
}

int check_run(const struct check_net *net, struct check_report *r)
{
	int ret;

	r->routes = calloc((size_t)net->n_channels + 1, sizeof(*r->routes));
	r->trees = calloc((size_t)net->n + 1, sizeof(*r->trees));
	if (!r->routes || !r->trees)
		return -ENOMEM;
	judge_links(net, r);
	judge_m_keys(net, r);
	ret = judge_waits(net, r);
	if (!ret)
		ret = check_groups(net, r);
	if (!ret)
		judge_partitions(net, r);
	return ret || r->failed ? -ENOMEM : 0;
}
