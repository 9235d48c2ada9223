/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Routers' ports, and the peers at their other ends: see router.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/reason.h"
#include "base/util.h"
#include "daemon/router/router.h"
#include "fabric/forwarding/flow.h"
#include "fabric/model/event.h"

static void tell_event(const struct daemon_router *r, const char *what)
{
	fabric_tell(r->all->f, &(struct fabric_event){ .kind = "router",
	                                               .what = what,
	                                               .port = r->port,
	                                               .key = "peer",
	                                               .value = r->peer });
}

/* Flows that reach its port go by the daemon, or no longer. */
static void set_active(struct daemon_router *r, bool is)
{
	struct fabric *f = r->all->f;

	if (is)
		f->routers->active |= fabric_router_bit(r->port);
	else
		f->routers->active &= (uint16_t)~fabric_router_bit(r->port);
	fabric_flow_detour_changed(f);
	for (unsigned i = 0; i < 1u << r->port->lmc; i++)
		fabric_flow_mark_lid(f, (uint16_t)(r->port->lid + i));
}

static void router_end(struct daemon_router *r, const char *why)
{
	if (!router_link_is_open(&r->link))
		return;
	base_log_warning(daemon, "router %s:%u: %s", r->port->node->name, r->port->num, why);
	r->is_up = false;
	set_active(r, false);
	router_link_close(&r->link);
	router_forward_end(r);
	router_groups_end(r);
	router_routes_changed(r->all);
	tell_event(r, "down");
}

/* ---- messages ---- */

static bool hear_hello(struct daemon_router *r, const struct router_hello *m)
{
	if (m->version != ROUTER_VERSION || m->prefix == r->all->f->subnet_prefix ||
	    m->prefix == IB_SUBNET_PREFIX_DEFAULT)
		return false;
	if (router_groups_begin(r))
		return false;
	r->prefix = m->prefix;
	r->is_up = true;
	set_active(r, true);
	router_routes_tell(r);
	tell_event(r, "up");
	return true;
}

/* Of type router_link.receive. */
static bool on_message(struct router_link *l, const struct router_message *m)
{
	struct daemon_router *r = container_of(l, struct daemon_router, link);

	if (r->is_up != (m->type != ROUTER_HELLO))
		return false;
	switch (m->type) {
	case ROUTER_HELLO:
		return hear_hello(r, &m->hello);
	case ROUTER_ROUTES:
		return router_routes_heard(r, &m->routes);
	case ROUTER_GROUP:
		if (!fabric_mgid_is_wide(&m->group.mgid) || m->group.hops > ROUTER_MAX_HOPS)
			return false;
		router_group_heard(r, &m->group);
		return true;
	default:
		router_forward_in(r, &m->packet, m->payload);
		return true;
	}
}

static void on_ended(struct router_link *l)
{
	router_end(container_of(l, struct daemon_router, link), "its other end has gone");
}

static bool say_hello(struct daemon_router *r)
{
	const struct router_message m = {
		.type = ROUTER_HELLO,
		.hello = { .version = ROUTER_VERSION, .prefix = r->all->f->subnet_prefix },
	};

	return router_link_send(&r->link, &m);
}

/* ---- requests ---- */

/* Whether the name is that of the router's host, or of its HCA; without one, any is meant. */
static bool is_meant(const struct daemon_router *r, const char *name)
{
	const struct fabric_node *n = r->port->node;

	return !*name || !strcmp(n->name, name) ||
	       !strcmp(shm_hca_at(r->all->f->region, n->hca)->host, name);
}

/* The router that is meant: a port of @node, or any that is free. 0 or -errno. */
static int choose(struct daemon_routers *all, const char *node, struct daemon_router **out)
{
	const struct fabric_routers *known = all->f->routers;
	bool is_there = false;

	if (!known->n)
		return base_because(-ENODEV, "no host is a router: start the fabric with --router");
	for (unsigned i = 0; i < known->n; i++) {
		if (!is_meant(&all->of[i], node))
			continue;
		is_there = true;
		*out = &all->of[i];
		if (!router_link_is_open(&(*out)->link))
			return 0;
	}
	if (!is_there)
		return base_because(-ENOENT, "'%s' is no router", node);
	return -EBUSY;
}

