#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The first program of the tutorial (docs/first-multicast.md): what one host sends two others print, on
# InfiniBand and on RoCE.

. "${0%/*}/lib.sh"

build_examples first_multicast
program=$examples/first_multicast

send_three()
{
	umbel exec "${1}1" -- "$program" "$(address "${1}1")" 239.1.1.1 3 > "$TMPDIR/send.out" 2>&1 ||
		complain "it does not send: $(cat "$TMPDIR/send.out")"
}

both_print()
{
	says "two-$1" 'message 3$' && says "three-$1" 'message 3$'
}

# On Ethernet the network itself may still learn who is in the group: then it is sent again.
both_print_in_the_end()
{
	both_print "$1" || { send_three "$1"; both_print "$1"; }
}

# passes LETTER MGID: on hosts of which the name begins so
passes()
{
	start "two-$1" "${1}2" "$program" "$(address "${1}2")" 239.1.1.1
	start "three-$1" "${1}3" "$program" "$(address "${1}3")" 239.1.1.1
	expect 0 '' umbel wait --group "$2" --attached 2
	send_three "$1"
	wait_until 'both print it' "both_print${3-}" "$1"
	expect_said "two-$1" 'message 1$' 'message 2$'
	expect_said "three-$1" 'message 1$' 'message 2$'
	expect 0 'nothing was lost' umbel show drops
	kill_hard "two-$1"
	kill_hard "three-$1"
	umbel down > /dev/null
}

expect 2 '*usage: *' "$program" -h
umbel up --hosts 3 > /dev/null
expect 1 "first_multicast: 'h1' is no IPv4 address" umbel exec h1 -- "$program" h1 239.1.1.1
passes h ff12:4001:ffff::f01:101
umbel up --roce-hosts 3 > /dev/null
passes r ::ffff:239.1.1.1 _in_the_end
