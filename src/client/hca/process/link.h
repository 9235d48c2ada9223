/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A link: how packets leave a port. In shared memory (link_shm.h) send() delivers a packet to its
 * receivers before it returns. On RoCEv2 (link_roce.h) a packet becomes a datagram. A flow refers
 * to its link, so the code that sends datagrams is the same for all links. Connected queue pairs
 * do not use send(): where both ends are on this fabric they copy (exchange.h), else they add
 * packets of their own to the batches of link_roce.h, and get those that come
 * (hca/transport/packet_connection.h). While the daemon is to see packets, they go by it
 * (detour.h).
 */
#ifndef HCA_LINK_H
#define HCA_LINK_H

#include <stdbool.h>
#include <stdint.h>

struct hca_flow;
struct hca_link;
struct hca_packet;
struct hca_process;
struct hca_sender;

/* Of a network. */
enum hca_attention {
	HCA_ATTENDED,  /* programs that poll have made progress just now, or it can wait */
	HCA_NEGLECTED, /* they have not for a while, after which the daemon soon will */
	HCA_RESTING    /* there are none, or they sleep: the daemon does */
};

struct hca_link_ops {
	const char *name;
	/*
	 * Sends the packet along @flow, to @remote_qpn. Its payload slot must stay as it is until
	 * flush(). Never fails: a packet that cannot be delivered is counted and dropped.
	 */
	void (*send)(struct hca_sender *s, struct hca_flow *flow, const struct hca_packet *pkt,
	             uint32_t remote_qpn);
	/* Sends the packets that send() has kept to send several at once. NULL: it keeps none. */
	void (*flush)(struct hca_sender *s);
	/*
	 * Makes progress: receives what has come, unless another thread does. @again: the caller
	 * will call again soon, so the daemon need not receive. Returns whether it delivered a
	 * packet to any queue pair. A network has this and the functions below; links between
	 * senders and receivers on this fabric have none of them.
	 */
	bool (*progress)(struct hca_link *link, bool again);
	/* Whether programs or the daemon see to it now. @now: as base_now_ns(). */
	enum hca_attention (*attention)(const struct hca_link *link, uint64_t now);
	/* The caller is about to sleep: the daemon is to make progress for it. */
	void (*rest)(struct hca_link *link);
	void (*close)(struct hca_link *link);
	/* Of a network: the link of flows that have receivers on this fabric, too. */
	const struct hca_link_ops *and_here;
};

/* The state of one port's link, for links that have state. */
struct hca_link {
	const struct hca_link_ops *ops;
};

/* A network that leads out of the fabric, by the link layer of its ports: a row of link.c. */
struct hca_network {
	uint8_t link_layer; /* IBV_LINK_LAYER_ */
	/* *@link: of HCA @hca (index), which the process has open as @handle. 0 or -errno. */
	int (*open)(struct hca_process *p, uint32_t hca, uint32_t handle, struct hca_link **link);
};

/* Opens the network of ports with that link layer. 0 or -errno; *@link stays as it is after an
 * error, and if there is no such network. ops->close() closes it. */
int hca_network_open(struct hca_process *p, uint8_t link_layer, uint32_t hca, uint32_t handle,
                     struct hca_link **link);

/* Each in a file link_NAME.c; hca_link_astray, by which nothing gets anywhere, in link_shm.c. */
extern const struct hca_link_ops hca_link_shm, hca_link_trace, hca_link_detour, hca_link_astray;
extern const struct hca_network hca_network_roce;

#endif
