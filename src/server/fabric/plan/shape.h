/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fabric and its settings as the options of a command say them: what `umbel daemon` and `umbel
 * simulate` begin with. Not thread-safe.
 */
#ifndef FABRIC_SHAPE_H
#define FABRIC_SHAPE_H

#include "fabric/plan/plan.h"

/* Hosts, switches and links: from a file's text if there is one, else a fat tree if it has levels,
 * else a plain tree. */
struct fabric_shape {
	unsigned hosts;         /* of a fat tree, 0: as many as there is room for */
	unsigned hcas;          /* of a host; 0: one */
	unsigned levels, radix; /* of a fat tree */
	const char *topology;   /* the file's name, for messages; NULL: there is none */
	char *text;             /* the owner's to free */
	size_t text_bytes;
	char *notes; /* lines about what of the file was passed over; NULL: nobody wants to know */
	size_t notes_len;
	const char *device_names; /* as in struct fabric_plan */
	const char *routers;      /* names of hosts, with commas between; NULL: none */
	uint64_t prefix;          /* of the subnet's GIDs; 0: the default one */
};

/* Fills @plan, which is empty, and finishes it. 0, or -errno with @why or without; the caller calls
 * fabric_plan_fini() in any case. */
int fabric_shape_plan(const struct fabric_shape *shape, struct fabric_plan *plan, char *why,
                      size_t len);

/* Whether there are LIDs for all ports. 0, or -ENOSPC with @why. A subnet manager would find out,
 * too, but then the fabric would be up already. */
int fabric_shape_check_lids(const struct fabric *f, char *why, size_t len);

/* Settings: the defaults, and @n that are given as "key=value". 0, or -errno with @why. */
int fabric_shape_settings(struct shm_settings *s, const char **given, unsigned n, char *why,
                          size_t len);

#endif
