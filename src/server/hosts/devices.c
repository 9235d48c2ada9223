/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ethernet of hosts: see devices.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "base/log.h"
#include "hosts/devices.h"
#include "netdev/make.h"

#define BRIDGE     "br0"
#define MTU        4200 /* what a port of RoCE needs for messages of 4096 bytes */
#define LOOK_MS    2
#define PATIENT_NS 5000000000ull /* for ports of the bridge to forward */

static int fail(int error, char *why, size_t len, const char *what)
{
	snprintf(why, len, "%s: %s", what, strerror(-error));
	return error;
}

/* ---- devices that share one of the machine's ---- */

static int share(const struct hosts_plan *plan, const struct hosts_device *d, int net, char *why,
                 size_t len)
{
	int ret = netdev_make_shared(d->name, d->mac, net);
	char what[128];

	if (ret == -EPERM)
		snprintf(what, sizeof(what),
		         "to have network device '%s' on a host takes CAP_NET_ADMIN on this "
		         "machine",
		         d->name);
	else
		snprintf(what, sizeof(what), "host '%s' cannot share network device '%s' (macvlan)",
		         plan->name(plan->arg, d->host), d->name);
	return ret ? fail(ret, why, len, what) : 0;
}

/* ---- ports of the bridge ---- */

/* The bridge's port to device number @i. */
static void port_name(char name[static IFNAMSIZ], unsigned i)
{
	snprintf(name, IFNAMSIZ, "p%u", i + 1);
}

static int make_bridge(char *why, size_t len)
{
	int ret = hosts_network_new(why, len);

	if (ret)
		return ret;
	ret = netdev_make_bridge(BRIDGE);
	return ret ? fail(ret, why, len, "a bridge that snoops IGMP cannot be made") : 0;
}

static int plug(const struct hosts_device *d, unsigned i, int net, char *why, size_t len)
{
	struct netdev_pair pair = { .bridge = BRIDGE, .name = d->name, .mtu = MTU, .net = net };
	char port[IFNAMSIZ];
	int ret;

	port_name(port, i);
	pair.port = port;
	memcpy(pair.mac, d->mac, sizeof(pair.mac));
	ret = netdev_make_pair(&pair);
	return ret ? fail(ret, why, len, "a pair of network devices cannot be made (veth)") : 0;
}

/* The device is up, with its addresses; on its host. */
static int configure(const struct hosts_device *d, char *why, size_t len)
{
	int ret = netdev_make_up(d->name);

	if (!ret && !d->bridged)
		return 0;
	if (!ret)
		ret = netdev_make_ipv4(d->name, d->ipv4, 16);
	if (!ret)
		ret = netdev_make_arp_its_own(d->name);
	if (!ret && !d->nth)
		ret = netdev_make_multicast_route(d->name);
	if (!ret && netdev_make_ipv6(d->name, d->ipv6, 64))
		base_log_info(hosts, "hosts have no IPv6");
	return ret ? fail(ret, why, len, "a host's network device cannot be configured") : 0;
}

/* Whether queries of MLD have come to the host where we are. Without IPv6 none will. */
static bool is_queried(void)
{
	FILE *f = fopen("/proc/thread-self/net/snmp6", "re");
	unsigned long long n = 0;
	char line[128];

	if (!f)
		return true;
	while (!n && fgets(line, sizeof(line), f))
		if (sscanf(line, "Icmp6InGroupMembQueries %llu", &n) != 1)
			n = 0;
	fclose(f);
	return n;
}

/* Whether the device works, of those where we are. */
static bool is_running(const char *name)
{
	struct ifreq req = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	ret = fd < 0 ? -1 : ioctl(fd, SIOCGIFFLAGS, &req);
	if (fd >= 0)
		close(fd);
	return !ret && (req.ifr_flags & IFF_RUNNING);
}

/* The kernel takes note of a link that is up by and by, up to a second later. Only then the port
 * forwards. */
static void wait_running(const struct hosts_plan *plan, uint64_t last_ns)
{
	char port[IFNAMSIZ];

	for (unsigned i = 0; i < plan->n_devices; i++) {
		port_name(port, i);
		while (plan->device[i].bridged && !is_running(port) && base_now_ns() < last_ns)
			poll(NULL, 0, LOOK_MS);
	}
}

/* Until then the bridge sends groups to all. */
static int settle(const struct hosts_plan *plan, const struct hosts_namespaces *ns, int net)
{
	uint64_t last_ns = base_now_ns() + PATIENT_NS;
	unsigned first = 0;
	int ret;

	if (setns(net, CLONE_NEWNET))
		return -errno;
	wait_running(plan, last_ns);
	ret = netdev_make_querier(BRIDGE);
	while (!plan->device[first].bridged)
		first++;
	if (!ret && setns(ns[plan->device[first].host].net, CLONE_NEWNET))
		ret = -errno;
	while (!ret && !is_queried() && base_now_ns() < last_ns)
		poll(NULL, 0, LOOK_MS);
	if (!ret && setns(net, CLONE_NEWNET))
		ret = -errno;
	return ret ? ret : netdev_make_settled(BRIDGE);
}

static int plug_all(const struct hosts_plan *plan, const struct hosts_namespaces *ns, char *why,
                    size_t len)
{
	int ret = make_bridge(why, len);

	for (unsigned i = 0; !ret && i < plan->n_devices; i++)
		if (plan->device[i].bridged)
			ret = plug(&plan->device[i], i, ns[plan->device[i].host].net, why, len);
	return ret;
}

static int configure_all(const struct hosts_plan *plan, const struct hosts_namespaces *ns,
                         char *why, size_t len)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i < plan->n_devices; i++) {
		if (setns(ns[plan->device[i].host].net, CLONE_NEWNET))
			ret = fail(-errno, why, len, "cannot go to a host's network (setns)");
		else
			ret = configure(&plan->device[i], why, len);
	}
	return ret;
}

static int share_all(const struct hosts_plan *plan, const struct hosts_namespaces *ns, char *why,
                     size_t len)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i < plan->n_devices; i++)
		if (!plan->device[i].bridged)
			ret = share(plan, &plan->device[i], ns[plan->device[i].host].net, why, len);
	return ret;
}

int hosts_devices_make(const struct hosts_plan *plan, const struct hosts_namespaces *ns, int *net,
                       char *why, size_t len)
{
	unsigned bridged = 0;
	int ret = share_all(plan, ns, why, len);

	for (unsigned i = 0; i < plan->n_devices; i++)
		bridged += plan->device[i].bridged;
	if (!ret && bridged)
		ret = plug_all(plan, ns, why, len);
	if (ret || !plan->n_devices)
		return ret;
	*net = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (*net < 0)
		return hosts_fail_for_descriptors(why, len);
	ret = configure_all(plan, ns, why, len);
	if (!ret && bridged) {
		ret = settle(plan, ns, *net);
		if (ret)
			fail(ret, why, len, "the bridge cannot be made to send queries");
	}
	return ret;
}
