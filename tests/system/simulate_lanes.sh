#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel simulate --credits` with arbitration tables: lanes get of a link that they compete for what their
# weights say, high priority starves low without a limit and not with one; what is wrong in a table
# is refused, so are lanes that none serves.

. "${0%/*}/lib.sh"

cd "$TMPDIR" || exit 1

# h1 sends on lane 0, h2 on lane 1, h3 on lane 2; all to h4
for lane in 0 1 2; do
	printf 'sl %d\nunicast h%d h4\n' $lane $((lane + 1))
done > three
head -4 three > two

# share PATTERN OPTION...: bytes that lanes sent while others could have sent, by the first of them, on the
# link to h4
share()
{
	umbel simulate --hosts 4 --credits --size 4096000 --json "${@:2}" file "$1" > said || echo "status $?"
	python3 -c "
import json
l = [l for l in json.load(open('said'))['links'] if l['peer'] == 'umbel_h4_0'][0]
least = min(i['shared_bytes'] for i in l['lanes']) or 1
print(*(round(i['shared_bytes'] / least, 1) if least > 1 else int(i['shared_bytes'] > 0) for i in l['lanes']))"
}

# ---- weights; a packet has 65 blocks
expect 0 '3.0 1.0' share two --vlarb-low 0:195,1:65
expect 0 '1.0 3.0' share two --vlarb-low 0:65,1:195
expect 0 '1.0 1.0' share two --vlarb-low 0:65,1:65
# OpenSM's weights of 4 are less than a packet, so they are equal; and its list is longer than there are lanes
expect 0 '1.0 1.0' share two --vlarb-low 0:4,1:12,2:4,3:4,4:4,5:4,6:4,7:4,8:4,9:4,10:4,11:4,12:4,13:4,14:4
expect 0 '2.0 1.0' share two --vlarb-low 0:65,1:65,0:65
# messages say the same: three quarters of 100 Gb/s, less headers, and what is left at the end
expect 0 '*sw1:4                       0     49.98 Gb/s    75.0 %
sw1:4                       1     49.98 Gb/s    25.0 %

messages that took longest:
h2 > h4                             49.67 Gb/s, *
h1 > h4                             74.51 Gb/s, *' \
	umbel simulate --hosts 4 --credits --size 4096000 --vlarb-low 0:195,1:65 file two

# ---- under a load that does not end before the other: each gets its part of the whole
umbel simulate --hosts 4 --credits --load 1 --vlarb-low 0:195,1:65 --json file two > said
expect 0 '75 25' python3 -c "
import json
c = json.load(open('said'))['credits']
end = c['messages'][-1]['begins_ns']
n = [sum(m['begins_ns'] + m['time_ns'] < end for m in c['messages'] if m['from'] == f'umbel_h{i}_0') for i in (1, 2)]
print(*(round(100 * x / sum(n)) for x in n))"

# ---- high priority
expect 0 '0 1' share two --vlarb-low 0:255 --vlarb-high 1:1 --high-limit 255
expect 0 '1.0 1.0' share two --vlarb-low 0:255 --vlarb-high 1:1
expect 0 '1.0 1.0' share two --vlarb-low 0:255 --vlarb-high 1:1 --high-limit 0
expect 0 '1.0 3.0' share two --vlarb-low 0:255 --vlarb-high 1:1 --high-limit 3
# the weights of a table are for what it has
expect 0 '0 1 1' share three --vlarb-low 0:255 --vlarb-high 1:130,2:65 --high-limit 255
umbel simulate --hosts 4 --credits --size 4096000 --vlarb-low 0:255 --vlarb-high 1:130,2:65 --high-limit 255 \
	--json file three > said
expect 0 '[[]33*, 66*, 49*[]]' python3 -c "
import json
print([m['gbps'] for m in json.load(open('said'))['credits']['messages']])"

# ---- without tables lanes take turns, and nothing is said of them
umbel simulate --hosts 4 --credits --size 4096000 file three > turns
grep -q 'lanes that competed' turns && complain 'lanes are shown though there are no tables'
umbel simulate --hosts 4 --credits --size 4096000 --vlarb-low 0:1,1:1,2:1 file three > equal
diff <(grep ' > ' turns) <(grep ' > ' equal) || complain 'equal weights are no turns'
# nor if nobody competes
expect 0 '*messages that took longest*' umbel simulate --hosts 4 --credits --vlarb-low 0:1 shift 1
umbel simulate --hosts 4 --credits --vlarb-low 0:1 shift 1 | grep -q 'lanes that competed' &&
	complain 'lanes are shown though none competed'

# ---- routes that need their lanes keep them
for ((i = 0; i < 7; i++)); do
	printf 'Switch 4 "s%d"\n[1] "h%d"[1]\n[2] "s%d"[3]\n\nHca 1 "h%d"\n' $i $i $(((i + 1) % 7)) $i
done > ring
for ((i = 0; i < 7; i++)); do
	printf 'unicast h%d h%d\n' $i $(((i + 3) % 7))
done > around
sed '1i sl 5' around > around.5
dfsssp=(--topology ring --size 262144 --credits --set routing=dfsssp)
diff <(umbel simulate "${dfsssp[@]}" file around) <(umbel simulate "${dfsssp[@]}" file around.5) ||
	complain 'a pattern has its service level though routes need theirs'
expect 0 '*7 of 7 messages have arrived*' umbel simulate "${dfsssp[@]}" --vlarb-low 0:1,1:2,2:3,3:4,4:5,5:6,6:7,7:8 \
	file around

# ---- what is refused
for list in '' 0 0: :1 0:256 15:1 0:1, ,0:1 '0:1 ' ' 0:1' 0:1:1 -1:1 0x1:1 99999999999999999999:1 \
	"$(seq -s, -f '0:%g' 65)"; do
	expect 2 "umbel: simulate: '$list' is no list of *" umbel simulate --credits --vlarb-low "$list" all-to-all
done
expect 0 '*' umbel simulate --credits --vlarb-high "$(seq -s, -f '0:%g' 64)" all-to-all
expect 2 'umbel: simulate: --vlarb-low needs --credits; *' umbel simulate --vlarb-low 0:1 all-to-all
expect 2 'umbel: simulate: --vlarb-high needs --credits; *' umbel simulate --vlarb-high 0:1 all-to-all
expect 2 'umbel: simulate: --high-limit needs --vlarb-high; *' \
	umbel simulate --credits --vlarb-low 0:1 --high-limit 0 all-to-all
expect 2 "umbel: simulate: '256' is no number *" \
	umbel simulate --credits --vlarb-high 0:1 --high-limit 256 all-to-all
for list in 0:1 0:1,1:0 0:0,14:1; do
	expect 1 'umbel: packets use VL*, which has no weight by --vlarb-high or --vlarb-low' \
		umbel simulate --hosts 4 --credits --vlarb-low "$list" file two
done
