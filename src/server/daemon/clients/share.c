/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shares of the daemon's descriptors: see share.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/reason.h"
#include "base/util.h"
#include "daemon/clients/share.h"

/* The parts of all descriptors that a share leaves to the others. */
#define OF_PROCESS 4
#define OF_USER    8
#define OF_FEW     16

void daemon_shares_init(struct daemon_shares *all, const struct daemon_closer *closer)
{
	*all = (struct daemon_shares){ .closer = closer };
}

static uint64_t hash_of(bool is_user, uint32_t number)
{
	const uint32_t key[] = { is_user, number };

	return base_hash_of(key, sizeof(key), 0);
}

/* The share, with one member more. NULL: there is no memory. */
static struct daemon_share *get(struct daemon_shares *all, bool is_user, uint32_t number)
{
	const uint64_t hash = hash_of(is_user, number);
	struct daemon_share *s;

	BASE_HASH_FOREACH(s, &all->all, hash, node)
		if (s->is_user == is_user && s->number == number) {
			s->n_members++;
			return s;
		}
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	*s = (struct daemon_share){ .is_user = is_user, .number = number, .n_members = 1 };
	if (base_hash_add(&all->all, &s->node, hash)) {
		free(s);
		return NULL;
	}
	return s;
}

static void put(struct daemon_shares *all, struct daemon_share *s)
{
	if (!s || --s->n_members)
		return;
	base_hash_remove(&all->all, &s->node);
	free(s);
}

int daemon_shares_join(struct daemon_shares *all, struct daemon_member *m, pid_t pid, uid_t uid,
                       bool is_owner)
{
	const bool is_known = pid > 0, counts_for_user = !is_owner || !is_known;

	*m = (struct daemon_member){ 0 };
	if (is_known)
		m->process = get(all, false, (uint32_t)pid);
	if (counts_for_user)
		m->user = get(all, true, uid);
	if ((is_known && !m->process) || (counts_for_user && !m->user)) {
		daemon_shares_leave(all, m);
		return -ENOMEM;
	}
	return 0;
}

void daemon_shares_leave(struct daemon_shares *all, struct daemon_member *m)
{
	daemon_shares_count(all, m, 0);
	put(all, m->process);
	put(all, m->user);
	*m = (struct daemon_member){ 0 };
}

void daemon_shares_count(struct daemon_shares *all, struct daemon_member *m, unsigned n)
{
	const unsigned more = n - m->n_fds; /* modulo 2^32, if there are fewer */

	m->n_fds = n;
	all->n_fds += more;
	if (m->process)
		m->process->n_fds += more;
	if (m->user)
		m->user->n_fds += more;
}

/* It can change while the daemon runs (prlimit(1)). */
static uint64_t limit(void)
{
	struct rlimit most;

	return getrlimit(RLIMIT_NOFILE, &most) ? 0 : most.rlim_cur;
}

unsigned daemon_shares_few(void)
{
	const uint64_t part = limit() / OF_FEW;

	return part < DAEMON_FEW_FDS ? (unsigned)part : DAEMON_FEW_FDS;
}

struct daemon_share *daemon_shares_full(const struct daemon_shares *all,
                                        const struct daemon_member *m)
{
	const unsigned few = daemon_shares_few();
	const uint64_t used = all->n_fds + daemon_closer_waiting(all->closer), most = limit();

	if (m->process && m->process->n_fds >= few && used >= most - most / OF_PROCESS)
		return m->process;
	if (m->user && m->user->n_fds >= few && used >= most - most / OF_USER)
		return m->user;
	return NULL;
}

int daemon_share_refuses(const struct daemon_share *s, int error)
{
	return base_because(error, "the daemon has few descriptors left, and this %s %u of them",
	                    s->is_user ? "user's processes have" : "process has", s->n_fds);
}
