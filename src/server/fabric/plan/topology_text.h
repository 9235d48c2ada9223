/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A topology file as it was read: topology_scan.c parses its lines, topology_file.c makes a plan of
 * them.
 */
#ifndef FABRIC_TOPOLOGY_TEXT_H
#define FABRIC_TOPOLOGY_TEXT_H

#include <stddef.h>

struct fabric_topology_file {
	const char *name; /* for messages */
	const char *text; /* need not end in a zero byte */
	size_t bytes;
	/* Lines that were passed over are named here: "NAME:LINE: ..." a line, as much as fits.
	 * NULL: nobody wants to know. */
	char *notes;
	size_t notes_len;
};

#endif
