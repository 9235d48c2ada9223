#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Addresses that somebody has are known; of those that nobody has, rdma_cm says so after the
# caller's timeout, and handles and queue pairs cannot be made for them. A host that comes within
# the time is found. By a gateway it is the gateway that has to be there. A device that does not
# ask for neighbours leads to all. nobody.c asks.

. "${0%/*}/lab.sh"

lab_up 2
roce_up h1
on h1 ip route add 203.0.113.0/24 via 192.0.2.2
on h1 ip route add 198.51.100.0/24 via 192.0.2.88
on h1 ip route add 2001:db8:1::/64 via 2001:db8::2

newline=$'\n'

# ask WHAT HOW FROM TO [MS]: nobody.c says that.
ask()
{
	local what=$1
	shift
	expect 0 "$what" umbel_on h1 exec -- "$programs_dir/roce.nobody" "$@"
}

# ---- nobody, and an identifier may try another address
v4=192.0.2.1 v6=2001:db8::1
refused="asked${newline}addr: Connection timed out, waited"
refused+="${newline}asked${newline}again: somebody, at once"
ask "$refused" addr $v4 192.0.2.77 300
ask "$refused" addr $v6 2001:db8::77 300
ask "$refused" addr $v4 198.51.100.5 300

# ---- somebody: also by a gateway, whoever may be behind it, and on the host itself
for to in 192.0.2.2 203.0.113.5 192.0.2.1 127.0.0.1; do
	ask "asked${newline}addr: somebody, at once" addr $v4 $to 20000
done
for to in 2001:db8::2 2001:db8:1::5 fe80::ff:fe00:2%eth0; do
	ask "asked${newline}addr: somebody, at once" addr $v6 $to 20000
done

# ---- handles and queue pairs: these wait at the same time
nobodies=("ah $v4 192.0.2.78" "rtr $v4 192.0.2.79" "ah $v6 2001:db8::78" "rtr $v4 198.51.100.6")
for i in "${!nobodies[@]}"; do
	# shellcheck disable=SC2086
	start_on "nobody-$i" h1 "$programs_dir/roce.nobody" ${nobodies[i]}
done
for i in "${!nobodies[@]}"; do
	wait_ended "nobody-$i" 0
	expect_said "nobody-$i" '.*: Connection timed out, waited'
done
for how in ah rtr; do
	ask "$how: somebody, at once" $how $v4 203.0.113.6
	ask "$how: Network is unreachable, at once" $how $v6 2001:db8:7::1
done
ask "ah: somebody, at once" ah $v4 239.1.1.1

# ---- one that comes while it is asked for, though the kernel had given up
for i in 1 2 3; do
	start_on "late-$i" h1 "$programs_dir/roce.nobody" addr $v4 192.0.2.99 60000
	wait_said "late-$i" asked
done
ip -n h1 neighbour replace 192.0.2.99 dev eth0 nud failed
ip -n h2 address add 192.0.2.99/24 dev eth0
for i in 1 2 3; do
	wait_ended "late-$i" 0
	expect_said "late-$i" 'addr: somebody, at once'
done

# ---- a device that asks for nobody
umbel_on h1 down > /dev/null
ip -n h1 link add eth1 arp off type veth peer name peer1
ip -n h1 link set eth1 up
ip -n h1 link set peer1 up
ip -n h1 address add 10.0.0.1/24 dev eth1
umbel_on h1 up --roce eth1 > /dev/null
ask "ah: somebody, at once" ah 10.0.0.1 10.0.0.77
