/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The status of a completion, by name (InfiniBand specification volume 1, section 11.6.2). The
 * numbers are those of enum ibv_wc_status.
 */
#ifndef WIRE_STATUS_H
#define WIRE_STATUS_H

#define WIRE_STATUSES 24

/* As in "RETRY_EXC_ERR"; NULL: there is no such status. */
const char *wire_status_name(unsigned status);

/* Of a name, with or without "IBV_WC_" before it and "_ERR" behind, or of a number; -1: none. */
int wire_status_parse(const char *text);

#endif
