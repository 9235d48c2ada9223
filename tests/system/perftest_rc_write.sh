#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# perftest over RC and UC: RDMA WRITE, one way and both, several queue pairs, sizes, events, inline
# data, lists of requests.

. "${0%/*}/perftest.bash"

umbel up --hosts 2 > /dev/null
run_pairs \
	"ib_write_lat -n 50" \
	"ib_write_lat -c UC -n 50" \
	"ib_write_lat -I 64 -s 64 -n 50" \
	"ib_write_bw -F -n 200" \
	"ib_write_bw -F -c UC -n 200" \
	"ib_write_bw -F -b -n 200" \
	"ib_write_bw -F -q 8 -n 200" \
	"ib_write_bw -F -a -n 20"
