#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Processes that connect without end, and say nothing, keep nobody out: each is told that it has its share,
# and is let in again as soon as it has given back what it had. Those of another PID namespace, for which the
# daemon has no number, have one share together. A daemon that has no descriptors waits for some, and does not
# spin meanwhile.

. "${0%/*}/../system/lib.sh"

program=${UMBEL%/bin/*}/tests/programs/adversary.neighbour
most=4096 # descriptors of the daemon
flooding='turned away: ENFILE: the daemon has few descriptors left'
version=$(sed -n 's/^#define CONTROL_VERSION //p' "${0%/*}/../../src/shared/control/message.h")

# flood NAME CONNECTIONS
flood()
{
	launch "$1" /usr/bin/python3 "${0%/*}/flood.py" "$2" "$version"
}

crowd_is_told()
{
	grep -q "^$flooding, and this user's processes have [0-9]* of them$" "$TMPDIR"/crowd*.out
}

# ---- two processes, and their neighbours
expect 0 '*is up*' bash -c "ulimit -n $most && exec umbel up --hosts 2"
start neighbour h1 "$program"
wait_said neighbour served
flood one $((most - 200))
flood two $((most - 200))
wait_said one "$flooding, and this process has [0-9]* of them$"
wait_said two "$flooding, and this process has [0-9]* of them$"
expect 0 $'NAME *\ndefault *2 *' umbel status
expect 0 '' umbel exec h1 -- true
kill -USR1 "${pid[neighbour]}"
wait_said neighbour served 2
start newcomer h2 "$program"
wait_said newcomer served
kill_hard newcomer

# ---- what is given back can be had at once: before the daemon has seen that it is
daemon=$(field pid default)
kill -STOP "$daemon"
kill -USR1 "${pid[one]}"
wait_said one 'asks again'
kill -CONT "$daemon"
wait_said one 'again: in$' 20
kill -USR1 "${pid[two]}"
wait_said two 'again: in$' 20
kill -USR1 "${pid[one]}" "${pid[two]}"
wait_ended one 0
wait_ended two 0

# ---- a daemon without any
ticks()
{
	awk '{ print $14 + $15 }' "/proc/$daemon/stat"
}

prlimit --pid "$daemon" --nofile=3:
flood waiting 0
before=$(ticks)
sleep 3 # what is measured
spent=$(($(ticks) - before))
[ "$spent" -lt "$(getconf CLK_TCK)" ] || complain "the daemon spins: $spent ticks in three seconds"
prlimit --pid "$daemon" --nofile="$most":
wait_said waiting 'again: in$' 20
kill -USR1 "${pid[waiting]}" "${pid[neighbour]}"
wait_ended waiting 0
wait_said neighbour served 3
expect 0 '' umbel exec h1 -- true
kill_hard neighbour
expect 0 "fabric 'default' is down" umbel down

# ---- processes of which the daemon knows no number
inside()
{
	nsenter --target "$within" --user --preserve-credentials --pid "$@"
}

daemon_is_up()
{
	umbel status --name default > /dev/null 2>&1
}

launch daemon bash -c "ulimit -n $most && exec unshare --user --map-current-user --pid --fork --kill-child \
	umbel daemon --hosts 2"
wait_until "the daemon serves" daemon_is_up
within=$(pgrep --parent "${pid[daemon]}")
for i in {1..30}; do
	flood "crowd$i" 200
done
wait_until "the crowd has its share" crowd_is_told
expect 0 '*"pid": 1,*' inside umbel status --name default --json
expect 0 '' inside umbel exec h1 -- true
for i in {1..30}; do
	kill_hard "crowd$i"
done
expect 0 '' umbel exec h1 -- true
expect 0 "fabric 'default' is down" umbel down
wait_ended daemon 0
