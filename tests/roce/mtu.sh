#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The device's MTU is lowered and raised: the port's is the largest that fits. ibv_ud_pingpong
# between two hosts with messages of that size works, and refuses larger ones.

. "${0%/*}/lab.sh"

lab_up 2
roce_up h1 h2

# set_mtu BYTES PORT-MTU: on both.
set_mtu()
{
	local host

	for host in h1 h2; do
		ip link set $host mtu "$1"
		ip -n $host link set eth0 mtu "$1"
		wait_until "the MTU of $host's port is $2" port_mtu_is $host "$2"
	done
}

port_mtu_is()
{
	umbel_on "$1" exec -- ibv_devinfo | grep -q "active_mtu:[[:space:]]*$2 "
}

# pingpong BYTES
pingpong()
{
	start_on "server-$1" h2 ibv_ud_pingpong -g 1 -n 10 -s "$1" -e
	wait_until "the server listens" on h2 grep -q ':4853 00000000:0000 0A' /proc/net/tcp
	start_on "client-$1" h1 ibv_ud_pingpong -g 1 -n 10 -s "$1" -e 192.0.2.2
	wait_ended "client-$1" 0
	wait_ended "server-$1" 0
}

ip link set br0 mtu 9000
port_mtu_is h1 1024 || complain "an MTU of 1500 is not one of 1024"
set_mtu 600 512
pingpong 512
expect 1 '*size*larger than port MTU*512*' umbel_on h1 exec -- ibv_ud_pingpong -g 1 -s 513
set_mtu 9000 4096
pingpong 4096
