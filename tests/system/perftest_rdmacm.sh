#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# All programs of perftest, connected by rdma_cm: RC and UD. UC it refuses by itself, and XRC.

. "${0%/*}/perftest_rdmacm.bash"

umbel up --hosts 2 > /dev/null
run_each \
	"ib_send_lat -n 50" \
	"ib_send_bw -F -n 200" \
	"ib_send_bw -F -n 200 -b" \
	"ib_write_lat -n 50" \
	"ib_write_bw -F -n 200" \
	"ib_write_bw -F -n 200 -b" \
	"ib_read_lat -n 50" \
	"ib_read_bw -F -n 200" \
	"ib_read_bw -F -n 200 -b" \
	"ib_atomic_lat -n 50" \
	"ib_atomic_bw -F -n 200" \
	"ib_send_bw -F -n 200 -c UD" \
	"ib_send_lat -n 50 -c UD"
for program in ib_send_bw ib_write_lat; do
	expect 1 '*UC is not supported in librdmacm*' umbel exec h2 -- $program -c UC -R 10.0.0.1
done
expect 1 '*XRC does not support RDMA_CM*' umbel exec h2 -- ib_send_lat -c XRC -R 10.0.0.1
