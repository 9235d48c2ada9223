#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibqueryerrors finds the ports whose counters of errors are above a threshold, and clears them.

. "${0%/*}/lib.sh"

# errors ARGUMENT...: "NODE PORT [COUNTER == N]..." of the ports that it finds; then its status is 1.
errors()
{
	{ umbel exec h1 -- ibqueryerrors "$@" || [ $? -eq 1 ]; } | awk '
		/^Errors for/ { split($0, name, "\""); node = name[2] }
		/^   GUID/ && !/port ALL/ { sub(/.*port /, ""); sub(/:/, ""); print node, $0 }' | sort
}

# Links that have gone down: h2's twice, h3's once.
fail()
{
	umbel link down "$1:1" > /dev/null
	umbel link up "$1:1" > /dev/null
}

umbel up --hosts 3 > /dev/null
expect 0 '*4 nodes checked, 0 bad nodes found*0 ports have errors beyond threshold*' \
	umbel exec h1 -- ibqueryerrors
fail h2
fail h2
fail h3
expect 0 $'h2 umbel_h2_0 1 \[LinkDownedCounter == 2]\nh3 umbel_h3_0 1 \[LinkDownedCounter == 1]
sw1 2 \[LinkDownedCounter == 2]\nsw1 3 \[LinkDownedCounter == 1]' errors
expect 1 '*4 nodes checked, 3 bad nodes found*4 ports have errors beyond threshold*' \
	umbel exec h1 -- ibqueryerrors

# more than the threshold; suppressed; of one node
echo LinkDownedCounter=1 > "$TMPDIR/thresholds"
expect 0 $'h2 umbel_h2_0 1 \[LinkDownedCounter == 2]\nsw1 2 \[LinkDownedCounter == 2]' \
	errors --threshold-file "$TMPDIR/thresholds"
expect 0 '' errors -s LinkDownedCounter
guid=0x02756d0000000301 # of h3's port
expect 0 'h3 umbel_h3_0 1 \[LinkDownedCounter == 1]' errors -G "$guid"

# cleared by the program; each port has its own
expect 0 'h3 umbel_h3_0 1 \[LinkDownedCounter == 1]' errors -k -G "$guid"
expect 0 $'h2 umbel_h2_0 1 *\nsw1 2 *\nsw1 3 *' errors
expect 0 $'h2 umbel_h2_0 1 *\nsw1 2 *\nsw1 3 *' errors --clear-errors
expect 0 '' errors

# the counters of data: 100 messages each way between h2 and h3
new_port
start server h2 ibv_ud_pingpong -p "$port" -n 100 -r 100
wait_listening server "$port"
expect 0 '*' umbel exec h3 -- ibv_ud_pingpong -p "$port" -n 100 -r 100 127.0.0.1
wait_ended server 0
expect 0 '*port 2: *\[PortXmitPkts == 100 (*\[PortRcvPkts == 100 (*port 3: *\[PortXmitPkts == 100 (*' \
	umbel exec h1 -- ibqueryerrors --counters
umbel exec h1 -- ibqueryerrors --clear-counts > /dev/null
expect 0 '*port 2: *\[PortXmitPkts == 0 (*' umbel exec h1 -- ibqueryerrors --counters
