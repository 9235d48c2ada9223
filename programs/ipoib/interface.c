/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An interface, from its beginning to its end, and its loop: see interface.h. While packets come,
 * the loop does not sleep; it arms the queues when there are none. The events that woke it are read
 * when the packets are delivered.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "ipoib/interface.h"
#include "ipoib/members.h"
#include "ipoib/nd.h"

#define LOOK_NS     (10 * 1000000000ull)
#define HELD_BYTES  (4u << 20)
#define PREFIX_BITS 64
#define FATAL_MS    1000

/* The sources of events that wake us. */
enum source {
	SOURCE_TUN,
	SOURCE_LINK,
	SOURCE_VERBS,
	SOURCE_SA,
	SOURCE_CM,
	SOURCE_WATCH,
	SOURCE_ROUTES,
	SOURCE_CONTROL,
	SOURCE_SIGNAL,
	SOURCES,
};

/* ---- addresses ---- */

const struct netdev *ipoib_device(const struct ipoib_interface *i)
{
	return netdev_watch_at(i->watch, i->tun.index);
}

bool ipoib_is_ours(const struct ipoib_interface *i, const struct ib_gid *ip)
{
	const struct netdev *dev = ipoib_device(i);

	for (unsigned n = 0; dev && n < dev->n_addresses; n++) {
		if (ib_gid_equal(&dev->address[n].gid, ip))
			return true;
	}
	return false;
}

bool ipoib_same_prefix(const struct netdev_address *address, const struct ib_gid *ip)
{
	bool is_ipv4 = wire_gid_is_ipv4(ip);
	unsigned bits = address->prefix + (is_ipv4 ? 96u : 0u), bytes = bits / 8;

	if (wire_gid_is_ipv4(&address->gid) != is_ipv4 ||
	    memcmp(address->gid.raw, ip->raw, bytes) != 0)
		return false;
	return !(bits % 8) || !((address->gid.raw[bytes] ^ ip->raw[bytes]) >> (8 - bits % 8));
}

bool ipoib_is_on_link(const struct ipoib_interface *i, const struct ib_gid *ip)
{
	const struct netdev *dev = ipoib_device(i);

	if (ib_gid_is_zero(ip) || wire_gid_is_ip_mcast(ip))
		return false;
	for (unsigned n = 0; dev && n < dev->n_addresses; n++) {
		if (ipoib_same_prefix(&dev->address[n], ip))
			return true;
	}
	return false;
}

/* ---- groups ---- */

static void want(void *arg, const struct ib_gid *group)
{
	struct ipoib_interface *i = arg;
	struct ib_gid mgid;

	ipoib_map_group(i, group, &mgid);
	ipoib_groups_want(&i->groups, &mgid);
}

/* Joins what sockets have joined, and where neighbours ask for our addresses: the kernel does not
 * join those groups on a device that has no link-layer addresses. */
static void look_for_members(struct ipoib_interface *i)
{
	const struct netdev *dev = ipoib_device(i);

	i->members_changed = false;
	base_timer_set_in(&i->timers, &i->look, LOOK_NS, i->look.due);
	ipoib_groups_want_begin(&i->groups);
	ipoib_members_read(i->tun.name, want, i);
	for (unsigned n = 0; dev && n < dev->n_addresses; n++) {
		struct ib_gid group = ipoib_nd_solicited_group(&dev->address[n].gid);

		if (!wire_gid_is_ipv4(&dev->address[n].gid))
			want(i, &group);
	}
	ipoib_groups_want_end(&i->groups);
}

static void look(struct base_timer *timer)
{
	look_for_members(container_of(timer, struct ipoib_interface, look));
}

/* ---- the port ---- */

void ipoib_report(struct ipoib_interface *i)
{
	if (i->reported)
		return;
	i->reported = true;
	if (i->options->status_fd >= 0 && write(i->options->status_fd, "R", 1) != 1)
		base_log_warning(ipoib, "nobody reads the status descriptor");
}

/* Groups hear datagrams, also in connected mode: the kernel is to make packets that fit. */
static void route_groups(const struct ipoib_interface *i, unsigned before)
{
	int ret = 0;

	if (i->options->multicast)
		ret = ipoib_tun_route_groups(&i->tun, false, i->mtu, before);
	if (ret && ret != -EEXIST)
		base_log_warning(ipoib, "%s: there is no route for multicast: %s", i->tun.name,
		                 strerror(-ret));
	if (i->options->connected) /* without IPv6 there is none */
		ipoib_tun_route_groups(&i->tun, true, i->mtu, before);
}

