#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibnetdiscover, ibhosts, ibswitches, iblinkinfo and ibtracert find the same fabric from each host.

. "${0%/*}/lib.sh"

umbel up --hosts 40 > /dev/null

# sorted: the order depends on where one starts
whole()
{
	umbel exec "$1" -- ibnetdiscover | sed '/^#/d' | sort
}

[ "$(whole h1)" = "$(whole h40)" ] || complain "h1 and h40 see different fabrics"
[ "$(whole h1 | grep -c '^Ca')" -eq 40 ] || complain "not 40 hosts: $(whole h1)"
switches=$(whole h1 | grep -c '^Switch')
[ "$switches" -ge 2 ] || complain "no tree of switches: $(whole h1)"

[ "$(umbel exec h7 -- ibhosts | grep -c '^Ca.*umbel_h')" -eq 40 ] || complain "ibhosts"
[ "$(umbel exec h7 -- ibswitches | grep -c '^Switch')" -eq "$switches" ] || complain "ibswitches"
[ "$(umbel exec h7 -- iblinkinfo | grep -c 'Active/  LinkUp')" -ge 80 ] || complain "iblinkinfo"

# from h2 (LID 2) to the last host: across at least two switches
last=$(umbel exec h40 -- ibstat umbel_h40_0 1 | sed -n 's/^Base lid: //p')
expect 0 $'From ca *"h2 *\n*switch*\n*switch*\n*To ca *"h40 *' umbel exec h2 -- ibtracert 2 "$last"
