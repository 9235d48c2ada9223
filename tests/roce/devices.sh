#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Several network devices of a host, each an HCA and a subnet of its own: messages and groups go
# by the one that was meant, between two of one host in memory; the loopback device is one, too,
# where a group's messages come once although the device gives them back.

. "${0%/*}/lab.sh"

group=0:0:0:0:0:0:0:0:0:0:255:255:239:5:5:5

lab_up 2
# a network of its own: on one, hosts answer for all their addresses on every device
ip link add br1 type bridge
ip link set br1 up
for k in 1 2; do
	ip link add "h$k.1" type veth peer name eth1 netns "h$k"
	ip link set "h$k.1" master br1 up
	on "h$k" ip link set eth1 up
	on "h$k" ip address add "198.51.100.$k/24" dev eth1
	umbel_on "h$k" up --roce eth0,eth1,lo > /dev/null || exit 1
done
expect 0 '*umbel_eth0*umbel_eth1*umbel_lo*' umbel_on h1 exec -- ibv_devices
expect 0 '*127.0.0.1 ::1*umbel_lo*' umbel_on h1 show hosts

# counter HOST HCA NAME
counter()
{
	umbel_on "$1" show counters --json | tr -d '\n' |
		sed -n "s/.*\"node\": *\"$2\",[^}]*\"$3\": *\([0-9]*\)[,}].*/\1/p;
			s/.*\"node\": *\"$2\",[^}]*\"$3\": *\([0-9]*\) *}.*/\1/p" | head -n 1
}

# listens HOST PORT
listens()
{
	on "$1" bash -c "$(declare -f port_in_state); port_in_state $2 0A"
}

# pair NAME SERVER CLIENT ADDRESS PROGRAM OPTION...: PROGRAM as a server on one host, and as its
# client on the other one. In the options, @ is the device of either side, if it has one of its own.
pair()
{
	local name=$1 server=$2 client=$3 address=$4
	shift 4
	new_port
	start_on "server-$name" "${server%:*}" "${@/@/${server#*:}}" -p "$port"
	wait_until "the server of $name listens" listens "${server%:*}" "$port" || return
	start_on "client-$name" "${client%:*}" "${@/@/${client#*:}}" -p "$port" "$address"
	wait_ended "client-$name" 0
	wait_ended "server-$name" 0
}

pingpong=(ibv_ud_pingpong -e -n 20 -g 1 -d @)
pair eth0 h1:umbel_eth0 h2:umbel_eth0 192.0.2.1 "${pingpong[@]}"
pair eth1 h1:umbel_eth1 h2:umbel_eth1 198.51.100.1 "${pingpong[@]}"
# brought DEVICE: how many packets it has brought h1
brought()
{
	on h1 cat "/sys/class/net/$1/statistics/rx_packets"
}

before=$(counter h1 umbel_eth1 rcv_pkts)
[ "$before" -ge 20 ] || complain "eth1 has brought $before"
packets=$(brought eth1)
pair both h1:umbel_eth0 h1:umbel_eth1 192.0.2.1 "${pingpong[@]}"
pair lo h1:umbel_lo h1:umbel_lo 127.0.0.1 "${pingpong[@]}"
[ "$(counter h1 umbel_eth1 rcv_pkts)" -eq $((before + 20)) ] || complain "what met in memory was not counted"
[ "$(($(brought eth1) - packets))" -lt 20 ] || complain "neighbours met on the network"
[ "$(counter h1 umbel_lo rcv_pkts)" -eq 0 ] || complain "neighbours met on lo"

# ---- groups: joined on the device that was meant
# has_joined DEVICE: whether h1 has joined the group there.
has_joined()
{
	on h1 ip maddress show dev "$1" | grep -q 'inet  239\.5\.5\.1$'
}

start_on member h1 mckey -m 239.5.5.1 -b 198.51.100.1 -C 4
wait_until "the group is joined" has_joined eth1
has_joined eth0 && complain "it is joined on the other device, too"
wait_said member 'receiving data transfers'
start_on sender h2 mckey -m 239.5.5.1 -b 198.51.100.2 -C 4 -s
for name in sender member; do
	wait_ended $name 0
done
has_left()
{
	! has_joined "$1"
}
wait_until "the group is left" has_left eth1

pair group-lo h1:umbel_lo h1:umbel_lo 127.0.0.1 \
	ib_send_bw -F -d @ -c UD -x 1 -g -M $group -n 100 -r 512 -s 64
wait_until "lo has given back what was sent" bash -c \
	"$(declare -f umbel_on on counter); [ \$(counter h1 umbel_lo own) -ge 100 ]"
[ "$(counter h1 umbel_lo rcv_pkts)" -ge 100 ] || complain "what came back was not looked at"
