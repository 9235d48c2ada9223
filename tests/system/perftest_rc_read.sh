#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# perftest over RC and UC: RDMA READ and atomics, one way and both, several queue pairs, sizes, events, inline
# data, lists of requests.

. "${0%/*}/perftest.bash"

umbel up --hosts 2 > /dev/null
run_pairs \
	"ib_read_lat -n 50" \
	"ib_read_lat -e -n 50" \
	"ib_read_bw -F -n 200" \
	"ib_read_bw -F -b -q 4 -n 200" \
	"ib_read_bw -F -a -n 20" \
	"ib_atomic_lat -n 50" \
	"ib_atomic_bw -F -n 200" \
	"ib_atomic_bw -F -A CMP_AND_SWAP -n 200" \
	"ib_atomic_lat -A CMP_AND_SWAP -n 50"