/* We are a member of the broadcast group: the link works. */
static void ready(void *arg, const struct wire_mcmember *broadcast)
{
	struct ipoib_interface *i = arg;
	unsigned mtu = IB_MTU_BYTES(broadcast->mtu) - IPOIB_HEADER_BYTES;

	if (ipoib_link_set_qkey(i->link, broadcast->qkey))
		base_log_warning(ipoib, "Q_Key 0x%08x cannot be set", broadcast->qkey);
	if (mtu != i->mtu && broadcast->mtu && broadcast->mtu <= IBV_MTU_4096) {
		unsigned before = i->mtu;

		i->mtu = mtu;
		ipoib_link_set_mtu(i->link, mtu);
		ipoib_tun_set_mtu(&i->tun, ipoib_interface_mtu(i));
		route_groups(i, before);
	}
	ipoib_tun_set_carrier(&i->tun, true);
	i->members_changed = true;
	if (i->was_ready)
		ipoib_announce_again(i);
	else
		ipoib_announce(i);
	i->was_ready = true;
	ipoib_report(i);
}

/* The port's state and LID, its P_Keys and where the SM is may be others than before. */
static int port_changed(struct ipoib_interface *i)
{
	const struct ipoib_port before = i->port;
	const uint16_t index = i->pkey_index;
	struct ibv_port_attr attr;
	union ibv_gid gid;
	bool active, moved;

	if (ibv_query_port(i->verbs, i->port_num, &attr) ||
	    ibv_query_gid(i->verbs, i->port_num, 0, &gid))
		return -EIO;
	memcpy(i->port.gid.raw, gid.raw, sizeof(gid.raw));
	i->port.lid = attr.lid;
	i->port.lmc = attr.lmc;
	ipoib_paths_doubt(&i->paths, NULL);
	active = attr.state == IBV_PORT_ACTIVE && ipoib_partition_follow(i);
	moved = before.lid != i->port.lid || index != i->pkey_index ||
	        !ib_gid_equal(&before.gid, &i->port.gid);
	if (i->options->connected && (!active || moved))
		ipoib_connections_reset(&i->connections);
	if (active) {
		i->counters.rejoins++;
		ipoib_groups_rejoin(&i->groups);
	} else {
		ipoib_groups_stop(&i->groups);
		ipoib_tun_set_carrier(&i->tun, false);
		ipoib_report(i); /* there is nothing to wait for */
	}
	return 0;
}

static bool matters(enum ibv_event_type type)
{
	return type == IBV_EVENT_PORT_ACTIVE || type == IBV_EVENT_PORT_ERR ||
	       type == IBV_EVENT_LID_CHANGE || type == IBV_EVENT_SM_CHANGE ||
	       type == IBV_EVENT_CLIENT_REREGISTER || type == IBV_EVENT_GID_CHANGE ||
	       type == IBV_EVENT_PKEY_CHANGE;
}

static int verbs_events(struct ipoib_interface *i)
{
	struct ibv_async_event event;
	bool changed = false, fatal = false;

	while (!ibv_get_async_event(i->verbs, &event)) {
		changed |= matters(event.event_type) && event.element.port_num == i->port_num;
		fatal |= event.event_type == IBV_EVENT_DEVICE_FATAL;
		ibv_ack_async_event(&event);
	}
	if (fatal)
		return -ENODEV;
	return changed ? port_changed(i) : 0;
}

/* fe80 with the port's GUID (RFC 4391, section 8.1). */
static struct netdev_address link_local(const struct ipoib_interface *i)
{
	struct netdev_address a = { .gid = { { 0xFE, 0x80 } }, .prefix = PREFIX_BITS };

	memcpy(a.gid.raw + 8, i->port.gid.raw + 8, 8);
	a.gid.raw[8] |= 0x02;
	return a;
}

/* Somebody has set the device down and up again. Then the kernel has forgotten what it cannot make
 * itself: the routes of groups, and the address that it gives to devices with link-layer addresses.
 */
static void set_up_again(struct ipoib_interface *i)
{
	const struct netdev_address local = link_local(i);

	route_groups(i, 0);
	ipoib_tun_add_address(&i->tun, &local);
}

