#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# UDP port 4791 is somebody else's, of IPv4 or IPv6: RoCEv2 does not come up, the error says
# what is in the way, nothing is left behind, and once it is gone, it does.

. "${0%/*}/lab.sh"

# taken: whether somebody on h1 has it.
taken()
{
	on h1 grep -qs ":12B7 " /proc/net/udp /proc/net/udp6
}

# expect_taken FAMILY SOCAT-ADDRESS: while such a socket is there.
expect_taken()
{
	launch_on "holder-$1" h1 socat -u "$2" STDOUT
	wait_until "port 4791 is taken" taken
	expect 1 "umbel: eth0: UDP port 4791 ($1) is taken by *" umbel_on h1 up --roce eth0
	expect 0 'no fabric is up*' umbel_on h1 status
	kill "${pid[holder-$1]}"
	wait_until "port 4791 is free" not taken
}

lab_up 1
expect_taken IPv4 UDP4-RECV:4791
expect_taken IPv6 UDP6-RECV:4791,ipv6-v6only
roce_up h1
taken || complain "with RoCEv2 up nobody has port 4791"
# nobody manages the subnet of such a fabric
expect 1 'umbel: RoCE has no subnet manager' umbel_on h1 sm start
umbel_on h1 down > /dev/null
not taken || complain "with RoCEv2 down somebody has port 4791"
