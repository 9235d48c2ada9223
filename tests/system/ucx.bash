# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts share that run UCX.

. "${BASH_SOURCE[0]%/*}/lib.sh"

# Debian 13's takes itself for a program of MPI where it has no terminal, without -P 0.
alone=()
[[ $(ucx_perftest -h) != *' -P <0|1> '* ]] || alone=(-P 0)

# exchange TEST MESSAGES OPTION...: ucx_perftest -t TEST on h1, with a server on h2.
exchange()
{
	local test=$1 n=$2
	shift 2
	new_port
	start server h2 ucx_perftest "${alone[@]}" -p "$port"
	wait_listening server "$port" || return
	expect 0 "*Final: * $n *" umbel exec h1 -- ucx_perftest localhost "${alone[@]}" -p "$port" \
		-t "$test" -n "$n" -w 10 "$@"
	wait_ended server 0
}
