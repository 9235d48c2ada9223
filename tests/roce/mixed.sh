#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A fabric with ports of both kinds: h1, a host of an InfiniBand fabric, also has the network device eth0.
# Programs there use either port, those on other hosts see InfiniBand only. rdma_cm finds out by the
# destination which port it is to be. The lab's other host has RoCEv2 alone.

. "${0%/*}/lab.sh"

lab_up 2
umbel_on h1 up --hosts 3 --roce eth0@h1 > /dev/null || exit 1
roce_up h2

# beside NAME HOST COMMAND...: in the background, on that host of the mixed fabric.
beside()
{
	local name=$1 host=$2
	shift 2
	launch "$name" env UMBEL_FABRIC=h1 ip netns exec h1 "${without_privileges[@]}" \
		umbel exec "$host" -- stdbuf -oL "$@"
}

mixed()
{
	local host=$1
	shift
	umbel_on h1 exec "$host" -- "$@"
}

# ---- what there is
expect 0 $'*umbel_h1_0 *\n*umbel_eth0 *' mixed h1 ibv_devices
expect 0 '*umbel_h2_0 *' mixed h2 ibv_devices
! mixed h2 ibv_devices | grep -q eth0 || complain 'h2 sees the device of h1'
expect 0 '*PORT_ACTIVE*sm_lid:*1*link_layer:*InfiniBand*' mixed h1 ibv_devinfo -d umbel_h1_0
expect 0 '*PORT_ACTIVE*sm_lid:*0*port_lid:*0*link_layer:*Ethernet*' mixed h1 ibv_devinfo -d umbel_eth0
expect 0 '*h1 *10.0.0.1 *umbel_h1_0 *active *h1 *192.0.2.1 *umbel_eth0 *active *h3 *10.0.0.3 *' umbel_on h1 show hosts

# ---- messages by either port: rdma_cm to an address of the fabric, and to one of the network
# listen FABRIC COUNT: whether so many servers do there
listen()
{
	[ "$(field listeners "$1")" -eq "$2" ]
}

# both NAME: server-NAME and client-NAME end well
both()
{
	local side

	for side in client server; do
		wait_ended "$side-$1" 0
		expect_said "$side-$1" 'data transfers complete' 'return status 0'
	done
	wait_until "the server of $1 listens no more" listen "$2" 0
}

beside server-ib h2 udaddy -b 10.0.0.2
wait_until "h2 listens" listen h1 1
beside client-ib h1 udaddy -s 10.0.0.2
both ib h1

start_on server-out h2 udaddy -b 192.0.2.2
wait_until "the other fabric listens" listen h2 1
beside client-out h1 udaddy -s 192.0.2.2
both out h2

# a server on any address is reached by either port
for way in 'in 10.0.0.1 beside h3' 'wire 192.0.2.1 start_on h2'; do
	read -r name address how host <<< "$way"
	beside "server-$name" h1 udaddy
	wait_until "h1 listens" listen h1 1
	"$how" "client-$name" "$host" udaddy -s "$address"
	both "$name" h1
done

# connections are InfiniBand's
beside server-rc h1 rping -s -C 3
wait_until "h1 listens" listen h1 1
beside client-rc h2 rping -c -a 10.0.0.1 -C 3
wait_ended client-rc 0
wait_ended server-rc 0

# ---- a group on each side, at the same time
beside receiver-ib h2 mckey -m 239.1.2.3 -b 10.0.0.2 -C 20
start_on receiver-wire h2 mckey -m 239.1.2.3 -b 192.0.2.2 -C 20
for side in ib wire; do
	wait_said receiver-$side 'receiving data transfers'
done
wait_members 239.1.2.3 h2
for way in 'ib 10.0.0.1' 'wire 192.0.2.1'; do
	read -r side address <<< "$way"
	beside "sender-$side" h1 mckey -m 239.1.2.3 -b "$address" -C 20 -s
	for end in sender receiver; do
		wait_ended "$end-$side" 0
		expect_said "$end-$side" 'data transfers complete'
	done
done

# ---- the subnet manager manages the one, the device is the other: neither minds the other's troubles
port()
{
	mixed h1 ibv_devinfo -d "$1" | grep -q "state:.*$2"
}
on h1 ip link set eth0 down
wait_until "the Ethernet port is down" port umbel_eth0 PORT_DOWN
port umbel_h1_0 PORT_ACTIVE || complain 'the InfiniBand port is not active'
on h1 ip link set eth0 up
wait_until "the Ethernet port is back" port umbel_eth0 PORT_ACTIVE
umbel_on h1 link down umbel_h1_0:1 > /dev/null
port umbel_h1_0 PORT_DOWN || complain 'the InfiniBand port is not down'
port umbel_eth0 PORT_ACTIVE || complain 'the Ethernet port is not active'
umbel_on h1 link up umbel_h1_0:1 > /dev/null
wait_until "the InfiniBand port is back" port umbel_h1_0 PORT_ACTIVE
umbel_on h1 sm stop > /dev/null
umbel_on h1 sm start > /dev/null
port umbel_eth0 PORT_ACTIVE || complain 'the Ethernet port is not active under a new subnet manager'

# ---- refused
expect 1 "*there is no host 'h9' to have a network device" umbel_on h1 up --name other --hosts 2 --roce lo@h9
expect 2 '*--hosts goes with --roce only if that says a host: --roce lo@HOST*' umbel_on h1 up --hosts 2 --roce lo
expect 2 "*which host has 'eth0'? eth0@HOST*" umbel_on h1 up --roce lo@h1,eth0
umbel_on h1 down > /dev/null
umbel_on h2 down > /dev/null
