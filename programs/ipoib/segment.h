/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The work that the kernel leaves to a device before packets go on the wire: the checksum, and
 * cutting a large TCP packet into segments. Only headers are written; payload stays where it is.
 * Pure functions.
 */
#ifndef IPOIB_SEGMENT_H
#define IPOIB_SEGMENT_H

#include "ipoib/ip_packet.h"
#include "ipoib/packet.h"

#define IPOIB_SEGMENT_HEADER 128 /* room for the headers of one, with IPoIB's */

/* One large packet that is being cut. */
struct ipoib_segmenter {
	const struct ipoib_packet *packet;
	struct ipoib_ip ip;
	unsigned transport, header; /* offset of TCP, and of its payload */
	unsigned at, size;          /* of payload */
	unsigned number;
};

/* Writes the checksum into a packet that is not large, if that was left to do. False: it says that
 * it is elsewhere than in the packet. */
bool ipoib_finish_checksum(const struct ipoib_packet *p);

/* Whether @p is larger than a packet on the wire. */
static inline bool ipoib_is_large(const struct ipoib_packet *p)
{
	return p->vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE;
}

/* The largest packet that @p is on the wire, without IPoIB's header: itself, or a segment of it. */
unsigned ipoib_wire_bytes(const struct ipoib_packet *p);

/* Begins to cut @p into packets of at most @mtu bytes. False: it cannot be cut. */
bool ipoib_segment_begin(struct ipoib_segmenter *s, const struct ipoib_packet *p, unsigned mtu);

/* How many segments there will be. */
unsigned ipoib_segment_count(const struct ipoib_segmenter *s);

/*
 * Writes the headers of the next segment, IPoIB's first; its payload is @*bytes at @*payload.
 * Returns the headers' bytes; 0: there are no more segments.
 */
unsigned ipoib_segment_next(struct ipoib_segmenter *s, uint8_t out[static IPOIB_SEGMENT_HEADER],
                            const uint8_t **payload, unsigned *bytes);

#endif
