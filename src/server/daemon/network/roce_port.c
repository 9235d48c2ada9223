/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets of Ethernet ports: see roce_port.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/eventfd.h"
#include "base/log.h"
#include "base/util.h"
#include "daemon/network/roce_port.h"
#include "netdev/udp.h"

#define AWAY_NS     (1 * DAEMON_NS_PER_MS) /* at first; seldomer while somebody goes on polling */
#define AWAY_MAX_NS (8 * DAEMON_NS_PER_MS)
#define TURN_NS     (2 * DAEMON_NS_PER_MS) /* then other events have theirs */
/* So often in one turn another worker may have the lock of a queue pair: it may wait for just this
 * processor. Packets for that queue pair are worked on in the next tick at the latest. */
#define BARRED_MOST 16
/* Datagrams lay there that nobody took: a program may look at its memory alone, and poll only when
 * it finds there what a peer has written. So the daemon goes on to receive, until it comes too late
 * so many times in a row: then programs poll, and it would only take their processors. */
#define VAIN_MOST 64
/* A byte counts for so much of the work that the daemon does with priority: after 256 KiB it has
 * none for a while. A sender on this processor would else stop for each piece that it sends, and
 * the pieces would be worked on one by one. Short messages, for which programs wait, count little.
 */
#define BYTE_NS 20

static const int families[2] = { AF_INET, AF_INET6 };

/* ---- when nobody polls ---- */

static void on_receive(struct daemon_source *s, uint32_t events);

/* 0 or -errno. */
static int hear(struct daemon_roce_port *p)
{
	int ret = 0;

	for (int v = 0; v < 2 && !ret; v++) {
		struct daemon_source *s = &p->ear[v].source;

		s->ready = on_receive;
		p->ear[v].port = p;
		if (p->receive_fd[v] >= 0 && !daemon_source_is_watched(s))
			ret = daemon_source_watch(p->roce->d.loop, s, p->receive_fd[v], EPOLLIN);
	}
	return ret;
}

static void hear_no_more(struct daemon_roce_port *p)
{
	for (int v = 0; v < 2; v++)
		daemon_source_stop(&p->ear[v].source);
}

static void come_back(struct daemon_roce_port *p)
{
	atomic_store_explicit(&p->link->shm->daemon_away, 0, memory_order_relaxed);
	p->away_ns = AWAY_NS;
	base_timer_stop(&p->away_timer);
	if (hear(p))
		base_log_warning(roce, "no memory: a port hears nothing while nobody polls");
}

static void on_away(struct base_timer *t);

static void look_later(struct daemon_roce_port *p)
{
	base_timer_set_beat(&p->roce->d.loop->timers, &p->away_timer, p->away_ns, on_away);
	/* a peer that waits for an answer may soon take its request for lost */
	if (p->away_ns < AWAY_MAX_NS &&
	    !atomic_load_explicit(&p->link->shm->has_wires, memory_order_relaxed))
		p->away_ns *= 2;
}

static void go_away(struct daemon_roce_port *p)
{
	hear_no_more(p);
	/* seq_cst: away, and only then a look whether somebody polls; see hca_roce_rest() */
	atomic_store_explicit(&p->link->shm->daemon_away, 1, memory_order_seq_cst);
	if (hca_roce_is_polled(p->link))
		look_later(p);
	else
		come_back(p);
}

/* Whether processes that poll take what comes. */
static bool is_left_to_others(const struct daemon_roce_port *p)
{
	return !p->vain_left && hca_roce_is_polled(p->link);
}

static void receive(struct daemon_roce_port *p)
{
	const uint64_t began = base_now_ns(), before = p->link->moved;
	bool in_vain = true;

	p->link->wires.barred = 0;
	while (!is_left_to_others(p) && p->link->wires.barred < BARRED_MOST &&
	       hca_roce_receive(&p->link->link, false)) {
		in_vain = false;
		if (base_now_ns() - began > TURN_NS)
			break;
	}
	daemon_priority_spend(&p->roce->d.loop->priority, (p->link->moved - before) * BYTE_NS);
	if (p->vain_left)
		p->vain_left = in_vain ? p->vain_left - 1 : VAIN_MOST;
	if (is_left_to_others(p))
		go_away(p);
}

static bool has_datagrams(const struct daemon_roce_port *p)
{
	struct pollfd fds[2] = { { .fd = p->receive_fd[0], .events = POLLIN },
		                 { .fd = p->receive_fd[1], .events = POLLIN } };

	return poll(fds, 2, 0) > 0;
}

static void on_receive(struct daemon_source *s, uint32_t events)
{
	(void)events;
	receive(container_of(s, struct daemon_roce_ear, source)->port);
}

static void on_away(struct base_timer *t)
{
	struct daemon_roce_port *p = container_of(t, struct daemon_roce_port, away_timer);

	if (hca_roce_is_polled(p->link)) {
		look_later(p);
		return;
	}
	if (has_datagrams(p))
		p->vain_left = VAIN_MOST;
	come_back(p);
}

static void on_wake(struct daemon_source *s, uint32_t events)
{
	struct daemon_roce_port *p = container_of(s, struct daemon_roce_port, wake_source);

	(void)events;
	if (!base_eventfd_drain(s->fd))
		return;
	come_back(p);
	daemon_wires_begin(p->roce->d.wires);
}

