#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# One group on every medium: members on InfiniBand (two, by rdma_cm), on IP over InfiniBand (a socket),
# on RoCEv2 with Umbel and with the kernel's rdma_rxe, and a socket on an Ethernet without RDMA. Each
# sends, and hears all others: each message once, in the sequence of its sender.
#
# InfiniBand and Ethernet meet on one host, where a gateway of ours forwards the group. So do what is
# RDMA's and what is UDP's: RoCEv2 packets, or UD messages of InfiniBand, have headers of their own,
# and go to no socket of the kernel's.

. "${0%/*}/../roce/lab.sh"
. "${0%/*}/../machine/lib.sh"

group=239.1.2.3
count=300
gateway=$programs_dir/roce.gateway

# interface NAMESPACE HOST ADDRESS: IP over InfiniBand for that host, in that namespace
interface()
{
	# umbel-ipoib ends with its parent, which is this shell
	launch "ib0-$1" ip netns exec "$1" env UMBEL_FABRIC=h1 umbel exec "$2" -- umbel-ipoib \
		--interface ib0 --address "$3/16" --status-fd 1
	wait_said "ib0-$1" R || exit 1
}

# h1 is the gateway's, h2 has RoCEv2, h3 nothing; ip4 has no Ethernet
lab_up 3
ip netns add ip4 && ip -n ip4 link set lo up || exit 1
umbel_on h1 up --hosts 4 --roce eth0@h1 > /dev/null || exit 1
roce_up h2
machine_up v11
interface h1 h1 10.0.0.1
interface ip4 h4 10.0.0.4

launch gateway env UMBEL_FABRIC=h1 ip netns exec h1 umbel exec h1 -- "$gateway" forward $group \
	10.0.0.1 192.0.2.1 udp:10.0.0.1 udp:192.0.2.1
wait_said gateway ready

# member NAME NUMBER ADDRESS START...: a member, which START NAME ... starts. Number 0 begins.
members=6
member()
{
	local name=$1 number=$2 address=$3
	shift 3
	"$1" "$name" "${@:2}" "$gateway" member $group "$address" $count "$number" $members
}
# on_infiniband NAME HOST COMMAND...: a host of the fabric
on_infiniband()
{
	launch "$1" env UMBEL_FABRIC=h1 ip netns exec h1 umbel exec "$2" -- "${@:3}"
}
member infiniband 1 10.0.0.3 on_infiniband h3
member ipoib 2 udp:10.0.0.4 launch_on ip4
member roce 3 192.0.2.2 start_on h2
member rxe 4 192.0.2.11 machine_launch v11
member udp 5 udp:192.0.2.3 launch_on h3
for name in infiniband ipoib roce rxe udp; do
	wait_said $name ready
done
member sender 0 10.0.0.2 on_infiniband h2
everybody=(sender infiniband ipoib roce rxe udp)
for name in "${everybody[@]}"; do
	wait_said "$name" 'all in sequence'
done

# the group was there on each medium: two of InfiniBand, RDMA's and IP's, and one of the Ethernet
expect 0 $'*ff12:4001:ffff::f01:203\n*h1 full, h2 full, h3 full\n*ff12:401b:ffff::f01:203\n*h1 full, h4 full\n*' \
	umbel_on h1 show groups
wait_members $group 'h1 h2 h3 v11'

# what came twice after that would have ended them
machine_end rxe v11
for name in "${everybody[@]}" gateway; do
	[ $name = rxe ] || kill "${pid[$name]}"
	wait_ended $name 143
done
wait_members $group ''
for fabric in h1 h2; do
	umbel_on $fabric down > /dev/null
done
