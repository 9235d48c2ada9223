#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rping connects by rdma_cm; both ends read, write and send, and the client compares what comes
# back. With its options, between hosts, within one, by IPv4 and IPv6, two servers on a host.

. "${0%/*}/rdmacm.bash"

umbel up --hosts 3 > /dev/null

# ping NAME OPTION...: both ends have them. The server ends with what its client's leaving is.
ping()
{
	local name=$1
	shift
	run_pair "$name" rping -s -a 10.0.0.1 -v "$@" -- rping -c -a 10.0.0.1 -V -v "$@"
	expect_said "server-$name" 'server DISCONNECT EVENT'
}

ping plain -C 10
[ "$(grep -c 'ping data: rdma-ping' "$TMPDIR/client-plain.out")" -eq 10 ] || complain '10 pings'
[ "$(grep -c 'server ping data: rdma-ping' "$TMPDIR/server-plain.out")" -eq 10 ] ||
	complain '10 pings at the server'
ping sizes -S 65000 -C 5
ping small -S 30 -C 5
ping many -C 2000
ping port -p 4711 -C 3
ping debug -d -C 3
expect_said client-debug 'ESTABLISHED' 'rdma_connect successful'
ping self -q -C 3 # QPs that rping makes and connects by itself

# ---- servers of many, for ever; each has one client at a time, as rping loses one of two requests
serve_cm 6 h2 rping -s -P -a fd75:6d62:656c::2
listeners=1
serve_cm p h1 rping -s -P -a 10.0.0.1
listeners=2
for from in h3 h2 h1; do
	start "6-$from" $from rping -c -a fd75:6d62:656c::2 -V -C 50
	start "p-$from" $from rping -c -a 10.0.0.1 -V -C 50
	wait_ended "6-$from" 0
	wait_ended "p-$from" 0
done

# ---- what cannot be
expect 255 '*cma event RDMA_CM_EVENT_REJECTED, error 8*' umbel exec h1 -- rping -c -a 10.0.0.3
expect 255 '*cma event RDMA_CM_EVENT_ADDR_ERROR, error -113*' \
	umbel exec h1 -- rping -c -a 10.0.0.99

# ---- a client is killed while it pings: the server hears of it
serve_cm kill h1 rping -s -a 10.0.0.1 -p 5000 -v
start client-kill h2 rping -c -a 10.0.0.1 -p 5000
wait_said server-kill 'server ping data' 100
kill -9 "${pid[client-kill]}"
wait_said server-kill 'server DISCONNECT EVENT'
# with which status is a matter of which of its threads is first
wait_until 'server-kill ends' gone "${pid[server-kill]}"
