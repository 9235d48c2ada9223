#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# routing=dfsssp on a torus: the subnet administrator tells the service levels, rdma_cm and ports use
# them, links carry no more than by OpenSM's dfsssp, and lanes are no more either.

. "${0%/*}/opensm.bash"
. "${0%/*}/rdmacm.bash"

opensm_conf=('force_log_flush TRUE')

torus > "$TMPDIR/torus"

# sls: the service levels of the paths from each host to each other one
sls()
{
	umbel exec h1 -- saquery -p 2> /dev/null | sed -n 's/^\t\tsl\.*0x\([0-9A-Fa-f]*\)$/\1/p' | sort -u
}

# most: what the link between switches that has most carries
most()
{
	umbel show routes --load | awk 'NR > 1 && $6 > most { most = $6 } END { print most }'
}

umbel up --topology "$TMPDIR/torus" --sm none > /dev/null
opensm other h1 -R dfsssp -Q
wait_until 'OpenSM has swept' grep -q 'SUBNET UP' "$TMPDIR/opensm-other/log"
wait_until 'all ports are active' all_ports active
theirs=$(most)
lanes=$(sed -n 's/.*Virtual Lanes needed: \([0-9]*\)$/\1/p' "$TMPDIR/opensm-other/log" | tail -1)
kill_hard other
umbel down > /dev/null

umbel up --topology "$TMPDIR/torus" --set routing=dfsssp > /dev/null
ours=$(most)
[ "$ours" -le "$theirs" ] || complain "a link carries $ours paths, with OpenSM's tables $theirs"
n=$(sls | wc -l)
[ "$n" -gt 1 ] || complain 'all paths have one service level'
[ "$n" -le "${lanes:-8}" ] || complain "$n lanes, with OpenSM $lanes"
echo "most loaded link: $ours (OpenSM: $theirs); lanes: $n (OpenSM: $lanes)"

# each path has the lane that it has, and no other one
lid()
{
	umbel exec "$1" -- ibaddr -l | sed 's/.*LID start 0x\([0-9a-f]*\).*/0x\1/'
}

# path FROM TO OPTION...
path()
{
	umbel exec h1 -- saquery PR --slid $(($(lid "$1"))) --dlid $(($(lid "$2"))) "${@:3}" 2>&1
}

sl_of_path()
{
	path "$@" | sed -n 's/^\t\tsl\.*0x\([0-9A-Fa-f]*\)$/\1/p'
}

# find_path: two hosts between which packets have another lane than 0
find_path()
{
	for from in h7 h12 h2; do
		for to in h25 h24 h21 h5 h20 h10; do
			sl=$((16#$(sl_of_path "$from" "$to")))
			[ "$sl" -eq 0 ] || return 0
		done
	done
	complain 'no path with another SL than 0'
}
find_path
[ "$(sl_of_path "$from" "$to" --sl "$sl")" ] || complain "no path from $from to $to with SL $sl"
[ -z "$(sl_of_path "$from" "$to" --sl $(((sl + 1) % 8)))" ] ||
	complain "a path from $from to $to with another SL than $sl"

# connections by rdma_cm use it, and ports count by it
counted()
{
	umbel exec "$from" -- perfquery --xmtsl | sed -n "s/^XmtDataSL$sl:\.*//p"
}
before=$(counted)
serve_cm dfsssp "$to" rping -s -a "10.0.0.${to#h}" -C 20
expect 0 '*' umbel exec "$from" -- rping -c -a "10.0.0.${to#h}" -C 20
wait_ended server-dfsssp 0
[ $(($(counted) - before)) -gt 320 ] || complain "$from to $to: SL $sl counts too little"
umbel down > /dev/null
