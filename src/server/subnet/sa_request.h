/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A request to the subnet administrator as it has arrived, whole, and the response to it.
 */
#ifndef SUBNET_SA_REQUEST_H
#define SUBNET_SA_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "wire/sa.h"

struct sa_request {
	const struct wire_sa_mad *mad;
	const uint8_t *data; /* the data after the header: mad->data, or that of all segments */
	size_t bytes;
	uint16_t slid; /* the sender */
	uint32_t qpn;
	uint64_t now_s; /* monotonic time, seconds; for leases */
};

struct sa_response {
	uint8_t method;        /* enum mad_method; 0: send no response */
	uint16_t attribute;    /* of the records */
	uint16_t status;       /* enum mad_status or enum sa_status */
	uint16_t record_bytes; /* the distance of records, a multiple of 8 */
	uint8_t *records;      /* the caller frees it; NULL: none */
	size_t bytes;          /* of all records */
	unsigned n;
};

#endif
