/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests to the subnet administrator that come in several segments, such as a
 * MultiPathRecord with many GIDs: put together, each by who sends it and its transaction
 * ID, with bounds on their size, number and time. Whatever comes in, what goes back is an
 * ACK, a STOP or an ABORT, or nothing.
 *
 * The manager's; not thread-safe. Time is passed in; there is no timer: what was given up is
 * forgotten when something else comes.
 */
#ifndef SUBNET_SA_SEGMENTS_H
#define SUBNET_SA_SEGMENTS_H

#include "fabric/mads.h"
#include "wire/rmpp.h"

#define SA_SEGMENTS_BYTES   65536 /* of a request, without the SA's header */
#define SA_SEGMENTS_MOST    1024  /* requests under way */
#define SA_SEGMENTS_WINDOW  16
#define SA_SEGMENTS_TIME_NS 10000000000ull /* for all of it */
#define SA_SEGMENTS_KEEP_NS 1000000000ull  /* when it is whole: for segments that come again */

struct sa_segments;

/* What a segment has brought about. */
struct sa_segment_step {
	bool replied; /* reply is to be sent back */
	uint8_t reply[MAD_BYTES];
	bool whole;             /* the request is complete: */
	struct wire_sa_mad mad; /* the first segment */
	const uint8_t *data;    /* what follows the header; until the next call */
	size_t bytes;
};

/* 0 or -ENOMEM. */
int sa_segments_new(struct sa_segments **s);
void sa_segments_free(struct sa_segments *s);

/* Takes the MAD @mad to the SA, in which RMPP is active, of somebody's request. */
void sa_segments_take(struct sa_segments *s, const struct fabric_mad *mad, uint64_t now_ns,
                      struct sa_segment_step *step);

#endif
