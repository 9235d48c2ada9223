#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# perftest over RC and UC: SEND, one way and both, several queue pairs, sizes, events, inline
# data, lists of requests.

. "${0%/*}/perftest.bash"

umbel up --hosts 2 > /dev/null
run_pairs \
	"ib_send_lat -n 50" \
	"ib_send_lat -c UC -n 50" \
	"ib_send_lat -e -n 50" \
	"ib_send_lat -s 4096 -n 20" \
	"ib_send_lat -s 8388608 -n 20" \
	"ib_send_lat --use-srq -n 50"
