/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rounds of messages: see rounds.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/detour/rounds.h"
#include "shm/layout.h"
#include "wire/headers.h"
#include "wire/opcode.h"

int daemon_rounds_begin(struct daemon_rounds *r)
{
	if (!r->of)
		r->of = calloc(SHM_MAX_QPS, 2 * sizeof(*r->of));
	return r->of ? 0 : -ENOMEM;
}

void daemon_rounds_end(struct daemon_rounds *r)
{
	free(r->of);
	r->of = NULL;
}

void daemon_rounds_forget(struct daemon_rounds *r, uint32_t qpn)
{
	for (unsigned responds = 0; r->of && responds < 2; responds++)
		r->of[2 * SHM_QP_INDEX(qpn) + responds].qpn = 0;
}

/* Whether @psn is before @next: of 24 bits, half are behind. */
static bool goes_back(uint32_t psn, uint32_t next)
{
	return ((psn - next) & WIRE_PSN_MASK) > WIRE_PSN_MASK / 2;
}

uint32_t daemon_rounds_count(struct daemon_rounds *r, uint32_t src_qpn, uint8_t opcode,
                             uint32_t psn, bool begins)
{
	const uint8_t transport = wire_opcode_transport(opcode);
	const unsigned flags = wire_opcodes[opcode].flags;
	const bool responds = flags & WIRE_OPCODE_RESPONSE;
	struct daemon_round *o;

	if (!r->of || (transport != WIRE_TRANSPORT_RC && transport != WIRE_TRANSPORT_UC) ||
	    (responds && !(flags & WIRE_OPCODE_PAYLOAD)))
		return 0;
	o = &r->of[2 * SHM_QP_INDEX(src_qpn) + responds];
	if (o->qpn != src_qpn)
		*o = (struct daemon_round){
			.qpn = src_qpn, .next_psn = psn, .number = 1, .end = psn
		};
	if (goes_back(psn, o->next_psn))
		o->number++;
	else if (begins && !goes_back(psn, o->end))
		o->number = 1;
	o->next_psn = (psn + 1) & WIRE_PSN_MASK;
	if (!goes_back(psn, o->end))
		o->end = o->next_psn;
	return o->number;
}
