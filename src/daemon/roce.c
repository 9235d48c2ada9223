/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Network devices as ports: see roce.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/roce.h"
#include "daemon/roce_groups.h"
#include "daemon/roce_port.h"
#include "fabric/ethernet.h"
#include "fabric/plan.h"
#include "base/util.h"
#include "wire/ip.h"

#define RETRY_NS     (500 * DAEMON_NS_PER_MS)
#define IPV6_MTU_MIN 1280 /* a device with less has no IPv6, and loses its memberships */

/* ---- the names ---- */

static bool has_device(const struct daemon_roce *r, const char *name)
{
	for (unsigned i = 0; i < r->n_ports; i++)
		if (!strcmp(r->port[i].device, name))
			return true;
	return false;
}

/* @name: of the device; or that, @ and its host, with the others @beside InfiniBand. */
static int add_device(struct daemon_roce *r, char *name, char *why, size_t len)
{
	char *host = name;
	struct daemon_roce_port *grown;
	const struct netdev *dev;

	strsep(&host, "@");
	if (has_device(r, name)) {
		snprintf(why, len, "network device '%s' is named twice", name);
		return -EINVAL;
	}
	dev = netdev_watch_find(r->watch, name);
	if (!dev) {
		snprintf(why, len, "there is no network device '%s'", name);
		return -ENODEV;
	}
	grown = realloc(r->port, (r->n_ports + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->port = grown;
	r->port[r->n_ports] = (struct daemon_roce_port){
		.roce = r, .ifindex = dev->index, .receive_fd = { -1, -1 }, .wake_fd = -1
	};
	snprintf(r->port[r->n_ports].device, IFNAMSIZ, "%s", name);
	r->port[r->n_ports].host = host ? strdup(host) : NULL;
	r->n_ports++;
	return host && !r->port[r->n_ports - 1].host ? -ENOMEM : 0;
}

static int add_devices(struct daemon_roce *r, const char *names, char *why, size_t len)
{
	char *list = strdup(names), *rest = list, *name;
	int ret = list ? 0 : -ENOMEM;

	while (!ret && (name = strsep(&rest, ",")))
		ret = add_device(r, name, why, len);
	free(list);
	return ret;
}

/* ---- what a device is like ---- */

/* The addresses by which rdma_cm knows the host on this port: the first of either version. */
static void main_addresses(const struct netdev *dev, struct fabric_ethernet *e)
{
	static const uint8_t none[16];

	for (unsigned i = dev->n_addresses; i-- > 0;) {
		const struct ib_gid *gid = &dev->address[i].gid;
		bool link_local = gid->raw[0] == 0xFE && (gid->raw[1] & 0xC0) == 0x80;

		if (wire_gid_is_ipv4(gid))
			e->ipv4 = wire_gid_to_ipv4(gid);
		else if (!link_local || !memcmp(e->ipv6, none, sizeof(none)))
			memcpy(e->ipv6, gid->raw, sizeof(e->ipv6));
	}
}

static void follow_device(struct daemon_roce_port *p, const struct netdev *dev)
{
	struct fabric_ethernet now = { .round = p->round };
	struct daemon_roce_needs *d = &p->roce->d;
	unsigned changed;

	if (dev) {
		p->mtu = dev->mtu;
		netdev_gid_table_update(&p->gids, dev);
		now.ifindex = (uint32_t)dev->index;
		now.up = dev->up && dev->carrier && !p->deaf;
		memcpy(now.gid, p->gids.gid, sizeof(now.gid));
		main_addresses(dev, &now);
	}
	changed = fabric_ethernet_set(d->f, p->port, &now,
	                              (uint8_t)netdev_active_mtu(dev ? dev->mtu : 0));
	daemon_port_ethernet_changed(d->ports, p->port, changed);
}

static void device_gone(struct daemon_roce_port *p)
{
	base_log_warning(roce, "network device '%s' is gone", p->device);
	p->ifindex = 0;
	p->deaf = false;
	base_timer_stop(&p->retry_timer);
	roce_port_retire(p);
	roce_groups_renew(p);
	memset(&p->gids, 0, sizeof(p->gids));
	follow_device(p, NULL);
}

static void on_retry(struct base_timer *t);

/* Opens sockets on the device that is there now. Without them the port is DOWN until they are. */
static void listen_anew(struct daemon_roce_port *p)
{
	char why[256] = "";
	int ret = roce_port_open(p, why, sizeof(why));

	if (!ret) {
		ret = roce_port_start(p);
		snprintf(why, sizeof(why), "%s: %s", p->device, strerror(-ret));
	}
	if (ret && !p->deaf)
		base_log_warning(roce, "its port stays down until it can receive: %s", why);
	else if (!ret && p->deaf)
		base_log_warning(roce, "network device '%s' can receive now", p->device);
	p->deaf = ret;
	if (ret)
		base_timer_set_in(&p->roce->d.loop->timers, &p->retry_timer, RETRY_NS, on_retry);
}

static void on_retry(struct base_timer *t)
{
	struct daemon_roce_port *p = container_of(t, struct daemon_roce_port, retry_timer);

	listen_anew(p);
	follow_device(p, netdev_watch_at(p->roce->watch, p->ifindex));
}

/* Sockets and memberships are on the device that was, even if this one has its index. */
static void device_came(struct daemon_roce_port *p, const struct netdev *dev)
{
	base_log_warning(roce, "network device '%s' is back", p->device);
	p->ifindex = dev->index;
	listen_anew(p);
	roce_groups_renew(p);
	follow_device(p, dev);
}

static void device_changed(struct daemon_roce_port *p, const struct netdev *dev, unsigned changes)
{
	if (changes & NETDEV_CHANGE_UNSURE ||
	    (changes & NETDEV_CHANGE_MTU && p->mtu < IPV6_MTU_MIN))
		roce_groups_renew(p);
	follow_device(p, dev);
}

static void on_changed(void *arg, const struct netdev *dev, unsigned changes)
{
	struct daemon_roce *r = arg;

	for (unsigned i = 0; i < r->n_ports; i++) {
		struct daemon_roce_port *p = &r->port[i];

		if (p->ifindex == dev->index && (changes & NETDEV_CHANGE_GONE))
			device_gone(p);
		else if (p->ifindex == dev->index)
			device_changed(p, dev, changes);
		else if (!p->ifindex && !(changes & NETDEV_CHANGE_GONE) &&
		         !strcmp(p->device, dev->name))
			device_came(p, dev);
	}
}

static int on_watch(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct daemon_roce *r = arg;
	int ret = netdev_watch_dispatch(r->watch);

	(void)s;
	(void)fd;
	(void)revents;
	if (ret)
		base_log_warning(roce, "cannot tell what network devices do: %s", strerror(-ret));
	return 0;
}

/* ---- routes ---- */

/* The kernel knows: a socket that is connected has the source address; nothing is sent. */
int daemon_roce_route(const union control_cm_addr *dst, union control_cm_addr *src)
{
	union control_cm_addr to = *dst;
	socklen_t len = to.sa.sa_family == AF_INET ? sizeof(to.in) : sizeof(to.in6);
	int fd = socket(to.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = 0;

	if (fd < 0)
		return -errno;
	if (to.sa.sa_family == AF_INET)
		to.in.sin_port = htons(WIRE_ROCE_UDP_PORT);
	else
		to.in6.sin6_port = htons(WIRE_ROCE_UDP_PORT);
	if (bind(fd, &src->sa, len) < 0 || connect(fd, &to.sa, len) < 0 ||
	    getsockname(fd, &src->sa, &len) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* ---- life ---- */

int daemon_roce_open(struct daemon_roce **out, const char *names, char *why, size_t len)
{
	struct daemon_roce *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	*out = r;
	ret = netdev_watch_open(&r->watch, on_changed, r);
	if (ret) {
		snprintf(why, len, "cannot ask for network devices: %s", strerror(-ret));
		return ret;
	}
	return add_devices(r, names, why, len);
}

/* From the device's MAC, and the device's number, as several may have the same. */
static uint64_t guid_of(const struct netdev *dev, unsigned n)
{
	uint64_t guid = 0x0200 | n;

	for (unsigned i = 0; i < NETDEV_MAC_BYTES; i++)
		guid = guid << 8 | dev->mac[i];
	return guid;
}

/* The host of that name; it is the user's word. -ENODEV, with @why. */
static int find_host(const struct fabric_plan *plan, const char *name, char *why, size_t len)
{
	for (unsigned i = 0; i < plan->n_hosts; i++)
		if (!strcmp(plan->host[i].name, name))
			return (int)i;
	snprintf(why, len, "there is no host '%s' to have a network device", name);
	return -ENODEV;
}

int daemon_roce_plan(const struct daemon_roce *r, struct fabric_plan *plan, char *why, size_t len)
{
	int host = plan->n_hosts ? 0 : fabric_plan_add_host(plan, NULL), hca, node;

	for (unsigned i = 0; i < r->n_ports; i++) {
		const struct netdev *dev = netdev_watch_at(r->watch, r->port[i].ifindex);

		if (r->port[i].host)
			host = find_host(plan, r->port[i].host, why, len);
		if (host < 0)
			return host;
		hca = fabric_plan_add_ethernet(plan, (unsigned)host, r->port[i].device);
		if (hca < 0)
			return hca;
		plan->node[hca].guid = plan->node[hca].port[1].guid = guid_of(dev, i);
	}
	return fabric_plan_finish(plan, &node, why, len);
}

int daemon_roce_start(struct daemon_roce *r, const struct daemon_roce_needs *needs, char *why,
                      size_t len)
{
	int ret;

	r->d = *needs;
	ret = roce_port_init(r);

	for (unsigned i = 0; i < r->n_ports && !ret; i++) {
		struct daemon_roce_port *p = &r->port[i];

		p->port = r->d.f->hca_port[r->d.f->n_ib_ports + i];
		ret = roce_port_open(p, why, len);
		if (!ret)
			ret = roce_port_start(p);
		follow_device(p, netdev_watch_at(r->watch, p->ifindex));
	}
	if (!ret)
		ret = roce_groups_init(r);
	if (ret)
		return ret;
	ret = sd_event_add_io(r->d.loop->events, &r->watch_source, netdev_watch_fd(r->watch),
	                      EPOLLIN, on_watch, r);
	return ret < 0 ? ret : 0;
}

void daemon_roce_stop(struct daemon_roce *r)
{
	roce_port_fini(r);
}

void daemon_roce_free(struct daemon_roce *r)
{
	if (!r)
		return;
	roce_port_fini(r);
	roce_groups_fini(r);
	sd_event_source_disable_unref(r->watch_source);
	if (r->watch)
		netdev_watch_close(r->watch);
	for (unsigned i = 0; i < r->n_ports; i++)
		free(r->port[i].host);
	free(r->port);
	free(r);
}

const char *daemon_roce_device(const struct daemon_roce *r, uint32_t index)
{
	return daemon_roce_port(r, index)->device;
}
