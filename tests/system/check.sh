#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel check` judges fabrics that are up: each engine on trees, a torus, a hypercube, a dragonfly and
# a random graph, before and after links and switches have failed, with members of a group. No links
# wait for each other in circles, but with minhop. It finds what is wrong in files, by name, and says it
# by its exit status.

. "${0%/*}/opensm.bash"
. "${0%/*}/mckey.bash"

# graph: a file of switches s0, s1, ... with a host each, h0, h1, ..., out of lines "A B", a link
# between switches
graph()
{
	awk '{
		a[NR] = $1; b[NR] = $2; pa[NR] = ++used[$1] + 1; pb[NR] = ++used[$2] + 1
	}
	END {
		for (sw in used) {
			printf "Switch 36 \"s%d\"\n[1] \"h%d\"[1]\n", sw, sw
			for (i = 1; i <= NR; i++) {
				if (a[i] == sw)
					printf "[%d] \"s%d\"[%d]\n", pa[i], b[i], pb[i]
				if (b[i] == sw)
					printf "[%d] \"s%d\"[%d]\n", pb[i], a[i], pa[i]
			}
			printf "\nHca 1 \"h%d\"\n[1] \"s%d\"[1]\n\n", sw, sw
		}
	}'
}

torus > "$TMPDIR/torus"
for ((i = 0; i < 16; i++)); do
	for bit in 1 2 4 8; do
		((i & bit)) || echo $i $((i | bit))
	done
done | graph > "$TMPDIR/hypercube"
# five groups of four, all of which are linked
for ((i = 0; i < 20; i++)); do
	for ((k = i + 1; k < 20; k++)); do
		((k / 4 != i / 4 && i % 4 != (k / 4 - i / 4 + 3) % 4)) || ((k / 4 != i / 4 && k % 4 != 0)) ||
			echo $i $k
	done
done | graph > "$TMPDIR/dragonfly"
awk 'BEGIN { srand(7); for (i = 1; i < 20; i++) print i, int(rand() * i)
	for (i = 0; i < 12; i++) { a = int(rand() * 20); print a, (a + 1 + int(rand() * 19)) % 20 } }' |
	graph > "$TMPDIR/random"

# judge WHAT [OPTION...]: all is well
judge()
{
	local said

	said=$(umbel check "${@:2}" 2>&1) || complain "$1:"$'\n'"$said"
}

# links: a few links between switches
links()
{
	umbel show topology | awk '$2 == "switch" && $7 !~ /^(h|umbel)/ { print $1 ":" $4 }' |
		awk 'NR % 7 == 3' | head -n 3
}

for shape in '--fat-tree 2 --radix 8' '--fat-tree 3 --radix 4' torus hypercube dragonfly random; do
	for routing in minhop updn ftree dfsssp; do
		except=()
		# shortest paths promise nothing
		[ $routing != minhop ] || except=(--except deadlock --except deadlock-groups)
		options=(--topology "$TMPDIR/$shape")
		# shellcheck disable=SC2206
		[[ $shape != --fat* ]] || options=($shape)
		umbel up "${options[@]}" --set routing=$routing > /dev/null
		for host in h1 h6 h11; do
			receive member-$host $host -m 239.1.1.1
			wait_joined member-$host
		done
		judge "$routing on $shape" "${except[@]}"
		for link in $(links); do
			umbel link down "$link"
			judge "$routing on $shape without $link" "${except[@]}"
		done
		umbel switch kill "$(umbel show topology | awk '$2 == "switch" { print $1 }' | tail -n 1)"
		judge "$routing on $shape without a switch" "${except[@]}"
		for host in h1 h6 h11; do
			kill_hard member-$host
		done
		umbel down > /dev/null
	done
done

# ---- groups, and several LIDs a port
umbel up --fat-tree 2 --radix 8 --set lmc=1 --set routing=updn > /dev/null
for host in h1 h2 h9 h32; do
	receive $host $host -m 239.1.1.1
	wait_joined $host
