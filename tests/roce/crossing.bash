# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A bad cable between h1 and h2, crossing.c, in place of the bridge. Sourced after lab.sh.

crossings=0

# cross: takes h1 and h2 off the bridge. From now on they reach each other while a cable is there.
cross()
{
	local host

	for host in h1 h2; do
		echo 1 > "/proc/sys/net/ipv6/conf/$host/disable_ipv6" &&
		ip link set "$host" nomaster || exit 1
	done
}

# cable [KEY=VALUE]...: a cable with these faults, until unplug.
cable()
{
	crossing=crossing-$((++crossings))
	launch $crossing "$programs_dir/roce.crossing" h1 h2 seed=$crossings "$@"
	wait_said $crossing ready || exit 1
}

# good_cable: it has no faults any more.
good_cable()
{
	kill -USR1 "${pid[$crossing]}"
	wait_said $crossing good
}

# unplug: the cable is gone. What it did is in the file that $cable_report names.
unplug()
{
	kill "${pid[$crossing]}"
	wait_ended $crossing 0
	cable_report=$TMPDIR/$crossing.out
}
