/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who holds a UDP port, as far as /proc tells: for the message that says it is taken.
 */
#ifndef LINK_HOLDER_H
#define LINK_HOLDER_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes to @out, @len bytes, who else has a UDP socket at @port in this network namespace:
 * "process 123 (name)", or, if its descriptors are not ours to look at, of which user, or the
 * kernel. Never empty.
 */
void link_holder_describe(uint16_t port, char *out, size_t len);

#endif
