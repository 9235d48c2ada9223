#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The tutorial's program paces nothing, and keeps 64 receives posted. With ud_wait_us its sender loses nothing to 64
# receivers that have two processors, each with a busy loop on it. A receiver that is stopped is waited for once.

. "${0%/*}/lib.sh"

build_examples first_multicast
program=$examples/first_multicast
group=ff12:4001:ffff::f01:101 receivers=64 count=300
read -r -a allowed < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2])')

# send COUNT
send()
{
	expect 0 '' umbel exec h1 -- "$program" 10.0.0.1 239.1.1.1 "$1"
}

# counted HOST COUNTER: its value on the host's port
counted()
{
	umbel show counters --json | python3 -c 'import json, sys
print(*(p[sys.argv[2]] for p in json.load(sys.stdin)["ports"] if p["node"] == sys.argv[1]))' "umbel_$1_0" "$2"
}

# prints NAME MESSAGE...: the receiver has printed these, and nothing else
prints()
{
	cmp -s <(printf 'message %d\n' "${@:2}") "$TMPDIR/$1.out"
}

umbel up --hosts $((receivers + 1)) --set ud_wait_us=60000000 > /dev/null
taskset -p -c "$(IFS=,; echo "${allowed[*]}")" $$ > /dev/null
for processor in "${allowed[@]}"; do
	launch "busy-$processor" taskset -c "$processor" sh -c 'while :; do :; done'
done
for host in $(seq 2 $((receivers + 1))); do
	start "h$host" "h$host" "$program" "10.0.0.$host" 239.1.1.1
done
expect 0 '' umbel wait --group $group --attached $receivers

send $count
for host in $(seq 2 $((receivers + 1))); do
	wait_said "h$host" "message $count\$"
	# shellcheck disable=SC2046
	prints "h$host" $(seq $count) || complain "h$host has got something else"
done
expect 0 'nothing was lost' umbel show drops

# The stopped one has its 64 receives filled, or one less, which it was about to post again; the others get all.
umbel set ud_wait_us=2000000 > /dev/null
kill -STOP "${pid[h2]}"
waits=$(counted h2 receive_waits)
send 200
[ "$(counted h2 receive_waits)" -eq $((waits + 1)) ] || complain "it is waited for $(($(counted h2 receive_waits) - waits)) times"
got=$((200 - $(counted h2 no_receive)))
[ $got -eq 64 ] || [ $got -eq 63 ] || complain "it gets $got messages"
umbel set ud_wait_us=60000000 > /dev/null
kill -CONT "${pid[h2]}"
wait_said h2 "message $got\$" 2
send 250
wait_said h2 'message 250$' 2
# shellcheck disable=SC2046
prints h2 $(seq $count) $(seq $got) $(seq 250) || complain 'the one that was stopped has got something else'
wait_said h3 'message 250$' 2
# shellcheck disable=SC2046
prints h3 $(seq $count) $(seq 200) $(seq 250) || complain 'another one has got something else'
