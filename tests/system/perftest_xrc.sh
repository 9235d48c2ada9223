#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# XRC: perftest's SEND, WRITE, READ and atomic operations, several queue pairs, sizes, events; and
# ibv_xsrq_pingpong with its options.

# The pingpong's XRC domain is the file /tmp/xrc_domain. Another user may have left one, which root cannot open either
# where fs.protected_regular is set, as on Debian: in this test's own mounts it is a file of the test's.
if [ "${SPACES_PID:-}" != $$ ]; then
	namespaces=(--mount)
	[ "$(id -u)" -eq 0 ] || namespaces+=(--user --map-root-user)
	exec unshare "${namespaces[@]}" env SPACES_PID=$$ "$0" "$@"
fi

. "${0%/*}/perftest.bash"

touch "$TMPDIR/xrc_domain"
[ -e /tmp/xrc_domain ] || touch /tmp/xrc_domain
mount --bind "$TMPDIR/xrc_domain" /tmp/xrc_domain || exit 1

umbel up --hosts 2 > /dev/null
run_pairs \
	"ib_send_bw -F -c XRC -n 200" \
	"ib_send_bw -F -c XRC -e -n 200" \
	"ib_send_bw -F -c XRC -b -q 2 -n 200" \
	"ib_send_bw -F -c XRC -a -n 20" \
	"ib_send_lat -c XRC -e -n 50" \
	"ib_write_bw -F -c XRC -q 4 -n 200" \
	"ib_write_lat -c XRC -n 50" \
	"ib_read_bw -F -c XRC -n 200" \
	"ib_atomic_bw -F -c XRC -n 200"

pairs=("-n 100" "-e -n 50" "-s 100000 -n 20" "-o -n 20")
for i in "${!pairs[@]}"; do
	# shellcheck disable=SC2086
	serve "xsrq-$i" h1 ibv_xsrq_pingpong ${pairs[i]}
	# shellcheck disable=SC2086
	client "xsrq-$i" h2 ibv_xsrq_pingpong ${pairs[i]}
	for side in client server; do
		wait_ended "$side-xsrq-$i" 0
		expect_said "$side-xsrq-$i" 'success'
	done
done
