#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What a command has done is told before the command ends: `umbel monitor`, when it is ended after that, has printed it. The
# daemon takes long behind each reply here.

. "${0%/*}/lib.sh"

# leaks cannot be looked for in a program that is traced
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
umbel up --hosts 1 > /dev/null
launch monitor umbel monitor --json
prints()
{
	umbel set sm_poll_ms=1000
	umbel set sm_poll_ms=1001
	grep -q '"sm_poll_ms","value":"1001"' "$TMPDIR/monitor.out"
}
wait_until 'it prints events' prints
launch slow strace -f -e trace=sendmsg -e inject=sendmsg:delay_exit=300000 -p "$(field pid default)"
wait_said slow 'strace: Process'
umbel set sm_poll_ms=2000
kill -TERM "${pid[monitor]}"
wait_ended monitor 0
tail -n 1 "$TMPDIR/monitor.out" > "$TMPDIR/last"
expect 0 '*"event":"set","key":"sm_poll_ms","value":"2000"}' cat "$TMPDIR/last"
