/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Givers: peers that send the daemon descriptors, with messages on one socket. The number of
 * descriptors that wait to be closed (closer.h) is bounded, to an eighth of those that the daemon
 * may have. Once more than a few wait, each giver may leave a sixteenth of what is free of that: a
 * message that brings more stays in its socket, and its sender is not heard until fewer wait. So
 * one alone takes little, others go on with the one or two that a program gives, and many together
 * come near to the bound, but not beyond. A message without descriptors is always taken.
 */
#ifndef DAEMON_GIVER_H
#define DAEMON_GIVER_H

#include "daemon/core/loop.h"

/* All zero but for ->source: it has given nothing. */
struct daemon_giver {
	struct daemon_source *source; /* of its messages */
	struct base_timer again;
	uint64_t left; /* to wait, of what it has given since more than a few do */
};

/* Whether its next message may be taken. False: it is not heard for a second, but for its end. */
bool daemon_giver_may_give(struct daemon_giver *g);

/* The message has been served; @left: closer.left from before that. */
void daemon_giver_gave(struct daemon_giver *g, uint64_t left);

/* Its source is stopped for good. */
void daemon_giver_stop(struct daemon_giver *g);

#endif
