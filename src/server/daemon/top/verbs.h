/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of the verbs library: objects, attachments, flows.
 */
#ifndef DAEMON_VERBS_H
#define DAEMON_VERBS_H

#include "daemon/clients/objects.h"
#include "daemon/clients/request.h"
#include "daemon/network/roce.h"

struct daemon_verbs {
	struct fabric *f;
	struct daemon_objects *objects;
	struct daemon_roce *roce; /* NULL: no port is on Ethernet */
};

/* Adds the requests to the table; @v is filled in. */
void daemon_verbs_init(struct daemon_verbs *v, struct daemon_requests *all);

#endif
