/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's stream of events, for `umbel monitor` and `umbel record`. Single-threaded: a signal
 * that ends a program ends the stream instead.
 */
#ifndef CLI_MONITOR_H
#define CLI_MONITOR_H

#include <stdint.h>
#include <stdio.h>

struct control_client;
struct json_object;

/* Events from now on. 0 or CLI_FAILED. */
int cli_monitor_open(struct control_client *client, const char *fabric);

/* Calls @each with every line, its end of line included, until that returns other than 0, a signal
 * comes or the fabric ends. 0, what @each returned, or CLI_FAILED. */
int cli_monitor_read(int (*each)(void *arg, const char *line), void *arg);

/* Prints an event for people, with the seconds since then. */
void cli_monitor_print(FILE *to, struct json_object *event, uint64_t began_ns);

/* Ends it; also if it was never opened. */
void cli_monitor_close(void);

#endif
