#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A private fabric returns the command's exit status and leaves nothing behind, whoever is killed.

. "${0%/*}/lib.sh"

set -m	# jobs in process groups of their own, which SIGINT reaches

nothing_left()
{
	[ -z "$(find "$UMBEL_RUNTIME_DIR" -mindepth 1)" ]
}

# interrupt SIGNAL STATUS COMMAND...: sends the signal when the command has touched $TMPDIR/up.
interrupt()
{
	local signal=$1 status=$2 got=0 job
	shift 2
	rm -f "$TMPDIR/up"
	umbel run -- "$@" &
	job=$!
	wait_until "the command runs" test -e "$TMPDIR/up"
	kill "-$signal" $job
	{ wait $job || got=$?; } 2>/dev/null
	[ $got -eq "$status" ] || complain "status $got, not $status, after SIG$signal"
}

# ---- exit status
expect 0 '' umbel run -- true
expect 7 '' umbel run -- sh -c 'exit 7'
expect 137 '' umbel run -- sh -c 'kill -9 $$'
expect 127 "umbel: cannot run 'nonesuch': *" umbel run -- nonesuch
expect 126 "umbel: cannot run '/etc': *" umbel run -- /etc
expect 1 "umbel: no host 'h3' in fabric 'run-*': it has h1 h2" umbel run --hosts 2 --host h3 -- true
nothing_left || complain "something was left"

# ---- inside
expect 0 'hello' umbel run -- cat <<< hello
expect 0 'h2' umbel run --hosts 2 --host h2 -- sh -c 'echo $UMBEL_HOST'
expect 0 'all' umbel run -- sh -c 'echo ${UMBEL_HOST-all}'
expect 0 'h2' umbel run --hosts 2 -- sh -c 'umbel exec h2 -- sh -c "echo \$UMBEL_HOST"'
expect 0 $'NAME *\nrun-* 2 *' umbel run --hosts 2 -- umbel status
# none but its own in sight, and in nobody's sight
umbel up > /dev/null
expect 1 "umbel: no fabric 'default' is up in *" umbel run -- umbel status --name default
expect 0 '1' umbel run -- sh -c 'umbel status --json | grep -c \"name\"'
umbel down > /dev/null
expect 0 "run-*2" umbel run -- sh -c 'echo $UMBEL_FABRIC; umbel run --hosts 2 -- \
	umbel status --json | sed -n "s/.*\"hosts\": \([0-9]*\),/\1/p"'
nothing_left || complain "something was left"

# ---- signals go to the command
trapping='trap "exit 5" INT TERM HUP; touch $TMPDIR/up; while :; do sleep 0.02; done'
interrupt INT 5 bash -c "$trapping"
interrupt TERM 5 bash -c "$trapping"
interrupt HUP 5 bash -c "$trapping"
interrupt TERM 143 sh -c 'touch $TMPDIR/up; exec sleep 60'
nothing_left || complain "something was left"

# ---- umbel itself is killed: the daemon sees it and cleans up
interrupt KILL 137 sh -c 'touch $TMPDIR/up; exec sleep 2'
wait_until "the daemon has cleaned up" nothing_left

# ---- the daemon is killed: said, but the command may have meant it
expect 3 'umbel: the daemon was ended by signal 9*' umbel run -- sh -c '
	kill -9 $(umbel status --json | sed -n "s/.*\"pid\": \([0-9]*\),/\1/p"); exit 3'
expect 0 'umbel: the daemon was ended by signal 9*' umbel run -- sh -c '
	kill -9 $(umbel status --json | sed -n "s/.*\"pid\": \([0-9]*\),/\1/p")'
nothing_left || complain "something was left"
