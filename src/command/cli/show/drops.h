/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel show drops`: lost packets, the place and the reason, and advice.
 */
#ifndef CLI_DROPS_H
#define CLI_DROPS_H

#include <stdbool.h>

struct control_client;

/* Prints it. 0 or CLI_FAILED. */
int cli_drops_print(struct control_client *client, bool json);

#endif
