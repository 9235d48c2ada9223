/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Network devices by rtnetlink: see netdev.h.
 *
 * One socket receives the kernel's notifications. A second one, open only meanwhile, requests a
 * dump of all devices: at the start, and whenever the kernel says that it dropped notifications.
 * Notifications from before a dump may be read after it: then a device passes through an old state
 * once more, but ends in the right one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/util.h"
#include "netdev/netdev.h"
#include "netdev/netlink.h"
#include "wire/ip.h"

#define LOWER_UP     0x10000 /* IFF_LOWER_UP, which <net/if.h> does not have */
#define BUFFER_BYTES 32768   /* the most that the kernel sends at once */
#define DUMPS_MAX    8       /* how often a dump is repeated because something changed meanwhile */

struct device {
	struct base_hash_node node; /* by index */
	struct netdev dev;
	unsigned address_room;
};

struct netdev_watch {
	const struct netdev_network *network;
	struct mnl_socket *events;
	struct base_hash devices;
	netdev_changed *changed;
	void *arg;
	netdev_neighbour_came *came; /* NULL: neighbours are not watched */
	bool stale;                  /* notifications were lost: a dump is needed */
	_Alignas(struct nlmsghdr) char buffer[BUFFER_BYTES];
};

/*
 * Where messages are applied: a watch's devices, which reports changes, or a dump's, which does
 * not.
 */
struct target {
	struct base_hash *devices;
	struct netdev_watch *watch;
};

struct mnl_socket *netdev_netlink_open(const struct netdev_network *network)
{
	int fd = netdev_network_socket(network, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	struct mnl_socket *nl = fd < 0 ? NULL : mnl_socket_fdopen(fd);

	if (!nl)
		errno = fd < 0 ? -fd : ENOMEM;
	if (!nl && fd >= 0)
		close(fd);
	return nl;
}

/* ---- devices ---- */

static struct device *device_of(struct base_hash_node *node)
{
	return node ? container_of(node, struct device, node) : NULL;
}

static struct device *find(const struct base_hash *devices, int index)
{
	struct base_hash_node *node = base_hash_first(devices, (uint64_t)index);

	while (node && device_of(node)->dev.index != index)
		node = base_hash_next(node);
	return device_of(node);
}

static void free_device(struct device *d)
{
	free(d->dev.address);
	free(d);
}

static void free_devices(struct base_hash *devices)
{
	struct base_hash_node *node;

	while ((node = base_hash_walk(devices, NULL))) {
		base_hash_remove(devices, node);
		free_device(device_of(node));
	}
	base_hash_fini(devices);
}

static void tell(const struct target *in, const struct netdev *dev, unsigned changes)
{
	if (in->watch && changes)
		in->watch->changed(in->watch->arg, dev, changes);
}

/* How they differ: enum netdev_change. */
static unsigned compare_devices(const struct netdev *a, const struct netdev *b)
{
	unsigned changes = 0;

	if (a->up != b->up || a->carrier != b->carrier)
		changes |= NETDEV_CHANGE_STATE;
	if (a->mtu != b->mtu)
		changes |= NETDEV_CHANGE_MTU;
	if (memcmp(a->mac, b->mac, NETDEV_MAC_BYTES) != 0)
		changes |= NETDEV_CHANGE_MAC;
	if (strcmp(a->name, b->name) != 0)
		changes |= NETDEV_CHANGE_NAME;
	return changes;
}

static bool same_address(const struct netdev_address *a, const struct netdev_address *b)
{
	return ib_gid_equal(&a->gid, &b->gid) && a->prefix == b->prefix;
}

/* The index of @address among the device's; n_addresses: it is not there. */
static unsigned find_address(const struct netdev *dev, const struct netdev_address *address)
{
	unsigned i = 0;

	while (i < dev->n_addresses && !same_address(&dev->address[i], address))
		i++;
	return i;
}

static bool same_addresses(const struct netdev *a, const struct netdev *b)
{
	if (a->n_addresses != b->n_addresses)
		return false;
	for (unsigned i = 0; i < a->n_addresses; i++)
		if (find_address(b, &a->address[i]) == b->n_addresses)
			return false;
	return true;
}

/* ---- messages about devices ---- */

static struct netdev read_device(const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct netdev dev = { .index = ifi->ifi_index,
		              .up = ifi->ifi_flags & IFF_UP,
		              .carrier = ifi->ifi_flags & LOWER_UP,
		              .loopback = ifi->ifi_flags & IFF_LOOPBACK,
		              .noarp = ifi->ifi_flags & IFF_NOARP };
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(*ifi))
	{
		uint16_t bytes = mnl_attr_get_payload_len(attr);
		const void *payload = mnl_attr_get_payload(attr);

		switch (mnl_attr_get_type(attr)) {
		case IFLA_IFNAME:
			memcpy(dev.name, payload, (size_t)base_min(bytes, sizeof(dev.name) - 1));
			break;
		case IFLA_MTU:
			if (bytes == sizeof(dev.mtu))
				memcpy(&dev.mtu, payload, bytes);
			break;
		case IFLA_ADDRESS:
			if (bytes == NETDEV_MAC_BYTES)
				memcpy(dev.mac, payload, bytes);
			break;
		}
	}
	return dev;
}

