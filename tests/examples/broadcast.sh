#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The reliable broadcast: 16 receivers get 16 MiB, every byte right, on InfiniBand, with and without losses; so do those of a
# file on RoCE. Packets that come twice or in another order do no harm, and neither does a receiver that dies.

. "${0%/*}/lib.sh"

build_examples broadcast
program=$examples/broadcast

# send RECEIVERS [OPTION]...
send()
{
	start sender "${letter}1" "$program" -n "$@" "$(address "${letter}1")" 239.1.1.1
	wait_said sender listens
}

# receive NUMBER [OPTION]...
receive()
{
	start "receiver$1" "$letter$1" "$program" -v "${@:2}" "$(address "$letter$1")" 239.1.1.1 "$(address "${letter}1")"
}

# reach RECEIVERS [OPTION]...: so many have all; the options are the sender's
reach()
{
	local i last=$(($1 + 1))

	send "$@"
	for i in $(seq 2 $last); do
		receive "$i"
	done
	for i in $(seq 2 $last); do
		wait_ended "receiver$i" 0
	done
	wait_ended sender 0
	expect_said sender "sent .* to $1 receivers\$"
}

# repaired NUMBER: how many bytes
repaired()
{
	sed -n 's/.*; repaired \([0-9]*\), .*/\1/p' "$TMPDIR/receiver$1.out"
}

# with_fault RECEIVERS WORD...: what the words say happens to the group's packets meanwhile
with_fault()
{
	umbel fault add group="$group" "${@:2}" > /dev/null
	reach "$1" -m 4000001
	umbel fault show --json | grep -q '"fired": [1-9]' || complain "it has not fired: $*"
	umbel fault clear
}

# A file of no whole number of chunks, through windows that are smaller than the sender's patience.
file_is_the_same()
{
	local i

	head -c 1000003 /dev/urandom > "$TMPDIR/file"
	send 2 -f "$TMPDIR/file"
	for i in 2 3; do
		receive $i -w 4 -f "$TMPDIR/file.$i"
	done
	for i in 2 3; do
		wait_ended receiver$i 0
		cmp "$TMPDIR/file" "$TMPDIR/file.$i" || complain "receiver $i has another file"
	done
	wait_ended sender 0
}

# It grants nothing any more, and the other one gets all; so it does when that one is dead.
one_dies()
{
	send 2 -m 16M
	receive 2
	wait_said receiver2 ready
	kill -STOP "${pid[receiver2]}"
	receive 3
	wait_ended receiver3 0
	kill_hard receiver2
	wait_ended sender 1
	expect_said sender 'broadcast: 1 receivers have gone'
}

sender_dies()
{
	send 2
	receive 2
	wait_said receiver2 ready
	kill_hard sender
	wait_ended receiver2 1
	expect_said receiver2 'broadcast: the sender has gone'
}

expect 0 'usage: broadcast *' "$program" -h
expect 2 "broadcast: '5000' is no number from 8 to 4096" "$program" -c 5000

letter=h group=ff12:4001:ffff::f01:101
umbel up --hosts 17 > /dev/null
reach 16 -m 16M
umbel fault add group=$group loss=1% seed=1 > /dev/null
reach 16 -m 16M
for i in $(seq 2 17); do
	[ "$(repaired "$i")" -gt 0 ] || complain "receiver $i has repaired nothing"
done
umbel fault clear
with_fault 2 duplicate chance=3%
with_fault 2 reorder chance=1%
file_is_the_same
one_dies
sender_dies
umbel down > /dev/null

letter=r group=239.1.1.1
umbel up --roce-hosts 3 > /dev/null
reach 2 -m 16M
file_is_the_same
with_fault 2 loss=1% seed=1
sender_dies
umbel down > /dev/null
