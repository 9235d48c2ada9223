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
# Nor do programs change that which receive for all of a port, and die in the middle: an acknowledgement that is
# lost with one of them comes again before the answer does, which another one receives.
for host in h1 h2; do
	ip -n $host link set eth0 gso_max_segs 64 # an acknowledgement behind an answer stays in its piece
	start_on "neighbours-$host" $host "$program" neighbours
	wait_said "neighbours-$host" begin
done
start_on server-dying $server_on "$program" $((rounds * 2)) 64 deaths
wait_said server-dying listens
start_on client-dying $client_on "$program" $((rounds * 2)) 64 $server_address deaths
end_pair dying
for host in h1 h2; do
	kill "${pid[neighbours-$host]}"
	wait_ended "neighbours-$host" 0
	expect_said "neighbours-$host" '[1-9][0-9]* have died'
done
exit $failed
