/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the process that has a UDP port, as far as /proc shows it: for error messages.
 */
#ifndef NETDEV_HOLDER_H
#define NETDEV_HOLDER_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes to @out, @len bytes, which other process has a UDP socket at @port in this network
 * namespace: "process 123 (name)"; or, if we may not look at its descriptors, which user has it,
 * or the kernel. Never empty.
 */
void netdev_holder_describe(uint16_t port, char *out, size_t len);

#endif
