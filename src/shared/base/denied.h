/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which system call is denied here: the filters of containers (seccomp) forbid some, and an errno
 * alone does not say which. For the message after a failure.
 */
#ifndef BASE_DENIED_H
#define BASE_DENIED_H

/* The name of one that a daemon needs and that fails with @error; NULL: all work. */
const char *base_denied_call(int error);

#endif
