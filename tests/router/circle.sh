#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# circle.sh PEER: three subnets in a circle, and two routers between the same two. Each receiver gets each message once;
# when a router ends, packets go round the other way.

# shellcheck source=tests/router/lib.sh
. "$(dirname "$0")/lib.sh"

# numbers NAME: of the messages that it has, each as often as it came
numbers()
{
	sed -n 's/^message \([0-9]*\) .*/\1/p' "$TMPDIR/$1.out" | sort -n
}

# explain FABRIC MGID: what it has got, and what is known of the rest
explain()
{
	complain "$1 has not each message to $2 once: $(numbers "in_$1" | tr '\n' ' ')"
	umbel show --name "$1" routers --json
	umbel show --name "$1" drops
}

# to_all MGID COUNT: a member in a sends, and one in each subnet, the sender's too, has each message once
to_all()
{
	local at
	for at in a b c; do
		QUIET=60 peer "in_$at" "$at" h2 receive "$2" "$1"
		wait_until 'it has joined' says_or_ended "in_$at" here
	done
	for at in a:h3 a:h4 b:h3 b:h4 c:h3 c:h4; do
		is "${at%:*}" state up "${at#*:}" || continue
		wait_until "$at is a member" is "${at%:*}" groups 1 "${at#*:}"
	done
	peer sender a h1 group "$1" "$2"
	ended sender || complain 'the sender has failed'
	for at in a b c; do
		ended "in_$at" || complain "the receiver in $at has failed"
		[ "$(numbers "in_$at")" = "$(seq 0 $(($2 - 1)))" ] || explain "$at" "$1"
	done
	for at in a:h3 a:h4 b:h3 b:h4 c:h3 c:h4; do
		wait_until "$at is no member any more" is "${at%:*}" groups 0 "${at#*:}"
	done
}

# there_and_back FROM TO PREFIX HOPS
there_and_back()
{
	local gid qpn
	peer far "$2" h1 receive 10
	wait_until 'it is there' says_or_ended far here
	read -r gid qpn <<< "$(sed -n 's/^here //p' "$TMPDIR/far.out")"
	peer near "$1" h2 send "$gid" "$qpn" 10
	ended near || complain "no answer from $2"
	ended far || complain "the receiver in $2 has failed"
	grep -q "^message 9 from .* hops $3\$" "$TMPDIR/far.out" || complain "not hops $3: $(tail -n 1 "$TMPDIR/far.out")"
}

subnet a 1 4 h3,h4
subnet b 2 4 h3,h4
subnet c 3 4 h3,h4
umbel router a:h3 b:h3 > /dev/null
umbel router b:h4 c:h4 > /dev/null
wait_until 'a reaches c by b' reaches a h3 3 2
wait_until 'c reaches a by b' reaches c h4 1 2
there_and_back a c 253 # a chain
umbel router c:h3 a:h4 > /dev/null
wait_until 'a reaches c' reaches a h4 3 1
there_and_back a c 254
to_all ff1e::11 200

# One of the three ends: what has gone by it goes round, and nothing goes on for ever.
umbel router --end a:h3
wait_until 'a reaches b by c' reaches a h4 2 2
there_and_back a b 253
to_all ff1e::12 200

# Nobody reaches a subnet that has gone, by whatever way the others thought it could be reached.
umbel down --name c > /dev/null
wait_until 'a reaches nobody' is a routes '[]' h4
wait_until 'b reaches nobody' is b routes '[]' h4

# Two routers between the same two.
umbel router a:h3 b:h3 > /dev/null
umbel router a:h4 b:h4 > /dev/null
wait_until 'both are up' reaches a h4 2 1
subnet c 3 4 h3,h4
umbel router --end b:h4
umbel router b:h4 c:h4 > /dev/null
umbel router a:h4 c:h3 > /dev/null
wait_until 'a reaches c' reaches a h4 3 1
wait_until 'b reaches c' reaches b h4 3 1
to_all ff1e::13 200
