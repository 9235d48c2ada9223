#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# One message reaches receivers in 1, 3 and 30 processes, several of them on one host, the
# sender's host too.

. "${0%/*}/mckey.bash"

umbel up --hosts 8 > /dev/null

for n in 1 3 30; do
	for ((i = 0; i < n; i++)); do
		receive "$i-of-$n" "h$((1 + i % 8))" -m "239.1.1.$n"
	done
done
for n in 1 3 30; do
	for ((i = 0; i < n; i++)); do
		wait_joined "$i-of-$n"
	done
	send "to-$n" h8 -m "239.1.1.$n"
done
for n in 1 3 30; do
	wait_complete "to-$n"
	for ((i = 0; i < n; i++)); do
		wait_complete "$i-of-$n"
	done
done
