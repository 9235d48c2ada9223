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
 * or as short as `Hca 2 "Hca1"` and `[1] "Switch1"[3]`. A router (Rt) becomes a host whose node is
 *a router. LIDs and LMCs are ignored: a subnet manager sets them. So are messages of programs,
 *which get into a file with the standard error: lines whose first word has a ':' or ';', such as
 *"ibwarn: ...".
 *
 * A node's name is the first word of its description, or of its identifier if it has none. HCAs
 * with the same first word belong to one host if each description has two words and they differ
 * ("node1 HCA-1", "node1 HCA-2"). If the second word is a device's name as Linux has them ("node1
 * mlx5_0"), programs on the host see that name.
 */
#ifndef FABRIC_TOPOLOGY_FILE_H
#define FABRIC_TOPOLOGY_FILE_H

#include "fabric/plan/topology_text.h"

struct fabric_plan;

/*
 * Fills @plan, which is empty, with what the file describes, and finishes it. Any text is safe as
 * input. Returns 0; -EINVAL: @why (at most @len bytes) has "NAME:LINE: expected ..., found ...";
 * -ENOMEM. The caller calls fabric_plan_fini() in any case.
 */
int fabric_topology_parse(struct fabric_plan *plan, const struct fabric_topology_file *file,
                          char *why, size_t len);

#endif
