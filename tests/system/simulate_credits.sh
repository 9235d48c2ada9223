#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel simulate --credits`: a ring by shortest paths deadlocks, and the circle is named, in words and
# as JSON; up/down routes and a second lane mend it. Of random graphs none deadlocks that `umbel check`
# finds free of circles. What several hosts send to one arrives at the rate of its link.

. "${0%/*}/lib.sh"

cd "$TMPDIR" || exit 1

# ring N: of switches with a host each
ring()
{
	local i

	for ((i = 0; i < $1; i++)); do
		printf 'Switch 4 "s%d"\n[1] "h%d"[1]\n[2] "s%d"[3]\n\nHca 1 "h%d"\n' \
			$i $i $(((i + 1) % $1)) $i
	done
}
ring 7 > ring
far=(--topology ring --size 262144 --credits)

# ask PYTHON: of "said", what umbel has said as JSON
ask()
{
	python3 -c "import json; said = json.load(open('said')); credits = said['credits']; print($1)"
}

# ---- a circle
expect 3 '*
credits:   for 4 packets on each lane; 0 of 7 messages have arrived after *
deadlock:  * packets wait forever, at the ends of 14 links; 7 of these wait for each other:
           s0:2 waits for s1:2, with a packet h6 > h2
           s1:2 waits for s2:2, with a packet h0 > h3
           s2:2 waits for s3:2, with a packet h1 > h4
           s3:2 waits for s4:2, with a packet h2 > h5
           s4:2 waits for s5:2, with a packet h3 > h6
           s5:2 waits for s6:2, with a packet h4 > h0
           s6:2 waits for s0:2, with a packet h5 > h1

*links that waited longest for credits*
h0:1                     s0:1                    *' umbel simulate "${far[@]}" shift 3
umbel simulate "${far[@]}" --json shift 3 > said
[ $? -eq 3 ] || complain 'a deadlock is not said by the exit status with --json'
expect 0 "True [[]('s0', 2, 0), ('s1', 2, 0), ('s2', 2, 0), ('s3', 2, 0), ('s4', 2, 0), ('s5', 2, 0), ('s6', 2, 0)[]]" \
	ask "credits['deadlock'], [(w['node'], w['port'], w['lane']) for w in credits['circle']]"
expect 0 "0 {'from': 'umbel_h6_0', 'to': 'umbel_h2_0'} [[]False[]]" \
	ask "credits['arrived'], credits['circle'][0]['waits'], sorted({m['arrived'] for m in credits['messages']})"
# the same each time
umbel simulate "${far[@]}" --json shift 3 > again
cmp again said || complain 'another time it is another deadlock'
# room for all of it is no deadlock; nor is a message that fits the buffers
expect 0 '*7 of 7 messages have arrived*' umbel simulate "${far[@]}" --buffer 1000 shift 3
expect 0 '*7 of 7 messages have arrived*' umbel simulate --topology ring --credits --size 4096 shift 3
# without credits nobody waits
expect 0 '*' umbel simulate --topology ring --size 262144 shift 3

# ---- what mends it
expect 0 '*7 of 7 messages have arrived*' umbel simulate "${far[@]}" --set routing=updn shift 3
expect 0 '*7 of 7 messages have arrived*' umbel simulate "${far[@]}" --set routing=dfsssp shift 3
expect 0 '*routing dfsssp*7 of 7 messages have arrived*' \
	umbel simulate "${far[@]}" --set routing=dfsssp --set routing_lanes=2 shift 3
# so does the link that the circle goes by, if it fails
expect 0 '*7 of 7 messages have arrived*' umbel simulate "${far[@]}" --fail s0:2 shift 3

# ---- the judge of tables says the same, though it sends nothing: where it finds no circle there is no
# deadlock, and where there is a deadlock it has found one
clean=0
stuck=0
for seed in 1 2 3 4 5 6 7 8 9 10; do
	awk -v seed=$seed 'BEGIN {
		srand(seed)
		for (i = 0; i < 9 - seed % 2; i++)
			link(i, (i + 1) % 9)
		for (i = 0; i < int(seed / 3); i++)
			link(int(rand() * 9), int(rand() * 9))
		for (i = 0; i < 9; i++)
			printf "Switch 36 \"s%d\"\n[1] \"h%d\"[1]\n%s\nHca 1 \"h%d\"\n\n", i, i, lines[i], i
	}
	function link(a, b) {
		if (a == b)
			return
		lines[a] = lines[a] sprintf("[%d] \"s%d\"[%d]\n", ++used[a] + 1, b, used[b] + 2)
		used[b]++
	}' > graph
	verdict=$(umbel run --topology graph -- umbel check --json |
		python3 -c "import json, sys; print(json.load(sys.stdin)['properties']['deadlock']['verdict'])")
	umbel simulate --topology graph --credits --buffer 1 --size 65536 all-to-all > said
	case $verdict$? in
	ok0) clean=$((clean + 1)) ;;
	WRONG3) stuck=$((stuck + 1)) ;;
	WRONG0) ;;
	*) complain "graph $seed: the judge says $verdict, and:"$'\n'"$(grep -A5 ^credits: said)" ;;
	esac
done
[ $clean -gt 0 ] || complain 'no graph is free of circles'
[ $stuck -gt 0 ] || complain 'no graph deadlocks'

# ---- congestion: h1 to h4 send to h5, all of whose link is used; h6 sends elsewhere
printf 'unicast h%d h5\n' 1 2 3 4 > one
echo unicast h6 h7 >> one
umbel simulate --hosts 7 --credits --size 409600 --json file one > said || complain 'many to one'
expect 0 '[[]5, 5, 0[]]' ask "[said['sent'], credits['arrived'], credits['stuck_packets']]"
expect 0 '[[]24.*, 24.*, 24.*, 24.*, 98.*[]]' ask "[m['gbps'] for m in credits['messages']]"
expect 0 '(4, True)' \
	ask "[(l['queue'], l['waiting_ns'] > 90000) for l in said['links'] if l['node'] == 'umbel_h1_0'][0]"
# 400 packets, each of 4122 bytes, at 100 Gb/s
expect 0 '[[]131904[]]' ask "[round(l['busy_ns']) for l in said['links'] if l['peer'] == 'umbel_h5_0']"

# ---- groups
echo 'group h1 h2 h3' > group
umbel simulate --hosts 4 --credits --json file group > said || complain 'groups'
expect 0 "3 {'from': 'umbel_h1_0', 'group': 1}" \
	ask "credits['arrived'], {k: credits['messages'][0][k] for k in ('from', 'group')}"

# ---- what is refused
expect 2 'umbel: simulate: --buffer needs --credits; *' umbel simulate --buffer 3 all-to-all
expect 2 "umbel: simulate: '0' is no number *" umbel simulate --credits --buffer 0 all-to-all
expect 1 'umbel: --credits: the messages cross more than 33554432 links in all' \
	umbel simulate --fat-tree 3 --credits all-to-all
