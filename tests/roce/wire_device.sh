#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connections to another machine while the network device is taken down and up again, loses its carrier, its address
# or its MTU, moves to another namespace, or is removed and made anew: as with Linux's rdma_rxe they know nothing of it
# but that packets get lost. What comes back within their retries has lost and doubled nothing; if it does not come
# back both ends get RETRY_EXC, and later connections are made as ever. Programs hear of each change by its event.

. "${0%/*}/lab.sh"
. "${0%/*}/traffic.bash"

goes_on=14 loses_path=15	# wire_death.c's numbers

lab_up 2
ip netns add elsewhere
roce_up h1 h2
start_on watch h2 ibv_asyncwatch -d umbel_eth0
wait_said watch 'umbel_eth0: async event FD' || exit 1

# events NAME: how many there were.
events()
{
	grep -c "^  event_type IBV_EVENT_$1 " "$TMPDIR/watch.out"
}

# during EVENT... -- COMMAND...: connections go on while the command does something to the network and puts it
# right again. There are these events.
during()
{
	local event
	local -A before=()
	local -a expected=()

	while [ "$1" != -- ]; do
		expected+=("$1")
		before[$1]=$(events "$1")
		shift
	done
	shift
	begin_both only=$goes_on seed=$RANDOM
	wait_said "$victims" sends || return
	sleep 0.0$((RANDOM % 10))
	"$@" || complain "cannot: $*"
	for event in "${expected[@]}"; do
		wait_said watch "  event_type IBV_EVENT_$event " $((before[$event] + 1))
	done
	kill -USR1 "${pid[$victims]}"
	end_both
	[ $failed -eq 0 ] || { complain "while: $*"; exit; }
}

# without COMMAND...: what it takes away does not come back, and both ends hear of that.
without()
{
	begin_both only=$loses_path seed=$RANDOM
	wait_said "$victims" sends || return
	sleep 0.0$((RANDOM % 10))
	"$@" || complain "cannot: $*"
	end_both
	[ $failed -eq 0 ] || { complain "without: $*"; exit; }
}

set_up_device()
{
	ip -n h2 link set eth0 up gso_max_segs 1
	set_up_addresses
}

set_up_addresses()
{
	local address
	for address in 192.0.2.2/24 2001:db8::2/64; do
		ip -n h2 address replace $address dev eth0
	done
}

# ---- for a moment

down_and_up()
{
	ip -n h2 link set eth0 down
	sleep "$1"
	ip -n h2 link set eth0 up
	set_up_addresses
}

# By the peer's end of the cable. The kernel may take a second to tell, and tells nothing of what is over by then.
loses_carrier()
{
	ip link set h2 down
	sleep "$1"
	ip link set h2 up
}

loses_carrier_and_hears_of_it()
{
	local before
	before=$(events PORT_ERR)
	ip link set h2 down
	wait_said watch "  event_type IBV_EVENT_PORT_ERR " $((before + 1))
	ip link set h2 up
}

loses_address()
{
	ip -n h2 address del 192.0.2.2/24 dev eth0
	sleep "$1"
	ip -n h2 address add 192.0.2.2/24 dev eth0
}

# another one has its place in the port's table of GIDs when it comes back
changes_places()
{
	ip -n h2 address del 192.0.2.2/24 dev eth0
	ip -n h2 address add 192.0.2.22/24 dev eth0
	sleep "$1"
	ip -n h2 address add 192.0.2.2/24 dev eth0
}

restore_places()
{
	ip -n h2 address flush dev eth0 to 192.0.2.0/24
	ip -n h2 address add 192.0.2.2/24 dev eth0
	wait_until "192.0.2.2 is the first one again" is_first
}

is_first()
{
	umbel_on h2 exec -- ibv_devinfo -v > "$TMPDIR/devinfo"
	grep -q 'GID\[  1\]:.*192.0.2.2,' "$TMPDIR/devinfo"
}

# to less than the connections' packets
loses_mtu()
{
	ip -n h2 link set eth0 mtu 1000
	sleep "$1"
	ip -n h2 link set eth0 mtu 1500
	set_up_addresses
}

moves()
{
	ip -n h2 link set eth0 netns elsewhere
	sleep "$1"
	ip -n elsewhere link set eth0 netns h2
	set_up_device
}

# another device has its index when it comes back
is_renumbered()
{
	local index
	index=$(on h2 cat /sys/class/net/eth0/ifindex)
	ip -n h2 link set eth0 netns elsewhere
	ip -n h2 link add other index "$index" type veth peer name another
	sleep "$1"
	ip -n elsewhere link set eth0 netns h2
	set_up_device
	[ "$(on h2 cat /sys/class/net/eth0/ifindex)" -ne "$index" ]
	ip -n h2 link delete other
}

is_made_anew()
{
	ip link delete h2
	sleep "$1"
	lab_device 2
}

for moment in 0 0.02 0.3; do
	during PORT_ERR PORT_ACTIVE -- down_and_up $moment
	during -- loses_carrier $moment
	during GID_CHANGE -- loses_address $moment
	during GID_CHANGE -- changes_places $moment
	restore_places
	during -- loses_mtu $moment
	during PORT_ERR PORT_ACTIVE -- moves $moment
	during PORT_ERR PORT_ACTIVE -- is_renumbered $moment
	during PORT_ERR PORT_ACTIVE -- is_made_anew $moment
done
during PORT_ERR PORT_ACTIVE -- loses_carrier_and_hears_of_it

# ---- for good

without ip -n h2 link set eth0 down
set_up_device
during -- true
without ip link set h2 down
ip link set h2 up
during -- true
without ip -n h2 address del 192.0.2.2/24 dev eth0
set_up_addresses
during -- true
without ip -n h2 link set eth0 netns elsewhere
ip -n elsewhere link set eth0 netns h2
set_up_device
during -- true
# another address comes where the one that connections have was: none of their packets leaves with that
renumber()
{
	ip -n h2 address del 192.0.2.2/24 dev eth0 && ip -n h2 address add 192.0.2.22/24 dev eth0
}
capture h2	# before: on a busy machine the connections might fail first
without renumber
captured h2
expect_packets 0 h2 'ip.src == 192.0.2.22 && infiniband'
expect_sound h2
restore_places
during -- true
