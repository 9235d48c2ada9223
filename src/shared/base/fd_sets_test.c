/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <harness.h>

#include "base/fd_sets.h"

CASE(each_set_asks_for_its_event)
{
	struct pollfd fds[4] = { 0 };
	fd_set in, out;
	const struct base_fd_sets sets = { &in, &out, NULL };

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(0, &in);
	FD_SET(2, &in);
	FD_SET(2, &out);
	FD_SET(4, &out); /* not one of the first four */
	assert_int_equal(base_fd_sets_to_poll(&sets, 4, fds), 2);
	assert_int_equal(fds[0].fd, 0);
	assert_int_equal(fds[0].events, POLLIN);
	assert_int_equal(fds[1].fd, 2);
	assert_int_equal(fds[1].events, POLLIN | POLLOUT);
}

CASE(who_hung_up_is_readable_and_who_failed_writable_too)
{
	const struct pollfd fds[] = { { .fd = 1, .revents = POLLHUP },
		                      { .fd = 2, .revents = POLLERR } };
	fd_set in, out;
	const struct base_fd_sets sets = { &in, &out, NULL };

	FD_ZERO(&in);
	FD_SET(1, &in);
	FD_SET(2, &in);
	out = in;
	assert_int_equal(base_fd_sets_from_poll(&sets, fds, 2), 3);
	assert_true(FD_ISSET(1, &in) && FD_ISSET(2, &in));
	assert_true(!FD_ISSET(1, &out) && FD_ISSET(2, &out));
}

CASE(a_closed_descriptor_is_an_error_that_leaves_the_sets)
{
	const struct pollfd fds[] = { { .fd = 1 }, { .fd = 2, .revents = POLLNVAL } };
	fd_set in;
	const struct base_fd_sets sets = { &in, NULL, NULL };

	FD_ZERO(&in);
	FD_SET(1, &in);
	FD_SET(2, &in);
	assert_int_equal(base_fd_sets_from_poll(&sets, fds, 2), -EBADF);
	assert_true(FD_ISSET(1, &in) && FD_ISSET(2, &in));
}
