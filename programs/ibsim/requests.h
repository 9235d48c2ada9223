/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of a client that wait for their responses. libibumad wants the upper half of transaction
 * IDs for itself, and a client, too, has something in it; so requests go with numbers of ours, and
 * this knows which request a number stands for. Not thread-safe; the time is passed in.
 */
#ifndef IBSIM_REQUESTS_H
#define IBSIM_REQUESTS_H

#include <stdint.h>

#include "wire/mad.h"

#define IBSIM_MAX_REQUESTS 4096
/* So long after a request nothing can come any more: libibumad has given it up before. */
#define IBSIM_REQUEST_NS UINT64_C(60000000000)

struct ibsim_request {
	uint32_t number; /* 0: free */
	uint64_t since;
	uint8_t mad[MAD_BYTES]; /* as the client sent it */
};

/* All zero: empty. */
struct ibsim_requests {
	struct ibsim_request *at; /* by number, in turn */
	uint32_t last, used;
};

void ibsim_requests_fini(struct ibsim_requests *r);

/* Notes the request @mad, sent at @now, in ns. Its number, or 0: too many wait, or there is no
 * memory. */
uint32_t ibsim_requests_add(struct ibsim_requests *r, const uint8_t mad[static MAD_BYTES],
                            uint64_t now);

/* Removes the request of that number and copies it to @mad. False: there is none. */
bool ibsim_requests_take(struct ibsim_requests *r, uint32_t number, uint8_t mad[static MAD_BYTES]);

#endif
