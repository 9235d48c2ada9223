/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests that wait for their responses: see requests.h.
 */
#include "ibsim/requests.h"

#include <stdlib.h>
#include <string.h>

void ibsim_requests_fini(struct ibsim_requests *r)
{
	free(r->at);
	*r = (struct ibsim_requests){ 0 };
}

static struct ibsim_request *slot_of(const struct ibsim_requests *r, uint32_t number)
{
	return &r->at[number % IBSIM_MAX_REQUESTS];
}

/* Frees requests for which no response can come any more: libibumad drops responses that a client
 * does not take. */
static void forget_old(struct ibsim_requests *r, uint64_t now)
{
	for (uint32_t i = 0; i < IBSIM_MAX_REQUESTS; i++) {
		if (!r->at[i].number || now - r->at[i].since < IBSIM_REQUEST_NS)
			continue;
		r->at[i].number = 0;
		r->used--;
	}
}

uint32_t ibsim_requests_add(struct ibsim_requests *r, const uint8_t mad[static MAD_BYTES],
                            uint64_t now)
{
	struct ibsim_request *slot;

	if (!r->at)
		r->at = calloc(IBSIM_MAX_REQUESTS, sizeof(*r->at));
	if (!r->at)
		return 0;
	if (r->used == IBSIM_MAX_REQUESTS)
		forget_old(r, now);
	if (r->used == IBSIM_MAX_REQUESTS)
		return 0;
	do {
		r->last++;
		slot = slot_of(r, r->last);
	} while (!r->last || slot->number);
	slot->number = r->last;
	slot->since = now;
	memcpy(slot->mad, mad, MAD_BYTES);
	r->used++;
	return r->last;
}

bool ibsim_requests_take(struct ibsim_requests *r, uint32_t number, uint8_t mad[static MAD_BYTES])
{
	struct ibsim_request *slot;

	if (!r->at || !number)
		return false;
	slot = slot_of(r, number);
	if (slot->number != number)
		return false;
	slot->number = 0;
	memcpy(mad, slot->mad, MAD_BYTES);
	r->used--;
	return true;
}
