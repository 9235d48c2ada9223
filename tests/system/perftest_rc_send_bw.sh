#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# perftest over RC and UC: SEND, one way and both, several queue pairs, sizes, events, inline
# data, lists of requests.

. "${0%/*}/perftest.bash"

umbel up --hosts 2 > /dev/null
run_pairs \
	"ib_send_bw -F -n 200" \
	"ib_send_bw -F -c UC -n 200 -r 1000" \
	"ib_send_bw -F -b -n 200" \
	"ib_send_bw -F -e -n 200" \
	"ib_send_bw -F -q 8 -n 200" \
	"ib_send_bw --use-srq -q 4 -n 200" \
	"ib_send_bw -F -a -n 20" \
	"ib_send_bw -F -l 16 -n 512 -s 64"
