/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sets of select(2) as descriptors of poll(2), and the answer back into the sets: for select()
 * and rselect() on descriptors for which there is only a poll(). No state; safe in any thread.
 */
#ifndef BASE_FD_SETS_H
#define BASE_FD_SETS_H

#include <poll.h>
#include <sys/select.h>

/* Each may be NULL. */
struct base_fd_sets {
	fd_set *in, *out, *except;
};

/* Those of the first @n descriptors that are in a set: into @fds, which has room for @n. Returns
 * how many there are. */
nfds_t base_fd_sets_to_poll(const struct base_fd_sets *sets, int n, struct pollfd *fds);

/*
 * Leaves in the sets what select(2) would, by the answers in @fds. Returns in how many sets
 * descriptors are left, each counted once a set; or -EBADF and the sets as they were, if one is not
 * open.
 */
int base_fd_sets_from_poll(const struct base_fd_sets *sets, const struct pollfd *fds, nfds_t n);

#endif
