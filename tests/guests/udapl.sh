#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# uDAPL, Debian's dapl2-utils: dtest by each of its three providers (by rdma_cm; by its own datagrams; by a TCP socket) connects,
# sends, writes, reads and compares; dtestx does so with immediate data and atomics, dapltest with many sends.

. "${0%/*}/lib.sh"

# Each host has a list of its own: a provider that is listed first is opened first.
for host in h1 h2; do
	cat > "$TMPDIR/$host.conf" <<-END
		cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "ib0 0" ""
		ucm u2.0 nonthreadsafe default libdaploucm.so.2 dapl.2.0 "umbel_${host}_0 1" ""
		scm u2.0 nonthreadsafe default libdaploscm.so.2 dapl.2.0 "umbel_${host}_0 1" ""
	END
done

# pair SERVER-SAYS CLIENT-SAYS PROGRAM OPTION...: its server on h1, its client on h2
pair()
{
	local server=$1 client=$2
	shift 2
	DAT_OVERRIDE=$TMPDIR/h1.conf start server h1 "$@"
	wait_said server ".*$server"
	DAT_OVERRIDE=$TMPDIR/h2.conf expect 0 "*$client*" umbel exec h2 -- "$@" -h 10.0.0.1
	wait_ended server 0
}

# dtestx: its server tells the client where it is, and listens only then, so that a quick client is refused.
extended()
{
	local i status

	for ((i = 0; i < 20; i++)); do
		DAT_OVERRIDE=$TMPDIR/h1.conf start dtestx h1 dtestx -P cma
		wait_said dtestx '.*waiting to snd addr' || return
		status=0
		DAT_OVERRIDE=$TMPDIR/h2.conf umbel exec h2 -- dtestx -P cma -h 10.0.0.1 > "$TMPDIR/client" 2>&1 || status=$?
		grep -q 'REJ, reason=8' "$TMPDIR/client" || break
		kill_hard dtestx 2> /dev/null
	done
	expect 0 '*FETCH_ADD test - PASSED*' cat "$TMPDIR/client"
	[ $status -eq 0 ] || complain "dtestx: status $status"
	wait_ended dtestx 0
}

umbel up --hosts 2 --ipoib > /dev/null
for provider in cma ucm scm; do
	pair 'waiting for client' PASSED dtest -b 4096 -P $provider
	expect 0 '*PASSED*' cat "$TMPDIR/server.out"
done
extended
DAT_OVERRIDE=$TMPDIR/h1.conf start dapltest h1 dapltest -T S -D cma
wait_said dapltest '.*Service Point Ready'
DAT_OVERRIDE=$TMPDIR/h2.conf expect 0 '*Starting Test*End of Work*' umbel exec h2 -- \
	dapltest -T T -s 10.0.0.1 -D cma -i 100 -t 2 -w 2 client SR 4096 1 server SR 4096 1
DAT_OVERRIDE=$TMPDIR/h2.conf expect 0 '*End of Work*' umbel exec h2 -- dapltest -T Q -s 10.0.0.1 -D cma
wait_ended dapltest 0
