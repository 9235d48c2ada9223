#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs that exchange addresses by TCP find each other by the names of hosts, and several fabrics have
# the same servers on the same ports side by side, if hosts have a network of their own.

. "${0%/*}/lab.sh"

# In a fabric: a server on h1, and a client on h2, which tries until the server listens. Both have each
# other's address, or have ended without.
# shellcheck disable=SC2016
pair='out=$TMPDIR/$UMBEL_FABRIC
	umbel exec h1 -- "$@" > $out.server 2>&1 & server=$!
	until umbel exec h2 -- "$@" h1 > $out.client 2>&1 || grep -q "remote address:" $out.client; do
		kill -0 $server || exit 1
		sleep 0.05
	done
	wait $server; grep -q "remote address:" $out.server'

for command in 'ibv_rc_pingpong -n 100' 'ibv_ud_pingpong -n 100' 'ib_write_bw -F -n 100'; do
	for run in 1 2 3; do
		# shellcheck disable=SC2086
		launch "$run" umbel run --hosts 2 --ipoib -- bash -c "$pair" pair $command
	done
	for run in 1 2 3; do
		wait_ended $run 0
	done
done
[ $failed -eq 0 ] || tail -n 3 "$TMPDIR"/*.client "$TMPDIR"/*.server >&2
