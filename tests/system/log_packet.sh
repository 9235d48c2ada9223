#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# UMBEL_LOG=packet=trace: the steps of one packet, from the sender's and the receiver's side, and
# UMBEL_LOG=packet=debug: why one is dropped. Nothing is printed without it.

. "${0%/*}/mckey.bash"

umbel up --hosts 2 > /dev/null

# traced FILE: what it traces, without time and process.
traced()
{
	sed -n 's/^[^ ]* umbel\[[0-9]*\] packet \(trace\|debug\): //p' "$1"
}

# expect_traced NAME PATTERN
expect_traced()
{
	# shellcheck disable=SC2053
	[[ $(traced "$TMPDIR/$1.out") == $2 ]] ||
		complain "$1: expected: $2"$'\n'"got: $(traced "$TMPDIR/$1.out")"
}

# pingpong NAME N [OPTION]...: N packets each way between h1 and h2.
pingpong()
{
	new_port
	start "server-$1" h1 ibv_ud_pingpong -p "$port" -g 0 -n "$2" "${@:3}"
	wait_listening "server-$1" "$port"
	start "client-$1" h2 ibv_ud_pingpong -p "$port" -g 0 -n "$2" "${@:3}" localhost
	wait_ended "client-$1" 0
	wait_ended "server-$1" 0
}

qp='QP 0x??????'
unset UMBEL_LOG
pingpong quiet 1
expect_traced client-quiet ''
expect_traced server-quiet ''

export UMBEL_LOG=packet=trace
pingpong traced 1
expect_traced client-traced "$qp: sends 1024 bytes from umbel_h2_0 port 1 to fe80::* $qp, flow *: 1 receivers here
$qp: delivered to $qp: position 0 of its ring
$qp: receives 1024 bytes from $qp: position 0"
expect_traced server-traced "$qp: receives 1024 bytes from $qp: position 0
$qp: sends 1024 bytes from umbel_h1_0 port 1 to fe80::* $qp, flow *: 1 receivers here
$qp: delivered to $qp: position 0 of its ring"

# short ones, of which each is like the one before it
pingpong short 9 -s 32
for side in client server; do
	[ "$(traced "$TMPDIR/$side-short.out" | grep -c 'delivered to')" = 9 ] ||
		complain "not all packets of the $side are traced"
done

# mckey posts one receive for each message that it expects: the second one has none
export UMBEL_LOG=packet=debug
receive receiver h1 -m 239.1.1.1 -C 1
wait_joined receiver
kill -STOP "${pid[receiver]}"	# else it may have left the group when the second one is sent
send sender h2 -m 239.1.1.1 -C 10
wait_complete sender
kill -CONT "${pid[receiver]}"
wait_complete receiver
[[ $(traced "$TMPDIR/sender.out") == *'dropped at umbel_h1_0 port 1: no_'* ]] ||
	complain "nothing says that messages were dropped"
