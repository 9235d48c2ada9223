/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memberships of IP multicast groups: see mcast.h. Sockets with room for more groups come
 * first in their list. A socket is closed with its last group.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/util.h"
#include "netdev/mcast.h"
#include "wire/ip.h"

struct member_socket {
	TAILQ_ENTRY(member_socket) entry;
	int fd, family;
	unsigned n_groups;
	bool full;
};

TAILQ_HEAD(member_sockets, member_socket);

struct group {
	struct base_hash_node node;
	struct ib_gid gid;
	unsigned joins;
	struct member_socket
	        *socket; /* NULL: netdev_mcast_renew() could not join it, or has left it */
};

struct netdev_mcast {
	const struct netdev_network *network;
	int ifindex; /* 0: the device is gone */
	unsigned n_sockets;
	struct base_hash groups;
	struct member_sockets ipv4, ipv6;
};

/* The buffer for an error message. */
struct text {
	char *at;
	size_t len;
};

static struct group *group_of(struct base_hash_node *node)
{
	return node ? container_of(node, struct group, node) : NULL;
}

static uint64_t hash_of(const struct ib_gid *gid)
{
	return base_hash_of(gid, sizeof(*gid), 0);
}

static struct group *find(const struct netdev_mcast *m, const struct ib_gid *gid)
{
	struct base_hash_node *node = base_hash_first(&m->groups, hash_of(gid));

	while (node && !ib_gid_equal(&group_of(node)->gid, gid))
		node = base_hash_next(node);
	return group_of(node);
}

/* ---- sockets ---- */

static struct member_sockets *sockets_of(struct netdev_mcast *m, int family)
{
	return family == AF_INET ? &m->ipv4 : &m->ipv6;
}

static int open_socket(struct netdev_mcast *m, int family, struct member_socket **socket_)
{
	struct member_socket *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->family = family;
	s->fd = netdev_network_socket(m->network, family, SOCK_DGRAM, 0);
	if (s->fd < 0) {
		ret = s->fd;
		free(s);
		return ret;
	}
	TAILQ_INSERT_HEAD(sockets_of(m, family), s, entry);
	m->n_sockets++;
	*socket_ = s;
	return 0;
}

static void close_socket(struct netdev_mcast *m, struct member_socket *s)
{
	TAILQ_REMOVE(sockets_of(m, s->family), s, entry);
	m->n_sockets--;
	close(s->fd);
	free(s);
}

static void set_full(struct netdev_mcast *m, struct member_socket *s, bool full)
{
	struct member_sockets *list = sockets_of(m, s->family);

	TAILQ_REMOVE(list, s, entry);
	if (full)
		TAILQ_INSERT_TAIL(list, s, entry);
	else
		TAILQ_INSERT_HEAD(list, s, entry);
	s->full = full;
}

/* MCAST_JOIN_GROUP or MCAST_LEAVE_GROUP (RFC 3678). */
static int set_membership(const struct netdev_mcast *m, const struct member_socket *s, int what,
                          const struct ib_gid *gid)
{
	struct group_req req = { .gr_interface = (uint32_t)m->ifindex };
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

	if (s->family == AF_INET) {
		in.sin_addr.s_addr = wire_gid_to_ipv4(gid);
		memcpy(&req.gr_group, &in, sizeof(in));
	} else {
		memcpy(&in6.sin6_addr, gid, sizeof(*gid));
		memcpy(&req.gr_group, &in6, sizeof(in6));
	}
	if (setsockopt(s->fd, s->family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, what, &req,
	               sizeof(req)))
		return -errno;
	return 0;
}

/* ---- errors ---- */

/* The step that failed. */
enum step { STEP_SOCKET, STEP_JOIN };

static const char *limit_of(int family)
{
	return family == AF_INET ? "net.ipv4.igmp_max_memberships" : "net.core.optmem_max";
}

/* Writes the message to @why; returns @error. */
static int explain(const struct netdev_mcast *m, int family, enum step step, int error,
                   struct text why)
{
	if (error == -EMFILE || error == -ENFILE)
		snprintf(why.at, why.len,
		         "%u groups need more than %u sockets, and there is no descriptor left "
		         "(ulimit -n): a larger %s lets each hold more",
		         netdev_mcast_groups(m), m->n_sockets, limit_of(family));
	else if (step == STEP_JOIN && (error == -ENOBUFS || error == -ENOMEM))
		snprintf(why.at, why.len,
		         "a socket may not be a member of a single group: %s is too small",
		         limit_of(family));
	else if (error == -ENODEV)
		snprintf(why.at, why.len, "the device is gone, or does not have %s",
		         family == AF_INET ? "IPv4" : "IPv6");
	else if (error == -EACCES && family == AF_INET6)
		snprintf(why.at, why.len,
		         "IPv6 is off on the device (net.ipv6.conf.*.disable_ipv6)");
	else
		snprintf(why.at, why.len, "%s", strerror(-error));
	return error;
}

