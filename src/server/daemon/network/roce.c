/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Network devices as ports: see roce.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cm/cm.h"
#include "daemon/network/roce.h"
#include "daemon/network/roce_groups.h"
#include "daemon/network/roce_port.h"
#include "fabric/plan/ethernet.h"
#include "fabric/plan/plan.h"
#include "hosts/socket.h"
#include "wire/ip.h"

#define RETRY_NS     (500 * DAEMON_NS_PER_MS)
#define MADE_DEVICES "eth" /* on their host, with a number behind it */
#define MADE_DEVICE  MADE_DEVICES "0"
#define IPV6_MTU_MIN 1280 /* a device with less has no IPv6, and loses its memberships */

/* ---- the names ---- */

/* Where @device would be one device with another one: on the machine, or on one host. */
static bool has_device(const struct daemon_roce *r, const char *device, const char *host)
{
	for (unsigned i = 0; i < r->n_ports; i++) {
		const struct daemon_roce_port *p = &r->port[i];
		bool same = !r->own_networks || !strcmp(p->host ? p->host : "", host ? host : "");

		if (!p->is_host && same && !strcmp(p->device, device))
			return true;
	}
	return false;
}

/* A port on a device; it is the caller's to complete. NULL: no memory. */
static struct daemon_roce_port *new_port(struct daemon_roce *r, const char *device)
{
	struct daemon_roce_port *grown = realloc(r->port, (r->n_ports + 1) * sizeof(*grown)), *p;

	if (!grown)
		return NULL;
	r->port = grown;
	p = &r->port[r->n_ports++];
	*p = (struct daemon_roce_port){ .roce = r, .receive_fd = { -1, -1 }, .wake_fd = -1 };
	snprintf(p->device, IFNAMSIZ, "%s", device);
	return p;
}

/* @name: of the device; or that, @ and its host, with the others @beside InfiniBand; or only that
 * host, which gets one. */
