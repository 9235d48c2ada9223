/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An Ethernet port's network link: its sockets and its sender. See link_roce.h.
 */
#define _GNU_SOURCE /* dup3() */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "hca/link/flow.h"
#include "hca/link/link_roce.h"
#include "hca/link/payload.h"

/* Room for a datagram and some more, so that the first lines of the buffers do not compete for the
 * same cache sets. Most of it is never touched. */
#define BUFFER_STRIDE (NETDEV_UDP_MAX_BYTES + 1 + 65 * BASE_CACHE_LINE)

/* ---- sockets ---- */

/* Asks the daemon for a socket of the port, or for the eventfd. The descriptor or -errno. */
static int get_socket(struct hca_roce *w, struct control_roce_socket *req, uint32_t *source_port)
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

static void close_sources(struct hca_roce *w)
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

		w->receive_fd[v] = get_socket(w, &req, &unused);
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
	int fd = get_socket(w, req, &port);

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

/* ---- life ---- */

/* Opens the sender that delivers what the port receives. */
static int open_sender(struct hca_roce *w)
{
	struct control_handle req = { .handle = w->hca_handle };
	struct control_open_roce_reply rep = { 0 };
	int ret = hca_ask_memory(w->process, &CONTROL_CALL(CONTROL_OPEN_ROCE, &req, &rep));

	if (ret)
		return ret;
	w->sender.process = w->process;
	w->sender.network = &w->link;
	w->sender.port = w->port;
	w->sender.qpn = rep.qpn;
	w->sender.shm = shm_sender_at(&w->process->region, SHM_QP_INDEX(rep.qpn));
	return 0;
}

int hca_roce_open(struct hca_process *p, uint32_t hca, uint32_t handle, struct hca_link **out)
{
	struct control_roce_socket wake = { .kind = CONTROL_ROCE_WAKE };
	struct hca_roce *w = calloc(1, sizeof(*w));
	uint32_t unused;
	int ret;

	if (!w)
		return -ENOMEM;
	w->link.ops = &hca_link_roce;
	w->process = p;
	w->hca_handle = handle;
	w->port = shm_hca_at(&p->region, hca)->first_port;
	w->memory = malloc((size_t)BUFFER_STRIDE * NETDEV_UDP_BATCH);
	if (!w->memory) {
		ret = -ENOMEM;
		goto err_free;
	}
	for (int i = 0; i < NETDEV_UDP_BATCH; i++)
		w->datagram[i].iov[0] = (struct iovec){ w->memory + (size_t)BUFFER_STRIDE * i,
			                                NETDEV_UDP_MAX_BYTES };
	w->shm = shm_roce_port_at(&p->region, w->port);
	ret = w->wake_fd = get_socket(w, &wake, &unused);
	if (ret < 0)
		goto err_free;
	ret = open_sender(w);
	if (ret)
		goto err_close;
	w->receive_fd[0] = w->receive_fd[1] = -1;
	w->batch = 1;
	SLIST_INIT(&w->batches);
	w->one_by_one = !p->region.control->settings.roce_segments;
	w->rxe_flush = p->region.control->settings.roce_rxe_flush;
	for (int i = 0; i < HCA_ROCE_SOURCES; i++)
		w->source[0][i].fd = w->source[1][i].fd = -1;
	hca_roce_reopen(w);
	hca_wires_init(&w->wires, p, &w->sender, w->port);
	*out = &w->link;
	return 0;
err_close:
	close(w->wake_fd);
err_free:
	free(w->memory);
	free(w);
	return ret;
}

void hca_roce_close(struct hca_link *link)
{
	struct hca_roce *w = hca_roce(link);

	hca_roce_abandon(w);
	close_sources(w);
	close(w->wake_fd);
	hca_wires_fini(&w->wires);
	hca_flow_drop_all(&w->sender);
	hca_payload_fini(&w->sender.payloads);
	hca_roce_free_path(&w->sender);
	hca_roce_free_batches(w);
	free(w->memory);
	free(w);
}

const struct hca_network hca_network_roce = {
	.link_layer = IBV_LINK_LAYER_ETHERNET,
	.open = hca_roce_open,
};
