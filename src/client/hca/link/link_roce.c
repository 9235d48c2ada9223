/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An Ethernet port's network link: opened and closed, and its tables. See link_roce.h.
 */
#include <errno.h>
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
	ret = w->wake_fd = hca_roce_socket(w, &wake, &unused);
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

static void close_link(struct hca_link *link)
{
	struct hca_roce *w = hca_roce(link);

	hca_roce_abandon(w);
	hca_roce_close_sources(w);
	close(w->wake_fd);
	hca_wires_fini(&w->wires);
	hca_flow_drop_all(&w->sender);
	hca_payload_fini(&w->sender.payloads);
	hca_roce_free_path(&w->sender);
	hca_roce_free_batches(w);
	free(w->memory);
	free(w);
}

const struct hca_link_ops hca_link_roce = {
	.name = "roce",
	.send = hca_roce_send,
	.flush = hca_roce_flush,
	.progress = hca_roce_receive,
	.attention = hca_roce_attention,
	.rest = hca_roce_rest,
	.close = close_link,
	.and_here = &hca_link_shm_and_roce,
};

const struct hca_network hca_network_roce = {
	.link_layer = IBV_LINK_LAYER_ETHERNET,
	.open = hca_roce_open,
};
