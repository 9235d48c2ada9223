#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# udpong between two hosts with Umbel: datagram rsockets over RoCEv2, by either IP version, both
# directions, on one host, and to a host without a route.

. "${0%/*}/lab.sh"
. "${0%/*}/../system/udpong.bash"
begin=start_on

lab_up 2
roce_up h1 h2

start_on server-1 h1 udpong -b 192.0.2.1 -T b
start_on server-2 h2 udpong -b 192.0.2.2 -T b
start_on server-6 h2 udpong -b 2001:db8::2 -T b

counters()
{
	for host in h1 h2; do
		umbel_on $host show counters --json
	done
}

# result NAME HOST OPTION...: a client there has its result.
result()
{
	client "$@"
	wait_result "$1"
}

result there h1 -s 192.0.2.2 -C 100 -S 64 -T e
result back h2 -s 192.0.2.1 -C 100 -S 64 -T e
result one-way h1 -s 192.0.2.2 -C 1000 -S 1000
result ip6 h1 -s 2001:db8::2 -C 100 -S 64 -T e
result same-host h2 -s 192.0.2.2 -C 100 -S 64 -T e

# longer than the MTU of 1024 with the header
expect 0 '*rsend: Message too long*' umbel_on h1 exec -- udpong -s 192.0.2.2 -C 1 -S 1017
expect 255 '*rconnect: Network is unreachable*' umbel_on h1 exec -- udpong -s 203.0.113.9
