#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The process that receives from the network, for all of its host, is stopped anywhere in it, goes on, and is
# killed in the end: others get their messages meanwhile, those that it had received when it goes
# on, each once. Packets to the dead queue pair are counted.
#
# Where it was just writing an arrival to the sleeper's ring, what comes later there waits behind that one (docs/semantics.md): a
# microsecond of each message, which a busy machine makes longer. A neighbour, whom it was sending nothing, gets all in any case.

. "${0%/*}/lab.sh"

lab_up 2
roce_up h2
start_on sleeper h2 "$programs_dir/roce.receiver" umbel_eth0
start_on neighbour h2 "$programs_dir/roce.receiver" umbel_eth0
start_on poller h2 "$programs_dir/roce.receiver" -p umbel_eth0
wait_said sleeper 'qpn ' && wait_said neighbour 'qpn ' && wait_said poller 'qpn ' || exit 1

# forge NAME TIMES FIRST
forge()
{
	on h1 "$programs_dir/roce.forge" 192.0.2.1 192.0.2.2 times="$2" psn="$3" \
		qpn="$(sed -n 's/^qpn //p' "$TMPDIR/$1.out")"
}

# comes TEXT: whether the sleeper says it while the poller is stopped
comes()
{
	local tries

	for ((tries = 0; tries < 100; tries++)); do
		says sleeper "$1" && return
		sleep 0.1
	done
	return 1
}

held_up=0
for ((i = 0; i < 20; i++)); do
	last="64 bytes from 0x1234: message $((i * 20 + 19))\$"
	forge sleeper 10 $((i * 20))
	kill -STOP "${pid[poller]}"
	wait_until "the poller is stopped" grep -q '^State:.*stopped' "/proc/${pid[poller]}/status"
	forge sleeper 10 $((i * 20 + 10))
	forge neighbour 1 $i
	wait_said neighbour "64 bytes from 0x1234: message $i\$" || exit 1
	comes "$last" || held_up=$((held_up + 1))
	kill -CONT "${pid[poller]}"
	wait_said sleeper "$last" || exit 1
	forge poller 1 $i
	wait_said poller "64 bytes from 0x1234: message $i\$" || exit 1
done
[ $held_up -le 1 ] || complain "in $held_up of 20 rounds nothing came while the poller was stopped"
got=$(sed -n 's/^64 bytes.*message //p' "$TMPDIR/sleeper.out" | sort -n | paste -sd' ')
[ "$got" = "$(seq 0 399 | paste -sd' ')" ] || complain "the sleeper received $got"

qps_are()
{
	umbel_on h2 status --json | grep -q "\"qps\": $1,"
}

# counted: whether a message to a queue pair that is not there was
counted()
{
	umbel_on h2 show counters --json | grep -q '"no_qp": 1'
}

kill -9 "${pid[poller]}"
wait_ended poller 137
wait_until "its queue pair is gone" qps_are 2
forge poller 1 1000
wait_until "a message to nobody is counted" counted
forge sleeper 1 1001
wait_said sleeper '64 bytes from 0x1234: message 1001$'