/* ---- joining and leaving ---- */

static bool is_full(int ret)
{
	return ret == -ENOBUFS || ret == -ENOMEM;
}

/* Joins on a socket with room. *@socket: that socket; NULL: there is none. */
static int join_somewhere(struct netdev_mcast *m, int family, const struct ib_gid *gid,
                          struct member_socket **socket_)
{
	struct member_socket *s;

	*socket_ = NULL;
	while ((s = TAILQ_FIRST(sockets_of(m, family))) && !s->full) {
		int ret = set_membership(m, s, MCAST_JOIN_GROUP, gid);

		if (!is_full(ret)) {
			*socket_ = s;
			return ret;
		}
		set_full(m, s, true);
	}
	return 0;
}

/* Makes @g's membership. */
static int join(struct netdev_mcast *m, struct group *g, struct text why)
{
	int family = wire_gid_is_ipv4(&g->gid) ? AF_INET : AF_INET6;
	struct member_socket *s;
	int ret = m->ifindex ? join_somewhere(m, family, &g->gid, &s) : -ENODEV;

	if (ret)
		return explain(m, family, STEP_JOIN, ret, why);
	if (!s) {
		ret = open_socket(m, family, &s);
		if (ret)
			return explain(m, family, STEP_SOCKET, ret, why);
		ret = set_membership(m, s, MCAST_JOIN_GROUP, &g->gid);
		if (ret) {
			close_socket(m, s);
			return explain(m, family, STEP_JOIN, ret, why);
		}
	}
	s->n_groups++;
	g->socket = s;
	return 0;
}

/* Undoes @g's membership, if it has one. */
static void leave(struct netdev_mcast *m, struct group *g)
{
	struct member_socket *s = g->socket;

	if (!s)
		return;
	g->socket = NULL;
	if (--s->n_groups == 0) {
		close_socket(m, s);
		return;
	}
	/* this fails only if the device is gone, and the membership with it */
	set_membership(m, s, MCAST_LEAVE_GROUP, &g->gid);
	set_full(m, s, false);
}

static void remove_group(struct netdev_mcast *m, struct group *g)
{
	leave(m, g);
	base_hash_remove(&m->groups, &g->node);
	free(g);
}

static int add_group(struct netdev_mcast *m, const struct ib_gid *gid, struct text why)
{
	struct group *g = calloc(1, sizeof(*g));
	int ret = -ENOMEM;

	snprintf(why.at, why.len, "%s", strerror(ENOMEM));
	if (!g)
		return ret;
	g->gid = *gid;
	g->joins = 1;
	ret = base_hash_add(&m->groups, &g->node, hash_of(gid));
	if (ret) {
		free(g);
		return ret;
	}
	ret = join(m, g, why);
	if (ret)
		remove_group(m, g);
	return ret;
}

int netdev_mcast_join(struct netdev_mcast *m, const struct ib_gid *gid, char *why, size_t len)
{
	struct group *g;

	if (!wire_gid_is_ip_mcast(gid)) {
		snprintf(why, len, "not a multicast address");
		return -EINVAL;
	}
	g = find(m, gid);
	if (!g)
		return add_group(m, gid, (struct text){ why, len });
	g->joins++;
	return 0;
}

int netdev_mcast_leave(struct netdev_mcast *m, const struct ib_gid *gid)
{
	struct group *g = find(m, gid);

	if (!g)
		return -ENOENT;
	if (--g->joins == 0)
		remove_group(m, g);
	return 0;
}

/* ---- all groups ---- */

int netdev_mcast_new(struct netdev_mcast **mcast, const struct netdev_network *network, int ifindex)
{
	struct netdev_mcast *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->network = network;
	m->ifindex = ifindex;
	TAILQ_INIT(&m->ipv4);
	TAILQ_INIT(&m->ipv6);
	*mcast = m;
	return 0;
}

void netdev_mcast_free(struct netdev_mcast *m)
{
	struct base_hash_node *node;

	while ((node = base_hash_walk(&m->groups, NULL)))
		remove_group(m, group_of(node));
	base_hash_fini(&m->groups);
	free(m);
}

int netdev_mcast_renew(struct netdev_mcast *m, int ifindex, char *why, size_t len)
{
	struct base_hash_node *node = NULL;
	int ret = 0;

	why[0] = 0;
	while ((node = base_hash_walk(&m->groups, node)))
		leave(m, group_of(node));
	m->ifindex = ifindex;
	while (ifindex && (node = base_hash_walk(&m->groups, node))) {
		int one = join(m, group_of(node), (struct text){ why, len });

		ret = one ? one : ret;
	}
	return ret;
}

unsigned netdev_mcast_groups(const struct netdev_mcast *m)
{
	return (unsigned)m->groups.n;
}

unsigned netdev_mcast_sockets(const struct netdev_mcast *m)
{
	return m->n_sockets;
}
