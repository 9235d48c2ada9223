#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Between two machines a send is complete before the answer to it comes, for programs that wait for events.
#
# By hand: wire_order.sh [ROUNDS]

. "${0%/*}/lab.sh"
. "${0%/*}/pairs.bash"

program=$programs_dir/roce.ping_order
rounds=${1:-1000}

lab_up 2
roce_up h1 h2
for bytes in 1 64 1500 5000; do
	start_on "server-$bytes" $server_on "$program" "$rounds" $bytes
	wait_said "server-$bytes" listens
	start_on "client-$bytes" $client_on "$program" "$rounds" $bytes $server_address
	end_pair "$bytes"
	[ "$failed" = 0 ] || exit 1
done
# as perftest waits: once for each completion
for bytes in 64 5000; do
	whole_pair "lat-$bytes" ib_send_lat -e -s $bytes -n "$rounds"
done
exit $failed
