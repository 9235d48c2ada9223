#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# drops.sh PROGRAM: `umbel show drops` has what was lost, the largest number first, and each reason
# once, with what to do about it; and faults that have fired. PROGRAM is why.c.

. "${0%/*}/../system/lib.sh"

program=$1

# lose CAUSE
lose()
{
	start "$1" all "$program" "$1"
	wait_said "$1" ready
}

umbel up --hosts 3 > /dev/null
expect 0 'nothing was lost' umbel show drops
lose ud
kill_hard ud
expect 0 'nothing was lost' umbel show drops
lose ud_no_receive
lose ud_qkey
lose ud_mtu
kill_hard ud_mtu
kill_hard ud_qkey
kill_hard ud_no_receive
expect 0 'NODE *PORT *COUNTER *COUNT
umbel_h3_0 *1 *no_receive *3
umbel_h?_0 *1 *
umbel_h?_0 *1 *
umbel_h?_0 *1 *

no_receive *packets lost as no receive was posted: post more of them*
bad_qkey *wr.ud.remote_qkey*' umbel show drops
[ "$(umbel show drops | grep -c '^umbel_h1_0 *1 *xmit_')" -eq 2 ] || complain "h1: $(umbel show drops)"
umbel show drops --json | python3 -c '
import json, sys
o = json.load(sys.stdin)
counts = [d["count"] for d in o["drops"]]
assert counts == sorted(counts, reverse=True) == [3, 1, 1, 1], counts
assert all(d["text"] and d["node"] and d["port"] == 1 for d in o["drops"]), o
assert not o["faults"], o' || complain 'the JSON is wrong'
# a port and a switch have counters of one name: each has its own reason
umbel link down h3:1
lose ud
kill_hard ud
lost_on_the_way()
{
	umbel show drops | grep -qE '^sw1 .*(xmit_discards|relay_errors) '
}
wait_until 'the loss at the switch is shown' lost_on_the_way
umbel link up h3:1
expect 2 '*one thing at a time*' umbel show drops hosts
umbel down > /dev/null

umbel up --hosts 3 > /dev/null
umbel fault add opcode=UD_SEND_ONLY drop > /dev/null
umbel fault add opcode=RC_ACKNOWLEDGE drop > /dev/null
lose ud
has_fired()
{
	umbel show drops | grep -q 'opcode=UD_SEND_ONLY drop'
}
wait_until 'it has fired' has_fired
expect 0 '*FAULT *FIRED *RULE
 *1 *1 *opcode=UD_SEND_ONLY drop' umbel show drops
kill_hard ud
# what the rule has lost stays lost when it is one no more; one that never fired is nothing to remember
umbel fault clear
expect 0 '*FAULT *FIRED *RULE
 *1 *1 *opcode=UD_SEND_ONLY drop (cleared)' umbel show drops
[[ $(umbel show drops --json) == *'"cleared": true'* ]] || complain "the JSON: $(umbel show drops --json)"
umbel down > /dev/null

# ---- counters, and what they grew by
umbel up --hosts 3 > /dev/null
launch watch umbel show counters --watch 1
launch watch_json umbel show --json --watch 1 counters
wait_said watch 'all counters are 0'
wait_said watch_json '{'
lose ud_no_receive
wait_said watch 'umbel_h3_0 .* 3 +3 [0-9.]*/s'
# it grows no more
wait_said watch 'umbel_h3_0  *1[ 0-9]* 3[ 0-9]*$'
wait_said watch_json '  "seconds": ' 3
kill_hard ud_no_receive
umbel down > /dev/null
wait_ended watch 1
wait_ended watch_json 1
sed '/^umbel: /d' "$TMPDIR/watch_json.out" | python3 -c '
import json, sys
text, shown = sys.stdin.read(), []
while text.strip():
    one, end = json.JSONDecoder().raw_decode(text.lstrip())
    shown.append(one)
    text = text.lstrip()[end:]
assert "seconds" not in shown[0] and not any("grew" in p for p in shown[0]["ports"])
lost = [p for o in shown[1:] for p in o["ports"] if p["node"] == "umbel_h3_0"]
assert sum(p["grew"]["no_receive"] for p in lost) == 3 == lost[-1]["no_receive"], lost
assert all(o["seconds"] > 0.5 for o in shown[1:])
grew = [(p, o["seconds"]) for o in shown[1:] for p in o["ports"] if any(p["grew"].values())]
assert grew and all(abs(p["per_second"][k] * s - p["grew"][k]) <= 0.06 * s + 0.001 * p["grew"][k] for p, s in grew for k in p["grew"]), grew
' || complain "the JSON of growth is wrong: $(tail -c 2000 "$TMPDIR/watch_json.out")"
