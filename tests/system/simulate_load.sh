#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel simulate --credits --load`: eight senders to one port wait as M/D/1 says, one with equal gaps
# does not wait; Little's law holds for what JSON says of each message; the same seed has the same
# output; a port that gets more than it carries, and a ring that deadlocks, show.

. "${0%/*}/lib.sh"

cd "$TMPDIR" || exit 1

# ask PYTHON: of "said", what umbel has said as JSON
ask()
{
	python3 -c "
import json
said = json.load(open('said'))
credits = said['credits']
load, messages = credits['load'], credits['messages']
print($1)"
}

printf 'unicast h%d h1\n' 2 3 4 5 6 7 8 9 > star

# ---- M/D/1: 4122 bytes at 100 Gb/s take 329.76 ns
for rho in 0.4 0.8; do
	umbel simulate --hosts 9 --credits --load "$(python3 -c "print($rho / 8)")" --json file star > said ||
		complain "load $rho"
	expect 0 'True' ask "abs((load['mean_ns'] - 529.76) / ($rho * 329.76 / 2 / (1 - $rho)) - 1) < 0.06"
	expect 0 '[[]100000, 90000, False[]]' ask "[load['messages'], load['counted'], load['even']]"
	expect 0 'True' ask "load['mean_ns'] < load['p99_ns'] < load['most_ns']"
	# the ten thousand before these came into a network that was emptier
	expect 0 'True True' ask "(lambda m: ' '.join(str(abs(x) < 1e-4) for x in (
		sum(i['time_ns'] for i in m) / len(m) / load['mean_ns'] - 1,
		sum(i['time_ns'] for i in m) / load['queue'] /
			(max(i['begins_ns'] + i['time_ns'] for i in m) - m[0]['begins_ns']) - 1)))(messages[10000:])"
	expect 0 'True' ask "sorted(i['time_ns'] for i in messages[10000:])[89100 - 1] == load['p99_ns']"
done

# ---- D/D/1
echo 'unicast h2 h1' > one
expect 0 '*load:      1 of its link by each sender, at equal gaps; 900 messages are counted, after 100
times:     530 ns in the mean; 99 of 100 took at most 530 ns, the longest 530 ns
queue:     1.6* messages in the network in the mean, 2 when the last one began*' \
	umbel simulate --credits --load 1 --even --messages 1000 file one

# ---- seeds
for i in 1 2; do
	umbel simulate --hosts 9 --credits --load 0.1 --messages 2000 --seed 7 --json file star > said$i
done
umbel simulate --hosts 9 --credits --load 0.1 --messages 2000 --seed 8 --json file star > said
cmp said1 said2 || complain 'the same seed has another output'
! cmp -s said1 said || complain 'another seed has the same output'

# ---- 1.6 times what the port carries: a third of the messages is still there at the end
umbel simulate --hosts 9 --credits --load 0.2 --json file star > said || complain 'too much for one port'
expect 0 'True' ask "30000 < load['queue_last'] < 37500"

# ---- groups, and the deadlock of a ring
umbel simulate --hosts 9 --credits --load 0.1 --messages 5000 --json groups 4 5 > said || complain 'groups'
expect 0 '5000 True' ask "credits['arrived'], load['mean_ns'] > 535.2"
for ((i = 0; i < 7; i++)); do
	printf 'Switch 4 "s%d"\n[1] "h%d"[1]\n[2] "s%d"[3]\n\nHca 1 "h%d"\n' $i $i $(((i + 1) % 7)) $i
done > ring
ring=(--topology ring --size 262144 --credits --messages 1000)
expect 3 '*deadlock: *' umbel simulate "${ring[@]}" --load 0.9 shift 3
expect 0 '*1000 of 1000 messages have arrived*' umbel simulate "${ring[@]}" --load 0.01 shift 3
# whose link has failed sends what is lost
expect 0 '*credits: * 0 of 1000 messages have arrived after 0 ns
load:      0.5 *; 0 messages are counted, after 100

LINKS *' umbel simulate --hosts 2 --credits --load 0.5 --messages 1000 --fail h1:1 --fail h2:1 shift 1

# ---- what is refused
for load in 0 -1 nan inf 1.01 0x1 1e-1 '' . ' 0.5' 0.5x 0..5 0,5; do
	expect 2 "umbel: simulate: '$load' is no load from 0.0001 to 1; *" \
		umbel simulate --credits --load "$load" all-to-all
done
expect 2 'umbel: simulate: --load needs --credits; *' umbel simulate --load 0.5 all-to-all
expect 2 'umbel: simulate: --even needs --load; *' umbel simulate --credits --even all-to-all
expect 2 'umbel: simulate: --messages needs --load; *' umbel simulate --credits --messages 5 all-to-all
expect 2 "umbel: simulate: '0' is no number *" umbel simulate --credits --load 0.5 --messages 0 all-to-all
expect 1 'umbel: --load: the last message would begin after more than 50 days' \
	umbel simulate --credits --load 0.0001 --size 1073741824 shift 1
