/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a program gets to its fabric: the one that $UMBEL_FABRIC names, on the host that
 * $UMBEL_HOST names (control_host_name()). The three libraries have this in common; each has its
 * own connection.
 */
#ifndef CONTROL_JOIN_H
#define CONTROL_JOIN_H

#include "control/client.h"
#include "control/directory.h"
#include "shm/region.h"

/*
 * Connects, as @role. Unless they are NULL, @region becomes the shared memory, of which all but
 * CONTROL_ROLE_VERBS see HCAs and ports only, and @host_index the host, -1 for all. 0; -errno of
 * control_connect() and shm_region_map().
 */
int control_join(struct control_client **c, enum control_role role, struct shm_region *region,
                 int *host_index);

/* Why the daemon does not serve this process, whatever it asks, if that is what @error (-errno)
 * says: in words, which may be in @room. NULL: @error says something else. */
const char *control_refusal(int error, char room[static CONTROL_WHY_ROOM]);

/* Why it failed, to standard error, if the program was put on a fabric ($UMBEL_FABRIC): it gets a
 * reason then, not just a machine without a card. @error: -errno. */
void control_join_explain(int error);

#endif
