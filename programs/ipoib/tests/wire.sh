#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What an interface sends, byte by byte, as RFC 4391 has it: to whom, what is before the packet, ARP and
# neighbour discovery with addresses of 20 bytes; and as tshark decodes it. A queue pair on h3 receives it (tap.c).

. "${0%/*}/lab.sh"

here=${0%/*}
ip4=ff12:401b:ffff::f01:203 ip6=ff12:601b:ffff::1:203

lab_up 3
held_interface h1 --multicast
held_interface h3 --multicast
launch_on ip4 h3 socat -u UDP4-RECV:7000,ip-add-membership=239.1.2.3:ib0 STDOUT
launch_on ip6 h3 socat -u UDP6-RECV:7000,ipv6-v6only,ipv6-join-group='[ff15::1:203]:ib0' STDOUT
wait_members $ip4 'h3 full'
wait_members $ip6 'h3 full'
groups=$(status h3 "*[w for g in s['groups'] if g['join_state'] == 1 for w in (g['mgid'], g['mlid'])]")
# shellcheck disable=SC2086 # a word for each
start tap h3 "$programs_dir/ipoib.tap" "$(status h1 "s['lid']")" "$(status h1 "s['qpn']")" $groups
wait_said tap ready

facts="$mode $(status h1 "s['lid'], s['qpn'], s['gid']") $(status h3 "s['lid'], s['gid']")"
# sent: h1 sends one of each kind, until the tap has got all of them; to the tap, too, which is host 9
sent()
{
	for to in 192.0.2.77 192.0.2.9 2001:db8::3 2001:db8::9; do
		on h1 ping -n -q -c 1 -W 0.1 $to > /dev/null
	done
	on h1 socat -u - UDP4-DATAGRAM:239.1.2.3:7000 <<< 'to four'
	on h1 socat -u - 'UDP6-DATAGRAM:[ff15::1:203]:7000' <<< 'to six'
	# shellcheck disable=SC2086
	/usr/bin/python3 "$here/wire.py" "$TMPDIR/tap.out" "$TMPDIR/pcap" $facts > "$TMPDIR/check.out" 2>&1
	[ $? -ne 2 ]
}
wait_until 'there is one of each kind' sent
[ ! -s "$TMPDIR/check.out" ] || complain "$(cat "$TMPDIR/check.out")"

# ---- tshark, of the same
# fields FILTER FIELD...: of the first packet that passes the filter
fields()
{
	local filter=$1 field options=()
	shift
	for field in "$@"; do
		options+=(-e "$field")
	done
	tshark -n -r "$TMPDIR/pcap" -Y "$filter" -T fields "${options[@]}" 2> /dev/null | head -n 1
}
tab=$'\t'
expect 0 "32${tab}20${tab}192.0.2.1${tab}192.0.2.77" fields 'arp.opcode == 1' arp.hw.type arp.hw.size \
	arp.src.proto_ipv4 arp.dst.proto_ipv4
expect 0 "192.0.2.1${tab}192.0.2.9" fields 'arp.opcode == 2' arp.src.proto_ipv4 arp.dst.proto_ipv4
expect 0 "2001:db8::3${tab}3" fields 'icmpv6.type == 135' icmpv6.nd.ns.target_address icmpv6.opt.length
expect 0 "2001:db8::1" fields 'icmpv6.type == 136' icmpv6.nd.na.target_address
expect 0 "192.0.2.1${tab}192.0.2.9" fields icmp ip.src ip.dst
expect 0 "$ip4${tab}239.1.2.3" fields 'udp && ip' infiniband.grh.dgid ip.dst
expect 0 "$ip6${tab}ff15::1:203" fields 'udp && ipv6' infiniband.grh.dgid ipv6.dst
expect 0 '' fields '_ws.malformed || _ws.expert.severity == error' frame.number
