#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The port counters add up what RC sends: ibv_rc_pingpong of 10 messages of 10,000 bytes, each of
# which takes 10 packets at a path MTU of 1,024.

. "${0%/*}/perftest.bash"

# counter HOST NAME
counter()
{
	umbel exec "$1" -- cat "/sys/class/infiniband/umbel_$1_0/ports/1/counters/$2"
}

umbel up --hosts 2 > /dev/null
before=$(counter h1 unicast_xmit_packets)
serve rc h1 ibv_rc_pingpong -s 10000 -n 10 -m 1024
client rc h2 ibv_rc_pingpong -s 10000 -n 10 -m 1024
wait_ended client-rc 0
wait_ended server-rc 0
[ $(($(counter h1 unicast_xmit_packets) - before)) -eq 100 ] ||
	complain "h1 has sent $(($(counter h1 unicast_xmit_packets) - before)) packets, not 100"
[ "$(counter h1 unicast_xmit_packets)" -eq "$(counter h2 unicast_rcv_packets)" ] ||
	complain "h2 has received $(counter h2 unicast_rcv_packets) packets, h1 has sent $(counter h1 unicast_xmit_packets)"