done
judge 'four members'
umbel link down leaf1:5
judge 'four members, a link fails'
expect 0 $'32 hosts, 12 switches, 31 links between switches; routed by updn\n*
lids  * ok     44 ports *
paths * ok     1984 pairs of hosts, of 4 links at most
loops * ok     76 LIDs
*
groups * ok     2 multicast LIDs
*trees of groups by switch, max/mean: *' umbel check
umbel exec h5 -- ibnetdiscover > "$TMPDIR/topology" 2> /dev/null
umbel exec h5 -- dump_lfts > "$TMPDIR/lfts" 2> /dev/null
umbel exec h5 -- dump_mfts > "$TMPDIR/mfts" 2> /dev/null
for host in h1 h2 h9 h32; do
	kill_hard $host
done
judge 'no members'
umbel down > /dev/null

# ---- a group in mid-change: its tables are written a second after a join, and then half a minute
# what `umbel check` says of a group that two have joined whose tables follow so many ms later
while_changing()
{
	umbel up --hosts 2 --set mft_delay_ms="$1" > /dev/null
	for host in h1 h2; do
		receive changing-$host $host -m 239.1.1.1
		wait_joined changing-$host
	done
	expect "$2" "$3" umbel check
	for host in h1 h2; do
		kill_hard changing-$host
	done
	umbel down > /dev/null
}
while_changing 1000 0 $'*\ngroups * ok  *'
while_changing 30000 1 $'*\ngroups * WRONG *'

# ---- nobody has written any tables
umbel up --hosts 2 --sm none > /dev/null
expect 1 $'*\nlinks * WRONG  4 ports with a link\n    umbel_h1_0 is not active\n    umbel_h2_0 *\nlids * ok *' umbel check
umbel down > /dev/null

# ---- files, and what is wrong in them
files()
{
	umbel check --topology "$TMPDIR/topology" --lfts "$TMPDIR/lfts" --mfts "$TMPDIR/mfts" "$@"
}
expect 0 $'*\npaths * ok     1984 pairs of hosts, *\ngroups * ok     1 multicast LIDs\n*' files

# with_lfts SED TEXT OPTION...: after this change to the table of leaf8 it says TEXT, and fails
with_lfts()
{
	cp "$TMPDIR/lfts" "$TMPDIR/right"
	sed -i "/(leaf8)/,/valid lids/ { $1 }" "$TMPDIR/lfts"
	expect 1 "$2" files "${@:3}"
	mv "$TMPDIR/right" "$TMPDIR/lfts"
}
lid=$(sed -n "s/^0x\([0-9a-f]*\) .*'h1 umbel_h1_0'.*/\1/p" "$TMPDIR/lfts" | head -n 1)
decimal=$((16#$lid))
with_lfts "/^0x$lid /d" $'*\npaths * WRONG *\n    leaf8 has no route to umbel_h1_0 (LID '$decimal$'): 4 hosts do not reach it\nloops * ok *'
with_lfts "s/^0x$lid .../0x$lid 001/" \
	$'*\npaths * WRONG *\n    leaf8 sends to another port what is for umbel_h1_0 (LID '$decimal'): 4 hosts *'
sed -i "/(spine2)/,/valid lids/ s/^0x$lid .../0x$lid 008/" "$TMPDIR/lfts" # to leaf8
with_lfts "s/^0x$lid .../0x$lid 006/" $'*\nloops * WRONG *\n    LID '$decimal$' (umbel_h1_0) goes round: *leaf8 > *\n*'
with_lfts "s/^0x$lid .../0x$lid 006/" '*"loops": {*"verdict": "WRONG",*"found": 1,*"LID *"ok": false*' \
	--json --except paths
with_lfts "s/-0x[0-9a-f]*] of/-0x1] of/" \
	$'*\npaths * WRONG *\n    leaf8 has a LinearFDBTop too low, and discards what is for umbel_h* (LID *): 4 hosts do *'
expect 1 '*: no line begins with *' umbel check --topology "$TMPDIR/topology" --lfts "$TMPDIR/topology"
expect 1 '*:1: the topology has no switch with that GUID' \
	umbel check --topology "$TMPDIR/torus" --lfts "$TMPDIR/lfts"
