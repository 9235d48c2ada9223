#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What becomes of interfaces when the fabric fails and comes back: links, switches, ports, the subnet
# manager, LIDs, and the program itself.

. "${0%/*}/lab.sh"

lab_up 4 --fat-tree 2 --radix 4 --hosts 4
interfaces 4

everybody='h1 full, h2 full, h3 full, h4 full'
group=ff12:401b:ffff::f01:203
launch_on member h3 socat -u UDP4-RECV:7000,ip-add-membership=239.1.2.3:ib0 STDOUT
wait_members $group 'h3 full'

# all_reach ADDRESS...: from h1, soon
all_reach()
{
	for address in "$@"; do
		wait_until "h1 reaches $address after: $what" reaches h1 "$address"
	done
}

# the member hears of h1
heard()
{
	on h1 socat -u - UDP4-DATAGRAM:239.1.2.3:7000 <<< "after: $what"
	says member "after: $what\$"
}

check()
{
	all_reach 192.0.2.2 192.0.2.3 2001:db8::4
	wait_until "the member hears of h1 after: $what" heard
}

carrier()
{
	[ "$(on "$1" cat /sys/class/net/ib0/carrier)" = "$2" ]
}

what=nothing
check

# ---- links between switches, a switch
spine=$(umbel show topology | grep -o 'spine[0-9]*' | sort -u | head -n 1)
what="link down"
umbel link down "$spine:1"
check
what="link up"
umbel link up "$spine:1"
check
what="switch killed"
umbel switch kill "$spine"
check
what="switch revived"
umbel switch revive "$spine"
check

# ---- a port
what="port down"
umbel link down h3:1
wait_until "h3 has no carrier" carrier h3 0
wait_members $group '' # it ends with its last full member
expect 1 '*' on h1 ping -n -q -c 1 -W 1 192.0.2.3
what="port up"
umbel link up h3:1
wait_until "h3 has its carrier again" carrier h3 1
wait_members ff12:401b:ffff::ffff:ffff "$everybody"
check
wait_members $group 'h1 send-only-non, h3 full'

# ---- another LID; the SM asks to register anew, moves, ends and starts again
for event in "lid-change h3:1" "lid-change h1:1" "client-reregister h3:1" sm-change; do
	what=$event
	# shellcheck disable=SC2086
	umbel sm event $event
	check
	carrier h3 1 || complain "h3 has lost its carrier: $what"
done
what="SM stopped"
umbel sm stop
all_reach 192.0.2.2 192.0.2.3 2001:db8::4 # ours takes the trees of groups with it
umbel sm start
what="SM started"
wait_members ff12:401b:ffff::ffff:ffff "$everybody"
wait_members $group 'h1 send-only-non, h3 full'
check

# ---- the program: its neighbours learn of its new queue pair
what="interface killed"
kill_hard ib0-h2 2> /dev/null
expect 1 '*' on h1 ping -n -q -c 1 -W 1 192.0.2.2
ended[ib0-h2]=
interface h2
what="interface started again"
check

# ---- set down and up again: the link-local address is back, and groups are sent to
on h1 ip link set ib0 down
on h1 ip link set ib0 up
what="ib0 set down and up"
wait_until 'the address is back' eval "on h1 ip -6 addr show dev ib0 | grep -q 'inet6 fe80:'"
all_reach 192.0.2.2 192.0.2.3
wait_until "the member hears of h1 after: $what" heard
on h1 ip -6 addr add 2001:db8::1/64 dev ib0 # the kernel forgets this on any device
check

# ---- its queue pair: without receives it ends, and does not say that the fabric does
kill_hard ib0-h2 2> /dev/null
ended[ib0-h2]=
umbel fault add host=h2 receive=ENOMEM nth=300 > /dev/null
interface h2
on h1 ping -n -q -f -c 2000 -w 100 192.0.2.2 > /dev/null
pings 1 h1 192.0.2.2 # or it has ended with a receive that could not be posted
umbel fault clear > /dev/null
umbel fault add host=h2 receive=ENOMEM > /dev/null
wait_gone()
{
	reaches h1 192.0.2.2
	[[ $(cat "$TMPDIR/ib0-h2.out") == *'ib0: its queue pair has failed: it cannot receive any more'* ]]
}
wait_until 'h2 ends without receives' wait_gone
