# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Receivers that wait on h2, one alone, two in groups, of IPv4 and IPv6, and what h1 sends to them. Sourced
# after lab.sh.

receivers_group=239.1.2.3
receivers_group6=ff15::1:203
message=0

# receivers_up: the lab, the receivers, and ibv_asyncwatch, as "watch".
receivers_up()
{
	lab_up 2
	roce_up h2
	start_on watch h2 ibv_asyncwatch -d umbel_eth0
	wait_said watch 'umbel_eth0: async event FD' || exit 1
	receivers_start
}

# receivers_start [-p]: the receivers, which poll.
receivers_start()
{
	start_on alone h2 "$programs_dir/roce.receiver" "$@" umbel_eth0
	start_on member h2 "$programs_dir/roce.receiver" "$@" umbel_eth0 ::ffff:$receivers_group
	start_on member6 h2 "$programs_dir/roce.receiver" "$@" umbel_eth0 $receivers_group6
	wait_said alone 'qpn ' && wait_said member 'qpn ' && wait_said member6 'qpn ' || exit 1
	wait_members $receivers_group h2
	wait_members $receivers_group6 h2
}

receivers_stop()
{
	local name

	for name in alone member member6; do
		kill "${pid[$name]}"
		wait_ended $name 143
	done
	wait_members $receivers_group ''
	wait_members $receivers_group6 ''
}

# send_alone ADDRESS: the next message, to the one that is alone; it arrives.
send_alone()
{
	local from=192.0.2.1

	[[ $1 != *:* ]] || from=2001:db8::1
	message=$((message + 1))
	on h1 "$programs_dir/roce.forge" $from "$1" psn=$message \
		qpn="$(sed -n 's/^qpn //p' "$TMPDIR/alone.out")"
	wait_said alone "64 bytes from 0x1234: message $message\$"
}

# send_group: the next message, to both groups; it arrives.
send_group()
{
	wait_members $receivers_group h2
	wait_members $receivers_group6 h2
	message=$((message + 1))
	on h1 "$programs_dir/roce.forge" 192.0.2.1 $receivers_group qpn=0xffffff psn=$message
	on h1 "$programs_dir/roce.forge" 2001:db8::1 $receivers_group6 qpn=0xffffff psn=$message
	wait_said member "64 bytes from 0x1234: message $message\$"
	wait_said member6 "64 bytes from 0x1234: message $message\$"
}

# expect_event NAME TIMES: so often up to now.
expect_event()
{
	wait_said watch "  event_type IBV_EVENT_$1 " "$2"
}

# wait_shown TEXT: until ibv_devinfo says it of the port.
wait_shown()
{
	wait_until "ibv_devinfo says '$1'" shown "$1"
}

shown()
{
	umbel_on h2 exec -- ibv_devinfo -v > "$TMPDIR/devinfo" && grep -q "$1" "$TMPDIR/devinfo"
}
