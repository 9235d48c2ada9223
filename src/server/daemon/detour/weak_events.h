/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a subnet manager may do at any time, on a weak fabric (base/weak.h) that is asked for it: it
 * asks HCA ports to register again, so that members of groups must join anew, gives them other
 * LIDs, and moves to another port itself. At moments, each of which a port may or may not meet, as
 * the seed draws. It is done as `umbel sm event` does it.
 */
#ifndef DAEMON_WEAK_EVENTS_H
#define DAEMON_WEAK_EVENTS_H

#include "daemon/subnet/subnet.h"

struct daemon_weak_events {
	struct daemon_subnet *subnet;
	struct base_timer timer;
	uint32_t moment; /* the number of the next one */
};

/* subnet is set, and the fabric knows by then whether it is weak. */
void daemon_weak_events_init(struct daemon_weak_events *e);
void daemon_weak_events_stop(struct daemon_weak_events *e);

#endif
