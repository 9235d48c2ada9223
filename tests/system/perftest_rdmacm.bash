# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts share that run perftest with queue pairs connected by rdma_cm (-R), by which its
# parameters travel as well. It connects twice. The second time its client may come before its server
# listens again, is refused, and crashes when it wants to try again (perftest 4.5): such a pair is
# started anew.

. "${BASH_SOURCE[0]%/*}/rdmacm.bash"

address=10.0.0.1 # of $server_host

# What a client says that is refused: no such service. By UD it hears so from a SIDR_REP.
refused='.*\(RDMA_CM_EVENT_REJECTED; error: 8\|Unexpected CM event bl blka 8'
refused+='\|RDMA_CM_EVENT_UNREACHABLE; error: 1\)'

# try NAME PROGRAM OPTION...: until the client has ended. Nonzero: it was refused.
try()
{
	local name=$1
	shift
	serve_cm "$name" $server_host "$@" -R
	start "client-$name" $client_host "$@" -R $address
	wait_until "client-$name ends" gone "${pid[client-$name]}"
	says "client-$name" "$refused" || return 0
	kill -9 "${pid[server-$name]}"
	wait "${pid[server-$name]}" 2> /dev/null
	return 1
}

# run_each PROGRAM-WITH-OPTIONS...: one pair after the other; both ends must end well, and measure.
run_each()
{
	local pairs=("$@") i side

	for i in "${!pairs[@]}"; do
		# shellcheck disable=SC2086
		wait_until "${pairs[i]} connects" try "cm$i" ${pairs[i]}
		for side in client server; do
			wait_ended "$side-cm$i" 0
		done
		expect_said "client-cm$i" ' [0-9][0-9]*  *[0-9][0-9]*  *[0-9.]*  *[0-9]'
	done
}
