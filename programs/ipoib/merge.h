/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Received packets on their way to the kernel. Segments of one TCP connection that came one after
 * the other become one large packet, which costs the kernel as much as a small one. Their payload
 * is not moved: a large packet is a list of pieces. All packets go on in the order of their flow.
 *
 * Packets stay with the caller and must not change before ipoib_merge_flush(). Not thread-safe.
 */
#ifndef IPOIB_MERGE_H
#define IPOIB_MERGE_H

#include <sys/uio.h>

#include "ipoib/ip_packet.h"
#include "ipoib/packet.h"

#define IPOIB_MERGE_FLOWS  8
#define IPOIB_MERGE_PIECES 64

/* Takes a packet of the pieces @piece[0..n), after the header @vnet. */
typedef void ipoib_merged(void *arg, const struct virtio_net_hdr *vnet, const struct iovec *piece,
                          unsigned n);

struct ipoib_merge_flow {
	struct ipoib_ip ip;
	uint8_t *first; /* the packet whose headers all have */
	unsigned header, size, bytes;
	uint32_t next_sequence;
	unsigned n; /* pieces; 0: the entry is free */
	struct iovec piece[IPOIB_MERGE_PIECES];
};

struct ipoib_merge {
	ipoib_merged *merged;
	void *arg;
	unsigned next; /* the entry that makes room if all are in use */
	struct ipoib_merge_flow flow[IPOIB_MERGE_FLOWS];
};

void ipoib_merge_init(struct ipoib_merge *m, ipoib_merged *merged, void *arg);

/* Hands on the packet at @data, which has been parsed, now or before ipoib_merge_flush() returns.
 * Its headers may be changed. */
void ipoib_merge_add(struct ipoib_merge *m, uint8_t *data, const struct ipoib_ip *ip);

/* Hands on all that is still here. */
void ipoib_merge_flush(struct ipoib_merge *m);

#endif
