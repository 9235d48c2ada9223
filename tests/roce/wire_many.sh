#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Thousands of connections of one program to programs of another machine: all carry messages, and when half of
# those programs are killed the others' go on, and theirs fail. How long the daemons let others wait is said.
#
# By hand: wire_many.sh CONNECTIONS [US], which the daemons let others wait at most; a busy machine's caches are
# others', and then it takes several times as long.

. "${0%/*}/lab.sh"

program=$programs_dir/roce.wire_many
peers=8 each=$((${1:-2000} / 8))

# resident HOST: KiB of its daemon
resident()
{
	awk '$1 == "VmRSS:" { print $2 }' "/proc/$(field pid "$1")/status"
}

lab_up 2
roce_up h1 h2
declare -A before=([h1]=$(resident h1) [h2]=$(resident h2)) after=()
for host in h1 h2; do
	start_on ask-$host $host "$program" ask "$(field pid $host)"
	wait_said ask-$host asks
done
start_on hub h1 "$program" hub "$TMPDIR/path" $peers $each
wait_said hub listens
for ((i = 0; i < peers; i++)); do
	start_on "peer$i" h2 "$program" peer "$TMPDIR/path" $each
done
wait_said hub 'all have sent'
for host in h1 h2; do
	after[$host]=$(resident $host)
done
wait_ended hub 0
expect_said hub 'all is well'
ended=0
for ((i = 0; i < peers; i++)); do
	wait_until "peer$i ends" gone "${pid[peer$i]}"
	! says "peer$i" 'all is well' || : $((ended++))
done
[ $ended -eq $((peers / 2)) ] || complain "$ended of $peers peers have gone on"
for host in h1 h2; do
	kill -TERM "${pid[ask-$host]}"
	wait_ended ask-$host 0
	us=$(sed -n 's/held up for \([0-9]*\) us/\1/p' "$TMPDIR/ask-$host.out")
	echo "$host: the daemon was held up for $us us, and has $(((after[$host] - before[$host]) * 1024 /
		(peers * each))) bytes a connection"
	[ "$us" -le "${2:-$us}" ] || complain "$host: the daemon was held up for $us us"
done
cat "$TMPDIR/hub.out"
exit $failed
