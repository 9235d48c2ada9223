#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Unicast routes of a fat tree as infiniband-diags see them: equal paths share the load, by
# min-hop and by up/down routing, and a link that fails moves nothing but what crossed it.

. "${0%/*}/lib.sh"

# lft SWITCH: what ibroute says that its table has, "LID PORT" a line, in decimal.
lft()
{
	local lid
	lid=$(umbel exec h1 -- saquery -N | awk -v name="$1" \
		'/NodeDescription/ && index($0, name) { print lid } /lid\.\./ { sub(/.*\./, ""); lid = $0 }')
	umbel exec h1 -- ibroute "$lid" | sed -n 's/^0x\([0-9a-f]*\) \([0-9]*\) .*/\1 \2/p' |
		while read -r lid port; do echo $((16#$lid)) $((10#$port)); done
}

# shown SWITCH: the same as umbel shows it.
shown()
{
	umbel show routes | awk -v sw="$1" '$1 == sw { print $2, $3 }'
}

for routing in minhop updn ftree; do
	umbel up --fat-tree 2 --radix 4 --set routing=$routing > /dev/null
	for switch in leaf1 spine2; do
		[ -n "$(lft $switch)" ] || complain "ibroute shows no table of $switch"
		[ "$(lft $switch)" = "$(shown $switch)" ] ||
			complain "ibroute and umbel do not agree on $switch"
	done
	# six hosts are elsewhere: three by each of the two ports up
	for port in 3 4; do
		[ "$(shown leaf1 | awk -v p=$port '$1 <= 8 && $2 == p' | wc -l)" -eq 3 ] ||
			complain "$routing: not three hosts by port $port:"$'\n'"$(shown leaf1)"
	done
	expect 0 $'From ca *\n\[4\] -> switch port *"spine2"\n*\nTo ca *h8 umbel_h8_0"' \
		umbel exec h1 -- ibtracert 1 8
	expect 0 '* (leaf1):*' umbel exec h1 -- dump_lfts
	# to switches: up/down routing may leave none between a leaf and a spine it has lost
	before=$(shown leaf1 | head -n 8)
	umbel link down leaf1:4
	[ "$(shown leaf1 | head -n 8)" = "$(echo "$before" | sed 's/ 4$/ 3/')" ] ||
		complain "$routing: more has moved than crossed the link"
	expect 0 $'From ca *\n*"spine1"\n*\nTo ca *h8 umbel_h8_0"' \
		umbel exec h1 -- ibtracert 1 8
	umbel link up leaf1:4
	[ "$(shown leaf1 | head -n 8)" = "$before" ] || complain "$routing: not as before the failure"
	umbel down > /dev/null
done

# Three links fail, and from then on no path between some hosts goes up and then down.
routed_by()
{
	expect 0 "*embedded subnet manager: master, at umbel_h1_0:1, has routed by $1"$'\n*' umbel status --name default
}
umbel up --fat-tree 3 --radix 4 --set routing=ftree > /dev/null
umbel link down agg5:3
umbel link down agg5:4
routed_by ftree
umbel link down agg6:2
routed_by updn
for lid in {2..16}; do
	expect 0 $'From ca *\nTo ca *' umbel exec h1 -- ibtracert 1 "$lid"
	expect 0 $'From ca *\nTo ca *' umbel exec h1 -- ibtracert "$lid" 12
done
umbel link up agg6:2
routed_by ftree
umbel down > /dev/null

expect 1 "*setting 'routing=best': want key=value, the value minhop, updn, ftree or dfsssp" \
	umbel up --set routing=best
# who asks for an engine of OpenSM's is told which of ours to take, also for a simulation
expect 1 "*'routing=lash': that is an engine of OpenSM's; take routing=dfsssp, or --sm none and run 'opensm -R lash' *" \
	umbel up --set routing=lash
expect 1 "*'routing=dnup': *; take routing=updn, *" umbel simulate --set routing=dnup all-to-all
umbel up --set routing=updn > /dev/null
expect 0 $'*\nrouting * updn*' umbel status --name default
expect 1 "*setting 'routing' cannot change while the fabric is up" umbel set routing=minhop
