/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The view "routes", the switches' tables, and what other views show of them.
 */
#ifndef DAEMON_SHOW_TABLES_H
#define DAEMON_SHOW_TABLES_H

#include "daemon/show/show_json.h"
#include "fabric/model/fabric.h"

/* The ports of an MFT row as the array "ports". */
void show_add_mft_row(struct show_json *o, const struct fabric_node *sw,
                      const struct fabric_mft_row *row);

#endif
