/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The status of an interface, as JSON: main.c has what it looks like. A reader that does not read
 * gets nothing: packets do not wait for it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <json-c/json.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "ipoib/interface.h"

#define MOST 700 /* of each list: a packet of a socket has no room for more */

static struct json_object *text_of_ip(const struct ib_gid *ip)
{
	char text[INET6_ADDRSTRLEN];
	bool is_ipv4 = wire_gid_is_ipv4(ip);

	inet_ntop(is_ipv4 ? AF_INET : AF_INET6, ip->raw + (is_ipv4 ? 12 : 0), text, sizeof(text));
	return json_object_new_string(text);
}

static struct json_object *text_of_gid(const struct ib_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid->raw, text, sizeof(text));
	return json_object_new_string(text);
}

static void add_number(struct json_object *to, const char *key, uint64_t value)
{
	json_object_object_add(to, key, json_object_new_int64((int64_t)value));
}

/* How packets for the neighbour are sent: as datagrams, or by a connection, and its state. */
static const char *mode_of(const struct ipoib_interface *i, const struct ipoib_address *to)
{
	const struct ipoib_connection *c;

	if (!i->options->connected || !(to->flags & IPOIB_FLAG_RC))
		return "datagram";
	c = ipoib_connections_find(&i->connections, &to->gid, to->qpn);
	return c ? ipoib_connection_state_name(c->state) : "idle";
}

static void add_neighbours(struct json_object *list, const struct ipoib_interface *i,
                           const struct ipoib_neighbour_list *from)
{
	const struct ipoib_neighbour *n;

	TAILQ_FOREACH_REVERSE(n, from, ipoib_neighbour_list, entry)
	{
		struct json_object *o;

		if (json_object_array_length(list) == MOST)
			return;
		o = json_object_new_object();

		json_object_object_add(o, "ip", text_of_ip(&n->ip));
		json_object_object_add(
		        o, "state", json_object_new_string(ipoib_neighbour_state_name(n->state)));
		if (n->state != IPOIB_INCOMPLETE) {
			add_number(o, "qpn", n->address.qpn);
			json_object_object_add(o, "gid", text_of_gid(&n->address.gid));
			json_object_object_add(o, "mode",
			                       json_object_new_string(mode_of(i, &n->address)));
		}
		json_object_array_add(list, o);
	}
}

static struct json_object *groups_of(const struct ipoib_interface *i)
{
	struct json_object *list = json_object_new_array();
	const struct ipoib_group *g;

	TAILQ_FOREACH(g, &i->groups.all, entry)
	{
		struct json_object *o;

		if (json_object_array_length(list) == MOST)
			break;
		o = json_object_new_object();
		json_object_object_add(o, "mgid", text_of_gid(&g->mgid));
		add_number(o, "mlid", g->mlid);
		add_number(o, "join_state", g->joined);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *counters_of(const struct ipoib_interface *i)
{
	struct json_object *o = json_object_new_object();

#define ADD(name) add_number(o, #name, i->counters.name);
	IPOIB_COUNTERS(ADD)
#undef ADD
	add_number(o, "lost_by_queue", ipoib_link_lost(i->link));
	add_number(o, "dropped_neighbour", i->neighbours.dropped);
	add_number(o, "dropped_path", i->paths.dropped);
	add_number(o, "dropped_group", i->groups.dropped);
	add_number(o, "dropped_connection", i->connections.dropped);
	add_number(o, "connections_made", i->connections.made);
	add_number(o, "connections_failed", i->connections.failed);
	add_number(o, "connections_refused", i->connections.refused);
	return o;
}

static void add_device(struct json_object *o, const struct ipoib_interface *i, const char *state,
                       uint16_t pkey)
{
	json_object_object_add(o, "interface", json_object_new_string(i->options->interface));
	json_object_object_add(o, "state", json_object_new_string(state));
	json_object_object_add(o, "device", json_object_new_string(i->device));
	add_number(o, "port", i->port_num);
	add_number(o, "pkey", pkey);
}

/* Of an interface that is not there yet. */
static struct json_object *status_of_absent(const struct ipoib_interface *i)
{
	struct json_object *o = json_object_new_object();

	add_device(o, i, "absent", i->options->pkey);
	return o;
}

static struct json_object *status_of(const struct ipoib_interface *i)
{
	struct json_object *o = json_object_new_object(), *neighbours = json_object_new_array();

	add_device(o, i, i->tun.carrier ? "up" : "down", i->port.pkey);
	add_number(o, "qpn", ipoib_link_qpn(i->link));
	json_object_object_add(o, "gid", text_of_gid(&i->port.gid));
	add_number(o, "lid", i->port.lid);
	json_object_object_add(
	        o, "mode",
	        json_object_new_string(i->options->connected ? "connected" : "datagram"));
	add_number(o, "mtu", ipoib_interface_mtu(i));
	add_neighbours(neighbours, i, &i->neighbours.used);
	add_neighbours(neighbours, i, &i->neighbours.unused);
	json_object_object_add(o, "neighbours", neighbours);
	add_number(o, "n_neighbours", i->neighbours.by_ip.n);
	add_number(o, "n_groups", i->groups.by_mgid.n);
	add_number(o, "n_outgoing", i->connections.n_outgoing);
	add_number(o, "n_incoming", i->connections.n_incoming);
	json_object_object_add(o, "groups", groups_of(i));
	json_object_object_add(o, "counters", counters_of(i));
	return o;
}

int ipoib_status_answer(struct ipoib_interface *i)
{
	int fd = i->options->control_fd;
	struct json_object *status;
	const char *text;
	char question[16];
	size_t bytes;
	ssize_t n = recv(fd, question, sizeof(question), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		epoll_ctl(i->epoll, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	status = i->link ? status_of(i) : status_of_absent(i);
	text = json_object_to_json_string_length(status, JSON_C_TO_STRING_PLAIN, &bytes);
	send(fd, text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	json_object_put(status);
	return 0;
}
