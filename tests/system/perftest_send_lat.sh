#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ib_send_lat -c UD runs: polling and with events, several sizes and iterations, inline data.

. "${0%/*}/perftest.bash"

umbel up --hosts 2 > /dev/null

# Size and iterations of the result, and the options.
pairs=(
	"2 200 -n 200"
	"4096 100 -s 4096 -n 100"
	"64 500 -s 64 -n 500 -e"
	"100 100 -s 100 -n 100 -I 128"
	"2 100 -n 100 -x 0"
)
for i in "${!pairs[@]}"; do
	read -r _ _ options <<< "${pairs[i]}"
	! left_out "ib_send_lat $options" || continue
	# shellcheck disable=SC2086
	serve "$i" h1 ib_send_lat -c UD $options
done
for i in "${!pairs[@]}"; do
	read -r size iterations options <<< "${pairs[i]}"
	! left_out "ib_send_lat $options" || continue
	# one pair at a time measures; they poll
	# shellcheck disable=SC2086
	client "$i" h2 ib_send_lat -c UD $options
	wait_pair "$i" "$size" "$iterations"
done