/* ---- sockets ---- */

/*
 * Processes that sleep keep their duplicates, and with them the UDP port: sockets that take their
 * place can only be opened because these are retired.
 */
void roce_port_retire(struct daemon_roce_port *p)
{
	for (int v = 0; v < 2; v++) {
		daemon_source_stop(&p->ear[v].source);
		if (p->receive_fd[v] >= 0) {
			netdev_udp_retire(p->receive_fd[v]);
			close(p->receive_fd[v]);
		}
		p->receive_fd[v] = -1;
	}
	if (p->link)
		hca_roce_abandon(p->link); /* nobody else receives by the daemon's duplicates */
}

static int open_receive(const struct daemon_roce_port *p, int family, char *why, size_t len)
{
	const struct netdev_site at = { roce_port_network(p), p->device };

	return p->round ? netdev_udp_reopen_receive(family, &at, why, len)
	                : netdev_udp_open_receive(family, &at, why, len);
}

int roce_port_open(struct daemon_roce_port *p, char *why, size_t len)
{
	roce_port_retire(p);
	for (int v = 0; v < 2; v++) {
		int fd = open_receive(p, families[v], why, len);

		if (fd == -EAFNOSUPPORT)
			continue; /* a kernel without IPv6 */
		if (fd < 0)
			return fd;
		p->receive_fd[v] = fd;
	}
	p->round = p->round == UINT16_MAX ? 1 : p->round + 1; /* 0: never opened */
	atomic_store_explicit(&shm_roce_port_at(p->roce->d.f->region, p->port->index)->lost[0], 0,
	                      memory_order_relaxed);
	atomic_store_explicit(&shm_roce_port_at(p->roce->d.f->region, p->port->index)->lost[1], 0,
	                      memory_order_relaxed);
	return 0;
}

static int open_send(const struct daemon_roce_port *p, const struct control_roce_socket *request,
                     uint32_t *source_port)
{
	const struct netdev *dev = netdev_watch_at(p->network->watch, p->ifindex);
	struct netdev_site at = { roce_port_network(p), NULL };
	uint16_t port = (uint16_t)request->source_port;
	char why[256] = "";
	int fd;

	if (!dev)
		return -ENODEV;
	if (request->source_port < NETDEV_UDP_SOURCE_FIRST ||
	    request->source_port > NETDEV_UDP_SOURCE_LAST)
		return -EINVAL;
	at.device = dev->name;
	fd = netdev_udp_open_send(families[request->is_ipv6], &at, &port, why, sizeof(why));
	if (fd < 0)
		base_log_warning(roce, "%s", why);
	*source_port = port;
	return fd;
}

static int duplicate(int fd)
{
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -EAFNOSUPPORT : copy < 0 ? -errno : copy;
}

int daemon_roce_socket(struct daemon_roce *r, uint32_t port,
                       const struct control_roce_socket *request, uint32_t *source_port)
{
	struct daemon_roce_port *p = daemon_roce_port(r, port);

	switch (request->kind) {
	case CONTROL_ROCE_RECEIVE:
		return duplicate(p->receive_fd[request->is_ipv6]);
	case CONTROL_ROCE_WAKE:
		return duplicate(p->wake_fd);
	case CONTROL_ROCE_SEND:
		return open_send(p, request, source_port);
	default:
		return -EINVAL;
	}
}

/* ---- life ---- */

/* The daemon's own HCA. */
static int open_roce(struct daemon_roce_port *p)
{
	struct daemon_self *self = p->roce->d.self;
	uint32_t hca = p->port->node->hca, handle;
	struct hca_link *link;
	int ret = daemon_self_open_hca(self, hca, &handle);

	if (!ret)
		ret = hca_roce_open(self->process, hca, handle, &link);
	if (ret)
		return ret;
	p->link = hca_roce(link);
	p->roce->d.wires->of_port[p->port->index] = &p->link->wires;
	return 0;
}

static int add_sources(struct daemon_roce_port *p)
{
	int ret = hear(p);

	if (ret || daemon_source_is_watched(&p->wake_source))
		return ret;
	p->wake_source.ready = on_wake;
	return daemon_source_watch(p->roce->d.loop, &p->wake_source, p->wake_fd, EPOLLIN);
}

int roce_port_start(struct daemon_roce_port *p)
{
	int ret = 0;

	if (p->wake_fd < 0)
		p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0)
		return -errno;
	if (!p->link)
		ret = open_roce(p);
	if (!ret)
		ret = add_sources(p);
	if (!ret)
		come_back(p);
	return ret;
}

void roce_port_stop(struct daemon_roce_port *p)
{
	roce_port_retire(p);
	daemon_source_stop(&p->wake_source);
	base_timer_stop(&p->away_timer);
	base_timer_stop(&p->retry_timer);
	base_timer_stop(&p->gids_timer);
	if (p->link) {
		p->roce->d.wires->of_port[p->port->index] = NULL;
		hca_link_roce.close(&p->link->link);
	}
	if (p->wake_fd >= 0)
		close(p->wake_fd);
	p->link = NULL;
	p->wake_fd = -1;
}
