#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Commands whose standard streams are closed, or cannot be written: what is printed gets nowhere, least of all to the daemon,
# and the status says so.

. "${0%/*}/lib.sh"

lost='umbel: cannot write the output: '

# without COMMAND...: with the three streams closed, in vain.
without()
{
	timeout 60 "$@" <&- >&- 2>&-
}

# mute COMMAND...: with standard output closed.
mute()
{
	timeout 60 "$@" >&-
}

umbel up --hosts 2 > /dev/null || complain 'no fabric'
umbel up --name other --hosts 2 > /dev/null || complain 'no other fabric'
for command in 'show hosts' 'show topology --json' 'show counters --watch 1' status 'env h1' --help --version check; do
	# shellcheck disable=SC2086
	expect 1 "${lost}Bad file descriptor" mute umbel $command
	# shellcheck disable=SC2086
	expect 1 '' without umbel $command
done
expect 1 "umbel: cannot write '-': Bad file descriptor" mute umbel show topology --dot
expect 0 '' without umbel set sa_send_only=0
expect 1 '' without umbel down --name other
expect 1 "umbel: no fabric 'other' is up in *" umbel down --name other
# they are closed for a command, too
# shellcheck disable=SC2016
closed='[ ! -e /proc/$$/fd/0 ] && [ ! -e /proc/$$/fd/1 ] && [ ! -e /proc/$$/fd/2 ]'
expect 0 '' without umbel exec h1 -- sh -c "$closed"
expect 0 '' without umbel run --hosts 2 -- sh -c "$closed"

# ---- a disk that is full
umbel monitor > /dev/full 2> "$TMPDIR/monitor.err" & text=$!
umbel monitor --json > /dev/full 2> "$TMPDIR/json.err" & json=$!
monitors_ended()
{
	umbel set sa_send_only=1
	gone $text && gone $json
}
wait_until 'the monitors have ended' monitors_ended
wait $text && complain 'status 0: umbel monitor on a full disk'
wait $json && complain 'status 0: umbel monitor --json on a full disk'
expect 0 "${lost}No space left on device"$'\n'"${lost}No space left on device" cat "$TMPDIR/monitor.err" "$TMPDIR/json.err"
expect 1 "${lost}No space left on device" sh -c 'umbel show hosts > /dev/full'

# ---- a pipe whose reader has stopped is full: the first signal ends who writes there
mkfifo "$TMPDIR/full"
exec 5<> "$TMPDIR/full"
cat > "$TMPDIR/fill.py" <<-'END'
	import os, sys
	to = os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK)
	for size in 4096, 1:
	    try:
	        while os.write(to, b"\n" * size):
	            pass
	    except BlockingIOError:
	        pass
END
# has_told: it tells of events, all of which are read
has_told()
{
	local line told=1
	umbel set sa_send_only=1
	while read -r -t 0.1 -u 5 line; do
		[[ $line != *sa_send_only* ]] || told=0
	done
	return $told
}
full_is()
{
	local name=$1
	shift
	launch "$name" "$@"
	wait_until "$name tells" has_told || return
	python3 "$TMPDIR/fill.py" "$TMPDIR/full"
	# the signal comes before it writes, so no call of it is interrupted
	kill -STOP "${pid[$name]}"
	umbel set sa_send_only=0
	kill -TERM "${pid[$name]}"
	kill -CONT "${pid[$name]}"
	wait_ended "$name" 1
	expect_said "$name" 'umbel: cannot write .*: Connection timed out'
	while read -r -t 0.1 -u 5 _; do :; done
}
full_is monitor sh -c 'exec umbel monitor >&5'
full_is monitor_json sh -c 'exec umbel monitor --json >&5'
exec 5>&-

# ---- a pipe that does not block has no room for the first of two parts
# leaks cannot be looked for in a program that is traced
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
expect 1 'umbel: cannot write all of the output' \
	sh -c 'strace -o /dev/null -e inject=write:error=EAGAIN:when=1 umbel run --help > "$TMPDIR/help"'
