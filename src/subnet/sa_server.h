/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Subnet administration by MADs (InfiniBand specification volume 1, chapter 15): a
 * request in, the records of the answer out. Segmenting a long answer, and putting a long
 * request together, is up to whoever sends and receives (wire/rmpp.h).
 *
 * The manager's; not thread-safe. Time is passed in.
 */
#ifndef SUBNET_SA_SERVER_H
#define SUBNET_SA_SERVER_H

#include <stddef.h>

#include "fabric/mads.h"
#include "subnet/sa.h"

#define SA_KEY 1 /* SM_Key of a request that may see all, as OpenSM has it */

struct sa_request {
	const struct wire_sa_mad *mad;
	const uint8_t *data; /* what follows the header: mad->data, or more of it */
	size_t bytes;
	uint16_t slid; /* who asks */
	uint32_t qpn;
	uint64_t now_s; /* for leases: seconds of a clock that does not jump */
};

struct sa_answer {
	uint8_t method;        /* enum mad_method; 0: no answer is due */
	uint16_t attribute;    /* of the records */
	uint16_t status;       /* enum mad_status or enum sa_status */
	uint16_t record_bytes; /* from record to record, a multiple of 8 */
	uint8_t *records;      /* to be freed; NULL: none */
	size_t bytes;          /* of all records */
	unsigned n;
};

/*
 * Serves the SubnAdm request @in. What is wrong with it, and that there is too little memory
 * for the answer, is the answer's status.
 */
void sa_serve(struct sa *sa, const struct sa_request *in, struct sa_answer *out);

#endif
