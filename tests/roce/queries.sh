#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A network that forgets members that have not reported for three seconds, and asks each second:
# those of Umbel stay, IPv4 and IPv6, while nobody sends and receivers sleep.

. "${0%/*}/lab.sh"

# queries HOST: how many have reached it by MLD; those of IGMP go out at the same times.
queries()
{
	on "$1" sed -n 's/^Icmp6InGroupMembQueries[[:space:]]*//p' /proc/net/snmp6
}

asked()
{
	[ "$(queries "$1")" -ge "$2" ]
}

lab_up 2
roce_up h2
ip link set br0 type bridge mcast_membership_interval 300 mcast_query_interval 100 \
	mcast_startup_query_interval 100
ip link set br0 type bridge mcast_querier 0
ip link set br0 type bridge mcast_querier 1
start_on ip4 h2 "$programs_dir/roce.receiver" umbel_eth0 ::ffff:239.1.2.3
start_on ip6 h2 "$programs_dir/roce.receiver" umbel_eth0 ff15::1:203
wait_members 239.1.2.3 h2
wait_members ff15::1:203 h2
wait_until "h2 has been asked six times" asked h2 $(($(queries h2) + 6))
[ "$(members 239.1.2.3)" = h2 ] || complain "239.1.2.3 is forgotten"
[ "$(members ff15::1:203)" = h2 ] || complain "ff15::1:203 is forgotten"
