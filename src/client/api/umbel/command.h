/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs the command umbel, and keeps what it prints. Thread-safe.
 */
#ifndef UMBEL_COMMAND_H
#define UMBEL_COMMAND_H

/* Runs the command with these arguments. Returns the text that it prints, to be freed; NULL with
 * errno, and a reason. */
char *umbel_command(const char *const *arguments);

/* A command that goes on in the background: a process, and what it prints. */
struct umbel_running;

/*
 * Starts the command; returns when it has printed a text with @sign in it. NULL with errno, and a
 * reason: it has ended without.
 */
struct umbel_running *umbel_command_begin(const char *const *arguments, const char *sign);

/* Has it end by SIGINT, and frees it. As umbel_command(), and with what it prints as errors. */
char *umbel_command_end(struct umbel_running *r);

/* Reads and sets the thread's last reason; an empty one: none. */
const char *umbel_reason(void);
__attribute__((format(printf, 1, 2))) void umbel_set_reason(const char *format, ...);

#endif
