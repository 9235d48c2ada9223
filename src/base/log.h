/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One line a message to standard error, "umbel: " in front; the manager's
 * standard error is its log file. Never on a fast path. Thread-safe: one write a
 * line.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

void base_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
