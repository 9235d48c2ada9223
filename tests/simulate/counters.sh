#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# counters.sh PROGRAM: `umbel simulate` says what ports count when queue pairs send the same messages
# (send.c): for each link and each loss, all to all, in a permutation, and to groups; with links and
# switches that have failed, before the subnet manager has noticed it and after.

. "${0%/*}/../system/lib.sh"

cd "$TMPDIR" || exit 1
export PATTERN=$TMPDIR/pattern ARRIVE BEFORE AFTER
send=$1
# hosts N: h1 to hN
hosts()
{
	seq -f 'h%g' "$1" | tr '\n' ' '
}

all_to_all()
{
	for ((i = 1; i <= $1; i++)); do
		echo "unicast h$i $(hosts "$1" | sed "s/\<h$i //")"
	done
}

# number KEY: in the simulation
number()
{
	python3 -c "import json; print(json.load(open('simulated'))['$1'])"
}

# differences: links whose counts are not those of the simulation
differences()
{
	python3 - << 'END'
import json

def counts(name):
    return {(p['node'], p['port']): (p['xmit_pkts'], p['rcv_pkts'])
            for p in json.load(open(name))['ports']}

before, after = counts('before'), counts('after')
links = json.load(open('simulated'))['links']
sent = {(l['node'], l['port']): l['messages'] for l in links}
if len(sent) != len(after):
    print(len(sent), 'links, not', len(after))
for l in links:
    here, there = (l['node'], l['port']), (l['peer'], l['peer_port'])
    got = after[here][0] - before[here][0], after[there][1] - before[there][1]
    if got != (l['messages'], l['messages']):
        print(*here, 'to', *there, 'counts', *got, 'not', l['messages'])
END
}

# compare FABRIC FAIL...: the pattern on a fabric with these options, where that fails; with
# "unnoticed" before it, while the subnet manager is stopped.
compare()
{
	local fabric=$1 notice=: options=() what
	shift

	BEFORE=:
	if [ "${1-}" = unnoticed ]; then
		notice='umbel sm stop'
		options=(--no-reroute)
		shift
	fi
	for what in "$@"; do
		options+=(--fail "$what")
		if [[ $what == *:* ]]; then
			notice+=" && umbel link down $what"
		else
			notice+=" && umbel switch kill $what"
		fi
	done
	BEFORE="$notice && umbel show counters --json > before"
	AFTER='umbel show counters --json > after'
	# shellcheck disable=SC2086
	umbel simulate $fabric "${options[@]}" --json file pattern > simulated ||
		complain "umbel simulate $fabric ${options[*]}"
	ARRIVE=$(($(number sent) - $(number lost)))
	# shellcheck disable=SC2086
	umbel run $fabric -- "$send" > output 2>&1 || complain "$fabric $*: $(cat output)"
	[ -z "$(differences)" ] || complain "$fabric $*:"$'\n'"$(differences)"
	echo "$SECONDS s: $fabric $*: $(number sent) sent, $(number lost) lost"
}

all_to_all 16 > pattern
compare '--fat-tree 3 --radix 4'
compare '--fat-tree 3 --radix 4 --set routing=updn'
compare '--fat-tree 3 --radix 4 --set routing=ftree --set lmc=1'
compare '--fat-tree 3 --radix 4' leaf1:3
compare '--fat-tree 3 --radix 4 --set routing=ftree' agg1 h3:1
compare '--fat-tree 3 --radix 4' unnoticed leaf1:3 spine2
# as all to all by itself
umbel simulate --fat-tree 3 --radix 4 --fail agg1 --fail h3:1 --json all-to-all > all
umbel simulate --fat-tree 3 --radix 4 --fail agg1 --fail h3:1 --json file pattern > pairs
expect 0 '' diff <(grep -v '"pattern"' all) <(grep -v '"pattern"' pairs)

for i in $(seq 16); do echo "unicast h$i h$(((i * 5 + 3) % 16 + 1))"; done > pattern
compare '--fat-tree 2 --radix 8 --hosts 16'
compare '--fat-tree 2 --radix 8 --hosts 16' leaf1:5 leaf1:6

cat > pattern << END
group $(hosts 13)
multicast $(hosts 13) h2
group h3 h5 h12
multicast h16 h3
group h14 h15
multicast h14 h15
END
compare '--fat-tree 3 --radix 4'
compare '--fat-tree 2 --radix 8 --hosts 16 --set routing=updn'
compare '--fat-tree 3 --radix 4' unnoticed leaf1:3 leaf2:4
printf '%s\n' "group $(hosts 16)" "multicast $(hosts 16)" > pattern
compare '--fat-tree 3 --radix 4' spine1 leaf3:3 h9:1
compare '--fat-tree 2 --radix 8 --hosts 16' spine1

# ---- split in two; a ring; hosts without a cable, and two on one cable
cat > ring.net << 'END'
Switch 4 "A" # "a"
[1] "B"[2]
[2] "D"[1]
[3] "H1"[1]
Switch 4 "B" # "b"
[1] "C"[2]
[2] "A"[1]
[3] "H2"[1]
Switch 4 "C" # "c"
[1] "D"[2]
[2] "B"[1]
[3] "H3"[1]
[4] "H4"[1]
Switch 4 "D" # "d"
[1] "A"[2]
[2] "C"[1]
Hca 1 "H1" # "h1"
[1] "A"[3]
Hca 1 "H2" # "h2"
[1] "B"[3]
Hca 1 "H3" # "h3"
[1] "C"[3]
Hca 1 "H4" # "h4"
[1] "C"[4]
Hca 1 "H5" # "h5"
[1] "H6"[1]
Hca 1 "H6" # "h6"
[1] "H5"[1]
END
all_to_all 6 > pattern
echo 'group h1 h3 h4' >> pattern
echo 'multicast h2 h3' >> pattern
compare '--topology ring.net'
compare '--topology ring.net --set routing=dfsssp' a:1
compare '--topology ring.net' b d
compare '--topology ring.net' unnoticed b
umbel simulate --topology ring.net --json all-to-all > all
umbel simulate --topology ring.net --json file <(all_to_all 6) > pairs
expect 0 '' diff <(grep -v '"pattern"' all) <(grep -v '"pattern"' pairs)
