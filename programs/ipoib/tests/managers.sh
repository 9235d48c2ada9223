#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Subnet managers replace each other: ours, OpenSM, another OpenSM, ours again; either OpenSM gives all hosts
# other LIDs. A TCP connection between interfaces goes on, and nothing of it is lost; hosts
# reach each other; groups are joined anew at each SA, and what is sent to them is received.

. "$UMBEL_TESTS/system/opensm.bash"
. "${0%/*}/lab.sh"

lab_up 5 --hosts 5 --set sm_poll_ms=200
interfaces 3
opensm_conf=('honor_guid2lid_file TRUE')

# lids NAME FIRST: that OpenSM is to give host hK the LID FIRST + K
lids()
{
	local i

	mkdir -p "$TMPDIR/opensm-$1"
	for i in 1 2 3 4 5; do
		printf '0x%016x %#x %#x\n\n' "0x$(guid $i)" $(($2 + i)) $(($2 + i))
	done > "$TMPDIR/opensm-$1/guid2lid"
}

has_lid()
{
	umbel exec "$1" -- ibv_devinfo -d "umbel_$1_0" | grep -q "port_lid:[[:space:]]*$2$"
}

# sa_members MGID: the hosts that the master's SA has as its members: "h1 h2". Only programs with its key learn them.
sa_members()
{
	umbel exec h2 -- saquery --smkey 1 -m 2> /dev/null | awk -F '[.]+' -v mgid="$1" '
		$1 ~ /MGID/ { ours = $2 == mgid }
		$1 ~ /NodeDescription/ && ours { print $2 }' | awk '{ print $1 }' | sort | paste -sd ' '
}

sa_members_are()
{
	[ "$(sa_members "$1")" = "$2" ]
}

heard()
{
	on h1 socat -u - UDP4-DATAGRAM:239.1.2.3:7001 <<< "$1"
	says member "$1\$"
}

lines()
{
	wc -l < "$TMPDIR/server.out"
}

more_lines_than()
{
	[ "$(lines)" -gt "$1" ]
}

# check WHAT: all is well
check()
{
	local host

	wait_until "the SA has all in the broadcast group: $1" \
		sa_members_are ff12:401b:ffff::ffff:ffff 'h1 h2 h3'
	wait_until "h1 reaches h2: $1" reaches h1 192.0.2.2
	wait_until "h3 reaches h1: $1" reaches h3 192.0.2.1
	wait_until "h2 reaches h3 by IPv6: $1" reaches h2 2001:db8::3
	wait_until "the member hears of h1: $1" heard "$1"
	wait_until "the SA has sender and member: $1" sa_members_are ff12:401b:ffff::f01:203 'h1 h3'
	wait_until "the connection goes on: $1" more_lines_than $(($(lines) + 20))
}

listens()
{
	[ "$(on h2 ss -Hltn 'sport = :7000')" ]
}

launch_on server h2 socat -u TCP4-LISTEN:7000 STDOUT
launch_on member h3 socat -u UDP4-RECV:7001,ip-add-membership=239.1.2.3:ib0 STDOUT
wait_until 'the server listens' listens
# shellcheck disable=SC2016 # the shell on h1 replaces it
launch_on client h1 bash -c 'for ((n = 1; ; n++)); do
	[ ! -e "$TMPDIR/enough" ] && echo $n && sleep 0.01 || exit 0
done | socat -u - TCP4:192.0.2.2:7000'
check 'ours is the master'

lids one 100
opensm one h4 -p 5
wait_said one 'Entering MASTER state'
wait_until 'h2 has a LID of the first' has_lid h2 102
check 'the first OpenSM has taken over'

lids two 200
opensm two h5 -p 3
wait_said two 'Entering STANDBY state'
kill_hard one
wait_said two 'Entering MASTER state'
wait_until 'h2 has a LID of the second' has_lid h2 202
check 'the second OpenSM has taken over'

kill_hard two
wait_until 'ours takes over' embedded master
check 'ours is the master again'

touch "$TMPDIR/enough"
wait_ended client 0
wait_ended server 0
seq "$(lines)" | cmp - "$TMPDIR/server.out" || complain 'lines of the connection are missing'
