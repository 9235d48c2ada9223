/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The facts of an interface of IPoIB, as the alias of its network device says them: to people by
 * `ip link`, and to src/client/sysfs, which has no other way to know. Pure functions.
 */
#ifndef WIRE_IPOIB_H
#define WIRE_IPOIB_H

#include <stdbool.h>
#include <stdint.h>

#define WIRE_IPOIB_ALIAS_ROOM  128
#define WIRE_IPOIB_DEVICE_ROOM 64

struct wire_ipoib_alias {
	bool connected;
	unsigned port;
	char device[WIRE_IPOIB_DEVICE_ROOM]; /* the HCA */
	uint16_t pkey;
	uint32_t qpn; /* of its UD queue pair */
};

void wire_ipoib_alias_encode(const struct wire_ipoib_alias *a,
                             char text[static WIRE_IPOIB_ALIAS_ROOM]);

/* False: @text is the alias of something else. */
bool wire_ipoib_alias_decode(const char *text, struct wire_ipoib_alias *a);

#endif
