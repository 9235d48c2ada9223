/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which subnets are reached through which router. Each end tells the other which subnets it
 * reaches, and over how many; a subnet is never told of where the best way to it already leads. So
 * routes are the shortest, also where routers form circles. A route of a lost subnet goes round in
 * a circle until it has ROUTER_MAX_HOPS hops. Of two routers that are as near the first one is
 * used.
 */
#include <string.h>

#include "daemon/router/router.h"

/* Not of what is reached through its own subnet, by this router or by one beside it. */
static bool is_told(const struct daemon_router *r, const struct fabric_route *route)
{
	return daemon_router_of(r->all, route->router)->prefix != r->prefix &&
	       route->hops < ROUTER_MAX_HOPS;
}

void router_routes_tell(struct daemon_router *r)
{
	const struct fabric_routers *known = r->all->f->routers;
	struct router_message m = { .type = ROUTER_ROUTES };

	r->owes_routes = r->link.waiting_bytes > ROUTER_MOST_TOLD;
	if (r->owes_routes)
		return;
	m.routes.route[0].prefix = r->all->f->subnet_prefix;
	m.routes.route[0].hops = 1;
	m.routes.n = 1;
	for (unsigned i = 0; i < known->n_routes && m.routes.n < FABRIC_ROUTES; i++) {
		if (!is_told(r, &known->route[i]))
			continue;
		m.routes.route[m.routes.n].prefix = known->route[i].prefix;
		m.routes.route[m.routes.n++].hops = known->route[i].hops + 1;
	}
	r->owes_routes = !router_link_send(&r->link, &m);
}

/* The place of a prefix among the routes; n: it is not there. */
static unsigned place_of(const struct fabric_route *route, unsigned n, uint64_t prefix)
{
	unsigned i = 0;

	while (i < n && route[i].prefix != prefix)
		i++;
	return i;
}

/* Adds what one router reaches to the best routes. */
static unsigned add_routes(const struct daemon_router *r, struct fabric_route *best, unsigned n)
{
	for (uint32_t i = 0; i < r->told.n; i++) {
		const uint64_t prefix = r->told.route[i].prefix, hops = r->told.route[i].hops;
		const unsigned at = place_of(best, n, prefix);

		if (prefix == r->all->f->subnet_prefix || (at == n && n == FABRIC_ROUTES) ||
		    (at < n && best[at].hops <= hops))
			continue;
		n += at == n;
		best[at] = (struct fabric_route){ .prefix = prefix,
			                          .router = r->port->router,
			                          .hops = (uint8_t)hops };
	}
	return n;
}

static bool is_same(const struct fabric_route *a, const struct fabric_route *b)
{
	return a->prefix == b->prefix && a->router == b->router && a->hops == b->hops;
}

/* Whether these are the routes that are known. */
static bool are_known(const struct fabric_routers *known, const struct fabric_route *best,
                      unsigned n)
{
	unsigned i = 0;

	while (i < n && n == known->n_routes && is_same(&best[i], &known->route[i]))
		i++;
	return i == n && n == known->n_routes;
}

void router_routes_changed(struct daemon_routers *all)
{
	struct fabric_routers *known = all->f->routers;
	struct fabric_route best[FABRIC_ROUTES] = { 0 };
	unsigned n = 0;

	for (unsigned i = 0; i < known->n; i++)
		if (all->of[i].is_up)
			n = add_routes(&all->of[i], best, n);
	if (are_known(known, best, n))
		return;
	memcpy(known->route, best, sizeof(best));
	known->n_routes = n;
	for (unsigned i = 0; i < known->n; i++)
		if (all->of[i].is_up)
			router_routes_tell(&all->of[i]);
}

bool router_routes_heard(struct daemon_router *r, const struct router_routes *routes)
{
	if (!routes->n || routes->n > FABRIC_ROUTES)
		return false;
	for (uint32_t i = 0; i < routes->n; i++)
		if (!routes->route[i].hops || routes->route[i].hops > ROUTER_MAX_HOPS)
			return false;
	r->told = *routes;
	router_routes_changed(r->all);
	return true;
}