static int add_device(const struct target *in, const struct netdev *dev)
{
	struct device *d = calloc(1, sizeof(*d));
	int ret;

	if (!d)
		return -ENOMEM;
	d->dev = *dev;
	ret = base_hash_add(in->devices, &d->node, (uint64_t)dev->index);
	if (ret) {
		free(d);
		return ret;
	}
	tell(in, &d->dev, NETDEV_CHANGE_NEW);
	return 0;
}

static int device_came(const struct target *in, const struct netdev *dev)
{
	struct device *d = find(in->devices, dev->index);
	struct netdev before;

	if (!d)
		return add_device(in, dev);
	before = d->dev;
	d->dev = *dev;
	d->dev.n_addresses = before.n_addresses;
	d->dev.address = before.address;
	tell(in, &d->dev, compare_devices(&before, dev));
	return 0;
}

static void device_went(const struct target *in, int index)
{
	struct device *d = find(in->devices, index);

	if (!d)
		return;
	base_hash_remove(in->devices, &d->node);
	tell(in, &d->dev, NETDEV_CHANGE_GONE);
	free_device(d);
}

/* ---- messages about addresses ---- */

struct address_message {
	int index;
	struct netdev_address address;
	bool usable;
};

bool netdev_netlink_gid(const struct nlattr *attr, int family, struct ib_gid *gid)
{
	uint16_t bytes = mnl_attr_get_payload_len(attr);
	in_addr_t ipv4;

	if (bytes != (family == AF_INET ? sizeof(ipv4) : sizeof(*gid)))
		return false;
	if (family == AF_INET) {
		memcpy(&ipv4, mnl_attr_get_payload(attr), sizeof(ipv4));
		*gid = wire_gid_from_ipv4(ipv4);
	} else {
		memcpy(gid, mnl_attr_get_payload(attr), sizeof(*gid));
	}
	return true;
}

/* False: no address that we use. */
static bool read_address(const struct nlmsghdr *nlh, struct address_message *m)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	uint32_t flags = ifa->ifa_flags;
	const struct nlattr *attr;
	bool local = false, any = false;

	*m = (struct address_message){ .index = (int)ifa->ifa_index,
		                       .address.prefix = ifa->ifa_prefixlen };
	if (ifa->ifa_family != AF_INET && ifa->ifa_family != AF_INET6)
		return false;
	mnl_attr_for_each(attr, nlh, sizeof(*ifa))
	{
		uint16_t type = mnl_attr_get_type(attr);

		if (type == IFA_FLAGS && mnl_attr_get_payload_len(attr) == sizeof(flags))
			flags = mnl_attr_get_u32(attr);
		/* of a point-to-point address, IFA_ADDRESS is the peer's */
		if (type == IFA_LOCAL || (type == IFA_ADDRESS && !local))
			any |= netdev_netlink_gid(attr, ifa->ifa_family, &m->address.gid);
		local |= type == IFA_LOCAL;
	}
	m->usable = !(flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED));
	return any;
}

static int add_address(struct device *d, const struct netdev_address *address)
{
	int ret = base_array_reserve(&d->dev.address, &d->address_room,
	                             (size_t)d->dev.n_addresses + 1);

	if (!ret)
		d->dev.address[d->dev.n_addresses++] = *address;
	return ret;
}

static void remove_address(struct netdev *dev, unsigned at)
{
	dev->n_addresses--;
	memmove(&dev->address[at], &dev->address[at + 1],
	        (dev->n_addresses - at) * sizeof(*dev->address));
}

