#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The kernel's rdma_rxe with itself, two virtual machines on the lab's bridge: what the other
# tests here expect of Umbel, and the lab's checks of captures, hold for the kernel.

. "${0%/*}/../roce/lab.sh"
. "${0%/*}/../machine/lib.sh"

lab_up 1
machine_up v11 v12
capture v12

# listens MACHINE PORT
listens()
{
	machine "$1" grep -qs ": [0-9A-F]*:$(printf %04X "$2") [0-9A-F:]* 0A" \
		/proc/net/tcp /proc/net/tcp6
}

# pingpong NAME OPTION...: ibv_ud_pingpong from v12 to v11.
pingpong()
{
	local name=$1
	shift
	machine_launch "server-$name" v11 ibv_ud_pingpong "$@"
	wait_until "the server of $name listens" listens v11 18515
	machine_launch "client-$name" v12 ibv_ud_pingpong "$@" 192.0.2.11
	wait_ended "client-$name" 0
	wait_ended "server-$name" 0
}

pingpong ip4 -g 1 -n 10 -s 101
pingpong ip6 -g 2 -n 10 -s 102
pingpong link-local -g 0 -n 10 -s 1

machine_launch udaddy-server v11 udaddy -C 2 -S 65 -b 2001:db8::11
wait_until "udaddy's server listens" machine_cm_listens v11
machine_launch udaddy-client v12 udaddy -C 2 -S 65 -b 2001:db8::12 -s 2001:db8::11
wait_ended udaddy-client 0
wait_ended udaddy-server 0

# the kernel's rdma_cm joins on the network device, for IPv4 groups
machine_launch mckey-receiver v11 mckey -m 239.1.1.1 -b 192.0.2.11 -C 3
wait_members 239.1.1.1 "v11"

# On a busy machine rdma_rxe loses some of a burst before they are on the network: mckey sends again,
# until its receiver has as many as it wants.
send_to_group()
{
	machine_launch mckey-sender v12 mckey -m 239.1.1.1 -b 192.0.2.12 -C 3 -s
	wait_ended mckey-sender 0
	gone "${pid[mckey-receiver]}"
}
wait_until "mckey's receiver has all messages" send_to_group
wait_ended mckey-receiver 0
expect_said mckey-receiver 'data transfers complete'
wait_members 239.1.1.1 ""

captured v12
expect_packets 20 v12 'infiniband && ip.addr == 192.0.2.11 && udp.length == 136'
expect_packets 20 v12 'infiniband && ipv6.addr == 2001:db8::11 && udp.length == 136'
expect_packets 20 v12 'infiniband && ipv6.addr == fe80::ff:fe00:11 && udp.length == 36'
decode v12 'infiniband && ip.dst == 239.1.1.1' > "$TMPDIR/decoded"
[ "$(wc -l < "$TMPDIR/decoded")" -ge 3 ] || complain "to the group: $(cat "$TMPDIR/decoded")"
expect_sound v12
