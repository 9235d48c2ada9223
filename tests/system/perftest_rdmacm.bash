# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts share that run perftest with queue pairs connected by rdma_cm (-R), by which its
# parameters travel as well. A pair whose client is refused is started anew.

. "${BASH_SOURCE[0]%/*}/rdmacm.bash"

address=10.0.0.1 # of $server_host

# try NAME PROGRAM OPTION...: until the client has ended. Nonzero: it was refused.
try()
{
	local name=$1
	shift
	serve_cm "$name" $server_host "$@" -R
	start "client-$name" $client_host "$@" -R $address
	wait_until "client-$name ends" gone "${pid[client-$name]}"
	is_refused "client-$name" || return 0
	kill -9 "${pid[server-$name]}"
	wait "${pid[server-$name]}" 2> /dev/null
	return 1
}

# run_each PROGRAM-WITH-OPTIONS...: one pair after the other; both ends must end well, and measure.
run_each()
{
	local pairs=("$@") i side

	for i in "${!pairs[@]}"; do
		! left_out "${pairs[i]}" || continue
		# shellcheck disable=SC2086
		wait_until "${pairs[i]} connects" try "cm$i" ${pairs[i]}
		for side in client server; do
			wait_ended "$side-cm$i" 0
		done
		expect_said "client-cm$i" " [0-9][0-9]*  *[0-9][0-9]*  *$(figures "client-cm$i")"
	done
}
