#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Hosts on an Ethernet of their own (--roce-hosts): what there is on them, that messages go by RoCEv2
# datagrams, and that a group reaches its members alone; beside InfiniBand, too.

. "${0%/*}/lab.sh"

# on HOST COMMAND...
on()
{
	umbel exec "$@"
}

# count HOST DIRECTION [DEVICE]: bytes that have passed its eth0, or that device
count()
{
	umbel exec "$1" -- cat "/sys/class/net/${3:-eth0}/statistics/$2_bytes"
}

# pair NAME SERVER CLIENT ADDRESS: udaddy from host to host
pair()
{
	listeners=$(field listeners default)
	start "server-$1" "$2" udaddy -b "$4"
	wait_until "$2 listens" listens
	start "client-$1" "$3" udaddy -s "$4"
	for side in client server; do
		wait_ended "$side-$1" 0
		expect_said "$side-$1" 'data transfers complete' 'return status 0'
	done
}

listens()
{
	[ "$(field listeners default)" -gt "$listeners" ]
}

# group NAME SENDER ADDRESS RECEIVER ADDRESS GROUP: 400 messages from host to host; grouped NAME: are there
group()
{
	start "receiver-$1" "$4" mckey -m "$6" -b "$5" -S 1000 -C 400
	wait_said "receiver-$1" 'mckey: joined dgid'
	start "sender-$1" "$2" mckey -m "$6" -b "$3" -S 1000 -C 400 -s
}

grouped()
{
	for side in sender receiver; do
		wait_ended "$side-$1" 0
		expect_said "$side-$1" 'data transfers complete'
	done
}

# ---- what there is; names that the machine uses are in nobody's way
for name in br0 eth0 p1 p2 r1; do
	ip link add $name type bridge 2> "$TMPDIR/ip.err" || [ "$(id -u)" -ne 0 ] || complain "$(cat "$TMPDIR/ip.err")"
done
ip -o link > "$TMPDIR/links"
expect 0 "*is up: 4 hosts*" umbel up --roce-hosts 4
for fault in width=1x speed=SDR errors=1 recoveries=1 flap=1ms; do
	expect 2 "umbel: the port is a network device's: *" umbel fault add link=r1:1 $fault
done
expect 0 '' diff "$TMPDIR/links" <(ip -o link)
expect 0 r2 on r2 -- hostname
expect 0 $'eth0\nlo' on r2 -- ls /sys/class/net
expect 0 $'172.16.0.3\tr3\nfd75:6d62:656c:e000::3\tr3' on r1 -- grep r3 /etc/hosts
expect 0 '*0% packet loss*' on r1 -- ping -4 -c 1 r4
expect 0 '*0% packet loss*' on r1 -- ping -6 -c 1 r4
expect 0 '*umbel_r1_0*PORT_ACTIVE*4096 (5)*link_layer:*Ethernet*' on r1 -- ibv_devinfo
expect 0 '*::ffff:172.16.0.2*' on r2 -- ibv_devinfo -v
expect 0 eth0 on r3 -- cat /sys/class/infiniband/umbel_r3_0/ports/1/gid_attrs/ndevs/0
expect 0 '*umbel_r1_0*umbel_r4_0*' umbel exec -- ibv_devices
expect 0 '*r4 *172.16.0.4 fd75:6d62:656c:e000::4 *umbel_r4_0 *active*' umbel show hosts

# ---- from host to host: what is sent passes the devices
before=$(count r1 tx)
pair one r2 r1 172.16.0.2
[ $(($(count r1 tx) - before)) -gt 1000 ] || complain 'messages do not pass the device'
pair six r2 r3 fd75:6d62:656c:e000::2
start server r2 ib_send_lat -c UD -d umbel_r2_0 -x 1 -n 200 -s 4096
wait_until 'perftest listens' on r2 -- grep -q ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6
before=$(count r1 tx)
expect 0 '*4096 *200*' on r1 -- ib_send_lat -c UD -d umbel_r1_0 -x 1 -n 200 -s 4096 172.16.0.2
wait_ended server 0
[ $(($(count r1 tx) - before)) -gt 800000 ] || complain 'messages of perftest do not pass the device'

