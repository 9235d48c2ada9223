#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connections between two machines end, or go on, as they must: a target that is stopped is served, one that
# is killed is noticed by the peer's retries, a neighbour that dies while it receives for all is nobody's
# loss, a device may be down for a moment, and no daemon is harmed.

. "${0%/*}/lab.sh"
. "${0%/*}/pairs.bash"

lab_up 2
roce_up h1 h2

# sent HOST: packets that its connections have sent, as its network counts them.
sent()
{
	on "$1" cat /sys/class/net/eth0/statistics/tx_packets
}

# flows HOST: until many more packets have left it.
flows()
{
	local before
	before=$(sent "$1")
	wait_until "packets leave $1" more_than "$1" $((before + 5000))
}

more_than()
{
	[ "$(sent "$1")" -gt "$2" ]
}

# ---- a target that runs no instruction is served, by its daemon
begin_pair stopped ib_write_bw -F -D 5 -s 4096
flows h2
kill -STOP "${pid[server-stopped]}"
flows h2
kill -CONT "${pid[server-stopped]}"
end_pair stopped

# ---- one that is killed
begin_pair killed ib_write_bw -F -D 30 -s 4096
flows h2
kill_hard server-killed
wait_ended client-killed 1
expect_said client-killed ' Completion with error at client'

# ---- neighbours that poll, and so receive for all, are killed again and again
begin_pair goes-on ib_send_bw -F -D 6 -s 2000 -u 17 # retries for 4 s: the machine may be busy
flows h2
for i in 1 2 3 4 5; do
	begin_pair "neighbour$i" ib_send_lat -n 1000000 -c UD
	sleep 0.3
	kill -9 "${pid[client-neighbour$i]}" "${pid[server-neighbour$i]}"
	for side in client server; do
		wait_until "$side-neighbour$i is dead" gone "${pid[$side-neighbour$i]}"
	done
done
end_pair goes-on

# ---- the device is down for a moment: what got lost is sent again
# perftest's own TCP takes another way: over a device that was down the kernel sends pieces of 36 bytes,
# as that device's routes end at one with an MTU of 68, and perftest takes a piece for a broken message
ip link add t0 netns h1 type veth peer name t0 netns h2
for i in 1 2; do
	ip -n h$i address add 198.51.100.$i/24 dev t0
	ip -n h$i link set t0 up
done
server_address=198.51.100.1
begin_pair blink ib_write_bw -F -D 8 -s 4096 -u 16
flows h2
ip -n h1 link set eth0 down
sleep 0.2
ip -n h1 link set eth0 up
flows h2
end_pair blink
counters=$(umbel_on h2 show counters --json)
[[ $counters =~ \"(local_ack_timeout_err|packet_seq_err)\":\ [1-9] ]] ||
	complain "h2 counts no retransmission: $counters"
server_address=192.0.2.1

# ---- a daemon that is killed
begin_pair orphan ib_send_bw -F -D 30 -s 4096
flows h2
kill -9 "$(field pid h1)"
wait_until "the client has ended" gone "${pid[client-orphan]}"
expect_said client-orphan " Completion with error at client"
wait_until "the server has ended" gone "${pid[server-orphan]}"
expect 0 '*' umbel_on h2 status
