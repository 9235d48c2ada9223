/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of a holder, whose process is dead: one list of the modules that have objects of it. A
 * module registers itself when it is initialized, after the modules that its objects need. The
 * module that registered last frees first, so each object goes before the objects that it needs.
 */
#ifndef DAEMON_ENDING_H
#define DAEMON_ENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct daemon_holder;

/* A module's part in it. */
struct daemon_ending {
	LIST_ENTRY(daemon_ending) entry;
	/* At once, when the process is dead. It takes little time. NULL: nothing is to be done. */
	void (*gone)(void *arg, struct daemon_holder *holder);
	/* Then, in slices (chores.h): frees the holder's objects. True: it has none any more;
	 * false: the budget was used up before. NULL: likewise. */
	bool (*free)(void *arg, struct daemon_holder *holder, uint32_t *budget);
	void *arg;
};

LIST_HEAD(daemon_endings, daemon_ending); /* the last that registered first */

/* ->gone is filled in by the module, if it has one. */
static inline void daemon_ending_register(struct daemon_endings *all, struct daemon_ending *e,
                                          bool (*free)(void *arg, struct daemon_holder *holder,
                                                       uint32_t *budget),
                                          void *arg)
{
	e->free = free;
	e->arg = arg;
	LIST_INSERT_HEAD(all, e, entry);
}

#endif
