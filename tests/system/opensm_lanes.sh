#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# OpenSM's routing engines and policies that need several virtual lanes run on a torus: LASH,
# torus-2QoS, a QoS policy. Connections use the service levels of their paths, and ports count by
# them.

. "${0%/*}/opensm.bash"
. "${0%/*}/rdmacm.bash"

opensm_conf=('force_log_flush TRUE')

# lid HOST
lid()
{
	umbel exec "$1" -- ibaddr -l | sed 's/.*LID start 0x\([0-9a-f]*\).*/0x\1/'
}

# sl_of_path HOST HOST: as the subnet administrator says.
sl_of_path()
{
	umbel exec "$1" -- saquery PR --slid $(($(lid "$1"))) --dlid $(($(lid "$2"))) |
		sed -n 's/^\t\tsl\.*0x\([0-9A-Fa-f]*\)$/\1/p' | head -1
}

# by_sl HOST SL: what it has sent with it, in words.
by_sl()
{
	umbel exec "$1" -- perfquery --xmtsl | sed -n "s/^XmtDataSL$2:\.*//p"
}

# connected NUMBER: h1 pings that host by rdma_cm; its port counts that by the SL of the path.
connected()
{
	local sl words

	sl=$((16#$(sl_of_path h1 "h$1")))
	words=$(by_sl h1 $sl)
	serve_cm "$1" "h$1" rping -s -a "10.0.0.$1" -C 20
	expect 0 '*' umbel exec h1 -- rping -c -a "10.0.0.$1" -C 20
	wait_ended "server-$1" 0
	# each RDMA READ and WRITE has 64 bytes, and many headers
	[ $(($(by_sl h1 $sl) - words)) -gt 320 ] || complain "h1 to h$1: SL $sl counts too little"
}

# run_opensm NAME OPTION...
run_opensm()
{
	umbel up --topology "$TMPDIR/torus" --sm none > /dev/null
	opensm "$1" h1 "${@:2}"
	wait_until "$1 has swept" grep -q 'SUBNET UP' "$TMPDIR/opensm-$1/log"
	wait_until 'all ports are active' all_ports active
}

tables_of()
{
	grep -q "osm_ucast_mgr_process: $2 tables configured on all switches" \
		"$TMPDIR/opensm-$1/log" || complain "$1 has no tables of $2"
}

end_opensm()
{
	kill_hard "$1"
	umbel down > /dev/null
}

torus > "$TMPDIR/torus"

# ---- LASH gives each path one of the lanes that it needs, by an SL
run_opensm lash -R lash
tables_of lash lash
sls=$(for i in {1..25}; do sl_of_path h1 h$i; done | sort -u | wc -l)
[ "$sls" -gt 1 ] || complain 'all paths from h1 have one SL'
connected 13
connected 25
end_opensm lash

# ---- torus-2QoS chooses the lane by the ports that a packet comes in and goes out by
umbel up --topology "$TMPDIR/torus" --sm none > /dev/null
seed()
{
	local guid

	guid=$(umbel show topology | awk -v node="$2" '$1 == node { print $3; exit }')
	echo "$1_link $(umbel show topology | awk '$1 == "s00" { print $3; exit }') $guid"
}
{
	echo 'torus 5 5 1'
	seed xp s10
	seed xm s40
	seed yp s01
	seed ym s04
} > "$TMPDIR/torus-2QoS.conf"
umbel down > /dev/null
run_opensm torus -Q -R torus-2QoS --torus_config "$TMPDIR/torus-2QoS.conf"
tables_of torus torus-2QoS
switch=$(umbel exec h1 -- ibswitches | sed -n 's/.*"s00".* lid \([0-9]*\) .*/\1/p')
ways=$(umbel exec h1 -- smpquery sl2vl "$switch" 2 | grep '^ports:' | cut -d: -f3 | sort -u | wc -l)
[ "$ways" -gt 1 ] || complain 'lanes do not depend on where packets come in'
connected 7
connected 19
end_opensm torus

# ---- a QoS policy: all paths have SL 5, which has lane 2, and the arbitration table is OpenSM's
cat > "$TMPDIR/policy" << 'END'
qos-ulps
	default : 5
end-qos-ulps
END
opensm_conf+=('qos_sl2vl 0,1,2,3,4,2,6,7,0,0,0,0,0,0,0,0' 'qos_vlarb_low 0:9,1:9,2:9'
	'qos_vlarb_high 2:4')
run_opensm policy -Q -Y "$TMPDIR/policy"
[ "$(sl_of_path h1 h9)" = 5 ] || complain "the SL of a path is $(sl_of_path h1 h9)"
expect 0 $'*\n*: | 0| 1| 2| 3| 4| 2|*' umbel exec h1 -- smpquery sl2vl "$(lid h9)"
expect 0 $'*WEIGHT: |0x9 |*' umbel exec h1 -- smpquery vlarb "$(lid h9)"
connected 9
end_opensm policy
