/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Neighbours of Ethernet ports: see roce_neighbours.h.
 *
 * While there are searches in a network, its neighbours are watched, and searches for one that
 * comes look again at once. Each looks again by itself, too, after twice as long each time: the
 * kernel gives up after three seconds, but a host may come later; and messages may get lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon/network/roce_neighbours.h"
#include "wire/ip.h"

#define FIRST_WAIT_NS (20 * DAEMON_NS_PER_MS)

struct cm_search {
	struct base_hash_node node; /* by hop */
	struct daemon_roce_port *port;
	struct cm_sought sought;
	struct base_timer timer;
	uint64_t wait_ns, deadline_ns;
};

static uint64_t hash_of(int ifindex, const struct ib_gid *gid)
{
	return base_hash_of(gid, sizeof(*gid), (uint64_t)ifindex);
}

/* ---- asking ---- */

/* Whether the device by which packets go to @hop asks for neighbours. */
static bool asks(const struct daemon_roce_network *n, const struct netdev_hop *hop)
{
	const struct netdev *dev = netdev_watch_at(n->watch, hop->ifindex);

	return !dev || !dev->noarp;
}

/* Whether it is no one host's on the network: a group, or a loopback address. */
static bool needs_nobody(const struct ib_gid *dgid)
{
	static const struct ib_gid loopback = { { [15] = 1 } };

	return ib_gid_is_zero(dgid) || wire_gid_is_ip_mcast(dgid) ||
	       ib_gid_equal(dgid, &loopback) || (wire_gid_is_ipv4(dgid) && dgid->raw[12] == 127);
}

/* As daemon_roce_neighbour(), and @hop is what is asked for with -EINPROGRESS. */
static int look(struct daemon_roce_port *p, const struct ib_gid *sgid, const struct ib_gid *dgid,
                struct netdev_hop *hop)
{
	struct netdev_neighbours *n = &p->network->neighbours;
	int ret;

	n->network = roce_port_network(p);
	if (!p->ifindex)
		return -ENETUNREACH;
	if (needs_nobody(dgid))
		return 0;
	ret = netdev_neighbour_route(n, p->ifindex, sgid, dgid, hop);
	if (ret > 0)
		ret = asks(p->network, hop) ? netdev_neighbour_find(n, hop) : 0;
	/* an address without a neighbour may be that of a port of this fabric */
	if (ret && fabric_ethernet_find_anywhere(p->roce->d.f, p->port, dgid))
		return 0;
	if (ret == -EINPROGRESS && !hop->is_asked_for && netdev_neighbour_probe(n, hop))
		return 0; /* it cannot be asked for: as if it were there */
	return ret;
}

int daemon_roce_neighbour(struct daemon_roce *r, struct fabric_port *port,
                          const struct ib_gid *sgid, const struct ib_gid *dgid)
{
	struct netdev_hop hop;

	return look(daemon_roce_port(r, port->index), sgid, dgid, &hop);
}

/* ---- searches ---- */

/* netdev_neighbour_came: the searches for it look again. */
static void on_came(void *arg, int ifindex, const struct ib_gid *gid)
{
	struct daemon_roce_network *n = arg;
	struct base_timers *timers = &n->roce->d.loop->timers;
	struct cm_search *s;

	BASE_HASH_FOREACH(s, &n->roce->searches, hash_of(ifindex, gid), node)
		if (s->port->network == n)
			base_timer_set_sooner(timers, &s->timer, base_timers_now(timers),
			                      s->timer.due);
}

static void watch_neighbours(struct daemon_roce_network *n, bool watch)
{
	int ret = netdev_watch_neighbours(n->watch, watch ? on_came : NULL);

	if (ret)
		base_log_warning(roce, "cannot watch neighbours: %s", strerror(-ret));
}

void daemon_roce_search_end(struct cm_search *s)
{
	struct daemon_roce_network *n = s->port->network;

	base_hash_remove(&n->roce->searches, &s->node);
	base_timer_stop(&s->timer);
	free(s);
	if (!--n->n_searches)
		watch_neighbours(n, false);
}

/* Looks again later, and at the deadline at the latest. */
static void on_due(struct base_timer *t);

static void look_later(struct cm_search *s)
{
	struct base_timers *timers = &s->port->roce->d.loop->timers;
	uint64_t at = base_timers_now(timers) + s->wait_ns;

	s->wait_ns *= 2;
	base_timer_set(timers, &s->timer, at < s->deadline_ns ? at : s->deadline_ns, on_due);
}

static void on_due(struct base_timer *t)
{
	struct cm_search *s = container_of(t, struct cm_search, timer);
	const struct cm_sought sought = s->sought;
	struct netdev_hop hop;
	int ret = look(s->port, &sought.sgid, &sought.dgid, &hop);

	if (ret == -EINPROGRESS &&
	    base_timers_now(&s->port->roce->d.loop->timers) < s->deadline_ns) {
		look_later(s);
		return;
	}
	daemon_roce_search_end(s);
	sought.done(sought.arg, ret == -EINPROGRESS ? -ETIMEDOUT : ret);
}

/* A search, which @hop ends if it comes. 0 or -ENOMEM. */
static int begin(struct cm_search *s, const struct netdev_hop *hop)
{
	struct daemon_roce_network *n = s->port->network;
	int ret = base_hash_add(&n->roce->searches, &s->node, hash_of(hop->ifindex, &hop->gid));

	if (ret)
		return ret;
	if (!n->n_searches++)
		watch_neighbours(n, true);
	s->wait_ns = FIRST_WAIT_NS;
	s->deadline_ns =
	        base_timers_now(&n->roce->d.loop->timers) + s->sought.timeout_ms * DAEMON_NS_PER_MS;
	look_later(s);
	return 0;
}

int daemon_roce_search(struct daemon_roce *r, const struct cm_sought *sought,
                       struct cm_search **search)
{
	struct daemon_roce_port *p = daemon_roce_port(r, sought->port->index);
	struct netdev_hop hop = { 0 };
	int ret = look(p, &sought->sgid, &sought->dgid, &hop);
	struct cm_search *s;

	if (ret != -EINPROGRESS)
		return ret;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->port = p;
	s->sought = *sought;
	ret = begin(s, &hop);
	if (ret) {
		free(s);
		return ret;
	}
	*search = s;
	return -EINPROGRESS;
}
