#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# All who read ports' counters say what `umbel show counters` says: perfquery by each of its ways to name ports,
# ibqueryerrors, OpenSM's performance manager, prometheus-node-exporter.

. "${0%/*}/opensm.bash"

PATH=$PATH:/usr/sbin
dir=$TMPDIR/opensm-manager

# same WHAT THEIRS OURS
same()
{
	[ "${2:-none}" = "$3" ] || complain "$1: ${2:-none}, not $3"
}

# ours NODE PORT COUNTER: the sum over its ports, if PORT is "all"
ours()
{
	umbel show counters --json | python3 -c '
import json, sys
node, port, name = sys.argv[1:]
print(sum(p[name] for p in json.load(sys.stdin)["ports"] if p["node"] == node and port in ("all", str(p["port"]))))' "$@"
}

lid()
{
	umbel exec "$1" -- ibaddr -l | sed 's/.*LID start 0x\([0-9a-f]*\).*/0x\1/'
}

# query COUNTER OPTION...: of what perfquery prints; the sum, if there are several ports
query()
{
	umbel exec h1 -- perfquery "${@:2}" | awk -F: -v name="$1" '$1 == name { gsub(/\./, "", $2); n += $2 } END { print n + 0 }'
}

# database NODE PORT COUNTER: what OpenSM's performance manager had counted when it last wrote that
database()
{
	awk -v node="\"$1\"" -v port="$2" -v name="$3" '
		/^"/ { here = index($0, node) == 1 && $NF == port }
		here && $1 == name { print $3; exit }' "$TMPDIR/database"
}

# counted NODE PORT COUNTER NUMBER: whether it has
counted()
{
	echo 'perfmgr dump_counters' >&9
	[ "$(database "$1" "$2" "$3" 2> /dev/null)" = "$4" ]
}

umbel up --hosts 4 --sm none > /dev/null
mkfifo "$TMPDIR/console"
exec 9<> "$TMPDIR/console"
mkdir "$dir"
printf '%s\n' 'force_log_flush TRUE' 'perfmgr TRUE' 'perfmgr_sweep_time_s 1' "event_db_dump_file $TMPDIR/database" > "$dir/conf"
OSM_CACHE_DIR=$dir OSM_TMP_DIR=$dir start manager h1 bash -c \
	'exec opensm -F "$0/conf" -f "$0/log" -console local < "$1"' "$dir" "$TMPDIR/console"
wait_until 'OpenSM has swept' grep -qs 'SUBNET UP' "$dir/log"
wait_until 'all ports are active' all_ports active
# it counts from its first reading on
wait_until 'the performance manager has read the counters' counted 'h2 umbel_h2_0' 1 xmit_pkts 0

# messages both ways; links that go down, h3's once and h4's twice
new_port
start server h1 ibv_ud_pingpong -p "$port" -n 120 -r 120
wait_listening server "$port"
expect 0 '*' umbel exec h2 -- ibv_ud_pingpong -p "$port" -n 120 -r 120 127.0.0.1
wait_ended server 0
for host in h3 h4 h4; do
	umbel link down $host:1 > /dev/null
	umbel link up $host:1 > /dev/null
done
wait_until 'all ports are active again' all_ports active
sent=$(ours umbel_h2_0 1 xmit_pkts)
same 'packets that h2 has sent' "$sent" 120

# ---- perfquery: one port; the first or all ports of the switch by themselves, and as one (AllPortSelect)
switch=$(umbel exec h1 -- ibswitches | sed 's/.* lid \([0-9]*\) .*/\1/')
same 'perfquery, h2' "$(query PortXmitPkts "$(lid h2)" 1)" "$sent"
same 'perfquery -x, h2' "$(query PortXmitPkts -x "$(lid h2)" 1)" "$sent"
all=$(ours sw1 all xmit_pkts)
same 'perfquery -x -l, the switch' "$(query PortXmitPkts -x -l "$switch" 1-4)" "$all"
same 'perfquery -x -a, the switch' "$(query PortXmitPkts -x -a "$switch")" "$all"
same 'perfquery -a, the switch' "$(query PortRcvPkts -a "$switch")" "$(ours sw1 all rcv_pkts)"
same 'perfquery, links of the switch that went down' "$(query LinkDownedCounter -a "$switch")" 3
same 'perfquery, all ports in words' "$(query PortXmitData -x -a "$switch")" "$(query PortXmitData -x -l "$switch" 1-4)"

# ---- ibqueryerrors
same 'ibqueryerrors, ports with errors' "$(umbel exec h1 -- ibqueryerrors 2> /dev/null |
	sed -n 's/.*port \([0-9]*\): \[LinkDownedCounter == \([0-9]*\)\].*/\1 \2/p' | sort | xargs)" '1 1 1 2 3 1 4 2'

# ---- OpenSM's performance manager
wait_until 'the performance manager has counted packets' counted 'h2 umbel_h2_0' 1 xmit_pkts "$sent"
wait_until 'the performance manager has counted links that went down' counted 'h4 umbel_h4_0' 1 link_downed 2
same 'perfmgr, h2 received' "$(database 'h2 umbel_h2_0' 1 rcv_pkts)" "$(ours umbel_h2_0 1 rcv_pkts)"
same 'perfmgr, words of h2' "$(database 'h2 umbel_h2_0' 1 xmit_data)" "$(query PortXmitData -x "$(lid h2)" 1)"
same 'perfmgr, the switch' "$(database sw1 2 xmit_pkts)" "$(ours sw1 2 xmit_pkts)"
exec 9>&-
kill_hard manager

# ---- prometheus-node-exporter, from the files of `umbel sysfs`, as it makes its system calls itself
exported()
{
	curl -s "http://127.0.0.1:$web/metrics" > "$TMPDIR/metrics" && [ -s "$TMPDIR/metrics" ]
}
expect 0 '' umbel sysfs "$TMPDIR/sys"
new_port
web=$port
launch exporter prometheus-node-exporter --path.sysfs="$TMPDIR/sys" --collector.disable-defaults \
	--collector.infiniband --web.listen-address="127.0.0.1:$web"
wait_until 'the exporter answers' exported
metric()
{
	sed -n "s/^node_infiniband_$1{device=\"$2\",port=\"1\"} //p" "$TMPDIR/metrics"
}
same 'exporter, h2 sent' "$(metric port_packets_transmitted_total umbel_h2_0)" "$sent"
same 'exporter, bytes of h2' "$(metric port_data_transmitted_bytes_total umbel_h2_0)" \
	$((4 * $(query PortXmitData -x "$(lid h2)" 1)))
same 'exporter, link of h4' "$(metric link_downed_total umbel_h4_0)" 2
kill_hard exporter
umbel down > /dev/null
