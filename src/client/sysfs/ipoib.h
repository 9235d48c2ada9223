/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interfaces of IPoIB, as far as this process can see them: in its network namespace, and of HCAs
 * of its host. A network device is known by its index.
 *
 * Thread-safe.
 */
#ifndef SYSFS_IPOIB_H
#define SYSFS_IPOIB_H

#include <stddef.h>

#include "sysfs/session.h"
#include "wire/ipoib.h"

/* Whether that network device is one; *@a: its description, *@hca: its HCA. */
bool sysfs_ipoib_find(const struct sysfs_session *s, uint32_t ifindex, struct wire_ipoib_alias *a,
                      uint32_t *hca);

/* Likewise, by its name, of @length bytes. 0: it is none; if its alias says so, no fabric is asked.
 */
uint32_t sysfs_ipoib_index(const char *name, size_t length);

/* No network device has a higher index. */
uint32_t sysfs_ipoib_last(void);

#endif
