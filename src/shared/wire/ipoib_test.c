/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The alias of an interface of IPoIB.
 */
#include <harness.h>

#include "base/util.h"
#include "wire/ipoib.h"

CASE(what_is_written_is_read)
{
	const struct wire_ipoib_alias a = { true, 2, "umbel_h1_0", 0x8010, 65 };
	struct wire_ipoib_alias b;
	char text[WIRE_IPOIB_ALIAS_ROOM];

	wire_ipoib_alias_encode(&a, text);
	assert_string_equal(text, "IPoIB in connected mode, port 2 of umbel_h1_0, P_Key 0x8010, "
	                          "QPN 65");
	assert_true(wire_ipoib_alias_decode(text, &b));
	assert_true(b.connected);
	assert_int_equal(b.port, 2);
	assert_string_equal(b.device, "umbel_h1_0");
	assert_int_equal(b.pkey, 0x8010);
	assert_int_equal(b.qpn, 65);
}

CASE(other_aliases_are_none)
{
	static const char *const others[] = {
		"",
		"uplink",
		"IPoIB in datagram mode",
		"IPoIB in other mode, port 1 of umbel_h1_0, P_Key 0xffff, QPN 65",
		"IPoIB in datagram mode, port x of umbel_h1_0, P_Key 0xffff, QPN 65",
		"IPoIB in datagram mode, port 1 of , P_Key 0xffff, QPN 65",
		"IPoIB in datagram mode, port 1 of umbel_h1_0, P_Key ffff, QPN 65",
		"IPoIB in datagram mode, port 1 of umbel_h1_0, P_Key 0xffff",
	};
	struct wire_ipoib_alias a;

	for (size_t i = 0; EACH_ROW(i, others); i++)
		assert_false(wire_ipoib_alias_decode(others[i], &a));
}
