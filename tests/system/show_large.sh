#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel show` and `umbel exec` on large fabrics: views come in slices, so nobody waits for who reads
# one, and a program starts without a list of all hosts.

. "${0%/*}/lib.sh"

umbel up --fat-tree 3 --radix 24 || complain 'no fabric'

# ---- text and JSON tell the same
umbel show routes leaf7 > "$TMPDIR/routes"
expect 0 $'SWITCH *LID *PORTS\nleaf7 *' cat "$TMPDIR/routes"
[ "$(tail -n +2 "$TMPDIR/routes" | awk '{ print $2, $3 }')" = "$(umbel show routes leaf7 --json |
	python3 -c 'import json, sys
for e in json.load(sys.stdin)[0]["lft"]: print(e["lid"], e["port"])')" ] ||
	complain 'the tables of leaf7 differ'
# 3456 HCAs and 720 switches have LIDs
[ "$(wc -l < "$TMPDIR/routes")" -eq 4177 ] || complain "$(wc -l < "$TMPDIR/routes") lines, not 4177"
[ "$(umbel show routes | wc -l)" -eq $((4176 * 720 + 1)) ] || complain 'not all routes are shown'
[ "$(umbel show topology --json | python3 -c 'import json, sys
print(len(json.load(sys.stdin)["nodes"]))')" -eq 4176 ] || complain 'not all nodes are shown'
expect 1 "umbel: no switch 'leaf999'" umbel show routes leaf999
expect 2 "umbel: show: one thing at a time, not 'leaf1' too; *" umbel show hosts leaf1
expect 2 'umbel: show: --load goes with routes, not with hosts; *' umbel show hosts --load

# ---- what links carry: from each of 3456 hosts 3444 are elsewhere than at its leaf, by 12 links up
expect 0 $'LINKS *\nagg>leaf     3456       0  3444  3444.0  3444      1.00         1        1.0         1
agg>spine    3456       0  3312  3312.0  3312      1.00        23       23.0        23
leaf>agg     3456       0  3444  3444.0  3444      1.00       287      287.0       287
spine>agg    3456       0  3312  3312.0  3312      1.00         1        1.0         1' \
	umbel show routes --load
umbel link down leaf2:13
umbel link down leaf2:14
[ "$(umbel show routes --load --json | python3 -c 'import json, sys
o = json.load(sys.stdin)
up = [l for l in o["links"] if l["switch"] == "leaf2" and l["peer"].startswith("agg")]
print(o["lost"], len(up), sum(l["paths"] for l in up), len(o["links"]))')" = \
	"0 10 $((12 * 3444)) $((4 * 3456 - 4))" ] || complain 'the load of leaf2 is wrong'
umbel link up leaf2:13
umbel link up leaf2:14

# ---- who does not read holds up nobody
mkfifo "$TMPDIR/unread"
umbel show routes --json > "$TMPDIR/unread" 2> /dev/null &
reader=$!
exec 3< "$TMPDIR/unread"
head -c 1000 <&3 > begin
expect 0 '*"hosts": 3456,*' umbel status --json
expect 0 '' umbel link down leaf1:20
expect 0 '' umbel link up leaf1:20
expect 0 '' umbel exec h3456 -- true
exec 3<&-
wait $reader
umbel down > /dev/null || complain 'it does not go down'

# ---- many programs start on many hosts. If each made the daemon list them all, this would cost it
# two minutes of its processor time (12,000 hundredths)
umbel up --hosts 20000 > /dev/null || complain 'no fabric of 20,000 hosts'
pid=$(field pid default)
ticks()
{
	awk '{ print $14 + $15 }' "/proc/$pid/stat"
}
before=$(ticks)
for i in {19901..20000}; do
	umbel exec h$i -- true || complain "h$i"
done
[ $(($(ticks) - before)) -lt 500 ] || complain "a hundred programs cost $(($(ticks) - before)) ticks"
umbel down > /dev/null
exit $failed
