#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The daemon is killed, or ended in good order, under programs that sleep, poll and send:
# they learn of it, nothing hangs or crashes, and `umbel up` starts afresh. ../death/bereaved.c says what the program checks.

. "${0%/*}/lib.sh"

programs=${UMBEL_LIBDIR%/lib/umbel}/tests/programs

said()
{
	grep -qx "$1" "$TMPDIR/out"
}

# end_under_program HOW...: a program runs, the fabric ends by that command, comes up again.
end_under_program()
{
	local status=0

	expect 0 "fabric 'default' is up: *" umbel up
	rm -f "$TMPDIR/in" "$TMPDIR/out"
	mkfifo "$TMPDIR/in"
	umbel exec -- "$programs/bereaved" < "$TMPDIR/in" > "$TMPDIR/out" &
	exec 3> "$TMPDIR/in"
	wait_until "the program is ready" said ready
	"$@" > /dev/null || complain "failed: $*"
	wait_until "the program has seen the end" said 'right\|wrong'
	expect 0 "fabric 'default' is up: *" umbel up
	exec 3>&-
	wait $! || status=$?
	[ $status -eq 0 ] || complain "after '$*' the program ended with status $status"
	[ "$(cat "$TMPDIR/out")" = $'ready\nright\nagain' ] ||
		complain "after '$*' the program said: $(cat "$TMPDIR/out")"
	expect 0 "fabric 'default' is down" umbel down
}

kill_daemon()
{
	kill -9 "$(field pid default)"
}

# end_under_crowd HOW...: likewise, under many that send and receive all the time.
end_under_crowd()
{
	local status=0

	expect 0 "fabric 'default' is up: *" umbel up
	umbel exec -- "$programs/churn" 100000 2> "$TMPDIR/err" > /dev/null &
	wait_until "there is a crowd" crowded
	"$@" > /dev/null || complain "failed: $*"
	# its members see errors and say so; none may be ended by a signal
	wait $! || status=$?
	[ $status -eq 1 ] || complain "after '$*' the crowd ended with status $status"
	grep -q 'ended by itself, status 0x100' "$TMPDIR/err" ||
		complain "after '$*' the crowd said: $(cat "$TMPDIR/err")"
	expect 0 "fabric 'default' is up: *" umbel up
	umbel exec -- "$programs/churn" 10 > /dev/null || complain "the fabric that came after"
	expect 0 "fabric 'default' is down" umbel down
}

crowded()
{
	[ "$(field clients default)" -ge 6 ]
}

# end_under_server HOW...: rping's server says what has happened to it, and ends.
end_under_server()
{
	expect 0 "fabric 'default' is up: *" umbel up
	start rping h1 rping -s -a 10.0.0.1
	wait_until 'the server listens' listening
	"$@" > /dev/null || complain "failed: $*"
	wait_ended rping 255
	expect_said rping 'cma detected device removal!!!!'
	expect 0 "fabric 'default' is up: *" umbel up
	expect 0 "fabric 'default' is down" umbel down
}

listening()
{
	[ "$(field listeners default)" -eq 1 ]
}

end_under_program kill_daemon
end_under_program umbel down
end_under_server kill_daemon
end_under_server umbel down
for _ in 1 2 3; do
	end_under_crowd kill_daemon
	end_under_crowd umbel down
done
[ -z "$(find "$UMBEL_RUNTIME_DIR" -mindepth 1)" ] || complain "something was left"
