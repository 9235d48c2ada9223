#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The files of an Ethernet port in /sys and /dev: its GIDs as addresses come and go, its device's
# name, the device's link to the HCA, and counters, with ibstatus and plain shell.

. "${0%/*}/lab.sh"

hca=/sys/class/infiniband/umbel_eth0
port=$hca/ports/1

# see TEXT PATH: the file has that text.
see()
{
	expect 0 "$1" umbel_on h1 exec h1 -- cat "$2"
}

lab_up 1
roce_up h1
see Ethernet $port/link_layer
see '4: ACTIVE' $port/state
see 0x0 $port/lid
see fe80:0000:0000:0000:0000:00ff:fe00:0001 $port/gids/0
see 0000:0000:0000:0000:0000:ffff:c000:0201 $port/gids/1
see 'RoCE v2' $port/gid_attrs/types/1
see eth0 $port/gid_attrs/ndevs/1
expect 1 '*Invalid argument' umbel_on h1 exec -- cat $port/gid_attrs/types/31
expect 0 $'*umbel_eth0*\n\tstate:\t\t 4: ACTIVE*link_layer:\t Ethernet*' umbel_on h1 exec -- ibstatus

# a port without QP 0 has no issmN
expect 0 'umad0' umbel_on h1 exec -- sh -c 'cd /sys/class/infiniband_mad; echo *m[am]*'
expect 0 'rdma_cm umad0 uverbs0' umbel_on h1 exec -- sh -c 'cd /dev/infiniband; echo *'

# from the device to the HCA, as scripts go; a device of the machine's own has its directory still
for way in 'echo /sys/class/net/*/device/infiniband/*' \
	'cd /sys/class/net/eth0/device; find "$PWD/infiniband" -mindepth 1 -maxdepth 1'; do
	expect 0 /sys/class/net/eth0/device/infiniband/umbel_eth0 umbel_on h1 exec -- bash -c "$way"
done
# and back
expect 0 eth0 umbel_on h1 exec -- ls /sys/class/infiniband/umbel_eth0/device/net
see 0x020000 /sys/class/net/eth0/device/class
see Ethernet /sys/class/net/eth0/device/infiniband/umbel_eth0/ports/1/link_layer
expect 0 /sys/devices/pci756d:00/756d:00:00.0/infiniband/umbel_eth0 \
	umbel_on h1 exec -- realpath /sys/class/net/eth0/device/infiniband/umbel_eth0
see 02:00:00:00:00:01 /sys/class/net/eth0/address
expect 2 '*No such file*' umbel_on h1 exec -- ls /sys/class/net/lo/device

# current: addresses, the link, another name
is()
{
	[ "$(umbel_on h1 exec -- cat "$2")" = "$1" ]
}
on h1 ip address add 192.0.2.77/24 dev eth0
wait_until "the new address is a GID" is 0000:0000:0000:0000:0000:ffff:c000:024d $port/gids/3
on h1 ip address del 192.0.2.77/24 dev eth0
wait_until "its GID is gone" is 0000:0000:0000:0000:0000:0000:0000:0000 $port/gids/3
on h1 ip link set eth0 down
wait_until "the port is down" is '1: DOWN' $port/state
on h1 ip link set eth0 up
wait_until "the port is active" is '4: ACTIVE' $port/state
