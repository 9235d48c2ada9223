#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# UCX as Debian ships it sees the device, which it looks for in /dev, and sends by UD: ucx_info and
# ucx_perftest between two hosts.

. "${0%/*}/lib.sh"

export UCX_TLS=ud_verbs,self

# exchange TEST MESSAGES OPTION...: ucx_perftest -t TEST on h1, with a server on h2.
exchange()
{
	local test=$1 n=$2
	shift 2
	new_port
	start server h2 ucx_perftest -p "$port"
	wait_listening server "$port" || return
	expect 0 "*Final: * $n *" umbel exec h1 -- ucx_perftest localhost -p "$port" -t "$test" -n "$n" -w 10 "$@"
	wait_ended server 0
}

umbel up --hosts 2 > /dev/null
expect 0 '*Transport: ud_verbs*Device: umbel_h1_0:1*' umbel exec h1 -- ucx_info -d
expect 0 '*Device: umbel_h1_0:1*Device: umbel_h2_0:1*' umbel exec -- ucx_info -d
exchange tag_lat 1000
exchange tag_bw 200 -s 65536
exchange ucp_am_lat 1000
exchange stream_lat 1000
