/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Subnet administration by MADs (InfiniBand specification volume 1, chapter 15): a
 * request in, the records of the answer out. Segmenting a long answer is up to whoever
 * sends it (wire/rmpp.h).
 *
 * The manager's; not thread-safe.
 */
#ifndef SUBNET_SA_SERVER_H
#define SUBNET_SA_SERVER_H

#include <stddef.h>

#include "fabric/mads.h"
#include "subnet/sa.h"

struct sa_answer {
	uint8_t method;        /* enum mad_method; 0: no answer is due */
	uint16_t status;       /* enum mad_status or enum sa_status */
	uint16_t record_bytes; /* from record to record, a multiple of 8 */
	uint8_t *records;      /* to be freed */
	size_t bytes;          /* of all records */
	unsigned n;
};

/*
 * Serves the SubnAdm request @in, which came from the port with LID @slid. 0, or -ENOMEM;
 * what is wrong with the request is the answer's status.
 */
int sa_serve(struct sa *sa, uint16_t slid, const struct wire_sa_mad *in, struct sa_answer *out);

#endif
