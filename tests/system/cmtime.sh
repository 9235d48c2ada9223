#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# cmtime makes many connections at once, one step of all of them after the other, and ends them. Its
# server serves client after client, for ever; nothing of a client is left when it has ended. (When
# its fabric goes down, the server crashes: it then frees what only clients have.)
#
# Debian 13's has one client, of as many connections, and both agree on each step by TCP: so on hosts that have a
# network (cmtime_pairs.bash).

. "${0%/*}/rdmacm.bash"

if [[ $(cmtime -h) == *num_threads* ]]; then
	. "${0%/*}/cmtime_pairs.bash"
	exit
fi
umbel up --hosts 3 > /dev/null

# time_client NAME HOST COUNT ADDRESS OPTION...: until all is done.
time_client()
{
	local name=$1 host=$2 count=$3 address=$4
	shift 4
	start "client-$name" "$host" cmtime -s "$address" -c "$count" "$@"
}

# expect_timed NAME: it has ended well, with times for all steps and no word of failure.
expect_timed()
{
	wait_ended "client-$1" 0
	expect_said "client-$1" 'create qp    : *[0-9.]* ' 'connect      : *[0-9.]* ' \
		'disconnect   : *[0-9.]* ' 'destroy      : *[0-9.]* '
	! says "client-$1" '\(fail\|event:\|RDMA_CM\)' || complain "client-$1 complains"
}

serve_cm all h1 cmtime
listeners=1
time_client few h2 10 10.0.0.1
expect_timed few
time_client many h2 300 10.0.0.1
expect_timed many
time_client self h1 20 10.0.0.1
expect_timed self

serve_cm ipv6 h2 cmtime -b fd75:6d62:656c::2 -p 4711
listeners=2
time_client ipv6 h3 20 fd75:6d62:656c::2 -p 4711
expect_timed ipv6

# ---- two clients at once, one of them with an address of its own and all other options
time_client left h2 200 10.0.0.1
time_client right h3 200 10.0.0.1 -b 10.0.0.3 -r 5 -t 10000
expect_timed left
expect_timed right

# ---- a client is killed in the middle: the server ends its connections and serves others
time_client killed h2 5000 10.0.0.1
wait_said client-killed 'creating qp'
kill -9 "${pid[client-killed]}"
wait "${pid[client-killed]}" 2> /dev/null
ended[client-killed]=137
time_client after h3 50 10.0.0.1
expect_timed after

# the listeners alone are left
nothing_left()
{
	[ "$(field connections default)" -eq 0 ] && [ "$(field qps default)" -eq 0 ]
}
wait_until 'nothing is left of clients' nothing_left
for server in server-all server-ipv6; do
	! gone "${pid[$server]}" || complain "$server has ended"
done
# the other one may have heard of the client that was killed
[ ! -s "$TMPDIR/server-ipv6.out" ] || complain "server-ipv6 complains"

# ---- nobody listens
time_client nobody h1 3 10.0.0.3
wait_ended client-nobody 0
expect_said client-nobody 'event: RDMA_CM_EVENT_REJECTED, error: 8'
