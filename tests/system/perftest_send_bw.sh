#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ib_send_bw -c UD runs: one way and both, several queue pairs, sizes, events, lists of requests.
# Its receiver waits for ever for a message that was lost: so there is a receive for each (-r).

. "${0%/*}/perftest.bash"

umbel up --hosts 2 > /dev/null

# Size and iterations of the result, and the options.
pairs=(
	"4096 1000 -r 1024"
	"2048 1000 -s 2048 -e -r 1024"
	"4096 1000 -b -r 1024"
	"4096 4000 -q 4 -r 1024"
	"4096 4000 -q 4 --use-srq -r 4096"
	"64 4000 -b -q 4 -s 64 -r 1024"
	"64 1000 -s 64 -I 64 -r 1024"
	"64 1024 -s 64 -l 16 -n 1024 -r 1024"
)
for i in "${!pairs[@]}"; do
	read -r _ _ options <<< "${pairs[i]}"
	# shellcheck disable=SC2086
	serve "$i" h1 ib_send_bw -F -c UD $options
done
for i in "${!pairs[@]}"; do
	read -r size iterations options <<< "${pairs[i]}"
	# shellcheck disable=SC2086
	client "$i" h2 ib_send_bw -F -c UD $options
	wait_pair "$i" "$size" "$iterations"
done
