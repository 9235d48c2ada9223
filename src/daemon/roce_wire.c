/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sockets of Ethernet ports, of which processes get duplicates; and the manager as the
 * one who receives from them when no process polls: see hca/wire.h for the idea.
 *
 * It is woken by the sockets. If it then finds that somebody polls, it leaves them alone and
 * looks again by a timer whether that is still so; unless it is called back before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon/roce.h"
#include "link/udp.h"

#define AWAY_US     1000 /* at first; seldomer while somebody goes on polling */
#define AWAY_MAX_US 8000
#define BATCHES     16 /* then other events have their turn */

static const int families[2] = { AF_INET, AF_INET6 };

/* ---- when nobody polls ---- */

static void listen_to(struct daemon_roce_port *p, int enabled)
{
	for (int v = 0; v < 2; v++)
		if (p->receive_source[v])
			sd_event_source_set_enabled(p->receive_source[v], enabled);
}

static void come_back(struct daemon_roce_port *p)
{
	atomic_store_explicit(&p->wire->shm->manager_away, 0, memory_order_relaxed);
	p->away_us = AWAY_US;
	sd_event_source_set_enabled(p->away_timer, SD_EVENT_OFF);
	listen_to(p, SD_EVENT_ON);
}

static void look_later(struct daemon_roce_port *p)
{
	sd_event_source_set_time_relative(p->away_timer, p->away_us);
	sd_event_source_set_enabled(p->away_timer, SD_EVENT_ONESHOT);
	if (p->away_us < AWAY_MAX_US)
		p->away_us *= 2;
}

static void go_away(struct daemon_roce_port *p)
{
	listen_to(p, SD_EVENT_OFF);
	/* seq_cst: away, and only then a look whether somebody polls; see hca_wire_rest() */
	atomic_store_explicit(&p->wire->shm->manager_away, 1, memory_order_seq_cst);
	if (hca_wire_is_polled(p->wire))
		look_later(p);
	else
		come_back(p);
}

static int on_receive(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct daemon_roce_port *p = arg;

	(void)s;
	(void)fd;
	(void)revents;
	for (int i = 0; i < BATCHES && !hca_wire_is_polled(p->wire); i++)
		if (!hca_wire_receive(p->wire, false))
			break;
	if (hca_wire_is_polled(p->wire))
		go_away(p);
	return 0;
}

static int on_away(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon_roce_port *p = arg;

	(void)s;
	(void)usec;
	if (hca_wire_is_polled(p->wire))
		look_later(p);
	else
		come_back(p);
	return 0;
}

static int on_wake(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	uint64_t n;

	(void)s;
	(void)revents;
	if (read(fd, &n, sizeof(n)) == sizeof(n))
		come_back(arg);
	return 0;
}

/* ---- sockets ---- */

static void close_receive(struct daemon_roce_port *p)
{
	for (int v = 0; v < 2; v++) {
		p->receive_source[v] = sd_event_source_disable_unref(p->receive_source[v]);
		if (p->receive_fd[v] >= 0)
			close(p->receive_fd[v]);
		p->receive_fd[v] = -1;
	}
}

int roce_wire_open(struct daemon_roce_port *p, char *why, size_t len)
{
	close_receive(p);
	for (int v = 0; v < 2; v++) {
		int fd = link_udp_open_receive(families[v], p->device, why, len);

		if (fd == -EAFNOSUPPORT)
			continue; /* a kernel without IPv6 */
		if (fd < 0)
			return fd;
		p->receive_fd[v] = fd;
	}
	p->round++;
	atomic_store_explicit(&p->roce->d->f->region->wires[p->port->index].lost[0], 0,
	                      memory_order_relaxed);
	atomic_store_explicit(&p->roce->d->f->region->wires[p->port->index].lost[1], 0,
	                      memory_order_relaxed);
	return 0;
}

