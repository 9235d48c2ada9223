#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# saquery asks the subnet administrator for each kind of record; ibroute and iblinkinfo show the
# tables and links; ibportstate sets a port.

. "${0%/*}/lib.sh"

umbel up --hosts 3 > /dev/null
expect 0 $'NodeRecord dump:\n*NodeDescription*h3 umbel_h3_0*' umbel exec h1 -- saquery -N
expect 0 $'PathRecord dump:\n*dlid*3*' umbel exec h2 -- saquery -p --src-to-dst 1:3
expect 0 $'MCMemberRecord group dump:\n*ff12:401b:ffff::ffff:ffff*' umbel exec h2 -- saquery -g
for what in PIR SWIR LFTR GIR SMIR LR; do
	expect 0 '*dump:*' umbel exec h2 -- saquery $what
done
expect 0 '*PKeyTable*' umbel exec h2 -- saquery --smkey 1 PKTR
expect 0 'SA ClassPortInfo:*Capability mask 2*' umbel exec h2 -- saquery CPI
expect 0 $'Unicast lids *\n*0x0003 003*' umbel exec h1 -- ibroute 4
expect 0 $'*"h2 umbel_h2_0"*' umbel exec h1 -- iblinkinfo
expect 0 $'From ca *\n*To ca *h3 umbel_h3_0"' umbel exec h1 -- ibtracert 1 3
expect 0 '*LinkState:*Active*' umbel exec h1 -- ibportstate 4 2 query
