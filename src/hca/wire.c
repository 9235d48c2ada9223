/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire of an Ethernet port: its sockets, and the hidden queue pair. See wire.h.
 */
#define _GNU_SOURCE /* dup3() */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "hca/wire.h"

/* Room for a datagram, and a bit, so that the first lines of all do not compete in the cache. Most
 * of it is never touched. */
#define BUFFER_STRIDE (LINK_UDP_MAX_BYTES + 1 + 65 * BASE_CACHE_LINE)

/* ---- sockets ---- */

/* A socket of the port, or the eventfd, from the manager. The descriptor or -errno. */
static int get_socket(struct hca_wire *w, struct control_wire_socket *req, uint32_t *source_port)
{
	struct control_wire_socket_reply rep;
	int fd, ret;

	req->hca_handle = w->hca_handle;
	ret = control_call(w->process->control,
	                   &(struct control_call){ .type = CONTROL_WIRE_SOCKET,
	                                           .request = req,
	                                           .request_bytes = sizeof(*req),
	                                           .reply = &rep,
	                                           .reply_bytes = sizeof(rep),
	                                           .fd = &fd });
	*source_port = rep.source_port;
	return ret ? ret : fd;
}

void hca_wire_abandon(struct hca_wire *w)
{
	for (int v = 0; v < 2; v++) {
		if (w->receive_fd[v] >= 0)
			close(w->receive_fd[v]);
		w->receive_fd[v] = -1;
	}
}

static void close_sources(struct hca_wire *w)
{
	for (int v = 0; v < 2; v++) {
		for (int i = 0; i < HCA_WIRE_SOURCES; i++) {
			if (w->source[v][i].fd >= 0)
				close(w->source[v][i].fd);
			w->source[v][i].fd = -1;
		}
	}
}

void hca_wire_reopen(struct hca_wire *w)
{
	uint32_t unused;

	hca_wire_abandon(w);
	w->round = w->process->region.ports[w->port].wire_round;
	for (int v = 0; v < 2; v++) {
		struct control_wire_socket req = { .kind = CONTROL_WIRE_RECEIVE,
			                           .is_ipv6 = (uint16_t)v };

		w->receive_fd[v] = get_socket(w, &req, &unused);
	}
}

/*
 * A new socket, as the device is another one now. It takes the old one's number: somebody may be
 * about to send by that.
 */
static void renew_source(struct hca_wire *w, struct hca_wire_source *s,
                         struct control_wire_socket *req)
{
	uint32_t port;
	int fd = get_socket(w, req, &port);

	if (fd < 0)
		return; /* for the time being sending fails */
	if (s->fd < 0) {
		s->fd = fd;
	} else {
		dup3(fd, s->fd, O_CLOEXEC);
		close(fd);
	}
	s->port = (uint16_t)port;
	s->round = w->process->region.ports[w->port].wire_round;
}

int hca_wire_source(struct hca_wire *w, bool is_ipv6, unsigned i, uint16_t *port)
{
	struct hca_wire_source *s = &w->source[is_ipv6][i % HCA_WIRE_SOURCES];
	struct control_wire_socket req = {
		.kind = CONTROL_WIRE_SEND,
		.is_ipv6 = is_ipv6,
		.source_port = LINK_UDP_SOURCE_FIRST +
		               (w->qp.ex.qp_base.qp_num & 0xFF) * HCA_WIRE_SOURCES +
		               i % HCA_WIRE_SOURCES,
	};

	base_lock(&w->source_lock);
	if (s->fd < 0 || s->round != w->process->region.ports[w->port].wire_round)
		renew_source(w, s, &req);
	*port = s->port;
	base_unlock(&w->source_lock);
	return s->fd;
}

/* ---- life ---- */

static int open_qp(struct hca_wire *w)
{
	struct control_handle req = { .handle = w->hca_handle };
	struct control_open_wire_reply rep;
	int ret = control_call(w->process->control,
	                       &(struct control_call){ .type = CONTROL_OPEN_WIRE,
	                                               .request = &req,
	                                               .request_bytes = sizeof(req),
	                                               .reply = &rep,
	                                               .reply_bytes = sizeof(rep) });

	if (ret)
		return ret;
	w->qp.process = w->process;
	w->qp.port = w->port;
	w->qp.ex.qp_base.qp_num = rep.qpn;
	w->qp.sender = &w->process->region.senders[SHM_QP_INDEX(rep.qpn)];
	return 0;
}

int hca_wire_open(struct hca_process *p, uint32_t hca, uint32_t handle, struct hca_wire **out)
{
	struct control_wire_socket wake = { .kind = CONTROL_WIRE_WAKE };
	struct hca_wire *w = calloc(1, sizeof(*w));
	uint32_t unused;
	int ret;

	if (!w)
		return -ENOMEM;
	w->process = p;
	w->hca_handle = handle;
	w->port = p->region.hcas[hca].first_port;
	w->memory = malloc((size_t)BUFFER_STRIDE * LINK_UDP_BATCH);
	if (!w->memory) {
		ret = -ENOMEM;
		goto err_free;
	}
	for (int i = 0; i < LINK_UDP_BATCH; i++)
		w->datagram[i].iov[0] =
		        (struct iovec){ w->memory + (size_t)BUFFER_STRIDE * i, LINK_UDP_MAX_BYTES };
	w->shm = &p->region.wires[w->port];
	ret = w->wake_fd = get_socket(w, &wake, &unused);
	if (ret < 0)
		goto err_free;
	ret = open_qp(w);
	if (ret)
		goto err_close;
	w->receive_fd[0] = w->receive_fd[1] = -1;
	w->batch = 1;
	w->one_by_one = !p->region.control->settings.roce_segments;
	for (int i = 0; i < HCA_WIRE_SOURCES; i++)
		w->source[0][i].fd = w->source[1][i].fd = -1;
	hca_wire_reopen(w);
	*out = w;
	return 0;
err_close:
	close(w->wake_fd);
err_free:
	free(w->memory);
	free(w);
	return ret;
}

void hca_wire_close(struct hca_wire *w)
{
	hca_wire_abandon(w);
	close_sources(w);
	close(w->wake_fd);
	hca_flow_drop_all(&w->qp);
	hca_payload_fini(&w->qp.payloads);
	free(w->memory);
	free(w);
}
