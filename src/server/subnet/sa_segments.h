/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receives requests to the subnet administrator in several segments, such as a MultiPathRecord with
 * many GIDs. Sender and transaction ID identify a request. Its size, its time and the number of
 * requests are limited. The reply to a segment is an ACK, a STOP, an ABORT, or none.
 *
 * Only the daemon uses this; not thread-safe. Time is passed in. There is no timer: a request whose
 * time is over is freed when the next segment arrives.
 */
#ifndef SUBNET_SA_SEGMENTS_H
#define SUBNET_SA_SEGMENTS_H

#include "fabric/agents/mads.h"
#include "wire/rmpp.h"

#define SA_SEGMENTS_BYTES   65536 /* the longest request, without the SA's header */
#define SA_SEGMENTS_MOST    1024  /* incomplete requests at a time */
#define SA_SEGMENTS_WINDOW  16
#define SA_SEGMENTS_TIME_NS 10000000000ull /* for a whole request */
#define SA_SEGMENTS_KEEP_NS \
	1000000000ull /* how long a complete request is kept, for repeated segments */

struct sa_segments;

/* The result of a segment. */
struct sa_segment_step {
	bool replied; /* the caller sends reply */
	uint8_t reply[MAD_BYTES];
	bool whole;             /* the request is complete: */
	struct wire_sa_mad mad; /* the first segment */
	const uint8_t *data;    /* the data after the header, valid until the next call */
	size_t bytes;
};

/* Returns 0 and *@s, which sa_segments_free() frees; or -ENOMEM. */
int sa_segments_new(struct sa_segments **s);
void sa_segments_free(struct sa_segments *s);

/* Processes @mad, a MAD to the SA with RMPP active, and fills @step. @now_ns: monotonic time. */
void sa_segments_receive(struct sa_segments *s, const struct fabric_mad *mad, uint64_t now_ns,
                         struct sa_segment_step *step);

#endif
