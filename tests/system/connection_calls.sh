#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What a connection by rdma_cm asks of the kernel, from its request to its end: the packets of the two
# processes and the daemon, which are counted as the steps that wait for the daemon make them more, and
# calls about memory, of which there are none while queue pairs come and go.

. "${0%/*}/lib.sh"

# who is traced cannot look for leaks
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
CONNECTIONS=200
AT_ONCE=16
connections=${UMBEL%/bin/*}/bench/bin/connections

# calls FILE NAME...: how many of those calls were made, for a hundred connections. The program makes
# AT_ONCE of them before it measures.
calls()
{
	local file=$1
	shift
	awk -v names="$*" -v n=$((CONNECTIONS + AT_ONCE)) 'BEGIN { split(names, name); for (i in name) wanted[name[i]] = 1 }
		$NF in wanted { sum += $4 }
		END { printf "%d\n", sum * 100 / n }' "$TMPDIR/$file"
}

# expect_calls WHO MOST NAME...: for a hundred connections.
expect_calls()
{
	local who=$1 most=$2 got
	shift 2
	got=$(calls "$who" "$@")
	[ "$got" -le "$most" ] ||
		complain "$who: $got calls of $* for 100 connections, not $most at most"
}

umbel up --hosts 2 > /dev/null
began=$SECONDS
launch tracer strace -c -o "$TMPDIR/daemon" -p "$(field pid default)"
wait_said tracer 'strace: Process'
expect 0 '*"measure": "rdma_cm"*' umbel exec -- \
	strace -c -o "$TMPDIR/client" "$connections" $CONNECTIONS $AT_ONCE
kill -INT "${pid[tracer]}"
wait_ended tracer 130
[ "$(calls daemon sendmsg)" -ge 400 ] || complain "it is not the daemon that was traced"
expect_calls daemon 780 sendmsg
expect_calls daemon 1100 epoll_wait
# memory waits a second for the next one who wants it
[ $((SECONDS - began)) -gt 4 ] || expect_calls daemon 250 lseek fallocate
expect_calls client 880 sendmsg recvmsg
expect_calls client 60 recvmsg
