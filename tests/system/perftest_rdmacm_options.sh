#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# perftest with its options and connections by rdma_cm: several queue pairs, shared receives, events,
# inline data, depths.

. "${0%/*}/perftest_rdmacm.bash"

umbel up --hosts 2 > /dev/null
run_each \
	"ib_send_lat -n 50 -e" \
	"ib_send_bw -F -n 200 -q 4" \
	"ib_send_bw -F -n 200 -q 4 --use-srq" \
	"ib_send_bw -F -n 200 -m 1024" \
	"ib_send_bw -F -n 200 -z" \
	"ib_write_bw -F -n 200 -q 4" \
	"ib_write_bw -F -n 200 -I 64 -s 64" \
	"ib_read_bw -F -n 200 -q 4 -o 1" \
	"ib_atomic_lat -n 50 -A CMP_AND_SWAP" \
	"ib_atomic_bw -F -n 200 -q 4 -A CMP_AND_SWAP -b"
