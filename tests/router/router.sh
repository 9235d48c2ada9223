#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# router.sh PEER: two subnets and a router: unicast with answers, groups to every member of both once, hop limits, P_Keys,
# paths; tools that show it; a link, a subnet manager and a subnet that go.

# shellcheck source=tests/router/lib.sh
. "$(dirname "$0")/lib.sh"

mgid=ff1e::1:1

# whereabouts NAME: GID and QPN that a receiver has printed
whereabouts()
{
	wait_until "$1 is there" says_or_ended "$1" here
	sed -n 's/^here //p' "$TMPDIR/$1.out"
}

# all NAME COUNT: it has each message from 0 to COUNT - 1 once
all()
{
	[ "$(sed -n 's/^message \([0-9]*\) .*/\1/p' "$TMPDIR/$1.out" | sort -n)" = "$(seq 0 $(($2 - 1)))" ] ||
		complain "$1 has not each of $2 messages once"
}

subnet a 1 4 h4
subnet b 2 4 h4

# A router that leads nowhere is a host as any: a program on it, and others, are in groups.
for at in h3 h4; do
	peer "$at" a "$at" receive 20 ff1e::4
	wait_until 'it has joined' says_or_ended "$at" here
done
peer sender a h1 group ff1e::4 20
for at in sender h3 h4; do
	ended "$at" || complain "$at has failed"
done
all h3 20
all h4 20

expect 1 "umbel: 'a' and 'c' are subnets with the same prefix, *" sh -c '
	umbel up --name c --hosts 2 --router h2 --prefix 0xfec0000000000001 > /dev/null; umbel router a c'
wait_until 'what they had begun has ended' is a state down
umbel down --name c > /dev/null
expect 1 "umbel: fabric 'c': its subnet has the link-local prefix, *" sh -c '
	umbel up --name c --hosts 2 --router h2 > /dev/null; umbel router c a'
umbel down --name c > /dev/null
expect 1 "umbel: fabric 'b': 'h1' is no router" umbel router a b:h1
wait_until 'what they had begun has ended' is a state down
expect 0 'a:h4 (0xfec0000000000001) and b:h4 (0xfec0000000000002) are joined' umbel router a b
expect 1 "umbel: fabric 'a': each router is in use" umbel router a b
wait_until 'the ends know each other' is a state up
wait_until 'the ends know each other' is b state up
wait_until 'a reaches b' reaches a h4 2 1

# One port in the other subnet, and answers by the address that a completion has.
peer one b h1 receive 50
read -r gid qpn <<< "$(whereabouts one)"
[[ $gid == fec0::2:* ]] || complain "the receiver's GID is $gid"
peer to a h2 send "$gid" "$qpn" 50
ended to || complain 'no answer from the other subnet'
ended one || complain 'the receiver did not end'
all one 50
all to 50
grep -q "^path lid $(of a lid) hops 255" "$TMPDIR/to.out" || complain 'the path does not lead to the router'
grep -q "^message 0 from fec0::1:.* slid $(of b lid) hops 254" "$TMPDIR/one.out" ||
	complain "the first message: $(sed -n 2p "$TMPDIR/one.out")"
grep -q "^message 0 from fec0::2:.* slid $(of a lid)" "$TMPDIR/to.out" ||
	complain "the first answer: $(sed -n 2p "$TMPDIR/to.out")"

# A program on the router's own host, in both directions.
peer two b h1 receive 10
read -r gid qpn <<< "$(whereabouts two)"
peer from a h4 send "$gid" "$qpn" 10
ended from || complain 'the router sends nothing of its own host'
ended two || complain 'the receiver did not end'

# A hop limit of 1 ends at the router; a subnet that nobody reaches has no path.
launch one true
peer near b h1 receive 1
read -r gid qpn <<< "$(whereabouts near)"
before=$(of a dropped)
peer short a h2 send "$gid" "$qpn" 1 1
ended short && complain 'a hop limit of 1 led to another subnet'
wait_until 'it is counted' is a dropped $((before + 1))
peer far a h2 send fec0:0:0:9::1 1 1
ended far && complain 'there is a path to nowhere'
says far 'no path: status 0x500' || complain "no path: $(cat "$TMPDIR/far.out")"

