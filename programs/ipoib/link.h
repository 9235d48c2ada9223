/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The UD queue pair of an interface, with its memory. Packets to be sent are written into a slot of
 * registered memory and posted in lists; received ones are handed out where they are. Completions
 * are taken when a slot is wanted, so nothing here waits. Not thread-safe.
 */
#ifndef IPOIB_LINK_H
#define IPOIB_LINK_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "ipoib/slots.h"
#include "wire/ib.h"

#define IPOIB_POLL_MAX 64

struct ipoib_link;

struct ipoib_link_options {
	struct ibv_context *context;
	uint8_t port;
	uint16_t pkey_index;
	uint32_t qkey;
};

/* 0 or -errno. */
int ipoib_link_open(struct ipoib_link **link, const struct ipoib_link_options *options);
void ipoib_link_close(struct ipoib_link *link);

uint32_t ipoib_link_qpn(const struct ipoib_link *link);
/* The parts that other queue pairs of the interface share with it. */
struct ibv_pd *ipoib_link_pd(const struct ipoib_link *link);
struct ibv_comp_channel *ipoib_link_channel(const struct ipoib_link *link);
struct ipoib_slots *ipoib_link_slots(struct ipoib_link *link);
/* Readable: poll, and call ipoib_link_woken() before the next ipoib_link_arm(). */
int ipoib_link_fd(const struct ipoib_link *link);

/* The Q_Key with which it receives and sends. 0 or -errno. */
int ipoib_link_set_qkey(struct ipoib_link *link, uint32_t qkey);
/* The entry of the port's P_Key table that it is in. 0 or -errno. */
int ipoib_link_set_pkey_index(struct ipoib_link *link, uint16_t index);
/* The largest packet that is sent, without IPoIB's header. */
void ipoib_link_set_mtu(struct ipoib_link *link, unsigned mtu);

/* ---- destinations ---- */

struct ipoib_way {
	struct ib_gid gid;
	uint16_t lid;
	uint8_t sl;
	uint32_t flow_label;
	uint8_t hop_limit, traffic_class;
	bool global; /* with a GRH */
};

/* NULL, and errno: it cannot be made. */
struct ibv_ah *ipoib_link_ah(struct ipoib_link *link, const struct ipoib_way *way);
/* Destroys it once what was sent by it has left. NULL: nothing. */
void ipoib_link_retire_ah(struct ipoib_link *link, struct ibv_ah *ah);

int ipoib_link_attach(struct ipoib_link *link, const struct ib_gid *mgid, uint16_t mlid);
void ipoib_link_detach(struct ipoib_link *link, const struct ib_gid *mgid, uint16_t mlid);

/* ---- sending ---- */

/* Room for a packet of IPOIB_MAX_PACKET bytes, with IPOIB_HEADROOM before it; the same until
 * ipoib_link_send() has used it. NULL: all that there is has not left yet. */
uint8_t *ipoib_link_slot(struct ipoib_link *link);

/*
 * Sends @p, whose data is in the slot, to @qpn by @ah: in segments, if it is large. It leaves with
 * ipoib_link_flush() at the latest. False: it cannot be sent.
 */
bool ipoib_link_send(struct ipoib_link *link, struct ibv_ah *ah, uint32_t qpn,
                     const struct ipoib_packet *p);
void ipoib_link_flush(struct ipoib_link *link);
/* How many work requests were lost: they could not be posted, or have failed. */
uint64_t ipoib_link_lost(const struct ipoib_link *link);

/* ---- receiving ---- */

/* A packet with its header, until ipoib_link_repost(). Or one of a connection (interface.h). */
struct ipoib_received {
	uint8_t *data;
	uint32_t bytes;
	const uint8_t *grh; /* NULL: it had none */
	uint32_t qpn;       /* the sender's */
	uint16_t lid;
	const struct ipoib_address *peer; /* the connection's; NULL: there is none */
};

/* At most IPOIB_POLL_MAX of them; returns how many. -errno: the queue is no more. */
int ipoib_link_poll(struct ipoib_link *link, struct ipoib_received got[static IPOIB_POLL_MAX]);
/* The packets that ipoib_link_poll() has returned last may be overwritten. */
void ipoib_link_repost(struct ipoib_link *link);

/* Asks that the descriptor become readable when a packet comes, or a slot is free again. Poll once
 * more after it. */
int ipoib_link_arm(struct ipoib_link *link);
void ipoib_link_woken(struct ipoib_link *link);

#endif
