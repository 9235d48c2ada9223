#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Groups on a network that forwards to members only: of five hosts with Umbel three join and
# receive each message once, and no packet of it reaches the others, which have RoCEv2 up as well;
# the bridge's entries come with joins and go with leaves, also with the death of the last
# process. What is on the network is sound.

. "${0%/*}/lab.sh"

lab_up 5
roce_up h1 h2 h3 h4 h5
for host in h2 h3 h4; do
	capture $host
done

# check_group TYPE GROUP MGID SOURCE: receivers on h2, h3, h5, two on h3; a message from h1.
check_group()
{
	local type=$1 group=$2 mgid=$3 from=$4 name

	for name in h2 h3 h5; do
		start_on "$type-$name" $name "$programs_dir/roce.receiver" umbel_eth0 "$mgid"
	done
	start_on "$type-second" h3 "$programs_dir/roce.receiver" umbel_eth0 "$mgid"
	for name in h2 h3 h5 second; do
		wait_said "$type-$name" 'qpn '
	done
	wait_members "$group" "h2 h3 h5"
	on h1 "$programs_dir/roce.forge" "$from" "$group" qpn=0xffffff times=3
	for name in h2 h3 h5 second; do
		wait_said "$type-$name" '64 bytes from 0x1234: message 2'
		says "$type-$name" '64 bytes' 4 && complain "$type-$name received one twice"
	done
	captured h2 h3 h4
	expect_packets 3 h2 "udp.dstport == 4791 && $type.dst == $group"
	expect_packets 3 h3 "udp.dstport == 4791 && $type.dst == $group"
	expect_packets 0 h4 'udp.dstport == 4791'
	kill -9 "${pid[$type-second]}"
	kill "${pid[$type-h2]}"
	wait_members "$group" "h3 h5"
	kill -9 "${pid[$type-h3]}" "${pid[$type-h5]}"
	wait_members "$group" ""
}

check_group ip 239.1.2.3 ::ffff:239.1.2.3 192.0.2.1
check_group ipv6 ff15::1:203 ff15::1:203 2001:db8::1
expect_sound h3
