#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# hostile.sh PEER: what others suffer from a router: nothing from an other end that stands still, is killed, or from thousands
# of groups; what rules do to what crosses it.

# shellcheck source=tests/router/lib.sh
. "$(dirname "$0")/lib.sh"

number()
{
	grep -c '^message' "$TMPDIR/$1.out"
}

subnet a 1 4 h4
subnet b 2 4 h4
umbel router a b > /dev/null
wait_until 'a reaches b' reaches a h4 2 1
b=$(field pid b)

# An other end that stands still: a's receivers have all, and senders do not wait for ever; it goes on later.
peer there b h1 receive 100000 ff1e::21
wait_until 'it has joined' says_or_ended there here
peer here a h2 receive 3000 ff1e::21
wait_until 'it has joined' says_or_ended here here
wait_until 'the router is a member' is a groups 1
kill -STOP "$b"
began=$SECONDS
peer sender a h1 group ff1e::21 3000
ended sender || complain 'the sender has failed'
ended here || complain 'the receiver on its own subnet has failed'
[ "$(number here)" -eq 3000 ] || complain "it has $(number here) of 3000 messages"
[ $((SECONDS - began)) -lt 60 ] || complain "that took $((SECONDS - began)) s"
expect 0 '*' umbel status --name a
kill -CONT "$b"
peer here a h2 receive 20 ff1e::21
wait_until 'it has joined' says_or_ended here here
before=$(number there)
peer sender a h1 group ff1e::21 20
ended sender || complain 'the sender has failed'
ended here || complain 'the receiver on its own subnet has failed'
came() { [ "$(number there)" -ge $((before + 20)) ]; }
wait_until 'the rest has come' came

# Rules: what is lost on its way to the router does not cross; what is lost behind it has crossed.
umbel fault add --name b group=ff1e::22 "to=h2:*" drop
for at in b:h2 b:h3 a:h3; do
	peer "r$at" "${at%:*}" "${at#*:}" receive 10 ff1e::22
	wait_until 'it has joined' says_or_ended "r$at" here
done
wait_until 'the routers are members' is b groups 2
wait_until 'the routers are members' is a groups 2
peer sender a h1 group ff1e::22 10
ended sender || complain 'the sender has failed'
for at in rb:h3 ra:h3; do
	ended "$at" || complain "$at has failed"
done
fired() { umbel fault show --name b --json | grep -q '"fired": 10'; }
wait_until 'the rule has dropped ten messages' fired
[ "$(number rb:h2)" -eq 0 ] || complain "the rule let $(number rb:h2) messages through"
kill_hard rb:h2
umbel fault clear --name b

# A daemon that is killed: the other one goes on, and its router is free again.
kill -9 "$b"
wait_until 'its end is noticed' is a state down
expect 0 '*' umbel status --name a
umbel down --name b > /dev/null 2>&1
subnet b 2 4 h4
umbel router a b > /dev/null
wait_until 'a reaches b' reaches a h4 2 1

# A fabric with itself, and what is no socket.
umbel router --end a:h4
wait_until 'it has ended' is b state down
expect 1 '*same prefix*' sh -c 'umbel up --name c --hosts 2 --router h1,h2 --prefix 0xfec0000000000003 > /dev/null
	umbel router c c'
wait_until 'it has ended' is c state down
