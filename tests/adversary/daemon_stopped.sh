#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A daemon that does not answer (stopped by a signal, or stuck) hangs no command: they say so, and
# `umbel down` ends it in a bounded time, and fails.

. "${0%/*}/../system/lib.sh"

daemon_of()
{
	umbel status --name "$1" --json | sed -n 's/^ *"pid": \([0-9]*\).*/\1/p'
}

# stop NAME: a fabric whose daemon is stopped; sets $daemon.
stop()
{
	umbel up --name "$1" --hosts 1 > /dev/null
	daemon=$(daemon_of "$1")
	kill -STOP "$daemon"
}

killed="umbel: the daemon of fabric 's' (pid *) has not ended in 5 s: killed
fabric 's' is down"

stop s
expect 1 "umbel: fabric 's' does not answer: its daemon is stopped or stuck; 'umbel down --name s' ends it" \
	timeout 120 umbel exec --name s -- true
expect 1 "$killed" timeout 120 umbel down --name s
gone "$daemon" || complain "umbel down left the daemon"
[ -z "$(ls -A "$UMBEL_RUNTIME_DIR")" ] || complain "umbel down left files"

# ---- where a container denies pidfd_open()
stop s
expect 1 "$killed" timeout 120 "${UMBEL%/bin/*}/tests/programs/adversary.deny" EPERM pidfd_open -- \
	umbel down --all --yes --force
wait_until "the daemon has gone" gone "$daemon"	# its connections have, that is all that can be seen

# ---- programs that look into sysfs: what is in memory they see, and for the rest they wait once
umbel up --name s --hosts 1 > /dev/null
daemon=$(daemon_of s)
mkfifo "$TMPDIR/go"
start_looking='cd /sys/class/infiniband/*/ports/1
	read -r < state && echo $REPLY
	read -r go < '"$TMPDIR/go"'
	[ -e state ] && read -r < state && echo $REPLY
	read -r < counters/port_xmit_data
	timeout 120 cat state
	echo $?'
launch looking umbel exec --name s -- bash -c "$start_looking"
wait_said looking '4: ACTIVE'
kill -STOP "$daemon"
echo > "$TMPDIR/go"
wait_ended looking 0
expect_said looking '4: ACTIVE' '.*port_xmit_data: Connection timed out' 'cat: state: No such file' 1
says looking '4: ACTIVE' 2 || complain "a stopped daemon hides a port's state"
expect 1 "$killed" timeout 120 umbel down --name s

# ---- a private one, whose command has stopped it
expect 125 "umbel: the daemon (pid *) did not end in 5 s: killed*" timeout 120 \
	"${UMBEL%/bin/*}/tests/programs/adversary.deny" EPERM pidfd_open -- \
	umbel run --hosts 1 -- sh -c 'kill -STOP $(umbel status --json |
		sed -n "s/^ *\"pid\": \([0-9]*\).*/\1/p")'
