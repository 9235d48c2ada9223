/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Known to both the hostile peer (wire_fuzz.c) and its victim (wire_fuzz_victim.c).
 */
#ifndef ROCE_WIRE_FUZZ_H
#define ROCE_WIRE_FUZZ_H

#include <stdint.h>

#define FUZZ_PSN_MASK 0xffffff
/* The victim's queue pairs, and the first of the numbers of their peers, which do not exist.
 */
#define FUZZ_QPS      6
#define FUZZ_PEER_QPN 0x123400
/* This is all over the memory that the peer may not read. */
#define FUZZ_SECRET     "outside of all! "
#define FUZZ_OPEN_BYTES 40008

enum fuzz_type { FUZZ_RC, FUZZ_UC, FUZZ_SRQ, FUZZ_TYPES };

/* Memory of the victim that has a key: for all access; to be read only; for nobody but itself. */
enum fuzz_region { FUZZ_OPEN, FUZZ_READABLE, FUZZ_PRIVATE, FUZZ_REGIONS };

/* splitmix64 */
static inline uint64_t fuzz_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

#endif
