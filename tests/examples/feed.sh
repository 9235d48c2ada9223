#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The market-data feed: subscribers have every message, received or recovered, whole and in order, unless the publisher's ring
# has it no more; on InfiniBand and on RoCE, with and without losses, beside one that stands still, and when the
# publisher dies.

. "${0%/*}/lib.sh"

build_examples feed
program=$examples/feed
messages=20000

publish()
{
	start publisher "${letter}1" "$program" -n $messages "$@" "$(address "${letter}1")" 239.1.1.1
	wait_said publisher listens
}

# subscribe NUMBER [OPTION]...
subscribe()
{
	start "subscriber$1" "$letter$1" "$program" "${@:2}" "$(address "$letter$1")" 239.1.1.1 "$(address "${letter}1")"
	wait_said "subscriber$1" follows
}

# counted NUMBER WHAT: how many the subscriber says are so
counted()
{
	sed -n "s/.*$2 \([0-9]*\).*/\1/p" "$TMPDIR/subscriber$1.out"
}

# has_all NUMBER: every message once, and the ring was large enough
has_all()
{
	wait_ended "subscriber$1" 0
	[ $(($(counted "$1" received) + $(counted "$1" recovered))) -eq $messages ] ||
		complain "subscriber $1 does not have $messages: $(cat "$TMPDIR/subscriber$1.out")"
	expect_said "subscriber$1" 'received .* too late 0$'
}

both_have_all()
{
	publish -s 2 "$@"
	subscribe 2
	subscribe 3
	has_all 2
	has_all 3
	wait_ended publisher 0
}

# nothing_waits HOST: its sockets of RoCE hold nothing that the daemon has yet to take
nothing_waits()
{
	umbel exec "$1" -- cat /proc/net/udp /proc/net/udp6 |
		awk '$2 ~ /:12B7$/ && $5 !~ /:00000000$/ { waits = 1 } END { exit waits }'
}

# A receive queue of 16 packets of 4 messages is full, and then the publisher is further than its ring of 64.
stands_still()
{
	publish -s 2 -k 64
	subscribe 2 -q 16
	kill -STOP "${pid[subscriber2]}"
	subscribe 3
	wait_said publisher "published $messages"
	wait_until 'all that was sent is taken or lost' nothing_waits "${letter}2"
	kill -CONT "${pid[subscriber2]}"
	wait_ended subscriber2 0
	wait_ended subscriber3 0
	wait_ended publisher 0
	expect_said subscriber2 "received 64, gaps 1, recovered 64, too late $((messages - 128))\$"
}

publisher_dies()
{
	publish -s 2
	subscribe 2
	kill_hard publisher
	wait_ended subscriber2 1
	expect_said subscriber2 'feed: the publisher has gone'
}

# on_hosts LETTER GROUP: named so; a group of faults
on_hosts()
{
	letter=$1
	expect 1 'feed: rdma_connect: Connection refused' umbel exec "${letter}2" -- "$program" \
		"$(address "${letter}2")" 239.1.1.1 "$(address "${letter}1")"
	both_have_all
	stands_still
	publisher_dies
	umbel fault add group="$2" loss=2% seed=1 > /dev/null
	both_have_all -r 50000
	[ "$(counted 2 gaps)" -gt 0 ] || complain 'no packet got lost'
	[ "$(counted 3 recovered)" -gt 0 ] || complain 'nothing was recovered'
	umbel down > /dev/null
}

expect 0 'usage: feed *' "$program" -h
expect 2 "feed: '0' is no number from 1 to *" "$program" -n 0
umbel up --hosts 3 > /dev/null
on_hosts h ff12:4001:ffff::f01:101
umbel up --roce-hosts 3 > /dev/null
on_hosts r 239.1.1.1
