/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Plans from topology files: what ibnetdiscover prints (ibnetdiscover(8)) and ibsim reads.
 *
 *	switchguid=0x2c90000000010(2c90000000010)	lines before a node are about it
 *	Switch	8 "S-0002c90000000010"		# "leaf" base port 0 lid 3 lmc 0
 *	[1]	"H-0002c90000000020"[1](2c90000000021)	# "node1 HCA-1" lid 1 4xQDR
 *
 *	Ca	2 "H-0002c90000000020"		# "node1 HCA-1"
 *	[1](2c90000000021)	"S-0002c90000000010"[1]	# lid 1 lmc 0 "leaf" lid 3 4xQDR
 *
 * or as short as `Hca 2 "Hca1"` and `[1] "Switch1"[3]`. A router (Rt) is taken for a host.
 * LIDs and LMCs are not taken over: a subnet manager gives them.
 *
 * A name is the first word of a node's description, which for a node without one is its
 * identifier. HCAs of the same first word are one host's if their descriptions are two words
 * each and not the same ("node1 HCA-1", "node1 HCA-2").
 */
#ifndef FABRIC_TOPOLOGY_FILE_H
#define FABRIC_TOPOLOGY_FILE_H

#include <stddef.h>

struct fabric_plan;

struct fabric_topology_file {
	const char *name; /* for messages */
	const char *text; /* need not end in a zero byte */
	size_t bytes;
};

/*
 * Plans on @plan, which is fresh, what the file describes, and finishes it. Any text is fine as
 * input. 0; -EINVAL with "NAME:LINE: expected ..., found ..." in @why; -ENOMEM. The plan is the
 * caller's to end in any case.
 */
int fabric_topology_parse(struct fabric_plan *plan, const struct fabric_topology_file *file,
                          char *why, size_t len);

#endif