static int add_device(struct daemon_roce *r, char *name, char *why, size_t len)
{
	bool bridged = *name == '@';
	struct daemon_roce_port *p;
	char *host = name;

	strsep(&host, "@");
	if (bridged)
		name = MADE_DEVICE;
	if (has_device(r, name, host)) {
		snprintf(why, len, "network device '%s' is named twice", name);
		return -EINVAL;
	}
	if (!r->own_networks && !netdev_watch_find(r->network[0].watch, name)) {
		snprintf(why, len, "there is no network device '%s'", name);
		return -ENODEV;
	}
	p = new_port(r, name);
	if (!p)
		return -ENOMEM;
	p->bridged = bridged;
	p->host = host ? strdup(host) : NULL;
	return host && !p->host ? -ENOMEM : 0;
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

static int add_hosts(struct daemon_roce *r, unsigned n)
{
	r->first_host = r->n_ports;
	for (unsigned i = 0; i < n * r->hcas; i++) {
		struct daemon_roce_port *p;
		char device[IFNAMSIZ];

		snprintf(device, sizeof(device), MADE_DEVICES "%u", i % r->hcas);
		p = new_port(r, device);
		if (!p)
			return -ENOMEM;
		p->bridged = p->is_host = true;
		p->nth = i % r->hcas;
	}
	return 0;
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

/* Publishes what the port is by now. Returns enum fabric_ethernet_change, ORed. */
static unsigned publish(struct daemon_roce_port *p, const struct netdev *dev)
{
	struct fabric_ethernet now = { .round = p->round };
	struct fabric *f = p->roce->d.f;

	if (dev) {
		p->mtu = dev->mtu;
		now.ifindex = (uint32_t)dev->index;
		now.network = (uint32_t)(p->network->host + 1);
		now.up = dev->up && dev->carrier && !p->deaf;
		memcpy(now.mac, dev->mac, sizeof(now.mac));
		memcpy(now.gid, p->gids.gid, sizeof(now.gid));
		main_addresses(dev, &now);
	}
	memcpy(shm_roce_port_at(f->region, p->port->index)->source, p->gids.last,
	       sizeof(p->gids.last));
	return fabric_ethernet_set(f, p->port, &now,
	                           (uint8_t)netdev_active_mtu(dev ? dev->mtu : 0));
}

static void on_gids_due(struct base_timer *t);

/* Addresses without a place get those from which nobody sends. Whether the table has changed. */
static bool give_places(struct daemon_roce_port *p, const struct netdev *dev)
{
	const struct daemon_objects *o = p->roce->d.objects;
	uint32_t used = daemon_hcas_used_gids(&o->hcas, &o->memory, p->port->node->hca) |
	                cm_used_gids(p->roce->d.cm, p->port);
	bool given = netdev_gid_table_add(&p->gids, dev, used);

	if (used && netdev_gid_table_lacks(&p->gids, dev))
		base_timer_set_in(&p->roce->d.loop->timers, &p->gids_timer, RETRY_NS, on_gids_due);
	return given;
}

static void follow_device(struct daemon_roce_port *p, const struct netdev *dev)
{
	unsigned changed = 0;

	/* an address that has gone is published as gone before its users are counted */
	if (dev && netdev_gid_table_drop(&p->gids, dev))
		changed = publish(p, dev);
	if (dev)
		give_places(p, dev);
	changed |= publish(p, dev);
	daemon_port_ethernet_changed(p->roce->d.ports, p->port, changed);
}

static void on_gids_due(struct base_timer *t)
{
	struct daemon_roce_port *p = container_of(t, struct daemon_roce_port, gids_timer);
	const struct netdev *dev = netdev_watch_at(p->network->watch, p->ifindex);

	if (dev && give_places(p, dev))
		daemon_port_ethernet_changed(p->roce->d.ports, p->port, publish(p, dev));
}

static void device_gone(struct daemon_roce_port *p)
{
	base_log_warning(roce, "network device '%s' is gone", p->device);
	p->ifindex = 0;
	p->deaf = false;
	base_timer_stop(&p->retry_timer);
	roce_port_retire(p);
	roce_groups_renew(p);
	memset(p->gids.gid, 0, sizeof(p->gids.gid));
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
	follow_device(p, netdev_watch_at(p->network->watch, p->ifindex));
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
	const struct daemon_roce_network *n = arg;

	for (unsigned i = 0; i < n->roce->n_ports; i++) {
		struct daemon_roce_port *p = &n->roce->port[i];

		if (p->network != n)
			continue;
		if (p->ifindex == dev->index && (changes & NETDEV_CHANGE_GONE))
			device_gone(p);
		else if (p->ifindex == dev->index)
			device_changed(p, dev, changes);
		else if (!p->ifindex && !(changes & NETDEV_CHANGE_GONE) &&
		         !strcmp(p->device, dev->name))
			device_came(p, dev);
	}
}

static void on_watch(struct daemon_source *s, uint32_t events)
{
	const struct daemon_roce_network *n =
	        container_of(s, struct daemon_roce_network, watch_source);
	int ret = netdev_watch_dispatch(n->watch);

	(void)events;
	if (ret)
		base_log_warning(roce, "cannot tell what network devices do: %s", strerror(-ret));
}

/* ---- networks ---- */

static int make_socket(const struct netdev_network *network, int family, int type, int protocol)
{
	const struct daemon_roce_network *n =
	        container_of(network, const struct daemon_roce_network, sockets);

	return hosts_socket(n->ns, family, type, protocol);
}

static int open_network(struct daemon_roce_network *n, char *why, size_t len)
{
	int ret = netdev_watch_open(&n->watch, n->ns ? &n->sockets : NULL, on_changed, n);

	if (ret)
		snprintf(why, len, "cannot ask for network devices: %s", strerror(-ret));
	return ret;
}

/* Room for @n of them; all are the machine's so far. 0 or -ENOMEM. */
static int new_networks(struct daemon_roce *r, unsigned n)
{
	r->network = calloc(n, sizeof(*r->network));
	if (!r->network)
		return -ENOMEM;
	r->n_networks = n;
	for (unsigned i = 0; i < n; i++)
		r->network[i] = (struct daemon_roce_network){ .roce = r, .host = -1 };
	return 0;
}

static bool has_address(const struct daemon_roce_port *p, const union control_cm_addr *a)
{
	struct ib_gid gid;

	if (a->sa.sa_family == AF_INET)
		gid = wire_gid_from_ipv4(a->in.sin_addr.s_addr);
	else
		memcpy(gid.raw, a->in6.sin6_addr.s6_addr, sizeof(gid.raw));
	for (int i = 0; i < NETDEV_GIDS; i++)
		if (!ib_gid_is_zero(&gid) && ib_gid_equal(&p->gids.gid[i], &gid))
			return true;
	return false;
}

/* The network of a host, or with @host -1, that in which @src is. NULL: there is none. */
static const struct daemon_roce_network *find_network(const struct daemon_roce *r, int host,
                                                      const union control_cm_addr *src)
{
	if (!r->own_networks)
		return &r->network[0];
	for (unsigned i = 0; i < r->n_ports; i++)
		if (host < 0 ? has_address(&r->port[i], src) : r->port[i].network->host == host)
			return r->port[i].network;
	return NULL;
}

/* ---- routes ---- */

/* The kernel knows: a socket that is connected has the source address; nothing is sent. */
int daemon_roce_route(const struct daemon_roce *r, int host, const union control_cm_addr *dst,
                      union control_cm_addr *src)
{
	union control_cm_addr to = *dst;
	socklen_t len = to.sa.sa_family == AF_INET ? sizeof(to.in) : sizeof(to.in6);
	const struct daemon_roce_network *n = find_network(r, host, src);
	int fd, ret = 0;

	if (!n)
		return -ENETUNREACH;
	fd = netdev_network_socket(n->ns ? &n->sockets : NULL, to.sa.sa_family, SOCK_DGRAM, 0);
	if (fd < 0)
		return fd;
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

int daemon_roce_open(struct daemon_roce **out, const struct daemon_roce_devices *devices, char *why,
                     size_t len)
{
	struct daemon_roce *r = calloc(1, sizeof(*r));
	int ret = 0;

	if (!r)
		return -ENOMEM;
	*out = r;
	r->own_networks = devices->own_networks;
	r->hcas = devices->n_hcas ? devices->n_hcas : 1;
	if (!r->own_networks)
		ret = new_networks(r, 1);
	if (!ret && !r->own_networks)
		ret = open_network(&r->network[0], why, len);
	if (!ret && devices->names)
		ret = add_devices(r, devices->names, why, len);
	if (!ret)
		ret = add_hosts(r, devices->n_hosts);
	if (!ret && r->own_networks)
		ret = new_networks(r, r->n_ports);
	for (unsigned i = 0; !ret && i < r->n_ports; i++)
		r->port[i].network = &r->network[r->own_networks ? i : 0];
	return ret;
}

/* From the device's MAC, and the device's number, as several may have the same. */
static uint64_t guid_of(const uint8_t mac[static NETDEV_MAC_BYTES], unsigned n)
{
	uint64_t guid = 0x0200 | n;

	for (unsigned i = 0; i < NETDEV_MAC_BYTES; i++)
		guid = guid << 8 | mac[i];
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

/* The host that port number @i is on: one that is planned, a new one, or @before. -errno. */
static int plan_host(const struct daemon_roce *r, unsigned i, struct fabric_plan *plan, int before)
{
	char name[16];

	if (r->port[i].is_host && r->port[i].nth)
		return before;
	if (r->port[i].is_host) {
		snprintf(name, sizeof(name), "r%u", (i - r->first_host) / r->hcas + 1);
		return fabric_plan_add_host(plan, name);
	}
	if (before < 0)
		return plan->n_hosts ? 0 : fabric_plan_add_host(plan, NULL);
	return before;
}

/* The number of a port's host on the bridge, from 0: those that have nothing else come first. */
static unsigned number_of(const struct daemon_roce *r, unsigned port)
{
	unsigned n = 0;

	if (port >= r->first_host)
		return (port - r->first_host) / r->hcas;
	for (unsigned i = 0; i < port; i++)
		n += r->port[i].bridged;
	return n + (r->n_ports - r->first_host) / r->hcas;
}

/* Plans the device that the host is to get, as there is none yet: number @n of those on the bridge.
 * 0 or -errno. */
static int plan_device(const struct daemon_roce_port *p, int host, unsigned n,
                       struct hosts_device *d)
{
	*d = (struct hosts_device){ .host = (unsigned)host, .bridged = p->bridged };
	snprintf(d->name, sizeof(d->name), "%s", p->device);
	p->network->host = host;
	if (p->bridged) {
		const uint8_t mac[] = {
			0x02, 0x75, 0x6D, (uint8_t)p->nth, (uint8_t)((n + 1) >> 8), (uint8_t)(n + 1)
		};

		memcpy(d->mac, mac, sizeof(mac));
		d->nth = p->nth;
		fabric_plan_ethernet_address(n, p->nth, &d->ipv4, d->ipv6);
		return 0;
	}
	/* others are on its network: by chance, and locally administered */
	if (getrandom(d->mac, sizeof(d->mac), 0) != sizeof(d->mac))
		return -EIO;
	d->mac[0] = (uint8_t)((d->mac[0] & ~1u) | 2);
	return 0;
}

/* An HCA for a port, on that host. 0 or -errno. */
static int plan_hca(struct daemon_roce *r, unsigned i, struct fabric_plan *plan, int host)
{
	const struct daemon_roce_port *p = &r->port[i];
	int hca = fabric_plan_add_ethernet(plan, (unsigned)host, p->bridged ? NULL : p->device);
	const struct netdev *dev;
	const uint8_t *mac;

	if (hca < 0)
		return hca;
	if (r->own_networks) {
		int ret = plan_device(p, host, number_of(r, i), &r->made[i]);

		if (ret)
			return ret;
		mac = r->made[i].mac;
	} else {
		dev = netdev_watch_find(p->network->watch, p->device);
		if (!dev)
			return -ENODEV;
		mac = dev->mac;
	}
	plan->node[hca].guid = plan->node[hca].port[1].guid = guid_of(mac, i);
	return 0;
}

int daemon_roce_plan(struct daemon_roce *r, struct fabric_plan *plan, char *why, size_t len)
{
	int host = -1, node, ret = 0;

	if (r->own_networks)
		r->made = calloc(r->n_ports, sizeof(*r->made));
	if (r->own_networks && !r->made)
		return -ENOMEM;
	for (unsigned i = 0; i < r->n_ports && !ret; i++) {
		if (r->port[i].host)
			host = find_host(plan, r->port[i].host, why, len);
		else
			host = plan_host(r, i, plan, host);
		ret = host < 0 ? host : plan_hca(r, i, plan, host);
	}
	return ret ? ret : fabric_plan_finish(plan, &node, why, len);
}

const struct hosts_device *daemon_roce_made(const struct daemon_roce *r, unsigned *n)
{
	*n = r->made ? r->n_ports : 0;
	return r->made;
}

/* The port's device is there now. 0, or -errno with @why. */
static int find_device(struct daemon_roce_port *p, char *why, size_t len)
{
	const struct netdev *dev;
	int ret = 0;

	if (p->network->host >= 0) {
		p->network->ns = &p->roce->d.ns[p->network->host];
		p->network->sockets.socket = make_socket;
		ret = open_network(p->network, why, len);
	}
	if (ret)
		return ret;
	dev = netdev_watch_find(p->network->watch, p->device);
	if (!dev) {
		snprintf(why, len, "there is no network device '%s'", p->device);
		return -ENODEV;
	}
	p->ifindex = dev->index;
	return 0;
}

static int start_port(struct daemon_roce_port *p, char *why, size_t len)
{
	int ret = find_device(p, why, len);

	if (!ret)
		ret = roce_port_open(p, why, len);
	if (!ret)
		ret = roce_port_start(p);
	if (!ret)
		follow_device(p, netdev_watch_at(p->network->watch, p->ifindex));
	return ret;
}

int daemon_roce_start(struct daemon_roce *r, const struct daemon_roce_needs *needs, char *why,
                      size_t len)
{
	int ret = 0;

	r->d = *needs;
	for (unsigned i = 0; i < r->n_ports && !ret; i++) {
		r->port[i].port = r->d.f->hca_port[r->d.f->n_ib_ports + i];
		ret = start_port(&r->port[i], why, len);
	}
	if (!ret)
		ret = roce_groups_init(r);
	for (unsigned i = 0; i < r->n_networks && !ret; i++) {
		r->network[i].watch_source.ready = on_watch;
		ret = daemon_source_watch(r->d.loop, &r->network[i].watch_source,
		                          netdev_watch_fd(r->network[i].watch), EPOLLIN);
	}
	return ret;
}

void daemon_roce_stop(struct daemon_roce *r)
{
	for (unsigned i = 0; i < r->n_ports; i++)
		roce_port_stop(&r->port[i]);
}

const char *daemon_roce_device(const struct daemon_roce *r, uint32_t index)
{
	return daemon_roce_port(r, index)->device;
}
