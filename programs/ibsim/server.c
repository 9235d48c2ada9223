/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server: see server.h.
 */
#include "ibsim/server.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/umad.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "wire/sm_attr.h"

#define AT_ONCE        32    /* questions before the clients' MADs have their turn */
#define STRANGERS_ROOM 16384 /* bytes of answers that nobody has read, as the kernel counts */

/* ---- connections ---- */

static void on_gone(struct ibsim_common *common, struct ibsim_client *c)
{
	struct ibsim_server *s = container_of(common, struct ibsim_server, common);

	base_log_info(ibsim, "client %u at %s port %d has ended", c->id, c->at.device, c->at.port);
	s->client[c->id] = NULL;
	ibsim_client_close(c);
}

/* The client with that number, if it has that address. */
static struct ibsim_client *client_of(struct ibsim_server *s, uint32_t id,
                                      const struct ibsim_address *from)
{
	struct ibsim_client *c = id < IBSIM_MAX_CLIENTS ? s->client[id] : NULL;

	return c && ibsim_address_equal(&c->control, from) ? c : NULL;
}

/* A name that is used again: its client has ended, and we have not heard of it. */
static void forget_namesake(struct ibsim_server *s, const struct ibsim_address *from)
{
	for (uint32_t i = 0; i < IBSIM_MAX_CLIENTS; i++)
		if (client_of(s, i, from))
			on_gone(&s->common, s->client[i]);
}

static int connect_client(struct ibsim_server *s, struct ibsim_ctl *ctl,
                          const struct ibsim_sender *sender)
{
	struct ibsim_client *c = NULL;
	struct ibsim_connect hello;
	int ret = -EADDRINUSE;

	memcpy(&hello, ctl->data, sizeof(hello));
	hello.node[sizeof(hello.node) - 1] = '\0';
	forget_namesake(s, &sender->address);
	for (uint32_t i = 0; i < IBSIM_MAX_CLIENTS && ret == -EADDRINUSE; i++)
		if (!s->client[i])
			ret = ibsim_client_open(&c, &s->common, i, &hello, sender);
	if (ret) {
		base_log_warning(ibsim, "process %d is no client at '%s': %s", sender->pid,
		                 hello.node,
		                 ret == -EBUSY    ? "another program manages the subnet from there"
		                 : ret == -ENOENT ? "no host has that name"
		                                  : strerror(-ret));
		return ret;
	}
	s->client[c->id] = c;
	base_log_info(ibsim, "client %u, process %d, is at %s port %d", c->id, sender->pid,
	              c->at.device, c->at.port);
	hello.id = c->id;
	if (!hello.node[0]) /* it did not say where; otherwise it gets the name that it gave */
		snprintf(hello.node, sizeof(hello.node), "%.*s", IBSIM_NODE_BYTES - 1,
		         c->at.device);
	memcpy(ctl->data, &hello, sizeof(hello));
	return 0;
}

/* ---- questions ---- */

/*
 * libumad2sim makes the port's GUID itself: the node's, and the port's number added. For nodes with
 * other GUIDs, the port's GUID must be right, as OpenSM finds its own port by it.
 */
static int tell_node_info(struct ibsim_client *c, uint8_t *data)
{
	struct wire_node_info info;
	int ret = ibsim_node_info(&c->at, &info);

	if (ret)
		return ret;
	info.node_guid = info.port_guid - info.local_port_num;
	memset(data, 0, IBSIM_CTL_DATA_BYTES);
	wire_node_info_encode(&info, data);
	return 0;
}

static int tell_vendor(struct ibsim_client *c, uint8_t *data)
{
	struct ibsim_vendor vendor = { .fw_version = 1 };
	struct wire_node_info info;
	int ret = ibsim_node_info(&c->at, &info);

	if (ret)
		return ret;
	vendor.vendor_id = info.vendor_id;
	vendor.part_id = info.device_id;
	vendor.hw_version = info.revision;
	memset(data, 0, IBSIM_CTL_DATA_BYTES);
	memcpy(data, &vendor, sizeof(vendor));
	return 0;
}

static int tell_port_info(struct ibsim_client *c, uint8_t *data, int port)
{
	struct wire_port_info info;
	int ret = ibsim_node_port(&c->at, port, &info);

	if (!ret)
		wire_port_info_encode(&info, data);
	return ret;
}

