#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibv_asyncwatch waits; when the daemon is killed, or ends, it tells that the HCA is gone, and ends.

. "${0%/*}/lib.sh"

# watch: starts it on h2, and on the HCA of h3 with all in sight.
watch()
{
	umbel up --hosts 3 > /dev/null
	start "one-$1" h2 ibv_asyncwatch
	start "all-$1" all ibv_asyncwatch -d umbel_h3_0
	wait_said "one-$1" 'umbel_h2_0: async event FD [0-9]*$'
	wait_said "all-$1" 'umbel_h3_0: async event FD [0-9]*$'
}

wait_fatal()
{
	local name

	for name in "one-$1" "all-$1"; do
		wait_ended "$name" 1
		expect_said "$name" '  event_type IBV_EVENT_DEVICE_FATAL (8), port 0$'
		[ "$(wc -l < "$TMPDIR/$name.out")" -eq 2 ] || complain "$name says more"
	done
}

watch killed
kill -9 "$(field pid default)"
wait_fatal killed

watch down
umbel down > /dev/null
wait_fatal down
