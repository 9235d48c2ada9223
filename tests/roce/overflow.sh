#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Nobody receives for so long that the kernel's socket buffer is full: what it lost is counted, and
# messages go on after it.

. "${0%/*}/lab.sh"

lab_up 2
roce_up h2

# counter NAME
counter()
{
	umbel_on h2 show counters --json | sed -n "s/^ *\"$1\": \([0-9]*\),*\$/\1/p"
}

# forge PSN TIMES
forge()
{
	on h1 "$programs_dir/roce.forge" 192.0.2.1 192.0.2.2 qpn="$qpn" psn="$1" times="$2" size=1024
}

# counts_all: what a socket has lost, it says with what comes next; so one more is sent.
counts_all()
{
	forge 60000 1
	((sent++))
	[ $(($(counter rcv_pkts) + $(counter overflow))) -eq $sent ]
}

start_on receiver h2 "$programs_dir/roce.receiver" umbel_eth0
wait_said receiver 'qpn ' || exit 1
qpn=$(sed -n 's/^qpn //p' "$TMPDIR/receiver.out")
forge 0 1
wait_said receiver '1024 bytes from 0x1234: message 0$'
[ "$(counter overflow)" -eq 0 ] || complain "$(counter overflow) are lost already"

daemon=$(field pid h2)
kill -STOP "$daemon"
forge 1 50000
kill -CONT "$daemon"
sent=50001
wait_until "each is received or lost" counts_all
[ "$(counter overflow)" -gt 0 ] || complain "none of 50,000 were lost: they prove nothing"

# the receiver may not have had a receive left for that one
forge_and_see()
{
	forge 60001 1
	says receiver '1024 bytes from 0x1234: message 60001$'
}
wait_until "messages arrive again" forge_and_see
