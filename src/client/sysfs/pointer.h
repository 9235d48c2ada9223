/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pointers that a program passes where the kernel would look: one that leads nowhere is EFAULT
 * there, and must not be the end of the program here. By a short system call. Thread-safe, and safe
 * in signal handlers; they leave errno alone.
 */
#ifndef SYSFS_POINTER_H
#define SYSFS_POINTER_H

#include <stdbool.h>
#include <stddef.h>

/* Whether there is a string of less than PATH_MAX bytes at @s, which is not NULL. */
bool sysfs_is_path(const char *s);

/* Whether @bytes at @p, 256 at most, can be written. The bytes are changed. */
bool sysfs_is_writable(void *p, size_t bytes);

#endif
