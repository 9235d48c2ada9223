#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A list of messages leaves by one system call, whether or not the kernel is to cut it, and
# nothing else is asked of the kernel; what has come from the network is received by as few calls as lists
# were sent, or, where it comes one by one, by one call for many.

. "${0%/*}/lab.sh"

# who is traced cannot look for leaks
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
LISTS=50
LENGTH=32
WAITING=4 # lists: what a socket has room for, without privileges

# calls LISTS LENGTH BYTES: all of them from the first datagram to the last. How many calls the start
# takes differs (the sanitizers read the process's maps).
calls()
{
	UMBEL_FABRIC=h1 on h1 "${without_privileges[@]}" umbel exec -- strace -f -o "$TMPDIR/strace" \
		"$programs_dir/roce.lists" send 192.0.2.1 239.3.3.3 0xffffff "$@" ||
		complain "cannot send $*"
	awk '/htons\(4791\)/ && /send/ { if (!first) first = NR; last = NR }
		END { print first ? last - first + 1 : 0 }' "$TMPDIR/strace"
}

# expect_calls HOW LENGTH BYTES: one for each list.
expect_calls()
{
	local more=$(($(calls $((2 * LISTS)) "$2" "$3") - $(calls $LISTS "$2" "$3")))

	[ $more -eq $LISTS ] ||
		complain "$1: $LISTS lists of $2 messages of $3 bytes take $more system calls"
}

# expect_taken HOW: what one host has sent in lists the other, polling, takes in by few calls.
expect_taken()
{
	local got daemon qpn

	rm -f "$TMPDIR/go"
	mkfifo "$TMPDIR/go"
	start_on taker h2 strace -f -e trace=recvmsg,recvmmsg -o "$TMPDIR/strace" \
		"$programs_dir/roce.lists" take 192.0.2.2 $((WAITING * LENGTH)) "$TMPDIR/go"
	wait_said taker 'qpn ' || return
	qpn=$(sed -n 's/^qpn //p' "$TMPDIR/taker.out")
	daemon=$(field pid h2)
	kill -STOP "$daemon" # it would take them in, one by one
	UMBEL_FABRIC=h1 on h1 "${without_privileges[@]}" umbel exec -- \
		"$programs_dir/roce.lists" send 192.0.2.1 192.0.2.2 "$qpn" $WAITING $LENGTH 64
	echo > "$TMPDIR/go"
	kill -CONT "$daemon" # it has memory for them
	wait_said taker 'got all'
	wait_ended taker 0
	got=$(grep -c 'recvm*msg(.*AF_INET.* = [1-9]' "$TMPDIR/strace")
	# one for each list, or for as many messages as there are in one; a few to find that there
	# are many
	[ "$got" -le $((WAITING + 4)) ] ||
		complain "$1: $((WAITING * LENGTH)) messages are received by $got system calls"
}

# sending_in_pieces YES: whether h1 leaves it to the kernel to cut them
sending_in_pieces()
{
	umbel_on h1 down > /dev/null
	umbel_on h1 up --roce eth0 --set "roce_segments=$1" > /dev/null
}

lab_up 2
roce_up h1 h2
# so that none waits for the address to be resolved
ip -n h1 neighbour replace 192.0.2.2 dev eth0 nud permanent \
	lladdr "$(on h2 cat /sys/class/net/eth0/address)"
expect_calls "cut by the kernel" $LENGTH 64
expect_calls "cut by the kernel" $LENGTH 1024
expect_calls "cut by the kernel" 1 64
expect_taken "cut by the kernel"
sending_in_pieces 0
expect_calls "one by one" $LENGTH 64
expect_taken "one by one"
sending_in_pieces 1
ip -n h1 link set eth0 gso_max_segs 65535
expect_taken "joined"
