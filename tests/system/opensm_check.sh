#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel check` judges what OpenSM has written: its engines on a fat tree and on a torus, before and
# after a link has failed, with a group; and the same subnet out of the files that infiniband-diags
# print.

. "${0%/*}/opensm.bash"
. "${0%/*}/mckey.bash"

opensm_conf=('force_log_flush TRUE')

torus > "$TMPDIR/torus"

# swept NAME: how often OpenSM has
swept()
{
	grep -c 'SUBNET UP' "$TMPDIR/opensm-$1/log"
}

swept_again()
{
	[ "$(swept "$1")" -gt "$2" ]
}

# run_opensm ENGINE OPTION...: on a fabric with these options
run_opensm()
{
	umbel up "${@:2}" --sm none > /dev/null
	rm -rf "$TMPDIR/opensm-$1" # with the LIDs of another fabric
	opensm "$1" h1 -R "$1" -Q
	wait_until "$1 has swept" grep -q 'SUBNET UP' "$TMPDIR/opensm-$1/log"
	wait_until 'all ports are active' all_ports active
}

end_opensm()
{
	local name

	for name in ${receivers[@]+"${receivers[@]}"}; do
		kill_hard "$name"
	done
	receivers=()
	kill_hard "$1"
	umbel down > /dev/null
}

# judge WHAT STATUS OPTION...: `umbel check` ends so, with the service levels that OpenSM tells
judge()
{
	local got=0

	umbel exec h1 -- saquery -p > "$TMPDIR/paths" 2> /dev/null
	umbel check --paths "$TMPDIR/paths" "${@:3}" > "$TMPDIR/verdict" 2>&1 || got=$?
	[ $got -eq "$2" ] || complain "$1: status $got, not $2:"$'\n'"$(cat "$TMPDIR/verdict")"
}

# fails LINK NAME: it does, and OpenSM sweeps
fails()
{
	local before

	before=$(swept "$2")
	umbel link down "$1"
	wait_until "$2 has swept again" swept_again "$2" "$before"
}

# lets_join: its SA responds, and has the broadcast group, once its first sweep is done
lets_join()
{
	umbel exec h2 -- timeout 1 stdbuf -oL mckey -m 239.1.1.8 -b 10.0.0.2 > "$TMPDIR/joins.out" 2>&1 ||
		grep -q '^mckey: joined dgid: ' "$TMPDIR/joins.out"
}

receivers=()
# joins NAME HOST...: so many receivers
joins()
{
	local host

	wait_until "$1 lets hosts join" lets_join
	for host in "${@:2}"; do
		receive "$1-$host" "$host" -m 239.1.1.9 -b "10.0.0.${host#h}"
		wait_joined "$1-$host"
		receivers+=("$1-$host")
	done
}

# from_files: what the tools print leads to the same verdict, but for groups' members
from_files()
{
	umbel exec h1 -- ibnetdiscover > "$TMPDIR/topology" 2> /dev/null
	umbel exec h1 -- dump_lfts > "$TMPDIR/lfts" 2> /dev/null
	umbel exec h1 -- dump_mfts > "$TMPDIR/mfts" 2> /dev/null
	umbel check --topology "$TMPDIR/topology" --lfts "$TMPDIR/lfts" --mfts "$TMPDIR/mfts" \
		--paths "$TMPDIR/paths" "$@" > "$TMPDIR/of_files"
	diff <(grep -E '^(paths|loops|deadlock|groups) ' "$TMPDIR/verdict") \
		<(grep -E '^(paths|loops|deadlock|groups) ' "$TMPDIR/of_files") ||
		complain 'the verdicts on the fabric and on the files differ'
}

for engine in minhop updn ftree; do
	run_opensm $engine --fat-tree 2 --radix 6
	joins $engine h2 h9 h17
	judge "$engine on a fat tree" 0
	from_files
	grep -q '^groups *ok  *[1-9]' "$TMPDIR/verdict" || complain "$engine: no groups were judged"
	fails leaf2:5 $engine
	judge "$engine on a fat tree with a failed link" 0
	end_opensm $engine
done

# judge_assumed: of files that tell no service levels, lanes are not known, and the verdict says so
judge_assumed()
{
	from_files
	expect 1 $'*\ndeadlock  * WRONG *\n    assumed: 1200 paths, *have service level 0\n*' \
		umbel check --topology "$TMPDIR/topology" --lfts "$TMPDIR/lfts"
}

# shortest paths around a torus wait for each other, but for those that have lanes
run_opensm minhop --topology "$TMPDIR/torus"
judge 'minhop on a torus' 1
judge 'minhop on a torus, but for deadlock' 0 --except deadlock --except deadlock-groups
from_files --except deadlock --except deadlock-groups
end_opensm minhop
for engine in dfsssp lash; do
	run_opensm $engine --topology "$TMPDIR/torus"
	grep -q "osm_ucast_mgr_process: $engine tables configured" "$TMPDIR/opensm-$engine/log" ||
		complain "$engine has not routed the torus"
	judge "$engine on a torus" 0
	# the same without a file: `umbel check` asks OpenSM itself
	expect 0 $'*\ndeadlock  * ok  *\n    the subnet administrator tells service levels\n*' umbel check
	[ $engine = lash ] || judge_assumed
	end_opensm $engine
done
