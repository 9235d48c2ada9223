/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The GIDs behind a MultiPathRecord: see sa_records.h.
 */
#include "wire/sa_records.h"

const struct ib_gid *wire_multipath_gids(const uint8_t *in, size_t bytes)
{
	struct wire_multipath_record record;
	size_t gids;

	if (bytes < wire_multipath_record_bytes)
		return NULL;
	wire_multipath_record_decode(in, &record);
	gids = (size_t)record.sgid_count + record.dgid_count;
	if (bytes - wire_multipath_record_bytes < gids * sizeof(struct ib_gid))
		return NULL;
	return (const struct ib_gid *)(in + wire_multipath_record_bytes);
}
