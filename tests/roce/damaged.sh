#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What comes to UDP port 4791 and is no message for a queue pair is dropped, and counted under a
# name that says why; messages before, between and after it arrive, with and without immediate data. IPv4 and IPv6.

. "${0%/*}/lab.sh"

lab_up 2
# room for a datagram that is larger than any message
for device in br0 h1 h2; do
	ip link set $device mtu 9000
done
ip -n h1 link set eth0 mtu 9000
ip -n h2 link set eth0 mtu 9000
roce_up h2

start_on receiver h2 "$programs_dir/roce.receiver" umbel_eth0
wait_said receiver 'qpn ' || exit 1
qpn=$(sed -n 's/^qpn //p' "$TMPDIR/receiver.out")
good=0

# counter NAME: of the port.
counter()
{
	umbel_on h2 show counters --json | sed -n "s/^ *\"$1\": \([0-9]*\),*\$/\1/p"
}

# forge KEY=VALUE...: to the receiver, by $family.
forge()
{
	case $family in
	IPv4) on h1 "$programs_dir/roce.forge" 192.0.2.1 192.0.2.2 qpn="$qpn" "$@" ;;
	IPv6) on h1 "$programs_dir/roce.forge" 2001:db8::1 2001:db8::2 qpn="$qpn" "$@" ;;
	esac
}

# expect_good: a message arrives.
expect_good()
{
	forge psn=$((++good))
	wait_said receiver "64 bytes from 0x1234: message $good\$"
}

# expect_immediate: a message with immediate data arrives, and so do these.
expect_immediate()
{
	forge psn=$((++good)) opcode=0x65 imm=0x12340000
	wait_said receiver "64 bytes from 0x1234 with 0x12340000: message $good\$"
}

counter_is()
{
	[ "$(counter "$1")" -eq "$2" ]
}

# expect_dropped NAME KEY=VALUE...: such a one does not, and is counted under that name.
expect_dropped()
{
	local name=$1 before
	shift
	before=$(counter "$name")
	forge psn=777 "$@"
	wait_until "$name counts $family $*" counter_is "$name" $((before + 1))
	expect_good
}

for family in IPv4 IPv6; do
	expect_good
	expect_immediate
	expect_dropped bad_icrc icrc=0xffff0001
	expect_dropped bad_version version=1
	expect_dropped unknown_opcode opcode=0x44
	expect_dropped no_qp opcode=0x04
	expect_dropped unknown_opcode opcode=0xff
	expect_dropped bad_pad pad=3 size=0
	expect_dropped too_short cut=80
	expect_dropped too_short cut=200
	expect_dropped bad_icrc cut=4
	expect_dropped bad_pad cut=5
	expect_dropped truncated size=4960
	expect_dropped truncated size=4100
	expect_dropped bad_qkey qkey=0x22222222
	expect_dropped bad_pkey pkey=0x8001
	expect_dropped no_qp qpn=0x3fff
	expect_dropped no_qp qpn=0xffffff
done
on h1 bash -c 'echo junk > /dev/udp/192.0.2.2/4791'
family=IPv4
expect_good
! says receiver '.*message 777' || complain "a damaged message was received"
says receiver '.* bytes from' $good || complain "not every good message was received once"
