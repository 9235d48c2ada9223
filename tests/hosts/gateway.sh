#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A gateway: h1 has a port of InfiniBand and one of Ethernet, and forwards a group from each to the other. Requests of one side
# are answered on the other, all in sequence; so it is while another group is forwarded the other way round.

. "${0%/*}/lab.sh"

gateway=${UMBEL%/bin/*}/tests/programs/roce.gateway
count=2000

umbel up --hosts 3 --roce @h1 --roce-hosts 2 --ipoib > /dev/null || exit 1
for group in 239.1.2.3 239.1.2.4; do
	start forward-$group h1 "$gateway" forward $group 10.0.0.1 172.16.0.3
	wait_said forward-$group ready
done
start answer-wire r1 "$gateway" answer 239.1.2.3 172.16.0.1 $count
start answer-ib h2 "$gateway" answer 239.1.2.4 10.0.0.2 $count
for end in wire ib; do
	wait_said answer-$end ready
done
start ask-ib h3 "$gateway" ask 239.1.2.3 10.0.0.3 $count
start ask-wire r2 "$gateway" ask 239.1.2.4 172.16.0.2 $count
for end in ask-ib answer-wire ask-wire answer-ib; do
	wait_ended $end 0
	expect_said $end 'all in sequence'
done

# with the gateway's port down nothing gets through; when it is up again all does
start answer r1 "$gateway" answer 239.1.2.3 172.16.0.1 $count
wait_said answer ready
umbel exec h1 -- env "PATH=$PATH" ip link set eth0 down
start ask h3 "$gateway" ask 239.1.2.3 10.0.0.3 $count
wait_said ask ready
umbel exec h1 -- env "PATH=$PATH" ip link set eth0 up
for end in ask answer; do
	wait_ended $end 0
	expect_said $end 'all in sequence'
done
for group in 239.1.2.3 239.1.2.4; do
	kill "${pid[forward-$group]}"
	wait_ended forward-$group 143
done
umbel down > /dev/null