# ---- a group reaches its members alone; what else there is are reports and queries
quiet=100000
others=$(count r3 rx)
before=$(count r2 rx)
group v4 r1 172.16.0.1 r2 172.16.0.2 239.1.2.3
grouped v4
[ $(($(count r2 rx) - before)) -gt 400000 ] || complain 'messages to the group do not pass the device'
[ $(($(count r3 rx) - others)) -lt $quiet ] || complain 'r3 is no member, but gets what is sent to the group'

# a member that is killed is none any more
start member r2 "${UMBEL%/bin/*}/tests/programs/roce.receiver" umbel_r2_0 ::ffff:239.1.2.4
wait_said member qpn
start member6 r3 "${UMBEL%/bin/*}/tests/programs/roce.receiver" umbel_r3_0 ff15::1:204
wait_said member6 qpn
# reach HOST GROUP: sends a datagram of IP there; whether it gets to the host
reach()
{
	local rx=0

	rx=$(count "$1" rx)
	on r1 -- /usr/bin/python3 -c '
import socket, sys
group = sys.argv[1]
s = socket.socket(socket.AF_INET6 if ":" in group else socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(bytes(4000), (group, 9))' "$2"
	[ $(($(count "$1" rx) - rx)) -ge 4000 ]
}
wait_until 'the group leads to r2' reach r2 239.1.2.4
wait_until 'the group of IPv6 leads to r3' reach r3 ff15::1:204
not reach r3 239.1.2.4 || complain 'the group leads to r3, too'
not reach r2 ff15::1:204 || complain 'the group of IPv6 leads to r2, too'
kill -9 "${pid[member]}" "${pid[member6]}"
wait_until 'the group leads to r2 no more' not reach r2 239.1.2.4
wait_until 'the group of IPv6 leads to r3 no more' not reach r3 ff15::1:204
wait_ended member 137
wait_ended member6 137

# ---- a program on no host uses the HCAs of all
start receiver r4 mckey -m 239.1.2.5 -b 172.16.0.4 -C 10
wait_said receiver 'mckey: joined dgid'
expect 0 '*data transfers complete*' umbel exec -- mckey -m 239.1.2.5 -b 172.16.0.1 -C 10 -s
wait_ended receiver 0

# ---- nobody waits for a keeper that is stopped
kill -STOP "$(keeper)"
pair stopped r3 r4 172.16.0.3
kill -CONT "$(keeper)"

# ---- a device that goes down, that a user removes, or that goes with the keeper
port_is()
{
	[[ $(on "$1" -- ibv_devinfo) == *"$2"* ]]
}
expect 1 "umbel: r1:1 is the network device eth0: 'umbel exec r1 -- ip link set eth0 down' takes its link down, *" \
	umbel link down r1:1
on r1 -- env "PATH=$PATH" ip link set eth0 down
wait_until 'its port is down' port_is r1 PORT_DOWN
on r1 -- env "PATH=$PATH" ip link set eth0 up
wait_until 'its port is up' port_is r1 PORT_ACTIVE
on r4 -- env "PATH=$PATH" ip link delete eth0
wait_until 'the port of a device that is gone is down' port_is r4 PORT_DOWN
pair others r3 r1 172.16.0.3
kill -9 "$(keeper)"
wait_until 'the port is down without the keeper' port_is r1 PORT_DOWN
expect 0 r1 on r1 -- hostname
umbel down > /dev/null

# ---- beside InfiniBand: h1 is on both
umbel up --hosts 2 --roce @h1 --roce-hosts 2 --ipoib > /dev/null || exit 1
expect 0 $'eth0\nib0\nlo' on h1 -- ls /sys/class/net
expect 0 $'ib0\nlo' on h2 -- ls /sys/class/net
expect 0 $'*umbel_h1_0 *\n*umbel_h1_1 *' on h1 -- ibv_devices
expect 0 '*0% packet loss*' on h1 -- ping -c 1 10.0.0.2
expect 0 '*0% packet loss*' on h1 -- ping -c 1 r2
pair ib h2 h1 10.0.0.2
pair ethernet r2 h1 172.16.0.2
pair back h1 r1 172.16.0.3
umbel down > /dev/null

# ---- several HCAs: the second ones of all hosts are a network of their own
expect 0 "*is up: 2 hosts*" umbel up --roce-hosts 2 --hcas 2
expect 0 $'eth0\neth1\nlo' on r2 -- ls /sys/class/net
expect 0 $'*umbel_r1_0 *\n*umbel_r1_1 *' on r1 -- ibv_devices
expect 0 $'172.16.0.2\tr2\nfd75:6d62:656c:e000::2\tr2\n172.17.0.2\tr2\nfd75:6d62:656c:e001::2\tr2' \
	on r1 -- grep r2 /etc/hosts
expect 0 eth1 on r2 -- cat /sys/class/infiniband/umbel_r2_1/ports/1/gid_attrs/ndevs/0
expect 0 '*0% packet loss*' on r1 -- ping -4 -c 1 172.17.0.2
expect 0 '*0% packet loss*' on r1 -- ping -6 -c 1 fd75:6d62:656c:e001::2
expect 0 '172.17.0.2 dev eth1 lladdr 02:75:6d:01:00:02 *' on r1 -- env "PATH=$PATH" ip neighbour show 172.17.0.2
first=$(count r1 tx)
before=$(count r1 tx eth1)
pair first r2 r1 172.16.0.2
pair second r2 r1 172.17.0.2
pair six r1 r2 fd75:6d62:656c:e001::1
[ $(($(count r1 tx eth1) - before)) -gt 1000 ] || complain 'messages do not pass the second device'
start server r2 ib_send_lat -c UD -d umbel_r2_1 -x 1 -n 200 -s 4096
wait_until 'perftest listens' on r2 -- grep -q ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6
expect 0 '*4096 *200*' on r1 -- ib_send_lat -c UD -d umbel_r1_1 -x 1 -n 200 -s 4096 172.17.0.2
wait_ended server 0
group second r1 172.17.0.1 r2 172.17.0.2 239.1.2.3
grouped second
[ $(($(count r1 tx eth1) - before)) -gt 1200000 ] || complain 'messages of the second HCA do not pass its device'
[ $(($(count r1 tx) - first)) -lt $quiet ] || complain 'messages of the second HCA pass the first device'
umbel down > /dev/null
umbel up --hosts 1 --roce @h1 --roce-hosts 1 --hcas 2 --ipoib > /dev/null || exit 1
expect 0 $'eth0\nib0\nib1\nlo' on h1 -- ls /sys/class/net
pair back r1 h1 172.16.0.1
pair forth h1 r1 172.16.0.2
umbel down > /dev/null

# ---- without IPoIB, InfiniBand's hosts have an empty network
expect 0 lo umbel run --hosts 2 --roce-hosts 1 --host h2 -- ls /sys/class/net
expect 0 $'eth0\nlo' umbel run --roce @h2 --host h2 -- ls /sys/class/net

# ---- refused
for number in 0 1024 99999999999 x; do
	expect 2 "umbel: up: '$number' hosts with RoCE: there may be 1 to 1023; *" umbel up --roce-hosts $number
done
expect 2 "umbel: up: the hosts' Ethernet has 1023 ports; *" umbel up --roce-hosts 1023 --roce @h1
expect 2 "umbel: up: the hosts' Ethernet has 1023 ports; *" umbel up --roce-hosts 512 --hcas 2
expect 2 "umbel: up: hosts with RoCE have 1 to 16 HCAs; *" umbel up --roce-hosts 1 --hcas 17
expect 1 "umbel: network device 'eth0' is named twice" umbel up --roce @h1,@h1
expect 1 "umbel: there is no host 'h9' to have a network device" umbel up --roce @h9
