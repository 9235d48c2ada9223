#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibhosts, ibswitches, ibrouters, iblinkinfo and ibaddr list the nodes, links and addresses that
# `umbel show topology` shows.

. "${0%/*}/lib.sh"

# shown TYPE: GUIDs of the nodes of that type.
shown()
{
	umbel show topology | awk -v type="$1" '$2 == type { print $3 }' | sort -u
}

# listed COMMAND: GUIDs of what it lists.
listed()
{
	umbel exec h2 -- "$1" | awk '{ print $3 }' | sort
}

# Each end of each link that is up: "GUID PORT WIDTH". Of a host, iblinkinfo says the port's GUID.
shown_links()
{
	umbel show topology | awk 'NR > 1 && $5 == "active" {
		guid = $2 == "host" ? substr($3, 1, 16) sprintf("%02x", $4) : $3
		print guid, $4, toupper($9) }' | sort
}

listed_links()
{
	umbel exec h2 -- iblinkinfo | awk '
		/^Switch:/ { guid = $2 }
		/^ +0x/ { guid = $1; $1 = "" }
		/Active/ { sub(/\[.*==\( /, " "); print guid, $2, $3 }' | sort
}

umbel up --fat-tree 2 --radix 6 --hosts 7 > /dev/null
[ "$(shown host | wc -l)" -eq 7 ] || complain "hosts: $(umbel show topology)"
diff <(shown host) <(listed ibhosts) || complain "ibhosts"
diff <(shown switch) <(listed ibswitches) || complain "ibswitches"
expect 0 '' umbel exec h2 -- ibrouters
diff <(shown_links) <(listed_links) || complain "iblinkinfo"

umbel link down h3:1 > /dev/null
[ "$(shown_links | wc -l)" -eq 30 ] || complain "links: $(umbel show topology)"
diff <(shown_links) <(listed_links) || complain "iblinkinfo, when a link is down"

# LIDs and GIDs
lid=$(umbel show topology | awk '$1 == "umbel_h5_0" { print $6 }')
guid=$(umbel show topology | awk '$1 == "umbel_h5_0" { print $3 }')
expect 0 "GID fe80::275:6d00:0:501 LID start 0x$(printf %x "$lid") end 0x$(printf %x "$lid")" \
	umbel exec h1 -- ibaddr "$lid"
expect 0 "GID fe80::275:6d00:0:501*" umbel exec h5 -- ibaddr
expect 0 "LID start $lid end $lid" umbel exec h1 -- ibaddr -L "$lid"
[ "$guid" = 0x02756d0000000500 ] || complain "the GUID is $guid"

# vendstat wants MADs of one vendor's chips: it is refused at once, at a switch and at a host
for at in "$(umbel exec h1 -- ibswitches | sed -n 's/.* lid \([0-9]*\) .*/\1/p' | head -1)" "$lid"; do
	expect 255 $'vendstat: method 1, attribute 1 failure\n*classportinfo query' \
		timeout 60 umbel exec h1 -- vendstat -N "$at"
	expect 0 $'vendstat: method 1, attribute 80 failure\n*' timeout 60 umbel exec h1 -- vendstat -R 0x100 "$at"
done
