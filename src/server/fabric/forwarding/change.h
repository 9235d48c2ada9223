/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Changes of the receivers of a group that so many flows lead to that they follow in slices.
 * Changes go one after the other, in the order in which they came, and each goes from path to path
 * of its group: the path has its new list of receivers, then its flows have it, some of them at a
 * time. Until a flow has its turn, its record names the list as it was, which stays as long.
 *
 * fabric_flow_follow() does it; a caller that may count on it waits for fabric_changes.done. Only
 * the daemon uses this; not thread-safe.
 */
#ifndef FABRIC_CHANGE_H
#define FABRIC_CHANGE_H

#include "fabric/model/flow_state.h"

/* Flows that follow at once: all groups but those of crowds, or of somebody who means harm. */
#define FABRIC_CHANGE_AT_ONCE 8192

enum fabric_change_kind {
	FABRIC_CHANGE_RECEIVER, /* paths list the queue pair if it is attached, and only then */
	FABRIC_CHANGE_LEAVES,   /* no path lists it any more; what was sent is counted before */
	FABRIC_CHANGE_GONE,     /* no path lists queue pairs any more that are gone */
};

struct fabric_change {
	TAILQ_ENTRY(fabric_change) entry;
	enum fabric_change_kind kind;
	struct ib_gid mgid;
	uint32_t qpn, hca;
	uint16_t mlid;
	/* Called when all flows have followed; may be NULL. */
	void (*done)(struct fabric *f, const struct fabric_change *c);
};

void fabric_changes_init(struct fabric_changes *all);
void fabric_changes_fini(struct fabric_changes *all);

/* Whether changes of the group go in slices. */
bool fabric_change_is_long(const struct fabric *f, const struct ib_gid *mgid);

/* Adds a copy of @c. 0 or -ENOMEM. */
int fabric_change_add(struct fabric *f, const struct fabric_change *c);

/* Notes that paths of the group list queue pairs that are gone: once for all that go before it is
 * the change's turn. 0 or -ENOMEM. */
int fabric_change_gone(struct fabric *f, const struct ib_gid *mgid);

static inline bool fabric_changes_wait(const struct fabric *f)
{
	return !TAILQ_EMPTY(&f->flows->changes.waiting);
}

/* Does a part of the first one: a few flows, or paths (fabric_flows.work). */
void fabric_changes_step(struct fabric *f);

#endif
