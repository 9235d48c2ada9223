#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ib_send_bw and ib_send_lat with -g: perftest joins the group itself, by a MAD to the subnet
# administrator that says nothing of MTU and rate, and sends to the MGID.

. "${0%/*}/perftest.bash"

umbel up --hosts 2 > /dev/null

tests=("ib_send_bw -r 1024 -s 64" "ib_send_bw -r 1024 -s 4096" "ib_send_lat -s 64")
for i in "${!tests[@]}"; do
	# shellcheck disable=SC2086
	serve "$i" h1 ${tests[i]} -c UD -g
done
for i in "${!tests[@]}"; do
	# shellcheck disable=SC2086
	client "$i" h2 ${tests[i]} -c UD -g
	for side in client server; do
		wait_ended "$side-$i" 0
		expect_said "$side-$i" ' Connection type : UD' \
			' [a-z]* address: LID 0xc0.* QPN 0xffffff' ' MGID: 255:01:' \
			" ${tests[i]##* }  *1000  *[0-9.]*"
	done
done