static bool is_socket(int fd)
{
	int type = 0, domain = 0;
	socklen_t bytes = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) && type == SOCK_SEQPACKET &&
	       !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) && domain == AF_UNIX;
}

static int begin(struct daemon_router *r, const char *peer, int given)
{
	const int fd = fcntl(given, F_DUPFD_CLOEXEC, 0);
	int ret;

	if (fd < 0)
		return -errno;
	ret = router_link_open(&r->link, fd);
	if (ret) {
		close(fd);
		return ret;
	}
	snprintf(r->peer, sizeof(r->peer), "%s", peer);
	r->told.n = 0;
	r->prefix = 0;
	if (say_hello(r))
		return 0;
	router_link_close(&r->link);
	return -ENOMEM;
}

static int join_routers(struct daemon_call *call)
{
	struct daemon_routers *all = call->module;
	struct control_router req = *(const struct control_router *)call->body;
	struct control_router_reply *rep;
	struct daemon_router *r;
	int ret;

	req.node[sizeof(req.node) - 1] = req.peer[sizeof(req.peer) - 1] = '\0';
	if (!is_socket(call->request->fd[0]))
		return -EINVAL;
	if (all->f->subnet_prefix == IB_SUBNET_PREFIX_DEFAULT)
		return base_because(-EADDRNOTAVAIL, "its subnet has the link-local prefix, to "
		                                    "which nobody routes: start it with --prefix");
	ret = choose(all, req.node, &r);
	if (!ret)
		ret = daemon_detour_prepare(all->detour);
	if (!ret)
		ret = begin(r, req.peer, call->request->fd[0]);
	if (ret)
		return ret;
	rep = daemon_call_reply(call, sizeof(*rep));
	rep->prefix = all->f->subnet_prefix;
	memcpy(rep->node, shm_hca_at(all->f->region, r->port->node->hca)->host, sizeof(rep->node));
	return 0;
}

static int end_routers(struct daemon_call *call)
{
	struct daemon_routers *all = call->module;
	struct control_router req = *(const struct control_router *)call->body;
	bool is_there = false, has_ended = false;

	req.node[sizeof(req.node) - 1] = '\0';
	for (unsigned k = 0; k < all->f->routers->n; k++) {
		struct daemon_router *r = &all->of[k];

		if (!is_meant(r, req.node))
			continue;
		is_there = true;
		has_ended |= router_link_is_open(&r->link);
		router_end(r, "ended by 'umbel router --end'");
	}
	if (!is_there)
		return base_because(-ENOENT, "'%s' is no router", req.node);
	return has_ended ? 0 : base_because(-ENOTCONN, "that router leads nowhere");
}

static const struct daemon_request requests[] = {
	{ .type = CONTROL_ROUTER,
	  .bytes = sizeof(struct control_router),
	  .n_fds = 1,
	  .is_owners = true,
	  .who = DAEMON_CLI,
	  .serve = join_routers },
	DAEMON_OWNERS_REQUEST(END_ROUTER, control_router, DAEMON_CLI, end_routers),
};

/* ---- life ---- */

void daemon_router_reset(struct daemon_routers *all, const struct fabric_port *port)
{
	if (port->router && daemon_router_of(all, port->router)->is_up)
		router_groups_reset(daemon_router_of(all, port->router));
}

void daemon_routers_prefix_changed(struct daemon_routers *all)
{
	for (unsigned i = 0; i < all->f->routers->n; i++)
		router_end(&all->of[i], "the subnet has another prefix");
}

void daemon_routers_init(struct daemon_routers *all, struct daemon_requests *to)
{
	for (unsigned i = 0; i < all->f->routers->n; i++) {
		struct daemon_router *r = &all->of[i];

		r->all = all;
		r->port = all->f->routers->port[i];
		r->link.loop = all->loop;
		r->link.receive = on_message;
		r->link.ended = on_ended;
	}
	router_groups_init(all);
	router_forward_init(all);
	daemon_requests_add(to, requests, ARRAY_SIZE(requests), all);
}

void daemon_routers_stop(struct daemon_routers *all)
{
	if (!all->f)
		return;
	for (unsigned i = 0; i < all->f->routers->n; i++) {
		router_link_close(&all->of[i].link);
		router_forward_end(&all->of[i]);
	}
	router_groups_fini(all);
}
