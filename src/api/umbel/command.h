/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs the command umbel, and keeps what it prints. Thread-safe.
 */
#ifndef UMBEL_COMMAND_H
#define UMBEL_COMMAND_H

/* What the command with these arguments prints, to be freed; NULL with errno, and a reason. */
char *umbel_command(const char *const *arguments);

/* The thread's last reason, and what it is now; an empty one: none. */
const char *umbel_reason(void);
__attribute__((format(printf, 1, 2))) void umbel_set_reason(const char *format, ...);

#endif
