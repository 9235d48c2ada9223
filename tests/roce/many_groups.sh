#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A thousand groups of either IP version on one device, though the kernel lets a socket join
# twenty; all are received, and go when the process is killed. Where a limit of the kernel's bites,
# the daemon's log names the sysctl. A fabric with a program that has joined hundreds ends in order.

. "${0%/*}/lab.sh"

lab_up 2
roce_up h1 h2

# joined PATTERN: how many groups of that the kernel has joined on h2's device.
joined()
{
	on h2 ip maddress show dev eth0 | grep -c "$1"
}

joined_are()
{
	[ "$(joined "$1")" -eq "$2" ]
}

start_on ip4 h2 "$programs_dir/roce.many_groups" umbel_eth0 ::ffff:239.10.0.0 1000
start_on ip6 h2 "$programs_dir/roce.many_groups" umbel_eth0 ff15::10:0 1000
wait_said ip4 'attached to 1000$'
wait_said ip6 'attached to 1000$'
joined_are 'inet  239\.10\.' 1000 || complain "of IPv4 $(joined 'inet  239\.10\.') are joined"
joined_are 'inet6 ff15::10:' 1000 || complain "of IPv6 $(joined 'inet6 ff15::10:') are joined"
for i in 0 499 999; do
	wait_members "239.10.$((i / 256)).$((i % 256))" h2
	on h1 "$programs_dir/roce.forge" 192.0.2.1 "239.10.$((i / 256)).$((i % 256))" \
		qpn=0xffffff
	wait_said ip4 "received to 239.10.$((i / 256)).$((i % 256))\$"
	group=$(printf 'ff15::10:%x' "$i")
	wait_members "$group" h2
	on h1 "$programs_dir/roce.forge" 2001:db8::1 "$group" qpn=0xffffff
	wait_said ip6 "received to $group\$"
done
kill -9 "${pid[ip4]}" "${pid[ip6]}"
wait_until "the groups are left" joined_are 'inet6 ff15::10:' 0
wait_until "the groups are left" joined_are 'inet  239\.10\.' 0

# ---- a kernel that lets nobody join
on h2 sysctl -qw net.ipv4.igmp_max_memberships=0
start_on refused h2 "$programs_dir/roce.many_groups" umbel_eth0 ::ffff:239.10.0.0 1
wait_ended refused 1
expect_said refused '.*many_groups: ibv_attach_mcast: '
expect 0 '*net.ipv4.igmp_max_memberships*' cat "$UMBEL_RUNTIME_DIR/h2/log"

# ---- a fabric that ends while a program is in many, more than the daemon leaves at once
is_up()
{
	umbel_on h1 status --name h1 > /dev/null 2>&1
}

umbel_on h1 down > /dev/null
launch daemon env UMBEL_FABRIC=h1 ip netns exec h1 "${without_privileges[@]}" \
	umbel daemon --roce eth0
wait_until "the fabric is up" is_up
start_on joins h1 "$programs_dir/roce.joins" 192.0.2.1 239.11.0.0 600
wait_said joins 'joined 600$'
umbel_on h1 down > /dev/null
wait_ended daemon 0
