#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A signal while `umbel up` starts a fabric: nothing is left of it, unless the signal is ignored.

. "${0%/*}/lib.sh"

large=(--fat-tree 3 --radix 48)

# daemon_of NAME: sets $daemon to the process that `umbel up`, launched by that name, has started.
daemon_of()
{
	daemon=$(pgrep -P "${pid[$1]}") || gone "${pid[$1]}"
}

# The daemon is stopped before it serves, for which it has routes to compute, so that the signal comes meanwhile.
launch interrupted umbel up --name one "${large[@]}" --set routing=dfsssp
wait_until 'there is a daemon' daemon_of interrupted
kill -STOP "$daemon"
kill -TERM "${pid[interrupted]}"
kill -CONT "$daemon"
wait_ended interrupted 143
wait_until 'the daemon has ended' gone "$daemon"
expect 0 'no fabric is up in *' umbel status
[ -z "$(find "$UMBEL_RUNTIME_DIR" -mindepth 1)" ] || complain "something was left: $(find "$UMBEL_RUNTIME_DIR")"

launch kept nohup umbel up --name two "${large[@]}"
wait_until 'there is a daemon' daemon_of kept
kill -HUP "${pid[kept]}"
wait_ended kept 0
expect 0 "fabric 'two' is down" umbel down --name two
