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

# ---- the daemon ends under the command, whoever has ended it: what the command says is worth nothing
# end_daemon SIGNAL STATUS: what a command does
end_daemon='kill -$0 $(umbel status --json | sed -n "s/.*\"pid\": \([0-9]*\),/\1/p")
	until umbel exec -- true 2>&1 | grep -q "is up in"; do sleep 0.02; done; exit $1'
expect 125 'umbel: the daemon was ended by signal 9; the command*status was 0*' \
	umbel run -- sh -c "$end_daemon" KILL 0
expect 125 'umbel: the daemon was ended by signal 9; the command*status was 3*' \
	umbel run -- sh -c "$end_daemon" KILL 3
expect 125 '*ended by signal 15, of process [1-9]*' umbel run -- sh -c "$end_daemon" TERM 0
expect 125 '*ended by signal 1, of process [1-9]*' umbel run -- sh -c "$end_daemon" HUP 3
# from outside
interrupt_daemon()
{
	local got=0 job dir
	rm -f "$TMPDIR/up"
	umbel run -- sh -c 'echo $UMBEL_RUNTIME_DIR > $TMPDIR/up.new; mv $TMPDIR/up.new $TMPDIR/up
		while [ -e $TMPDIR/up ]; do sleep 0.02; done' 2> "$TMPDIR/err" &
	job=$!
	wait_until "the command runs" test -e "$TMPDIR/up"
	dir=$(cat "$TMPDIR/up")
	kill "-$1" "$(UMBEL_RUNTIME_DIR=$dir umbel status --json | sed -n 's/.*"pid": \([0-9]*\),/\1/p')"
	rm "$TMPDIR/up"
	{ wait $job || got=$?; } 2>/dev/null
	[ $got -eq 125 ] || complain "status $got, not 125, after SIG$1 to the daemon"
}
interrupt_daemon TERM
interrupt_daemon SEGV
# the command has it end as one does
expect 3 "fabric 'run-*' is down" umbel run -- sh -c 'umbel down; exit 3'
nothing_left || complain "something was left"

# ---- a fabric that the command starts ends with the directory in which it can be found
inner='umbel up --name inner --hosts 1 > /dev/null
	umbel status --name inner --json | sed -n "s/.*\"pid\": \([0-9]*\),/\1/p" > $TMPDIR/pid'
expect 0 '' umbel run -- sh -c "$inner"
gone "$(cat "$TMPDIR/pid")" || complain "an inner fabric outlives umbel run"
expect 4 '' umbel run -- sh -c "$inner; umbel run -- sh -c '$inner'; exit 4"
gone "$(cat "$TMPDIR/pid")" || complain "an inner fabric outlives the inner umbel run"
interrupt KILL 137 sh -c "$inner; touch \$TMPDIR/up; exec sleep 2"
wait_until "the inner daemon has seen the end" gone "$(cat "$TMPDIR/pid")"
wait_until "both daemons have cleaned up" nothing_left
# nor does one begin when it is too late
umbel run -- sh -c 'echo $UMBEL_RUNTIME_DIR' > "$TMPDIR/dir"
expect 1 "umbel: no private directory for fabric 'late': '*/.run-*': No such file or directory; *" \
	env UMBEL_RUNTIME_DIR="$(cat "$TMPDIR/dir")" umbel up --name late
interrupt KILL 137 sh -c 'echo $UMBEL_RUNTIME_DIR > $TMPDIR/dir
	kill -STOP $(umbel status --json | sed -n "s/.*\"pid\": \([0-9]*\),/\1/p"); touch $TMPDIR/up'
expect 1 "umbel: the 'umbel run' around this fabric has ended" \
	env UMBEL_RUNTIME_DIR="$(cat "$TMPDIR/dir")" umbel up --name late
UMBEL_RUNTIME_DIR=$(cat "$TMPDIR/dir") umbel down --all --yes --force > /dev/null 2>&1
rm -r "$(cat "$TMPDIR/dir")"
nothing_left || complain "something was left"
