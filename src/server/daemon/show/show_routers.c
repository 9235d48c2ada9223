/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The view "routers": the ports of routers, the peers at their other ends, and the packets that
 * cross them.
 */
#include "daemon/router/router.h"
#include "daemon/show/views.h"

static void add_prefix(struct show_json *o, const char *key, uint64_t prefix)
{
	show_add_text(o, key, "0x%016llx", (unsigned long long)prefix);
}

static void add_routes(struct show_json *o, const struct daemon_router *r)
{
	show_open(o, "routes", '[');
	for (uint32_t i = 0; r->is_up && i < r->told.n; i++) {
		show_open(o, NULL, '{');
		add_prefix(o, "prefix", r->told.route[i].prefix);
		show_add_u64(o, "hops", r->told.route[i].hops);
		show_close(o, '}');
	}
	show_close(o, ']');
}

bool daemon_show_router(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	static const char *const drops[ROUTER_DROPS] = { "hop_limit", "p_key", "no_route", "full" };
	const struct fabric_routers *known = s->f->routers;
	const struct daemon_router *r;
	uint64_t dropped = 0;

	if (at->part >= known->n)
		return false;
	r = &s->routers->of[at->part];
	show_open(o, NULL, '{');
	show_add_string(o, "host", shm_hca_at(s->f->region, r->port->node->hca)->host);
	show_add_text(o, "port", "%s:%u", r->port->node->name, r->port->num);
	show_add_u64(o, "lid", r->port->lid);
	show_add_string(o, "state",
	                r->is_up                        ? "up"
	                : router_link_is_open(&r->link) ? "begins"
	                                                : "down");
	if (router_link_is_open(&r->link))
		show_add_string(o, "peer", r->peer);
	if (r->is_up)
		add_prefix(o, "prefix", r->prefix);
	add_routes(o, r);
	show_add_u64(o, "groups", router_groups_count(r));
	show_add_u64(o, "sent", r->sent);
	show_add_u64(o, "received", r->received);
	for (unsigned i = 0; i < ROUTER_DROPS; i++)
		dropped += r->dropped[i];
	show_add_u64(o, "dropped", dropped);
	show_open(o, "drops", '{');
	for (unsigned i = 0; i < ROUTER_DROPS; i++)
		show_add_u64(o, drops[i], r->dropped[i]);
	show_close(o, '}');
	show_close(o, '}');
	return true;
}