static int apply_address(const struct target *in, const struct address_message *m, bool there)
{
	struct device *d = find(in->devices, m->index);
	unsigned at;
	int ret = 0;

	if (!d)
		return 0;
	at = find_address(&d->dev, &m->address);
	if ((at < d->dev.n_addresses) == there)
		return 0;
	if (there)
		ret = add_address(d, &m->address);
	else
		remove_address(&d->dev, at);
	if (!ret)
		tell(in, &d->dev, NETDEV_CHANGE_ADDRESSES);
	return ret;
}

/* ---- messages about neighbours ---- */

static void parse_neighbour(const struct netdev_watch *w, const struct nlmsghdr *nlh)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;
	struct ib_gid gid;

	if (!w || !w->came || mnl_nlmsg_get_payload_len(nlh) < sizeof(*ndm) ||
	    !(ndm->ndm_state & NETDEV_NUD_KNOWN) ||
	    (ndm->ndm_family != AF_INET && ndm->ndm_family != AF_INET6))
		return;
	mnl_attr_for_each(attr, nlh, sizeof(*ndm))
	{
		if (mnl_attr_get_type(attr) == NDA_DST &&
		    netdev_netlink_gid(attr, ndm->ndm_family, &gid))
			w->came(w->arg, ndm->ndm_ifindex, &gid);
	}
}

/* ---- messages ---- */

static int parse_device(const struct target *in, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct netdev dev;

	/* bridges send messages of these types about their ports, too */
	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*ifi) || ifi->ifi_family != AF_UNSPEC)
		return 0;
	if (nlh->nlmsg_type == RTM_DELLINK) {
		device_went(in, ifi->ifi_index);
		return 0;
	}
	dev = read_device(nlh);
	return device_came(in, &dev);
}

static int parse_address(const struct target *in, const struct nlmsghdr *nlh)
{
	struct address_message m;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(struct ifaddrmsg) || !read_address(nlh, &m))
		return 0;
	return apply_address(in, &m, nlh->nlmsg_type == RTM_NEWADDR && m.usable);
}

/* mnl_cb_t */
static int parse_message(const struct nlmsghdr *nlh, void *arg)
{
	const struct target *in = arg;
	int ret = 0;

	if (nlh->nlmsg_type == RTM_NEWLINK || nlh->nlmsg_type == RTM_DELLINK)
		ret = parse_device(in, nlh);
	else if (nlh->nlmsg_type == RTM_NEWADDR || nlh->nlmsg_type == RTM_DELADDR)
		ret = parse_address(in, nlh);
	else if (nlh->nlmsg_type == RTM_NEWNEIGH)
		parse_neighbour(in->watch, nlh);
	if (!ret)
		return MNL_CB_OK;
	errno = -ret;
	return MNL_CB_ERROR;
}

/* ---- dumps ---- */

/* Requests a dump of one type on @nl and applies its messages. */
static int dump(struct mnl_socket *nl, uint16_t type, const struct target *in, char *buffer)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	unsigned portid = mnl_socket_get_portid(nl);
	ssize_t n;
	int more;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = type;
	/* for addresses, its beginning is a struct ifaddrmsg: any family */
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	do {
		n = mnl_socket_recvfrom(nl, buffer, BUFFER_BYTES);
		if (n < 0)
			return -errno;
		more = mnl_cb_run(buffer, (size_t)n, type, portid, parse_message, (void *)in);
	} while (more > 0);
	return more < 0 ? -errno : 0;
}

/* Fills the empty @devices. -EINTR: devices changed during the dump. */
static int dump_all(struct base_hash *devices, struct netdev_watch *w)
{
	const struct target in = { .devices = devices };
	struct mnl_socket *nl = netdev_netlink_open(w->network);
	int ret;

	if (!nl)
		return -errno;
	ret = mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) ? -errno : 0;
	if (!ret)
		ret = dump(nl, RTM_GETLINK, &in, w->buffer);
	if (!ret)
		ret = dump(nl, RTM_GETADDR, &in, w->buffer);
	mnl_socket_close(nl);
	return ret;
}

