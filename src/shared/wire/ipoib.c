/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The alias of an interface of IPoIB: see ipoib.h.
 */
#include "wire/ipoib.h"

#include <stdio.h>
#include <string.h>

static const char *const modes[] = { "datagram", "connected" };

void wire_ipoib_alias_encode(const struct wire_ipoib_alias *a,
                             char text[static WIRE_IPOIB_ALIAS_ROOM])
{
	snprintf(text, WIRE_IPOIB_ALIAS_ROOM,
	         "IPoIB in %s mode, port %u of %s, P_Key 0x%04x, QPN %u", modes[a->connected],
	         a->port, a->device, a->pkey, a->qpn);
}

bool wire_ipoib_alias_decode(const char *text, struct wire_ipoib_alias *a)
{
	char mode[16];
	unsigned pkey;

	if (sscanf(text, "IPoIB in %15s mode, port %u of %63[^,], P_Key 0x%4x, QPN %u", mode,
	           &a->port, a->device, &pkey, &a->qpn) != 5)
		return false;
	a->pkey = (uint16_t)pkey;
	a->connected = !strcmp(mode, modes[true]);
	return a->connected || !strcmp(mode, modes[false]);
}
