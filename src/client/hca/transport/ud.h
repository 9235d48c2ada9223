/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The transport UD (Unreliable Datagram; InfiniBand specification volume 1, section 9.8.3): a
 * message is one packet, sent where its address handle points. ud_send.c has the table.
 */
#ifndef HCA_UD_H
#define HCA_UD_H

#include "hca/link/link_shm.h"
#include "hca/link/packet.h"
#include "hca/queue/qp.h"

struct hca_ud_kept;

/*
 * A request that says the same as this is sent as the last one was, as long as its address handle,
 * the records of port, flow and receiver, and the queue pair's attributes are those of then: see
 * repeats() in ud_send.c. Two like requests go before it. A link that begins to drop packets has to
 * be known to expect_more() there, which does not hear of that. As in struct ibv_send_wr.
 */
struct hca_ud_repeat {
	struct {
		struct ibv_ah *ah;
		uint32_t remote_qpn, remote_qkey;
	} to;
	enum ibv_wr_opcode opcode;
	unsigned send_flags;           /* without IBV_SEND_SIGNALED; HCA_UD_NONE: no request does */
	struct hca_receiver *receiver; /* the only one, and lets it in */
};

#define HCA_UD_NONE IBV_SEND_SIGNALED

/* Where requests by one address handle go, and what is the same for all their packets. */
struct hca_ud_path {
	struct hca_ud_repeat repeat;
	const struct hca_ah *ah; /* NULL: it is to be found anew */
	uint64_t ah_serial;      /* which it had, and has as long as it is alive */
	struct hca_flow *flow;
	const struct shm_port *port; /* by which it leaves */
	uint32_t port_seq;           /* of its record, when that was read */
	bool is_active;              /* the port was, then */
	struct hca_packet pkt;
};

struct hca_ud_qp {
	struct hca_qp qp;                /* first */
	struct hca_ud_path path;         /* of the last request that was carried out */
	uint32_t received;               /* what its receive queue had consumed at the last post */
	STAILQ_HEAD(, hca_ud_kept) kept; /* posted in SQD, not carried out yet */
};

/* hca_transport.receive of UD: ud_receive.c. */
int hca_ud_receive(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals);

/* The same with a shared receive queue. Messages wait in the queue pair's own ring, and take a
 * receive when they are polled: if there is none then, they are dropped. */
int hca_ud_receive_shared(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals);

#endif
