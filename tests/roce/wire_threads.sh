#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Threads that post to one queue pair and are interrupted by signals, while the daemon sends for it, too: the other
# machine gets each message whole, and those of each thread in their order.
#
# By hand: wire_threads.sh MESSAGES

. "${0%/*}/lab.sh"

lab_up 2
roce_up h1 h2
start_on server h1 "$programs_dir/roce.wire_threads" "${1:-3000}"
wait_said server listens || exit
start_on client h2 "$programs_dir/roce.wire_threads" "${1:-3000}" 192.0.2.1
for name in client server; do
	wait_ended $name 0
	expect_said $name 'all is well'
done
