#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Multicast across a topology from a file: two switches with parallel links between them, HCAs
# with two ports, each of which joins by itself.

. "${0%/*}/mckey.bash"

umbel up --topology /usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca2port > /dev/null

receive port1 Hca2 -m 239.4.0.1 -b 10.0.0.2
receive port2 Hca2 -m 239.4.0.1 -b 10.1.0.2
receive near Hca1 -m 239.4.0.1 -b 10.1.0.1
for name in port1 port2 near; do
	wait_joined $name
done
[ "$(group "$(joined port1)" | sed -n 's/^  members *//p')" = 'Hca1 full, Hca2 full, Hca2 full' ] ||
	complain "members:"$'\n'"$(umbel show groups)"
send sender Hca1 -m 239.4.0.1 -b 10.0.0.1
wait_complete sender port1 port2 near

# one of the two parallel links carries it all, the other nothing
used=$(umbel show counters | awk '$1 == "Switch1" && ($2 == 3 || $2 == 5) && $3 > 0 { n++ }
	END { print n + 0 }')
[ "$used" = 1 ] || complain "$used links of two were used"$'\n'"$(umbel show counters)"
