#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The network device moves to another namespace and comes back, with the same index, another one,
# or one that it had before: meanwhile the port is down; afterwards receivers that were there
# before, which sleep or poll and still have the sockets of then, in a group or not, receive again
# without doing anything. If the UDP port is taken when the device comes back, the port stays down
# until it is free.

. "${0%/*}/lab.sh"
. "${0%/*}/receivers.bash"

moves=0

# index_of HOST: of its device.
index_of()
{
	on "$1" cat /sys/class/net/eth0/ifindex
}

# leave_h2: moves the device away; the port is down.
leave_h2()
{
	ip -n h2 link set eth0 netns elsewhere
	moves=$((moves + 1))
	expect_event PORT_ERR $moves
	wait_shown 'state:.*PORT_DOWN'
}

# set_up_device: what it has lost on its way.
set_up_device()
{
	ip -n h2 link set eth0 up gso_max_segs 1
	ip -n h2 address add 192.0.2.2/24 dev eth0
	ip -n h2 address add 2001:db8::2/64 dev eth0
	ip -n h2 route add 224.0.0.0/4 dev eth0
}

# return_to_h2: moves it back.
return_to_h2()
{
	ip -n elsewhere link set eth0 netns h2
	set_up_device
}

# expect_arrivals: the port is active, messages arrive.
expect_arrivals()
{
	expect_event PORT_ACTIVE $moves
	wait_shown 'state:.*PORT_ACTIVE'
	wait_shown 'GID.*::ffff:192.0.2.2, RoCE v2'
	wait_shown 'GID.*2001:db8::2, RoCE v2'
	send_alone 192.0.2.2
	send_alone 2001:db8::2
	send_group
}

# check_moves: with the receivers that are there.
check_moves()
{
	local index i

	index=$(index_of h2)
	leave_h2
	return_to_h2
	[ "$(index_of h2)" -eq "$index" ] || complain "it has another index"
	expect_arrivals

	leave_h2
	ip -n h2 link add other index "$index" type veth peer name another
	return_to_h2
	[ "$(index_of h2)" -ne "$index" ] || complain "it has the same index"
	expect_arrivals

	ip link delete h2
	moves=$((moves + 1))
	expect_event PORT_ERR $moves
	ip -n h2 link delete other
	ip -n h2 link add eth0 index "$index" address 02:00:00:00:00:02 \
		type veth peer name h2 netns $$
	ip link set h2 master br0 up
	set_up_device
	[ "$(index_of h2)" -eq "$index" ] || complain "it does not have its first index"
	expect_arrivals

	# many times, faster than the daemon may notice: however many events it makes of it
	for ((i = 0; i < 10; i++)); do
		ip -n h2 link set eth0 netns elsewhere
		ip -n elsewhere link set eth0 netns h2
	done
	set_up_device
	wait_shown 'GID.*::ffff:192.0.2.2, RoCE v2'
	wait_shown 'state:.*PORT_ACTIVE'
	send_alone 192.0.2.2
	send_group
	moves=$(grep -c '^  event_type IBV_EVENT_PORT_ERR ' "$TMPDIR/watch.out")
}

# taken: whether somebody on h2 has the UDP port, of IPv4.
taken()
{
	on h2 grep -qs ':12B7 ' /proc/net/udp
}

receivers_up
ip netns add elsewhere
check_moves
receivers_stop
receivers_start -p
check_moves
receivers_stop

# programs that wait would have the port themselves
kill "${pid[watch]}"
wait_ended watch 143
ip -n h2 link set eth0 netns elsewhere
wait_shown 'state:.*PORT_DOWN'
launch_on holder h2 socat -u UDP4-RECV:4791 STDOUT
wait_until "port 4791 is taken" taken
return_to_h2
wait_shown 'GID.*::ffff:192.0.2.2, RoCE v2'
wait_shown 'state:.*PORT_DOWN'
wait_until "the log says why the port is down" \
	grep -q 'stays down until.*UDP port 4791 (IPv4) is taken by' "$UMBEL_RUNTIME_DIR/h2/log"
kill "${pid[holder]}"
wait_shown 'state:.*PORT_ACTIVE'
receivers_start
send_alone 192.0.2.2
send_group
