/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages to LIDs. A switch has one way out to a LID, so the ways to one LID are looked at
 * together, switch by switch, and not pair by pair. Single-threaded.
 */
#ifndef CHECK_PATHS_H
#define CHECK_PATHS_H

#include "check/report.h"
#include "check/waits.h"

/*
 * Follows what hosts send to every LID: whether it arrives, which MTU and rate it finds, what links
 * carry. Adds to @w which links wait for which. @again: that alone, as a circle is known whose
 * causes are to be found. 0 or -ENOMEM.
 */
int check_paths(const struct check_net *net, struct check_waits *w, struct check_report *r,
                bool again);

#endif
