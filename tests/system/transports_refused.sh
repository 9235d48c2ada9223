#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs that need what we lack (XRC) end at once, with a message.

. "${0%/*}/perftest.bash"

umbel up --hosts 2 > /dev/null

# ---- verbs
expect 1 "Couldn't Open the XRC Domain 95" umbel exec h1 -- ibv_xsrq_pingpong

# ---- rdma_cm
expect 255 '*rdma_listen: Operation not supported*' umbel exec h1 -- rdma_xserver -c x

# ---- perftest: both sides
programs_and_messages=(
	"Error opening XRC domain|ib_send_bw -c XRC"
)
for i in "${!programs_and_messages[@]}"; do
	# shellcheck disable=SC2086
	serve "$i" h1 ${programs_and_messages[i]#*|}
done
for i in "${!programs_and_messages[@]}"; do
	# shellcheck disable=SC2086
	client "$i" h2 ${programs_and_messages[i]#*|}
done
for i in "${!programs_and_messages[@]}"; do
	for side in client server; do
		wait_ended "$side-$i" 1
		expect_said "$side-$i" "${programs_and_messages[i]%%|*}"
	done
done
