/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The transport UD (Unreliable Datagram; InfiniBand specification volume 1, section 9.8.3): a
 * message is one packet, sent where its address handle points. ud_send.c has the table.
 */
#ifndef HCA_UD_H
#define HCA_UD_H

#include "hca/link/link_shm.h"
#include "hca/link/packet.h"
#include "hca/queue/ah.h"
#include "hca/queue/qp.h"
#include "hca/transport/weak_clock.h"

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

/* Of a multicast message: the sender's own copies may come earlier or later than others. */
enum hca_ud_copies { HCA_UD_ALL, HCA_UD_OWN, HCA_UD_OTHERS };

/* A request that was posted in SQD, or on a weak fabric, and what becomes of it there. The program
 * may meanwhile destroy the address handle, so this has copies of it and of inline data. */
struct hca_ud_kept {
	STAILQ_ENTRY(hca_ud_kept) entry;
	struct ibv_send_wr wr;
	struct hca_ah ah; /* a copy */
	uint64_t length;
	struct hca_weak_due due;
	bool is_begun; /* on a weak fabric: it was not posted in SQD */
	bool is_sent;
	uint8_t left;         /* enum hca_ud_copies: what is still to be sent of a multicast one */
	char *gathered;       /* or NULL: the message, as the program may change it meanwhile */
	struct ibv_sge whole; /* that */
	enum ibv_wc_status status; /* if it is */
	struct ibv_sge sge[];      /* and its inline data */
};

struct hca_ud_qp {
	struct hca_qp qp;                /* first */
	struct hca_ud_path path;         /* of the last request that was carried out */
	uint32_t received;               /* what its receive queue had consumed at the last post */
	STAILQ_HEAD(, hca_ud_kept) kept; /* posted, and not complete yet */
	struct hca_weak_clock clock;     /* on a weak fabric: weak_datagrams.c */
};

/* Keeps the request, and copies of its address handle and of its inline data. NULL: no memory. */
struct hca_ud_kept *hca_ud_keep(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length);
/* Takes the oldest one out; NULL: there is none. */
struct hca_ud_kept *hca_ud_next_kept(struct hca_qp *qp);
void hca_ud_free_kept(struct hca_ud_kept *k);

/* Sends one that was kept; if it is a multicast message, those copies that @copies says. @is_first:
 * for the first time. Returns the status of its completion, which is the caller's. */
enum ibv_wc_status hca_ud_transmit(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length,
                                   enum hca_ud_copies copies, bool is_first);
/* Whether there are copies of both kinds. */
bool hca_ud_has_both(struct hca_qp *qp, struct hca_ud_kept *k);
/* Reads the message, which is inline data from then on. False: it is not where the request says, or
 * there is no memory. */
bool hca_ud_gather(struct hca_qp *qp, struct hca_ud_kept *k);
/* Likewise: it is read and gets lost. */
enum ibv_wc_status hca_ud_lose(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length);
/* The request fails: explains it, and moves to SQE. */
void hca_ud_fail(struct hca_qp *qp, const struct ibv_send_wr *wr, enum ibv_wc_status status);

/* ---- for the transports' tables ---- */

int hca_ud_check(const struct hca_qp *qp, const struct ibv_send_wr *wr);
void hca_ud_flush(struct hca_qp *qp);
extern const struct hca_transition hca_ud_transitions[];
/* UD on a weak fabric. */
extern const struct hca_transport hca_ud_weak;

/* The members that both tables of UD have. */
#define HCA_UD_TABLE                                                                    \
	.name = "UD", .type = IBV_QPT_UD, .qp_bytes = sizeof(struct hca_ud_qp),         \
	.send_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,                 \
	.transitions = hca_ud_transitions, .fini = hca_ud_flush, .check = hca_ud_check, \
	.receive = hca_ud_receive, .receive_shared = hca_ud_receive_shared, .flush = hca_ud_flush

/* hca_transport.receive of UD: ud_receive.c. */
int hca_ud_receive(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals);

/* The same with a shared receive queue. Messages wait in the queue pair's own ring, and take a
 * receive when they are polled: if there is none then, they are dropped. */
int hca_ud_receive_shared(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals);

#endif
