#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A receiver whose link fails hears so, is in the group no more, and gets nothing; others do.

. "${0%/*}/mckey.bash"

umbel up --hosts 4 > /dev/null
mgid=ff12:4001:ffff::f01:101

for h in 1 2 3; do
	receive h$h h$h -m 239.1.1.1
	wait_joined h$h
done
umbel link down h2:1
wait_said h2 'mckey: event: RDMA_CM_EVENT_MULTICAST_ERROR, status: -102$'
expect 0 '*members   h1 full, h3 full
*tree      sw1: ports 1 3' group $mgid
send h4 h4 -m 239.1.1.1
wait_complete h4 h1 h3
gone "${pid[h2]}" && complain 'h2 has got all its messages'
umbel link up h2:1
expect 0 '' groups