static int tell_port(struct ibsim_client *c, uint8_t *data)
{
	struct wire_port_info info;
	struct ibsim_port port;
	int ret = ibsim_node_port(&c->at, 0, &info);

	if (ret)
		return ret;
	memset(&port, 0, sizeof(port));
	port.lid = info.lid;
	port.state = info.port_state;
	memset(data, 0, IBSIM_CTL_DATA_BYTES);
	memcpy(data, &port, sizeof(port));
	return 0;
}

/* The port's GUID, or that and the prefix. */
static int tell_guid(struct ibsim_client *c, uint8_t *data, bool with_prefix)
{
	struct wire_node_info node;
	struct wire_port_info port;
	uint64_t gid[2];
	int ret = ibsim_node_port(&c->at, 0, &port);

	if (!ret)
		ret = ibsim_node_info(&c->at, &node);
	if (ret)
		return ret;
	gid[0] = htobe64(port.gid_prefix);
	gid[1] = htobe64(node.port_guid);
	memset(data, 0, IBSIM_CTL_DATA_BYTES);
	memcpy(data, with_prefix ? gid : gid + 1, with_prefix ? 16 : 8);
	return 0;
}

static int tell_pkeys(struct ibsim_client *c, uint8_t *data)
{
	struct wire_pkey_table table;
	int ret = ibsim_node_pkeys(&c->at, &table);

	if (!ret)
		wire_pkey_table_encode(&table, data);
	return ret;
}

static int set_sm(struct ibsim_client *c, const uint8_t *data)
{
	uint32_t is_sm;

	memcpy(&is_sm, data, sizeof(is_sm));
	return ibsim_client_set_sm(c, is_sm);
}

/* Answers a client's request. 0, and the answer is in ctl->data, or -errno. */
static int answer(struct ibsim_server *s, struct ibsim_client *c, struct ibsim_ctl *ctl)
{
	switch (ctl->type) {
	case IBSIM_CTL_DISCONNECT:
		on_gone(&s->common, c);
		return 0;
	case IBSIM_CTL_GET_PORT:
		return tell_port(c, ctl->data);
	case IBSIM_CTL_GET_VENDOR:
		return tell_vendor(c, ctl->data);
	case IBSIM_CTL_GET_GID:
		return tell_guid(c, ctl->data, true);
	case IBSIM_CTL_GET_GUID:
		return tell_guid(c, ctl->data, false);
	case IBSIM_CTL_GET_NODE_INFO:
		return tell_node_info(c, ctl->data);
	case IBSIM_CTL_GET_PORT_INFO:
		return tell_port_info(c, ctl->data, ctl->data[0]);
	case IBSIM_CTL_SET_IS_SM:
		return set_sm(c, ctl->data);
	case IBSIM_CTL_GET_PKEYS:
		return tell_pkeys(c, ctl->data);
	default:
		return -EINVAL;
	}
}

/* A message on the control socket, to be answered in the same place. */
static void serve(struct ibsim_server *s, struct ibsim_ctl *ctl, const struct ibsim_sender *sender)
{
	struct ibsim_client *c = client_of(s, ctl->client, &sender->address);
	int ret;

	if (!sender->is_served) {
		if (!s->has_warned)
			base_log_warning(ibsim, "a process of another user is refused; others "
			                        "are without a word");
		s->has_warned = true;
		ret = -EACCES;
	} else if (ctl->type == IBSIM_CTL_CONNECT) {
		ret = connect_client(s, ctl, sender);
	} else if (c) {
		ret = answer(s, c, ctl);
	} else { /* a client that we have disconnected may still send a disconnect */
		ret = ctl->type == IBSIM_CTL_DISCONNECT ? 0 : -ENOTCONN;
	}
	if (ret)
		ctl->type = IBSIM_CTL_ERROR;
}

/*
 * Answers that wait to be read have no limit where their reader has connected its socket, and all
 * count against the room of ours. A stranger that reads no answers must leave room for the others:
 * it gets an answer only while few wait.
 */
static bool has_room(int fd, const struct ibsim_sender *sender)
{
	int unread;

	return sender->is_served || (!ioctl(fd, SIOCOUTQ, &unread) && unread < STRANGERS_ROOM);
}

