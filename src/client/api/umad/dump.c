/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Output to standard error: warnings, the trace that umad_debug(3) turns on, and dumps. Wording as
 * in the original, which people compare with.
 */
#include <endian.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "api/umad/umad.h"

static atomic_int debug_level;

int umad_debug(int level)
{
	if (level >= 0)
		atomic_store(&debug_level, level);
	return atomic_load(&debug_level);
}

int umad_debug_level(void)
{
	return atomic_load_explicit(&debug_level, memory_order_relaxed);
}

void umad_warn(const char *func, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "ibwarn: [%d] %s: %s\n", getpid(), func, text);
}

void umad_addr_dump(ib_mad_addr_t *addr)
{
	char gid[2 * sizeof(addr->gid) + 1];

	for (size_t i = 0; i < sizeof(addr->gid); i++)
		snprintf(gid + 2 * i, 3, "%02x", addr->gid[i]);
	/* the flow label as it lies there: so does the original */
	umad_warn(__func__,
	          "qpn %d qkey 0x%x lid %u sl %d\n"
	          "grh_present %d gid_index %d hop_limit %d traffic_class %d flow_label 0x%x "
	          "pkey_index 0x%x\n"
	          "Gid 0x%s",
	          be32toh(addr->qpn), be32toh(addr->qkey), be16toh(addr->lid), addr->sl,
	          addr->grh_present, addr->gid_index, addr->hop_limit, addr->traffic_class,
	          addr->flow_label, addr->pkey_index, gid);
}

void umad_dump(void *umad)
{
	struct ib_user_mad *mad = umad;

	umad_warn(__func__, "agent id %d status %x timeout %d", mad->agent_id, mad->status,
	          mad->timeout_ms);
	umad_addr_dump(&mad->addr);
}
