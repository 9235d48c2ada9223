/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The resources that the RC queue pairs of an interface share: completion queues, and one shared
 * receive queue, so that receive memory does not grow with the number of peers. A queue pair of
 * ours only sends, one that a peer has asked for only receives (RFC 4755, section 3.3).
 *
 * Receives come in areas: a few at first, more when many packets come at once. Completions of sends
 * are taken by the owner of the queue pairs (connections.c). Not thread-safe.
 */
#ifndef IPOIB_RC_H
#define IPOIB_RC_H

#include "ipoib/link.h"

#define IPOIB_RC_POLL_MAX   16
#define IPOIB_RC_SEND_DEPTH 128 /* of one queue pair */

struct ipoib_rc;

/* On the protection domain, the completion channel and the slots of @link. 0 or -errno. */
int ipoib_rc_open(struct ipoib_rc **rc, struct ipoib_link *link);
/* Its queue pairs are gone. */
void ipoib_rc_close(struct ipoib_rc *rc);

/* A queue pair in RESET. NULL, and errno: it cannot be made. */
struct ibv_qp *ipoib_rc_make_qp(struct ipoib_rc *rc, bool sends);

/* ---- sending ---- */

/* Sends the pieces of a packet that is in @slot, all or none. Completes once, with wr_id @slot,
 * unless it fails. */
bool ipoib_rc_send(struct ibv_qp *qp, unsigned slot, const struct ipoib_piece *piece, unsigned n);

/* Completions of sends, good and failed ones: at most @n of them; returns how many. */
int ipoib_rc_poll_sent(struct ipoib_rc *rc, struct ibv_wc *wc, int n);

/* ---- receiving ---- */

/* A packet with its header, until ipoib_rc_repost(). */
struct ipoib_rc_received {
	uint8_t *data;
	uint32_t bytes;
	uint32_t qpn; /* our queue pair */
	bool failed;  /* there is no packet, and the queue pair has failed */
};

/* At most IPOIB_RC_POLL_MAX of them; returns how many. -errno: the queue is no more. */
int ipoib_rc_poll(struct ipoib_rc *rc, struct ipoib_rc_received got[static IPOIB_RC_POLL_MAX]);
void ipoib_rc_repost(struct ipoib_rc *rc);

/* Asks that the link's descriptor become readable when a packet comes, and, if @sends, when one has
 * been sent. Poll once more after it. 0 or -errno. */
int ipoib_rc_arm(struct ipoib_rc *rc, bool sends);

#endif