# A group: members in both subnets, a sender in one. It joins after the receivers, or before them.
for late in '' yes; do
	[ ! "$late" ] || { export GO=1; mgid=ff1e::1:2; }
	[ ! "$late" ] || launch early sh -c "(sleep 2; until [ -e '$TMPDIR/go' ]; do sleep 0.1; done; echo g) |
		umbel exec --name a h1 -- '$peer' group $mgid 300"
	[ ! "$late" ] || wait_until 'the sender has joined' says_or_ended early joined
	for at in a:h2 a:h3 b:h1 b:h2; do
		peer "g$at" "${at%:*}" "${at#*:}" receive 300 "$mgid"
		wait_until 'it has joined' says_or_ended "g$at" here
	done
	wait_until 'the router has joined in a' is a groups 1
	wait_until 'the router has joined in b' is b groups 1
	if [ "$late" ]; then
		touch "$TMPDIR/go"
		unset GO
		ended early || complain 'the sender has failed'
	else
		peer sender a h1 group "$mgid" 300
		ended sender || complain 'the sender has failed'
	fi
	for at in a:h2 a:h3 b:h1 b:h2; do
		ended "g$at" || complain "$at has failed"
		all "g$at" 300
	done
	grep -q 'message 0 from fec0::1:.* hops 254' "$TMPDIR/gb:h1.out" || complain 'the GRH in b is wrong'
	grep -q 'message 0 from fec0::1:.* hops 255' "$TMPDIR/ga:h2.out" || complain 'the GRH in a is wrong'
	wait_until 'the router has left in a' is a groups 0
	wait_until 'the router has left in b' is b groups 0
done

# Debian's own program, whose groups are as wide as it is told; one of the link's scope stays where it is.
launch mckey umbel exec --name b h3 -- stdbuf -oL mckey -M ff1e::7 -b 10.0.0.3
wait_until 'it has joined' says_or_ended mckey 'receiving data'
wait_until 'the router has joined' is b groups 1
peer early a h3 receive 1000 ff1e::7 # mckey does not wait: until the router is there, its messages stay in a
wait_until 'the router has joined in a' is a groups 1
expect 0 '*return status 0' umbel exec --name a h1 -- mckey -s -M ff1e::7 -b 10.0.0.1
ended mckey || complain 'mckey received nothing'
kill "${pid[early]}"
ended early
wait_until 'the router has left in a' is a groups 0
# A group of the link has members in both, and so has a wide one, whose messages follow the others on the same way. Then a message
# comes from b itself: the receiver has been there all the time.
count=1
for group in ff12::7 ff1e::8; do
	peer "a_$group" a h2 receive 5 $group
	peer "b_$group" b h1 receive $count $group
	for at in a b; do
		wait_until "$at has joined $group" says_or_ended "${at}_$group" here
	done
	count=5
done
wait_until 'the router has joined in a' is a groups 1
for group in ff12::7 ff1e::8; do
	peer sender a h1 group $group 5
	ended sender || complain 'the sender has failed'
done
for name in a_ff12::7 a_ff1e::8 b_ff1e::8; do
	ended $name || complain "$name has failed"
	all $name 5
done
peer sender b h2 group ff12::7 1
ended sender || complain 'the sender has failed'
ended b_ff12::7 || complain 'the receiver has failed'
says b_ff12::7 'message 0 from fec0::2:' || complain "a group of the link has left it: $(sed -n 2p "$TMPDIR/b_ff12::7.out")"

# Fabric tools see what it is.
expect 0 '*Rt*"R-*' umbel exec --name a h1 -- ibnetdiscover
expect 0 'Router *' umbel exec --name a h4 -- ibstat
expect 0 '*' umbel check --name a

# The router's port goes down and up: it is a member again.
peer back b h1 receive 5 ff1e::3
wait_until 'it has joined' says_or_ended back here
umbel link --name b down h4:1
umbel link --name b up h4:1
wait_until 'the router has joined again' is b groups 1
GO=1 launch again sh -c "(until [ -e '$TMPDIR/again' ]; do sleep 0.1; done; echo g) |
	GO=1 umbel exec --name a h1 -- '$peer' group ff1e::3 5"
wait_until 'the router has joined in a' is a groups 1
touch "$TMPDIR/again"
ended again || complain 'the sender has failed'
ended back || complain 'the receiver has failed'
all back 5

# What one end is told to end ends at both; and what dies.
umbel router --end a:h4
wait_until 'the other end has gone, too' is b state down
expect 1 "umbel: fabric 'a': that router leads nowhere" umbel router --end a:h4
umbel router a b > /dev/null
wait_until 'they are joined again' is b state up
umbel down --name a > /dev/null
wait_until 'the other end has gone' is b state down
peer far2 b h2 send fec0:0:0:1::1 1 1
ended far2 && complain 'there is a path to a subnet that is gone'
umbel down --name b > /dev/null
