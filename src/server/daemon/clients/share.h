/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shares of the daemon's descriptors: of each process, and of each user but the fabric's owner. A
 * share that has a few may have no more of them while few are left for all others: a process leaves
 * a quarter, a user's processes together an eighth. A process in another PID namespace
 * has no number for the daemon: it counts in its user's share alone, also if that is the owner.
 */
#ifndef DAEMON_SHARE_H
#define DAEMON_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hash.h"
#include "daemon/core/closer.h"

/* A share may have so many descriptors whatever others have; or a sixteenth of all, if these are
 * few. */
#define DAEMON_FEW_FDS 256

struct daemon_share {
	struct base_hash_node node;
	bool is_user;       /* or a process */
	uint32_t number;    /* of it */
	unsigned n_members; /* it goes with the last one */
	unsigned n_fds;
	unsigned undecided; /* members of which it is not known yet whether they may stay */
};

struct daemon_shares {
	const struct daemon_closer *closer; /* what waits there is open, too */
	struct base_hash all;
	unsigned n_fds; /* of all members, and what the daemon has for itself */
};

/* A holder of descriptors: a client. All zero: it is the daemon's own, and may have all. */
struct daemon_member {
	struct daemon_share *process, *user; /* NULL: it is in none */
	unsigned n_fds;
};

void daemon_shares_init(struct daemon_shares *all, const struct daemon_closer *closer);

/* @pid, @uid: of a process, as the daemon sees it; no pid if it is in another PID namespace. 0 or
 * -ENOMEM. */
int daemon_shares_join(struct daemon_shares *all, struct daemon_member *m, pid_t pid, uid_t uid,
                       bool is_owner);
void daemon_shares_leave(struct daemon_shares *all, struct daemon_member *m);

/* The member has @n descriptors now. */
void daemon_shares_count(struct daemon_shares *all, struct daemon_member *m, unsigned n);

/* The share that allows the member no more descriptors; NULL: it may have more. */
struct daemon_share *daemon_shares_full(const struct daemon_shares *all,
                                        const struct daemon_member *m);

/* How many of its members may be undecided at a time. */
unsigned daemon_shares_few(void);

/* @error; and why. */
int daemon_share_refuses(const struct daemon_share *s, int error);

#endif
