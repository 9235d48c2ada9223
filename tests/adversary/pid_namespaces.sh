#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The daemon is in a PID namespace of its own, as in a container: it has no number for any client's process.
# It knows all the same that a process has died whose child holds the connection.

. "${0%/*}/../system/lib.sh"

programs=${UMBEL%/bin/*}/tests/programs

daemon_is_up()
{
	umbel status --name default > /dev/null 2>&1
}

launch daemon unshare --user --map-current-user --pid --fork --kill-child umbel daemon --hosts 4
wait_until "the daemon serves" daemon_is_up
expect 0 '*"pid": 1,*' umbel status --name default --json
if printf '%s\n' 6.5 "$(uname -r)" | sort --check=quiet --version-sort; then
	expect 0 '*PASSED*' umbel exec -- "$programs/death.hostile"
else # of a process without a number a kernel before Linux 6.5 does not tell
	expect 0 '*PASSED*' env CMOCKA_SKIP_FILTER='the_same_although*' umbel exec -- "$programs/death.hostile"
fi
# connected queue pairs reach each other's memory without PIDs
listening()
{
	[ "$(field listeners default)" -eq 1 ]
}
start server h1 rping -s -a 10.0.0.1 -C 20 -V
wait_until "rping listens" listening
expect 0 '*' umbel exec h2 -- rping -c -a 10.0.0.1 -C 20 -V
wait_ended server 0

# who cannot see the daemon's PID can end the fabric, and when it is stuck, says why not
expect 0 "fabric 'default' is down" unshare --user --map-current-user --pid --fork umbel down
wait_ended daemon 0
