/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that nobody has: a client can write to rings and payload memory that it was never given.
 * Such pages would stay for ever. When clients have ended, the daemon goes through free memory, and
 * pages that were written there go back to the system: in slices (chores.h), and once a second at
 * most.
 */
#ifndef DAEMON_UNOWNED_H
#define DAEMON_UNOWNED_H

#include "base/timer.h"
#include "daemon/core/chores.h"
#include "shm/extent.h"
#include "shm/region.h"

struct daemon_unowned {
	const struct shm_region *region;
	struct daemon_chores *chores;
	struct shm_extents *kind[2]; /* rings, payload memory */
	unsigned now;                /* of them */
	uint64_t at;                 /* all is done before that */
	uint64_t next;               /* no page before that was written, from ->at on */
	struct base_timer timer;
	struct daemon_chore look;
};

void daemon_unowned_init(struct daemon_unowned *u, const struct shm_region *region,
                         struct daemon_chores *chores, struct shm_extents *rings,
                         struct shm_extents *payloads);

/* A process that had the memory mapped has ended. */
void daemon_unowned_look(struct daemon_unowned *u);

#endif
