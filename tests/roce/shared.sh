#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Datagrams are received once for all processes of a host, whoever does it: several that sleep, one
# that polls beside them, one that is killed while it polls. A sender's neighbours on its own host
# get one copy, in memory.

. "${0%/*}/lab.sh"

group=ff15::7:1
lab_up 2
roce_up h1 h2

# counter HOST NAME: of its port.
counter()
{
	umbel_on "$1" show counters --json | sed -n "s/^ *\"$2\": \([0-9]*\),*\$/\1/p"
}

# forge PSN: from h1's device, by no process of Umbel's, to the group.
forge()
{
	on h1 "$programs_dir/roce.forge" 2001:db8::1 "$group" qpn=0xffffff psn="$1"
}

# expect_each PSN: all receivers get it.
expect_each()
{
	local i

	for i in 1 2 3; do
		wait_said "receiver-$i" "64 bytes from 0x1234: message $1\$"
	done
}

for i in 1 2 3; do
	start_on receiver-$i h2 "$programs_dir/roce.receiver" umbel_eth0 "$group"
done
for i in 1 2 3; do
	wait_said receiver-$i 'qpn '
done
wait_members "$group" h2
forge 1
expect_each 1
[ "$(counter h2 rcv_pkts)" -eq 1 ] || complain "one datagram is $(counter h2 rcv_pkts)"

# ---- one that polls, for what never comes: it receives for those who sleep
new_port
start_on poller h2 ibv_ud_pingpong -g 1 -p "$port"
wait_until "the server listens" on h2 bash -c \
	"$(declare -f port_in_state); port_in_state $port 0A"
start_on partner h1 ibv_ud_pingpong -g 1 -p "$port" -n 1000000000 192.0.2.2
wait_until "messages flow" bash -c "$(declare -f umbel_on on counter); [ \$(counter h2 rcv_pkts) -gt 100 ]"
for i in {2..20}; do
	forge "$i"
	expect_each "$i"
done

# ---- it is killed while it polls, and others go on
kill -9 "${pid[partner]}" "${pid[poller]}"
wait_until "the poller is gone" gone "${pid[poller]}"
for i in {21..30}; do
	forge "$i"
	expect_each "$i"
done
for i in 1 2 3; do
	says "receiver-$i" '64 bytes' 31 && complain "receiver $i has got one twice"
done

# ---- a message to a group from the host itself
start_on neighbour h1 mckey -m 239.7.7.7 -b 192.0.2.1 -C 4
start_on far h2 mckey -m 239.7.7.7 -b 192.0.2.2 -C 4
wait_said neighbour 'receiving data transfers'
wait_said far 'receiving data transfers'
before=$(counter h1 rcv_pkts)
start_on sender h1 mckey -m 239.7.7.7 -b 192.0.2.1 -C 4 -s
for name in sender far neighbour; do
	wait_ended $name 0
done
[ "$(counter h1 rcv_pkts)" -eq "$before" ] || complain "messages came back by the network"
