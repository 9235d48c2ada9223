#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A host with a network of its own that shares the machine's device: it has an interface of IPoIB and one of
# Ethernet, and speaks RoCEv2 with the lab's other host. That takes a privilege, and a message says so.

. "${0%/*}/lab.sh"

lab_up 2
roce_up h2

# fabric ARGUMENT...: umbel where h1 is, with the privilege
fabric()
{
	UMBEL_FABRIC=h1 on h1 umbel "$@"
}

expect 1 "umbel: to have network device 'eth0' on a host takes CAP_NET_ADMIN on this machine: Operation not permitted" \
	on h1 unshare --user --map-root-user umbel up --hosts 2 --ipoib --roce eth0@h1
expect 1 "umbel: host 'h1' cannot share network device 'eth9' (macvlan): No such device" \
	fabric up --hosts 2 --ipoib --roce eth9@h1
on h1 ip -o link > "$TMPDIR/links"
fabric up --hosts 2 --ipoib --roce eth0@h1 > /dev/null || exit 1
expect 0 '' diff "$TMPDIR/links" <(on h1 ip -o link)
expect 0 $'eth0\nib0\nlo' fabric exec h1 -- ls /sys/class/net
expect 0 $'ib0\nlo' fabric exec h2 -- ls /sys/class/net
expect 0 $'*umbel_h1_0 *\n*umbel_eth0 *' fabric exec h1 -- ibv_devices
fabric exec h1 -- env "PATH=$PATH" ip address add 192.0.2.11/24 dev eth0
has_gid()
{
	fabric exec h1 -- ibv_devinfo -v -d umbel_eth0 | grep -q '::ffff:192.0.2.11'
}
wait_until 'the address is a GID' has_gid

# beside NAME HOST COMMAND...: in the background, on that host of the fabric
beside()
{
	local name=$1 host=$2
	shift 2
	launch "$name" env UMBEL_FABRIC=h1 ip netns exec h1 umbel exec "$host" -- stdbuf -oL "$@"
}

listens()
{
	[ "$(field listeners "$1")" -eq 1 ]
}

# ---- by either port
start_on server-out h2 udaddy -b 192.0.2.2
wait_until 'the other fabric listens' listens h2
beside client-out h1 udaddy -s 192.0.2.2
beside server-ib h2 udaddy -b 10.0.0.2
wait_until 'h2 listens' listens h1
beside client-ib h1 udaddy -s 10.0.0.2
for name in client-out server-out client-ib server-ib; do
	wait_ended $name 0
	expect_said $name 'data transfers complete' 'return status 0'
done

# ---- a group of the network
beside receiver h1 mckey -m 239.1.2.3 -b 192.0.2.11 -C 20
wait_said receiver 'receiving data transfers'
wait_members 239.1.2.3 h1
start_on sender h2 mckey -m 239.1.2.3 -b 192.0.2.2 -C 20 -s
for name in sender receiver; do
	wait_ended $name 0
	expect_said $name 'data transfers complete'
done
wait_members 239.1.2.3 ''

fabric down > /dev/null
expect 0 '' diff "$TMPDIR/links" <(on h1 ip -o link)
umbel_on h2 down > /dev/null