static void on_control(struct ibsim_source *source, uint32_t events)
{
	struct ibsim_server *s = container_of(source, struct ibsim_server, control);

	(void)events;
	for (int i = 0; i < AT_ONCE; i++) {
		struct ibsim_sender sender;
		struct ibsim_ctl ctl = { 0 };
		int ret = ibsim_socket_receive(source->fd, &ctl, sizeof(ctl), &sender);

		if (ret && ret != -EMSGSIZE)
			return;
		if (ret || ctl.magic != IBSIM_MAGIC)
			continue;
		serve(s, &ctl, &sender);
		if (!has_room(source->fd, &sender))
			continue;
		/* a client that does not read its answers gets none */
		sendto(source->fd, &ctl, sizeof(ctl), MSG_DONTWAIT | MSG_NOSIGNAL,
		       (struct sockaddr *)&sender.address.name, sender.address.bytes);
	}
}

/* ---- start and end ---- */

static void on_fabric_gone(struct ibsim_common *common)
{
	struct ibsim_server *s = container_of(common, struct ibsim_server, common);

	s->is_over = s->fabric_is_gone = true;
}

static void on_fabric(struct ibsim_source *source, uint32_t events)
{
	(void)events; /* that port is never sent anything */
	on_fabric_gone(&container_of(source, struct ibsim_server, fabric)->common);
}

static void on_signal(struct ibsim_source *source, uint32_t events)
{
	(void)events;
	container_of(source, struct ibsim_server, signals)->is_over = true;
}

static int open_signals(struct ibsim_server *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals.fd = signalfd(-1, &set, SFD_CLOEXEC);
	return s->signals.fd < 0 ? -errno
	                         : ibsim_source_watch(s->common.loop, &s->signals, EPOLLIN);
}

/* An open port of the fabric's: it hangs up when the fabric ends. */
static int open_fabric(struct ibsim_server *s)
{
	struct ibsim_place at;
	int ret = ibsim_node_find(NULL, &at);

	if (!ret)
		ret = ibsim_node_check(&at);
	if (ret)
		return ret;
	ret = s->fabric.fd = umad_open_port(at.device, at.port);
	return ret < 0 ? ret : ibsim_source_watch(s->common.loop, &s->fabric, EPOLLIN);
}

static int open_control(struct ibsim_server *s)
{
	struct ibsim_address name;
	int ret;

	if (!ibsim_address_make(&name, s->common.base, "ctl", -1))
		return -ENAMETOOLONG;
	ret = s->control.fd = ibsim_socket_open(&name);
	return ret < 0 ? ret : ibsim_source_watch(s->common.loop, &s->control, EPOLLIN);
}

int ibsim_server_open(struct ibsim_server *s, const char *base)
{
	int ret;

	memset(s, 0, sizeof(*s));
	s->common.base = base;
	s->common.gone = on_gone;
	s->common.fabric_gone = on_fabric_gone;
	s->control = (struct ibsim_source){ .fd = -1, .ready = on_control };
	s->signals = (struct ibsim_source){ .fd = -1, .ready = on_signal };
	s->fabric = (struct ibsim_source){ .fd = -1, .ready = on_fabric };
	s->common.umad = umad_alloc(1, umad_size() + MAD_BYTES);
	ret = s->common.loop = epoll_create1(EPOLL_CLOEXEC);
	if (ret >= 0 && !s->common.umad)
		ret = -ENOMEM;
	if (ret >= 0)
		ret = open_signals(s);
	if (!ret)
		ret = open_fabric(s);
	if (!ret)
		ret = open_control(s);
	if (ret < 0)
		ibsim_server_close(s);
	return ret;
}

int ibsim_server_run(struct ibsim_server *s)
{
	int ret = 0;

	while (!s->is_over && !ret)
		ret = ibsim_source_dispatch(s->common.loop);
	return s->fabric_is_gone ? -EPIPE : ret;
}

void ibsim_server_close(struct ibsim_server *s)
{
	for (uint32_t i = 0; i < IBSIM_MAX_CLIENTS; i++)
		if (s->client[i])
			ibsim_client_close(s->client[i]);
	if (s->fabric.fd >= 0)
		umad_close_port(s->fabric.fd);
	if (s->control.fd >= 0)
		close(s->control.fd);
	if (s->signals.fd >= 0)
		close(s->signals.fd);
	if (s->common.loop >= 0)
		close(s->common.loop);
	umad_free(s->common.umad);
}
