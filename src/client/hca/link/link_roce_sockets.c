/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sockets of an Ethernet port's network link: see link_roce.h.
 */
#define _GNU_SOURCE /* dup3() */
#include <fcntl.h>
#include <unistd.h>

#include "hca/link/link_roce.h"

int hca_roce_socket(struct hca_roce *w, struct control_roce_socket *req, uint32_t *source_port)
{
	struct control_roce_socket_reply rep = { 0 };
	int fd, ret;

	req->hca_handle = w->hca_handle;
	ret = control_call(w->process->control,
	                   &(struct control_call){ .type = CONTROL_ROCE_SOCKET,
	                                           .request = req,
	                                           .request_bytes = sizeof(*req),
	                                           .reply = &rep,
	                                           .reply_bytes = sizeof(rep),
	                                           .fd = &fd });
	*source_port = rep.source_port;
	return ret ? ret : fd;
}

void hca_roce_abandon(struct hca_roce *w)
{
	for (int v = 0; v < 2; v++) {
		if (w->receive_fd[v] >= 0)
			close(w->receive_fd[v]);
		w->receive_fd[v] = -1;
	}
}

void hca_roce_close_sources(struct hca_roce *w)
{
	for (int v = 0; v < 2; v++) {
		for (int i = 0; i < HCA_ROCE_SOURCES; i++) {
			if (w->source[v][i].fd >= 0)
				close(w->source[v][i].fd);
			w->source[v][i].fd = -1;
		}
	}
}

void hca_roce_reopen(struct hca_roce *w)
{
	uint32_t unused;

	hca_roce_abandon(w);
	w->round = shm_port_at(&w->process->region, w->port)->socket_round;
	for (int v = 0; v < 2; v++) {
		struct control_roce_socket req = { .kind = CONTROL_ROCE_RECEIVE,
			                           .is_ipv6 = (uint16_t)v };

		w->receive_fd[v] = hca_roce_socket(w, &req, &unused);
	}
}

/*
 * Opens a new socket, as the netdev is another one now. It replaces the old socket under the same
 * descriptor, by which another thread may be about to send.
 */
static void renew_source(struct hca_roce *w, struct hca_roce_source *s,
                         struct control_roce_socket *req)
{
	uint32_t port;
	int fd = hca_roce_socket(w, req, &port);

	if (fd < 0)
		return; /* until the netdev is back, sending fails */
	/* the daemon waits for no room in a socket: packets that it sends for others get lost, and
	 * are sent again */
	if (w->process->must_not_block)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	if (s->fd < 0) {
		s->fd = fd;
	} else {
		dup3(fd, s->fd, O_CLOEXEC);
		close(fd);
	}
	s->port = (uint16_t)port;
	s->round = shm_port_at(&w->process->region, w->port)->socket_round;
}

int hca_roce_source(struct hca_roce *w, bool is_ipv6, unsigned i, uint16_t *port)
{
	struct hca_roce_source *s = &w->source[is_ipv6][i % HCA_ROCE_SOURCES];
	struct control_roce_socket req = {
		.kind = CONTROL_ROCE_SEND,
		.is_ipv6 = is_ipv6,
		.source_port = NETDEV_UDP_SOURCE_FIRST + (w->sender.qpn & 0xFF) * HCA_ROCE_SOURCES +
		               i % HCA_ROCE_SOURCES,
	};

	base_lock(&w->source_lock);
	if (s->fd < 0 || s->round != shm_port_at(&w->process->region, w->port)->socket_round)
		renew_source(w, s, &req);
	*port = s->port;
	base_unlock(&w->source_lock);
	return s->fd;
}
