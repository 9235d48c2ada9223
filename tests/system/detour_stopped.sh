#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A daemon that stands still while packets make the detour loses none: connections wait for it, longer than all their
# retries take, and go on. Packets that a rule drops all the time still end them.

. "${0%/*}/lib.sh"

# begin NAME OPTION...: ibv_rc_pingpong between h1 and h2, until it runs
begin()
{
	local name=$1
	shift
	new_port
	start "server-$name" h1 ibv_rc_pingpong -p "$port" "$@"
	wait_listening "server-$name" "$port"
	start "client-$name" h2 ibv_rc_pingpong -p "$port" "$@" localhost
	wait_said "client-$name" '  remote address'
}

umbel up --hosts 2 > /dev/null
daemon=$(field pid default)

# half a second and more of retries: 8 times 67 ms
umbel fault add to=h1:* delay=4ms > /dev/null
begin late -n 500
for _ in 1 2; do
	sleep 0.5
	! gone "${pid[client-late]}" || complain 'the client has ended too early'
	kill -STOP "$daemon"
	sleep 3
	kill -CONT "$daemon"
done
wait_ended client-late 0
wait_ended server-late 0

umbel fault add to=h1:* after=1s drop > /dev/null
begin lost -n 100000
wait_ended client-lost 1
expect_said client-lost 'Failed status transport retry counter exceeded'
