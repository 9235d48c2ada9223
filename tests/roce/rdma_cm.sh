#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs of rdma_cm between two hosts with Umbel: udaddy resolves a service by either IP version,
# on its own host, too; mckey joins, and the network sees it, unless it only sends; addresses that
# are on no HCA are refused.

. "${0%/*}/lab.sh"

lab_up 2
roce_up h1 h2

# udaddy NAME SERVER-HOST SERVER-ADDRESS OPTION...: from h1.
udaddy()
{
	local name=$1 host=$2 address=$3
	shift 3
	wait_until "earlier servers of $name have ended" listen "$host" 0
	start_on "server-$name" "$host" udaddy -b "$address" "$@"
	wait_until "the server of $name listens" listen "$host" 1
	start_on "client-$name" h1 udaddy -s "$address" "$@"
	for side in client server; do
		wait_ended "$side-$name" 0
		expect_said "$side-$name" 'data transfers complete' 'return status 0'
	done
}

# listen HOST COUNT: whether so many servers do there; they do not say it themselves.
listen()
{
	[ "$(field listeners "$1")" -eq "$2" ]
}

udaddy ip4 h2 192.0.2.2 -C 10 -S 64
udaddy ip6 h2 2001:db8::2 -C 10 -S 1000
udaddy several h2 192.0.2.2 -c 4 -C 3
udaddy same-host h1 192.0.2.1 -C 10

# ---- groups
# group NAME ADDRESS PREFIX OPTION...: h2 receives, of a sender on h1 with these options.
group()
{
	local name=$1 address=$2 host=$3
	shift 3
	start_on "receiver-$name" h2 mckey -m "$address" -b "${host}2" -C 20
	wait_said "receiver-$name" 'receiving data transfers'
	wait_members "$address" h2
	start_on "sender-$name" h1 mckey -m "$address" -b "${host}1" -C 20 -s "$@"
	for side in sender receiver; do
		wait_ended "$side-$name" 0
		expect_said "$side-$name" 'mckey: joined dgid: .* mlid 0x0 ' 'data transfers complete'
	done
	wait_members "$address" ""
}

group ip4 239.1.2.3 192.0.2.
group ip6 ff15::1:203 2001:db8::
group send-only 239.1.2.4 192.0.2. -o

# ---- one that joins and is seen to have joined, until it is killed
start_on member h1 mckey -m 239.9.9.9 -b 192.0.2.1
wait_members 239.9.9.9 h1
kill -9 "${pid[member]}"
wait_members 239.9.9.9 ""

# ---- addresses that are nobody's, no route, or one by another device
expect 255 'mckey: addr bind failure: Cannot assign requested address*' \
	umbel_on h1 exec -- mckey -m 239.1.1.1 -b 192.0.2.9
expect 255 '*udaddy: failure getting addr: Network is unreachable*' \
	umbel_on h1 exec -- udaddy -s 203.0.113.9
expect 255 '*udaddy: failure getting addr: Network is unreachable*' \
	umbel_on h1 exec -- udaddy -s 203.0.113.9 -b 192.0.2.1
on h1 ip link add other type veth peer name elsewhere
on h1 ip address add 203.0.113.1/24 dev other
on h1 ip link set other up
expect 237 '*RDMA_CM_EVENT_ADDR_ERROR, error: -19*' \
	umbel_on h1 exec -- udaddy -s 203.0.113.9

# ---- a group without a source is where the routes say, and nowhere without a route
start_on routed h1 mckey -m 239.9.9.10
wait_members 239.9.9.10 h1
kill -9 "${pid[routed]}"
on h1 ip route change 224.0.0.0/4 dev other
expect 255 '*RDMA_CM_EVENT_ADDR_ERROR, error: -19*' umbel_on h1 exec -- mckey -m 239.9.9.9
on h1 ip route del 224.0.0.0/4
expect 255 '*mckey: resolve addr failure: Network is unreachable*' \
	umbel_on h1 exec -- mckey -m 239.9.9.9
start_on sourced h1 mckey -m 239.9.9.9 -b 192.0.2.1
wait_members 239.9.9.9 h1

# ---- the IPoIB port space is InfiniBand's
expect 255 'mckey: addr bind failure: Invalid argument*' \
	umbel_on h1 exec -- mckey -m 239.1.1.1 -b 192.0.2.1 -p 0x0002
