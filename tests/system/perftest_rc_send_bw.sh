#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# perftest over RC and UC: SEND, one way and both, several queue pairs, sizes, events, inline
# data, lists of requests.

. "${0%/*}/perftest.bash"

umbel up --hosts 2 > /dev/null
run_pairs \
	"ib_send_bw -n 200" \
	"ib_send_bw -c UC -n 200 -r 1000" \
	"ib_send_bw -b -n 200" \
	"ib_send_bw -e -n 200" \
	"ib_send_bw -q 8 -n 200" \
	"ib_send_bw --use-srq -q 4 -n 200" \
	"ib_send_bw -a -n 20" \
	"ib_send_bw -l 16 -n 512 -s 64"
