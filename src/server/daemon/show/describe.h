/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Facts about a port that programs read in sysfs and only the daemon knows: counters, the
 * description of its node.
 */
#ifndef DAEMON_DESCRIBE_H
#define DAEMON_DESCRIBE_H

#include "daemon/clients/request.h"
#include "fabric/model/fabric.h"

/* Adds the request to the table. */
void daemon_describe_init(struct fabric *f, struct daemon_requests *all);

#endif
