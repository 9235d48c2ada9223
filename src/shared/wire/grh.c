/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decoding of the GRH: see grh.h.
 */
#include <endian.h>
#include <string.h>

#include "wire/grh.h"

void wire_grh_decode(const uint8_t in[static IB_GRH_BYTES], struct wire_grh *grh)
{
	uint32_t word;
	uint16_t len;

	memcpy(&word, in, 4);
	memcpy(&len, in + 4, 2);
	word = be32toh(word);
	*grh = (struct wire_grh){ .traffic_class = word >> 20 & 0xFF,
		                  .flow_label = word & 0xFFFFF,
		                  .payload_bytes = be16toh(len),
		                  .hop_limit = in[7] };
	memcpy(grh->sgid.raw, in + 8, 16);
	memcpy(grh->dgid.raw, in + 24, 16);
}
