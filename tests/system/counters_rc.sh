#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The port counters add up what RC sends: ibv_rc_pingpong of 10 messages of 10,000 bytes, each of
# which takes 10 packets at a path MTU of 1,024; and ib_read_bw's 100 READs of 3,000 bytes, each of
# one packet, which brings 3 back.

. "${0%/*}/perftest.bash"

# counter HOST NAME
counter()
{
	umbel exec "$1" -- cat "/sys/class/infiniband/umbel_$1_0/ports/1/counters/$2"
}

# sent HOST BEFORE EXPECTED
sent()
{
	local n=$(($(counter "$1" unicast_xmit_packets) - $2))

	[ "$n" -eq "$3" ] || complain "$1 has sent $n packets, not $3"
}

umbel up --hosts 2 > /dev/null
before=$(counter h1 unicast_xmit_packets)
serve rc h1 ibv_rc_pingpong -s 10000 -n 10 -m 1024
client rc h2 ibv_rc_pingpong -s 10000 -n 10 -m 1024
wait_ended client-rc 0
wait_ended server-rc 0
sent h1 "$before" 100
[ "$(counter h1 unicast_xmit_packets)" -eq "$(counter h2 unicast_rcv_packets)" ] ||
	complain "h2 has received $(counter h2 unicast_rcv_packets) packets, h1 has sent $(counter h1 unicast_xmit_packets)"

asked=$(counter h2 unicast_xmit_packets) answered=$(counter h1 unicast_xmit_packets)
serve read h1 ib_read_bw -F -s 3000 -n 100 -m 1024
client read h2 ib_read_bw -F -s 3000 -n 100 -m 1024
wait_ended client-read 0
wait_ended server-read 0
sent h2 "$asked" 100
sent h1 "$answered" 300
