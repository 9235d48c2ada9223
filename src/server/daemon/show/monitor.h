/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel monitor`: events of the fabric (fabric/model/event.h), for its readers. Each reader has a
 * buffer of its own, and a socket that takes what it has room for after each turn of the loop. When
 * the buffer is full, events are counted and not written: a reader that is slow, stopped or hostile
 * holds up nobody, and is told how many it has lost. Without readers nobody listens.
 */
#ifndef DAEMON_MONITOR_H
#define DAEMON_MONITOR_H

#include "daemon/clients/request.h"
#include "daemon/core/loop.h"
#include "daemon/show/show_json.h"
#include "fabric/model/fabric.h"

#define DAEMON_MONITORS 8 /* at one time */

struct daemon_monitors {
	struct fabric *f;
	struct daemon_loop *loop;
	LIST_HEAD(, monitor) all;
	unsigned n;
	struct show_json line; /* of one event */
};

/* f and loop are set. */
void daemon_monitors_init(struct daemon_monitors *all, struct daemon_requests *requests);
/* Sends what there is room for, and ends all. */
void daemon_monitors_stop(struct daemon_monitors *all);

/* After each turn of the loop, and before each reply: sends what there is room for. So a command
 * that has ended has been told of. */
void daemon_monitors_flush(struct daemon_monitors *all);

#endif
