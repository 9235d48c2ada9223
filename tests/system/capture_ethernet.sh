#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel capture --data` on Ethernet: what queue pairs send, in memory, is there as frames of RoCEv2 that tshark
# decodes whole, by IPv4 and IPv6, with the filters. MADs are not.

. "${0%/*}/perftest.bash"

file=$TMPDIR/data.pcapng

# packets FILTER: how many in the file
packets()
{
	plain_tshark -o udp.check_checksum:TRUE -r "$file" -Y "$1" 2> /dev/null | wc -l
}

some()
{
	[ "$(packets "$2")" -ge "${3:-1}" ] || complain "$1: $(packets "$2")"
}

umbel up --roce-hosts 3 > /dev/null
umbel exec r1 -- ibv_devinfo -v > "$TMPDIR/devinfo"
# gid WORD: the index of the first GID that has it
gid()
{
	sed -n "s/^.*GID\\[ *\\([0-9]*\\)\\].*$1.*/\\1/p" "$TMPDIR/devinfo" | head -n 1
}
ipv4=$(gid ::ffff:) ipv6=$(gid fe80:)
expect 1 "umbel: fabric 'default' is on Ethernet: its MADs *; messages of queue pairs by --data" umbel capture -o /dev/null
launch capture umbel capture --data --output "$file"
wait_said capture 'umbel: capturing on fabric'
umbel fault add opcode=RC_SEND_MIDDLE nth=4 drop > /dev/null


listens()
{
	gone "${pid[server-$1]}" ||
		umbel exec r1 -- grep -qs "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$2") [0-9A-F:]* 0A " /proc/net/tcp /proc/net/tcp6
}

# pair NAME PROGRAM OPTION...: on r1 and r2, one after the other
pair()
{
	local name=$1
	shift
	start "server-$name" r1 "$@"
	wait_until "server-$name listens" listens "$name" 18515
	start "client-$name" r2 "$@" 172.16.0.1
	wait_ended "client-$name" 0
	wait_ended "server-$name" 0
}

pair write ibv_rc_pingpong -p 18515 -g "$ipv4" -m 1024 -s 3001 -n 5
pair write6 ibv_rc_pingpong -p 18515 -g "$ipv6" -m 1024 -s 3001 -n 5
pair ud ibv_ud_pingpong -p 18515 -g "$ipv4" -s 500 -n 5
pair ud6 ibv_ud_pingpong -p 18515 -g "$ipv6" -s 501 -n 5

# ---- a group; what its receivers and a queue pair get, alone
member()
{
	umbel show qps --json | /usr/bin/python3 -c '
import json, sys
print(*[q["qpn"] for q in json.load(sys.stdin) if q["host"] == "r2"])'
}
start receiver r2 mckey -m 239.1.1.1 -b 172.16.0.2 -C 3
wait_said receiver 'mckey: joined dgid: '
only=("--group 239.1.1.1" "--qp r2:$(member)" "r2" "--group 239.1.1.2" "r3")
for i in "${!only[@]}"; do
	# shellcheck disable=SC2086
	launch "capture-$i" umbel capture --data --output "$TMPDIR/$i.pcapng" ${only[i]}
	wait_said "capture-$i" 'umbel: capturing on fabric'
done
start sender r1 mckey -s -m 239.1.1.1 -b 172.16.0.1 -C 3
wait_ended sender 0
wait_ended receiver 0
for i in "${!only[@]}"; do
	kill "${pid[capture-$i]}"
	wait_ended "capture-$i" 0
done

kill "${pid[capture]}"
wait_ended capture 0
expect_said capture 'umbel: [0-9]* packets captured, 0 lost'
wrong='_ws.malformed || udp.checksum.status == 0 || !infiniband'
[ "$(packets "$wrong")" -eq 0 ] || complain "tshark finds something wrong: $(packets "$wrong")"
some 'right checksums' 'ipv6 && udp.checksum.status == 1' 10
from='eth.src == 02:75:6d:00:00:01 && eth.dst == 02:75:6d:00:00:02'
for ip in 'ip.src == 172.16.0.1 && ip.dst == 172.16.0.2' 'ipv6.src == fe80::75:6dff:fe00:1 && ipv6.dst == fe80::75:6dff:fe00:2'; do
	some "first packets by $ip" "$from && $ip && infiniband.bth.opcode == 0" 5
	some "last packets, padded, by $ip" "$from && $ip && infiniband.bth.opcode == 2 && infiniband.bth.padcnt == 3" 5
	some "acknowledgements by $ip" "$from && $ip && infiniband.bth.opcode == 17" 5
	some "datagrams by $ip" "$from && $ip && infiniband.bth.opcode == 100 && udp.dstport == 4791" 5
done
[ "$(packets 'frame.comment == "fault: dropped"')" -eq 1 ] || complain 'one packet is dropped'
to_group='eth.dst == 01:00:5e:01:01:01 && ip.dst == 239.1.1.1 && infiniband.bth.destqp == 0xffffff'
[ "$(packets "$to_group")" -eq 3 ] || complain "messages to the group: $(packets "$to_group")"
for i in "${!only[@]}"; do
	file=$TMPDIR/$i.pcapng n=3
	[ "$i" -lt 3 ] || n=0
	[ "$(packets "$to_group")" -eq $n ] && [ "$(packets udp)" -eq $n ] ||
		complain "${only[i]}: $(packets "$to_group") of $(packets udp) messages, not $n"
done
