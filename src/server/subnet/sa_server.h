/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Subnet administration by MADs (InfiniBand specification volume 1, chapter 15): takes a request
 * and makes the records of its response. The caller receives long requests (sa_segments.h) and
 * sends long responses in segments (wire/rmpp.h).
 *
 * Only the daemon uses this; not thread-safe. Time is passed in. Nothing blocks.
 */
#ifndef SUBNET_SA_SERVER_H
#define SUBNET_SA_SERVER_H

#include <stddef.h>

#include "subnet/sa_request.h"

struct sa;

#define SA_KEY 1 /* the SM_Key of trusted requests, which see everything; OpenSM's default */

/*
 * Serves the SubnAdm request @in. Errors of the request, and a lack of memory, are reported by the
 * response's status.
 */
void sa_serve(struct sa *sa, const struct sa_request *in, struct sa_response *out);

/*
 * The same in slices, between which others have a turn: a GetTable may list millions of records. A
 * job has copies of what it needs of @in. NULL: there is no memory.
 */
struct sa_job;
struct sa_job *sa_job_new(struct sa *sa, const struct sa_request *in);
void sa_job_free(struct sa_job *job);

/* Works for about @budget tenths of a microsecond. True: it is done, and *@out is the response. */
bool sa_job_run(struct sa_job *job, uint32_t budget, struct sa_response *out);

/* The bytes of the records that it has made so far. */
size_t sa_job_bytes(const struct sa_job *job);

/* There is no memory for more: it will end with NO_RESOURCES. */
void sa_job_stop(struct sa_job *job);

#endif
