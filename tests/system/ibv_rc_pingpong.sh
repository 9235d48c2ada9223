#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibv_rc_pingpong, ibv_srq_pingpong and ibv_uc_pingpong run with their options, and see what they sent.

. "${0%/*}/perftest.bash"

umbel up --hosts 2 > /dev/null

pairs=(
	"ibv_rc_pingpong -n 100"
	"ibv_rc_pingpong -e"
	"ibv_rc_pingpong -c -s 1000000 -n 20"
	"ibv_rc_pingpong -c -s 64 -n 100"
	"ibv_rc_pingpong -c -o -n 50"
	"ibv_rc_pingpong -c -t -n 100"
	"ibv_rc_pingpong -c -N -n 100"
	"ibv_rc_pingpong -c -g 0 -m 4096 -n 100"
	"ibv_rc_pingpong -c -r 1 -n 50"
	"ibv_rc_pingpong -c -s 1 -n 50"
	"ibv_srq_pingpong -q 4 -n 100"
	"ibv_srq_pingpong -e -q 8"
	"ibv_srq_pingpong -c -s 100000 -q 2 -n 50"
	"ibv_uc_pingpong -n 100"
	"ibv_uc_pingpong -e"
	"ibv_uc_pingpong -s 100000 -g 0 -n 50"
)
# no page is touched then: Linux registers no such memory, nor do we
expect 1 "*Couldn't register MR*" umbel exec h1 -- ibv_rc_pingpong -s 0

for i in "${!pairs[@]}"; do
	# shellcheck disable=SC2086
	serve "$i" h1 ${pairs[i]}
	# shellcheck disable=SC2086
	client "$i" h2 ${pairs[i]}
	for side in client server; do
		wait_ended "$side-$i" 0
		expect_said "$side-$i" '[0-9]* bytes in ' '[0-9]* iters in '
	done
done