/* netdev_changed */
static void device_changed(void *arg, const struct netdev *dev, unsigned changes)
{
	struct ipoib_interface *i = arg;

	if (dev->index != i->tun.index)
		return;
	if (changes & NETDEV_CHANGE_STATE) {
		if (dev->up && i->was_down)
			set_up_again(i);
		i->was_down = !dev->up;
	}
	if (!(changes & NETDEV_CHANGE_ADDRESSES))
		return;
	i->members_changed = true;
	ipoib_announce(i);
}

/* ---- the beginning ---- */

/* Opens the host's InfiniBand port of that number, over all its HCAs. */
static int open_port(struct ipoib_interface *i)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	unsigned left = i->options->port;
	int ret = -ENODEV;

	for (unsigned n = 0; list && list[n] && ret == -ENODEV; n++) {
		struct ibv_context *verbs = ibv_open_device(list[n]);
		struct ibv_device_attr device;
		struct ibv_port_attr attr;

		if (!verbs)
			continue;
		if (ibv_query_device(verbs, &device))
			device.phys_port_cnt = 0;
		for (uint8_t port = 1; port <= device.phys_port_cnt && ret; port++) {
			if (ibv_query_port(verbs, port, &attr) ||
			    attr.link_layer == IBV_LINK_LAYER_ETHERNET || --left)
				continue;
			i->verbs = verbs;
			i->port_num = port;
			snprintf(i->device, sizeof(i->device), "%s", ibv_get_device_name(list[n]));
			ret = 0;
		}
		if (ret)
			ibv_close_device(verbs);
	}
	if (list)
		ibv_free_device_list(list);
	return ret;
}

/* Says what the device is. */
static int set_alias(const struct ipoib_interface *i)
{
	struct wire_ipoib_alias a = { .connected = i->options->connected,
		                      .port = i->port_num,
		                      .pkey = i->options->pkey,
		                      .qpn = ipoib_link_qpn(i->link) };
	char text[WIRE_IPOIB_ALIAS_ROOM];

	strcpy(a.device, i->device);
	wire_ipoib_alias_encode(&a, text);
	return ipoib_tun_set_alias(&i->tun, text);
}

static int set_up_device(struct ipoib_interface *i)
{
	const struct netdev_address local = link_local(i);
	int ret = ipoib_tun_set_mtu(&i->tun, ipoib_interface_mtu(i));

	if (!ret)
		ret = set_alias(i);
	if (!ret)
		ret = ipoib_tun_set_up(&i->tun);
	if (!ret)
		route_groups(i, 0);
	for (unsigned n = 0; n < i->options->n_addresses && !ret; n++)
		ret = ipoib_tun_add_address(&i->tun, &i->options->address[n]);
	/* without IPv6 there is none */
	if (!ret)
		ipoib_tun_add_address(&i->tun, &local);
	for (unsigned n = 0; i->options->is_new && n < i->options->n_addresses; n++)
		ipoib_announce_told(i, &i->options->address[n].gid);
	if (i->options->is_new)
		ipoib_announce_told(i, &local.gid);
	return ret;
}

static uint64_t clock_now(void *arg)
{
	(void)arg;
	return base_now_ns();
}

static int init_tables(struct ipoib_interface *i)
{
	static const struct base_clock clock = { .now_ns = clock_now };

	base_timers_init(&i->timers, &clock);
	i->look.due = look;
	i->budget.max_bytes = HELD_BYTES;
	ipoib_merge_init(&i->merge, ipoib_deliver, i);
	ipoib_neighbours_init(&i->neighbours, &i->timers, &i->budget, &ipoib_neighbour_ops, i);
	i->paths = (struct ipoib_paths){ .sa = i->sa,
		                         .link = i->link,
		                         .port = &i->port,
		                         .budget = &i->budget,
		                         .send = ipoib_send_held,
		                         .arg = i };
	ipoib_paths_init(&i->paths);
	i->groups = (struct ipoib_groups){ .timers = &i->timers,
		                           .sa = i->sa,
		                           .link = i->link,
		                           .port = &i->port,
		                           .budget = &i->budget,
		                           .send = ipoib_send_held_to_group,
		                           .ready = ready,
		                           .arg = i };
	i->connections = (struct ipoib_connections){ .link = i->link,
		                                     .port = &i->port,
		                                     .timers = &i->timers,
		                                     .budget = &i->budget,
		                                     .send = ipoib_send_resolved,
		                                     .arg = i };
	return ipoib_groups_init(&i->groups);
}