/* Reports how the present devices differ from @before. */
static void report_difference(struct netdev_watch *w, const struct base_hash *before)
{
	const struct target in = { .devices = &w->devices, .watch = w };
	struct base_hash_node *node = NULL;

	while ((node = base_hash_walk(before, node))) {
		struct device *old = device_of(node);

		if (!find(&w->devices, old->dev.index))
			tell(&in, &old->dev, NETDEV_CHANGE_GONE);
	}
	while ((node = base_hash_walk(&w->devices, node))) {
		struct device *now = device_of(node), *old = find(before, now->dev.index);
		unsigned changes = NETDEV_CHANGE_NEW;

		if (old)
			changes = NETDEV_CHANGE_UNSURE | compare_devices(&old->dev, &now->dev) |
			          (same_addresses(&old->dev, &now->dev) ? 0
			                                                : NETDEV_CHANGE_ADDRESSES);
		tell(&in, &now->dev, changes);
	}
}

/* Replaces the devices by a dump. *@before: the old ones; the caller frees them. */
static int dump_devices(struct netdev_watch *w, struct base_hash *before)
{
	struct base_hash now;
	int ret = -EINTR;

	for (unsigned i = 0; i < DUMPS_MAX && ret == -EINTR; i++) {
		now = (struct base_hash){ 0 };
		ret = dump_all(&now, w);
		if (ret)
			free_devices(&now);
	}
	w->stale = ret != 0;
	if (ret)
		return ret;
	*before = w->devices;
	w->devices = now;
	return 0;
}

/* ---- the watch ---- */

static int open_events(struct netdev_watch *w)
{
	static const int group[] = { RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR };

	w->events = netdev_netlink_open(w->network);
	if (!w->events || fcntl(mnl_socket_get_fd(w->events), F_SETFL, O_NONBLOCK))
		return -errno;
	if (mnl_socket_bind(w->events, 0, MNL_SOCKET_AUTOPID))
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(group); i++)
		if (mnl_socket_setsockopt(w->events, NETLINK_ADD_MEMBERSHIP, (void *)&group[i],
		                          sizeof(group[i])))
			return -errno;
	return 0;
}

int netdev_watch_open(struct netdev_watch **watch, const struct netdev_network *network,
                      netdev_changed *changed, void *arg)
{
	struct base_hash none = { 0 };
	struct netdev_watch *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->network = network;
	w->changed = changed;
	w->arg = arg;
	ret = open_events(w);
	if (!ret)
		ret = dump_devices(w, &none);
	if (ret) {
		netdev_watch_close(w);
		return ret;
	}
	*watch = w;
	return 0;
}

void netdev_watch_close(struct netdev_watch *w)
{
	if (w->events)
		mnl_socket_close(w->events);
	free_devices(&w->devices);
	free(w);
}

int netdev_watch_neighbours(struct netdev_watch *w, netdev_neighbour_came *came)
{
	int group = RTNLGRP_NEIGH;

	if (!came == !w->came)
		return 0;
	if (mnl_socket_setsockopt(w->events,
	                          came ? NETLINK_ADD_MEMBERSHIP : NETLINK_DROP_MEMBERSHIP, &group,
	                          sizeof(group)))
		return -errno;
	w->came = came;
	return 0;
}

int netdev_watch_fd(const struct netdev_watch *w)
{
	return mnl_socket_get_fd(w->events);
}

/* Reads all notifications in the socket, also if earlier ones were lost. */
static int drain(struct netdev_watch *w)
{
	const struct target in = { .devices = &w->devices, .watch = w };

	for (;;) {
		ssize_t n = mnl_socket_recvfrom(w->events, w->buffer, sizeof(w->buffer));

		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 && errno == ENOBUFS)
			w->stale = true;
		else if (n < 0 && errno != EINTR)
			return -errno;
		if (n >= 0 &&
		    mnl_cb_run(w->buffer, (size_t)n, 0, 0, parse_message, (void *)&in) < 0)
			w->stale = true;
	}
}

int netdev_watch_dispatch(struct netdev_watch *w)
{
	struct base_hash before;
	int ret = drain(w);

	if (!ret && w->stale) {
		ret = dump_devices(w, &before);
		if (!ret) {
			report_difference(w, &before);
			free_devices(&before);
		}
	}
	return ret;
}

const struct netdev *netdev_watch_find(const struct netdev_watch *w, const char *name)
{
	struct base_hash_node *node = NULL;

	while ((node = base_hash_walk(&w->devices, node)))
		if (!strcmp(device_of(node)->dev.name, name))
			return &device_of(node)->dev;
	return NULL;
}

const struct netdev *netdev_watch_at(const struct netdev_watch *w, int index)
{
	const struct device *d = find(&w->devices, index);

	return d ? &d->dev : NULL;
}
