/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The link in shared memory. For each receiving queue pair the sender's thread makes the checks of
 * the receiving HCA, claims a credit of the receive ring, writes the arrival, and wakes a receiver
 * that sleeps. Packets that a port receives from the network are delivered likewise.
 *
 * If the sender dies, the daemon can read how far it came: first the sender writes in its record
 * to whom it delivers, then its own QP index into the slot that it claims.
 *
 * Threads may call it at the same time with different senders.
 */
#ifndef HCA_LINK_SHM_H
#define HCA_LINK_SHM_H

#include "hca/link/packet.h"
#include "hca/link/receiver.h"
#include "hca/process/link.h"

#define HCA_ANY_PORT UINT32_MAX

/* Delivers the packet to QP @qpn, which must be on port @port (index) unless that is HCA_ANY_PORT.
 * If it cannot, it counts why. */
void hca_deliver(struct hca_process *p, const struct hca_packet *pkt, uint32_t qpn, uint32_t port);

/* The same for @n receivers. Updates their copies that are out of date. */
void hca_deliver_to(struct hca_process *p, const struct hca_packet *pkt, uint32_t port,
                    struct hca_receiver *to, uint32_t n);

/* On a weak fabric, of a multicast message: delivers the sender's own copies, or those to others.
 * Own ones are those for queue pairs at the sender's port. */
void hca_deliver_copies(struct hca_sender *s, struct hca_flow *f, const struct hca_packet *pkt,
                        bool own);
/* Whether there are both. */
bool hca_deliver_has_both(struct hca_sender *s, struct hca_flow *f);

/* Whether it is known that @r, which is current, is there and lets the packet in. */
bool hca_receiver_lets_in(const struct hca_receiver *r, const struct hca_packet *pkt,
                          uint32_t port);

#endif
