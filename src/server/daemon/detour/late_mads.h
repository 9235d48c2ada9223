/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Management datagrams under rules of faults (rules.h): they get lost, come later, or twice. All
 * MADs of the fabric pass here while there is such a rule: those of programs, of the daemon's own
 * connection manager, of agents, and responses. Reads and writes of the embedded subnet manager are
 * calls, and no MADs.
 */
#ifndef DAEMON_LATE_MADS_H
#define DAEMON_LATE_MADS_H

#include <sys/queue.h>

#include "daemon/core/loop.h"
#include "daemon/detour/rules.h"

struct hca_weak;

struct daemon_late_mads {
	struct fabric *f;
	struct daemon_loop *loop;
	struct daemon_rules *rules;
	TAILQ_HEAD(, daemon_late_mad) held;
	unsigned n;
	/* on a weak fabric (base/weak.h): MADs of connections and to the SA come late */
	struct hca_weak *weak;
	uint32_t *sent; /* such, by HCA port: the number of the next one */
};

/* f, loop and rules are set. */
void daemon_late_mads_init(struct daemon_late_mads *late);

/* There are other rules than before. */
void daemon_late_mads_adapt(struct daemon_late_mads *late);

/* MADs that are held are lost. */
void daemon_late_mads_stop(struct daemon_late_mads *late);

#endif
