#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Hosts reach each other by IPv4 and IPv6, in packets of any size, over three switches; a host learns
# that nobody has an address; the interface has the broadcast group's MTU, or that of connected mode, and the port's link-local
# address, and goes with its program.

. "${0%/*}/lab.sh"

lab_up 4 --fat-tree 2 --radix 4 --hosts 4
interfaces 4

mtu=4092
[ $mode = datagram ] || mtu=65520
expect 0 "*mtu $mtu *UP*" on h1 ip link show ib0
gid=$(umbel exec h1 -- ibv_devinfo -v | sed -n 's/.*GID\[ *0\]:[[:space:]]*\([0-9a-f:]*\).*/\1/p')
# the GUID, with the bit that says it is unique everywhere
local=fe80::$(printf '%x' $((0x$(cut -d: -f5 <<< "$gid") | 0x200))):$(cut -d: -f6- <<< "$gid")
on h1 ip -6 address show dev ib0 scope link | grep -q "$(
	python3 -c 'import ipaddress, sys; print(ipaddress.ip_address(sys.argv[1]))' "$local")" ||
	complain "ib0 does not have $local:"$'\n'"$(on h1 ip -6 address show dev ib0)"

for address in 192.0.2.2 192.0.2.4 2001:db8::2 2001:db8::4 "$local%ib0"; do
	from=h1
	[[ $address != fe80* ]] || from=h3
	for bytes in 56 4064 4065 20000; do
		pings 3 $from -i 0.01 -s $bytes "$address"
	done
done
pings 1000 h4 -f -l 3 192.0.2.1

expect 1 '*Destination Host Unreachable*100% packet loss*' on h1 ping -n -c 1 192.0.2.99
expect 1 '*Address unreachable*100% packet loss*' on h1 ping -n -c 1 2001:db8::99

kill_hard ib0-h4 2> /dev/null
wait_until "the interface is gone" not ip -n h4 link show dev ib0 2> /dev/null
on h2 ip link del ib0
wait_ended ib0-h2 1
expect_said ib0-h2 'Rumbel-ipoib: ib0: somebody has removed it'
kill "${pid[ib0-h3]}"
wait_ended ib0-h3 0
umbel down > /dev/null
wait_ended ib0-h1 1
expect_said ib0-h1 'Rumbel-ipoib: ib0: the fabric has ended'