static int open_send(const struct daemon_roce_port *p, const struct control_wire_socket *request,
                     uint32_t *source_port)
{
	const struct link_netdev *dev = link_watch_at(p->roce->watch, p->ifindex);
	uint16_t port = (uint16_t)request->source_port;
	char why[256] = "";
	int fd;

	if (!dev)
		return -ENODEV;
	if (request->source_port < LINK_UDP_SOURCE_FIRST ||
	    request->source_port > LINK_UDP_SOURCE_LAST)
		return -EINVAL;
	fd = link_udp_open_send(families[request->is_ipv6], dev->name, &port, why, sizeof(why));
	if (fd < 0)
		base_log("%s", why);
	*source_port = port;
	return fd;
}

static int duplicate(int fd)
{
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -EAFNOSUPPORT : copy < 0 ? -errno : copy;
}

int daemon_roce_socket(struct daemon_roce *r, uint32_t port,
                       const struct control_wire_socket *request, uint32_t *source_port)
{
	struct daemon_roce_port *p = &r->port[port];

	switch (request->kind) {
	case CONTROL_WIRE_RECEIVE:
		return duplicate(p->receive_fd[request->is_ipv6]);
	case CONTROL_WIRE_WAKE:
		return duplicate(p->wake_fd);
	case CONTROL_WIRE_SEND:
		return open_send(p, request, source_port);
	default:
		return -EINVAL;
	}
}

/* ---- life ---- */

int roce_wire_init(struct daemon_roce *r)
{
	int ret = daemon_client_new(r->d, -1, &r->self);

	if (ret)
		return ret;
	r->self->role = CONTROL_ROLE_VERBS;
	r->self->greeted = true;
	r->self->host_index = -1;
	ret = control_local(&r->control, daemon_client_serve, r->self);
	if (ret)
		return ret;
	r->process = hca_process_local(r->control, r->d->f->region);
	return r->process ? 0 : -ENOMEM;
}

void roce_wire_fini(struct daemon_roce *r)
{
	roce_mad_fini(r);
	for (unsigned i = 0; i < r->n_ports; i++)
		roce_wire_stop(&r->port[i]);
	if (r->process)
		hca_process_local_free(r->process);
	if (r->control)
		control_close(r->control);
	if (r->self)
		daemon_client_free(r->self);
	r->process = NULL;
	r->control = NULL;
	r->self = NULL;
}

/* The manager's own HCA. Its events have no reader. */
static int open_wire(struct daemon_roce_port *p)
{
	struct daemon_hca *h;
	int fd, ret = daemon_hca_open(p->roce->self, p->port->node->hca, &h, &fd);

	if (ret)
		return ret;
	close(fd);
	return hca_wire_open(p->roce->process, h->hca, h->handle, &p->wire);
}

static int add_sources(struct daemon_roce_port *p)
{
	sd_event *loop = p->roce->d->loop;
	int ret = 0;

	for (int v = 0; v < 2 && ret >= 0; v++)
		if (p->receive_fd[v] >= 0)
			ret = sd_event_add_io(loop, &p->receive_source[v], p->receive_fd[v],
			                      EPOLLIN, on_receive, p);
	if (ret >= 0 && !p->wake_source)
		ret = sd_event_add_io(loop, &p->wake_source, p->wake_fd, EPOLLIN, on_wake, p);
	if (ret >= 0 && !p->away_timer) {
		ret = sd_event_add_time_relative(loop, &p->away_timer, CLOCK_MONOTONIC, 0, 1,
		                                 on_away, p);
		if (ret >= 0)
			ret = sd_event_source_set_enabled(p->away_timer, SD_EVENT_OFF);
	}
	return ret < 0 ? ret : 0;
}

int roce_wire_start(struct daemon_roce_port *p)
{
	int ret = 0;

	if (p->wake_fd < 0)
		p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0)
		return -errno;
	if (!p->wire)
		ret = open_wire(p);
	if (!ret)
		ret = add_sources(p);
	if (!ret)
		come_back(p);
	return ret;
}

void roce_wire_stop(struct daemon_roce_port *p)
{
	close_receive(p);
	p->wake_source = sd_event_source_disable_unref(p->wake_source);
	p->away_timer = sd_event_source_disable_unref(p->away_timer);
	if (p->wire)
		hca_wire_close(p->wire);
	if (p->wake_fd >= 0)
		close(p->wake_fd);
	p->wire = NULL;
	p->wake_fd = -1;
}
