#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What a command has done is told before the command ends: who ends `umbel record` after it has it in the file. The daemon
# takes long behind each reply here.

. "${0%/*}/lib.sh"

# who is traced cannot look for leaks
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
umbel up --hosts 1 > /dev/null
launch record umbel record "$TMPDIR/events"
records()
{
	umbel set sm_poll_ms=1000
	umbel set sm_poll_ms=1001
	grep -q '"sm_poll_ms","value":"1001"' "$TMPDIR/events"
}
wait_until 'it records' records
launch slow strace -f -e trace=sendmsg -e inject=sendmsg:delay_exit=300000 -p "$(field pid default)"
wait_said slow 'strace: Process'
umbel set sm_poll_ms=2000
kill -TERM "${pid[record]}"
wait_ended record 0
tail -n 1 "$TMPDIR/events" > "$TMPDIR/last"
expect 0 '*"event":"set","key":"sm_poll_ms","value":"2000"}' cat "$TMPDIR/last"
