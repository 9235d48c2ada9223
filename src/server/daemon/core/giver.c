/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Givers of descriptors: see giver.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/file.h"
#include "base/util.h"
#include "daemon/core/giver.h"

#define MANY     64 /* that wait: up to so many nobody looks at messages beforehand */
#define A_PART   8 /* of all descriptors may wait, and of what is left of that one giver may have */
#define ONES     16
#define AGAIN_NS 1000000000ull
#define SCM_FDS  "\nscm_fds:"

/* How many descriptors lie in the socket that nobody has received: as the kernel says since
 * Linux 5.6. 0 where it says nothing. */
static unsigned count_given(int sock)
{
	char path[48], text[512];
	const char *line;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", sock);
	n = base_read_start(path, text, sizeof(text));
	if (n < 0)
		return n == -EMFILE || n == -ENFILE; /* there is no room for any */
	line = strstr(text, SCM_FDS);
	return line ? (unsigned)strtoul(line + strlen(SCM_FDS), NULL, 10) : 0;
}

/* How many more one of them may leave. */
static uint64_t share(uint64_t waiting)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, &most) || waiting >= most.rlim_cur / A_PART)
		return 0;
	return (most.rlim_cur / A_PART - waiting) / ONES;
}

static void on_again(struct base_timer *t)
{
	struct daemon_giver *g = container_of(t, struct daemon_giver, again);

	if (daemon_source_is_watched(g->source))
		daemon_source_change(g->source, EPOLLIN);
}

bool daemon_giver_may_give(struct daemon_giver *g)
{
	struct daemon_loop *loop = g->source->loop;
	const uint64_t waiting = loop ? daemon_closer_waiting(&loop->closer) : 0;
	unsigned n;

	if (waiting < MANY) {
		g->left = 0;
		return true;
	}
	n = count_given(g->source->fd);
	if (!n || g->left + n <= share(waiting))
		return true;
	daemon_source_change(g->source, 0);
	base_timer_set_in(&loop->timers, &g->again, AGAIN_NS, on_again);
	return false;
}

void daemon_giver_gave(struct daemon_giver *g, uint64_t left)
{
	/* what a request that waits leaves is not counted */
	if (daemon_source_is_watched(g->source))
		g->left += g->source->loop->closer.left - left;
}

void daemon_giver_stop(struct daemon_giver *g)
{
	base_timer_stop(&g->again);
}