/* Readable when we are to end. */
static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int watch_fd(struct ipoib_interface *i, int fd, enum source source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = source };

	if (fd < 0)
		return 0;
	return epoll_ctl(i->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int watch_all(struct ipoib_interface *i)
{
	const int fd[SOURCES] = {
		[SOURCE_TUN] = i->tun.fd,
		[SOURCE_LINK] = ipoib_link_fd(i->link),
		[SOURCE_VERBS] = i->verbs->async_fd,
		[SOURCE_SA] = ipoib_sa_fd(i->sa),
		[SOURCE_CM] = i->options->connected ? ipoib_connections_fd(&i->connections) : -1,
		[SOURCE_WATCH] = netdev_watch_fd(i->watch),
		[SOURCE_ROUTES] = ipoib_routes_fd(i->routes),
		[SOURCE_CONTROL] = i->options->control_fd,
		[SOURCE_SIGNAL] = i->signals,
	};
	int ret = 0;

	for (unsigned n = 0; n < SOURCES && !ret; n++)
		ret = watch_fd(i, fd[n], n);
	return ret;
}

/* The parts in their order; *@what: the one that failed. */
static int open_all(struct ipoib_interface *i, const char **what)
{
	/* until the broadcast group says another */
	struct ipoib_link_options link = { .qkey = IPOIB_QKEY };
	int ret;

	*what = "no such InfiniBand port";
	ret = open_port(i);
	if (!ret && fcntl(i->verbs->async_fd, F_SETFL, O_NONBLOCK))
		ret = -errno;
	if (ret)
		return ret;
	*what = "the port is not in this partition";
	ret = ipoib_partition_find(i);
	if (ret == -ENOENT && i->options->await) {
		*what = "the time before the port is in the partition";
		ret = ipoib_partition_await(i);
	}
	if (ret)
		return ret;
	link.pkey_index = i->pkey_index;
	link.context = i->verbs;
	link.port = i->port_num;
	*what = "the queue pair";
	ret = ipoib_link_open(&i->link, &link);
	if (ret)
		return ret;
	ipoib_link_set_mtu(i->link, i->mtu);
	*what = "the port's MADs";
	ret = ipoib_sa_open(&i->sa, i->verbs, i->port_num);
	if (ret)
		return ret;
	*what = "the interface";
	ret = ipoib_tun_open(&i->tun, i->options->interface);
	if (!ret)
		ret = ipoib_routes_open(&i->routes, i->tun.index);
	if (!ret)
		ret = netdev_watch_open(&i->watch, NULL, device_changed, i);
	if (!ret)
		ret = init_tables(i);
	return ret;
}

int ipoib_interface_open(struct ipoib_interface *i, const struct ipoib_options *options)
{
	const char *what;
	int ret;

	*i = (struct ipoib_interface){ .options = options,
		                       .tun = { .fd = -1 },
		                       .mtu = IB_MTU_BYTES(IBV_MTU_2048) - IPOIB_HEADER_BYTES };
	i->signals = open_signals();
	i->epoll = epoll_create1(EPOLL_CLOEXEC);
	ret = i->epoll < 0 || i->signals < 0 ? -errno : open_all(i, &what);
	if (!ret && options->connected) {
		what = "connections";
		ret = ipoib_connections_open(&i->connections);
	}
	if (!ret) {
		what = "the port";
		ret = port_changed(i);
	}
	if (!ret) {
		what = "the interface's addresses";
		ret = set_up_device(i);
	}
	if (!ret)
		ret = watch_all(i);
	if (!ret)
		return 0;
	if (ret != -ECANCELED)
		fprintf(stderr, "umbel-ipoib: %s: %s: %s\n", options->interface, what,
		        strerror(-ret));
	ipoib_interface_close(i);
	return ret;
}

void ipoib_interface_close(struct ipoib_interface *i)
{
	if (i->groups.broadcast) {
		ipoib_groups_fini(&i->groups);
		ipoib_connections_close(&i->connections);
		ipoib_neighbours_fini(&i->neighbours);
		ipoib_paths_fini(&i->paths);
	}
	if (i->watch)
		netdev_watch_close(i->watch);
	if (i->routes)
		ipoib_routes_close(i->routes);
	if (i->tun.fd >= 0)
		ipoib_tun_close(&i->tun);
	if (i->sa)
		ipoib_sa_close(i->sa);
	if (i->link)
		ipoib_link_close(i->link);
	if (i->verbs)
		ibv_close_device(i->verbs);
	close(i->signals);
	close(i->epoll);
}

/* ---- the loop ---- */

/* Serves the event that woke us. 1: we are to end. -errno: we have to; -ENXIO: somebody has removed
 * the device. */
static int dispatch(struct ipoib_interface *i, const struct epoll_event *event)
{
	switch (event->data.u32) {
	case SOURCE_TUN:
		i->tun_has_packets = true;
		return event->events & (EPOLLERR | EPOLLHUP) ? -ENXIO : 0;
	case SOURCE_LINK:
		i->armed = false;
		i->woken = true;
		return 0;
	case SOURCE_VERBS:
		return verbs_events(i);
	case SOURCE_SA:
		return ipoib_sa_dispatch(i->sa);
	case SOURCE_CM:
		ipoib_connections_dispatch(&i->connections);
		return 0;
	case SOURCE_WATCH:
		return netdev_watch_dispatch(i->watch);
	case SOURCE_ROUTES:
		ipoib_routes_dispatch(i->routes);
		return 0;
	case SOURCE_CONTROL:
		return ipoib_status_answer(i);
	case SOURCE_SIGNAL:
		return 1;
	default:
		return 0;
	}
}

static int take_datagrams(struct ipoib_interface *i)
{
	struct ipoib_received got[IPOIB_POLL_MAX];
	int n = ipoib_link_poll(i->link, got);

	for (int k = 0; k < n; k++)
		ipoib_receive(i, &got[k]);
	if (n > 0) {
		ipoib_merge_flush(&i->merge);
		ipoib_link_repost(i->link);
	}
	return n;
}

static int take_connected(struct ipoib_interface *i)
{
	struct ipoib_rc_received got[IPOIB_RC_POLL_MAX];
	int n = ipoib_rc_poll(i->connections.rc, got);

	for (int k = 0; k < n; k++)
		ipoib_receive_connected(i, &got[k]);
	if (n > 0) {
		ipoib_merge_flush(&i->merge);
		ipoib_rc_repost(i->connections.rc);
	}
	ipoib_connections_sent(&i->connections);
	return n;
}

/* Takes packets off both ends, a batch of each; returns how many. -errno: the link is no more. */
static int move_packets(struct ipoib_interface *i)
{
	int n = take_datagrams(i), connected = 0;

	if (n >= 0 && i->options->connected)
		connected = take_connected(i);
	if (n < 0 || connected < 0)
		return -EIO;
	n += connected + (int)ipoib_transmit(i);
	if (i->members_changed)
		look_for_members(i);
	return n;
}

/* Whether what comes would not wake us. */
static bool must_arm(const struct ipoib_interface *i)
{
	return !i->armed || (i->connections.n_slots && !i->armed_sends);
}

static int arm(struct ipoib_interface *i)
{
	int ret;

	if (i->woken)
		ipoib_link_woken(i->link);
	i->woken = false;
	ret = ipoib_link_arm(i->link);
	i->armed = true;
	i->armed_sends = i->connections.n_slots > 0;
	if (!ret && i->options->connected)
		ret = ipoib_rc_arm(i->connections.rc, i->armed_sends);
	return ret;
}

/* Milliseconds until a timer is due; -1: none is set. */
static int next_timer(const struct ipoib_interface *i)
{
	uint64_t next = base_timers_next(&i->timers), now = base_now_ns();

	if (next == BASE_TIMER_NEVER)
		return -1;
	return next <= now ? 0 : (int)((next - now) / 1000000 + 1);
}

/* The queues fail with their fabric, too, of whose end the event tells a moment later. -ENODEV: so
 * it is; -ECOMM: they alone have failed. */
static int why_failed(struct ipoib_interface *i)
{
	struct pollfd fatal = { .fd = i->verbs->async_fd, .events = POLLIN };

	poll(&fatal, 1, FATAL_MS);
	return verbs_events(i) == -ENODEV ? -ENODEV : -ECOMM;
}

int ipoib_interface_run(struct ipoib_interface *i)
{
	struct epoll_event event[SOURCES];
	int ret = 0;

	while (!ret) {
		int moved = move_packets(i), n;

		if (moved < 0)
			return why_failed(i);
		/* between the last poll and arming something may have come */
		if (!moved && must_arm(i)) {
			ret = arm(i);
			continue;
		}
		i->has_slept = !moved;
		n = epoll_wait(i->epoll, event, SOURCES, moved ? 0 : next_timer(i));
		for (int k = 0; k < n && !ret; k++)
			ret = dispatch(i, &event[k]);
		base_timers_run(&i->timers);
		ipoib_link_flush(i->link);
	}
	return ret < 0 ? ret : 0;
}
