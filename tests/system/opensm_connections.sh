#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connections on a fabric under OpenSM: the paths are those of its SA. They live on when it is
# killed, and new ones are made when another one has taken over.

. "${0%/*}/rdmacm.bash"
. "${0%/*}/opensm.bash"

umbel up --hosts 4 --sm none > /dev/null
expect 255 'rdma_resolve_route: Resource temporarily unavailable*' \
	umbel exec h2 -- rping -c -a 10.0.0.1 -C 1

opensm first h3 -p 3
wait_said first 'Entering MASTER state'
wait_until 'all ports are active' all_ports active
opensm second h4 -p 1
wait_said second 'Entering STANDBY state'

# resolves: its SA responds once its first sweep is done. Nobody listens at that port.
resolves()
{
	umbel exec h2 -- rping -c -a 10.0.0.1 -C 1 -p 4711 > "$TMPDIR/resolves.out" 2>&1
	grep -q RDMA_CM_EVENT_REJECTED "$TMPDIR/resolves.out"
}
wait_until 'the SA tells paths' resolves

serve_cm ping h1 rping -s -a 10.0.0.1
listeners=1 # until its client leaves
start client-ping h2 rping -c -a 10.0.0.1 -V -v
wait_said client-ping 'ping data' 100

# connect NAME: some more connections, to the end.
connect()
{
	local side

	run_pair "$1" ucmatose -b 10.0.0.1 -c 50 -- ucmatose -s 10.0.0.1 -c 50
	for side in client server; do
		expect_said "$side-$1" 'data transfers complete' 'return status 0'
	done
}
connect one
run_pair ud udaddy -- udaddy -s 10.0.0.1

kill_hard first
wait_said second 'Entering MASTER state'
wait_until 'the second is the master' master_is "$(guid 4)"
wait_until 'the new SA tells paths' resolves
connect two

pings=$(grep -c 'ping data' "$TMPDIR/client-ping.out")
wait_said client-ping 'ping data' $((pings + 100))
kill "${pid[client-ping]}"
wait_ended client-ping 143
# with which status is a matter of which of its threads is first
wait_until 'server-ping ends' gone "${pid[server-ping]}"
