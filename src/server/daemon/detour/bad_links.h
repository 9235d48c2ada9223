/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links that rules of faults make bad (rules.h): narrower or slower than they were built, with
 * symbol errors, or down from time to time. The users of the link are told, as when somebody pulls
 * its cable (subnet/links.h): programs by events, the embedded subnet manager by a sweep, and it or
 * another one by traps.
 *
 * One timer is set to the next change of all rules. Between two changes the rules cost nothing.
 */
#ifndef DAEMON_BAD_LINKS_H
#define DAEMON_BAD_LINKS_H

#include "daemon/core/loop.h"
#include "daemon/detour/rules.h"
#include "daemon/subnet/subnet.h"

struct daemon_bad_links {
	struct fabric *f;
	struct daemon_loop *loop;
	struct daemon_subnet *subnet;
	struct daemon_rules *rules;
	struct base_timer timer;
};

/* Rules have been added, or their time has come. True: the subnet follows, and sweeps. */
bool daemon_bad_links_run(struct daemon_bad_links *b);

/* The rule with that number, or if it is 0 all rules, will be removed: their links get well. True:
 * likewise. */
bool daemon_bad_links_end(struct daemon_bad_links *b, unsigned number);

void daemon_bad_links_stop(struct daemon_bad_links *b);

#endif
