/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slots: registered memory in which packets wait until their queue pair has sent them, whichever it
 * is. A slot has room for one packet, as large as the kernel makes them, and for the headers of the
 * segments that it is cut into. The one that came back last is used first: it is in the cache.
 * Not thread-safe.
 */
#ifndef IPOIB_SLOTS_H
#define IPOIB_SLOTS_H

#include "ipoib/area.h"
#include "ipoib/packet.h"
#include "ipoib/segment.h"

#define IPOIB_SLOTS       32
#define IPOIB_MAX_PACKET  65536
#define IPOIB_HEADROOM    64 /* before a slot's packet; IPoIB's header goes there */
#define IPOIB_MAX_SEGMENT 48 /* pieces of one packet */

struct ipoib_slots {
	struct ibv_pd *pd;
	struct ipoib_area area[2]; /* the first few, and the others */
	unsigned n;
	int current;                 /* the one that the next packet goes to; -1: none */
	uint8_t unused[IPOIB_SLOTS]; /* a stack */
	unsigned n_unused;
};

/* A packet on the wire: one entry or two, headers and payload. */
struct ipoib_piece {
	struct ibv_sge sge[2];
	int n;
};

/* 0 or -errno. */
int ipoib_slots_open(struct ipoib_slots *s, struct ibv_pd *pd);
void ipoib_slots_close(struct ipoib_slots *s);

/* Adds slots, if there may be more. Whether it has. */
bool ipoib_slots_grow(struct ipoib_slots *s);

/* Where the next packet goes, the same until ipoib_slots_use(). NULL: no slot is left. */
uint8_t *ipoib_slots_next(struct ipoib_slots *s);

/* That slot is in use now: its number. @slot is not any more. */
unsigned ipoib_slots_use(struct ipoib_slots *s);
void ipoib_slots_give(struct ipoib_slots *s, unsigned slot);

/*
 * Describes @p, whose data is in the next slot, as packets of at most @mtu bytes and IPoIB's
 * header, with their checksums. Returns how many; 0: it cannot be sent.
 */
unsigned ipoib_slots_describe(const struct ipoib_slots *s, const struct ipoib_packet *p,
                              unsigned mtu, struct ipoib_piece piece[static IPOIB_MAX_SEGMENT]);

#endif
