#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# schema.sh PROGRAM SCHEMA: what `umbel show --json` prints of fabrics on which much happens fits docs/show.schema.json, view
# by view, and nearly all that the schema has is met. PROGRAM is why.c.

. "${0%/*}/why.bash"

schema=$2
mkdir "$TMPDIR/shown"

# keep VIEW [NAME [WORD...]]: what the view shows now, or what `umbel show` of the words does, for the schema NAME
keep()
{
	local view=$1 name=${2:-$1}
	shift 2 2> /dev/null || shift
	kept=$((kept + 1))
	umbel show "$view" --json "$@" > "$TMPDIR/shown/$name.$kept.json" || complain "show $view fails"
}

# all but pictures
views=$(umbel show --help | sed -n '/^As pictures/q; s/^  \([a-z]*\)  .*/\1/p')
[ "$(wc -w <<< "$views")" -ge 10 ] || complain "the help lists few views: $views"

keep_all()
{
	local view
	for view in $views; do
		keep "$view"
	done
	keep routes load --load
	keep counters counters --explain
}
kept=0

# ---- many kinds of programs; packets that get lost; a switch that is dead
umbel up --fat-tree 2 --radix 8 --hosts 6 > /dev/null
keep_all
start member h2 mckey -m 239.1.1.1
wait_said member 'mckey: joined dgid'
start sender h3 mckey -m 239.1.1.1 -s -C 5
wait_ended sender 0
start pings h1 rping -s -P -a 10.0.0.1
has_listener()
{
	[[ $(umbel show connections) == *LISTEN* ]]
}
wait_until 'it listens' has_listener
start client h2 rping -c -a 10.0.0.1 -C 100000000
is_established()
{
	[[ $(umbel show connections) == *'ESTABLISHED '* && $(umbel show mrs) == *remote_write* ]]
}
wait_until 'they are connected' is_established
start mads h3 ibping -S
has_mads()
{
	[[ $(umbel show processes) == *ibping* ]]
}
wait_until 'ibping is there' has_mads
umbel fault add opcode=RC_SEND_ONLY drop > /dev/null
hold exc_good
wait_said exc_good 'completed 12'
keep_all
umbel fault clear
start psn all "$program" exc_psn
wait_said psn 'completed 12'
start srq all "$program" rnr_srq_empty
wait_said srq 'completed 13'
start unready all "$program" rc_dead
wait_said unready ready
start lost all "$program" ud_no_receive
wait_said lost ready
keep_all
launch watch sh -c "exec umbel show counters --json --watch 1 > '$TMPDIR/shown/counters.watch.json'"
has_grown()
{
	grep -q '"seconds"' "$TMPDIR/shown/counters.watch.json" 2> /dev/null
}
wait_until 'it was shown twice' has_grown
umbel switch kill spine1
keep_all
for name in member pings mads exc_good psn srq unready lost; do
	kill_hard $name
done
# The rule has met its SENDs, too: it may have ended by itself.
kill -KILL "${pid[client]}" 2> /dev/null
wait "${pid[client]}" 2> /dev/null
ended[client]=0
umbel down > /dev/null
wait_ended watch 1
# the last one of --watch may be cut
python3 - "$TMPDIR/shown/counters.watch.json" << 'END' || complain 'no whole text'
import json, sys
text, whole = open(sys.argv[1]).read(), []
try:
    while text.strip():
        one, end = json.JSONDecoder().raw_decode(text.lstrip())
        whole.append(one)
        text = text.lstrip()[end:]
except ValueError:
    pass
with open(sys.argv[1], "w") as file:
    for one in whole:
        json.dump(one, file)
sys.exit(len(whole) < 2)
END

# ---- Ethernet: groups of HCAs, devices
umbel up --roce-hosts 2 > /dev/null
start member r2 mckey -m 239.1.1.1
wait_said member 'mckey: joined dgid'
hosts=$(umbel show hosts --json)
[[ $hosts == *'"device"'* ]] || complain "no device: $hosts"
keep_all
kill_hard member
umbel down > /dev/null

# ---- IP over InfiniBand
umbel up --hosts 2 --ipoib > /dev/null
umbel exec h1 -- ping -c 1 -W 60 10.0.0.2 > /dev/null || complain 'no ping'
keep hosts
keep neighbours
keep counters
umbel down > /dev/null

# ---- a router, and the same subnet once more
umbel up --name a --hosts 2 --router h2 --prefix 0xfec0000000000001 > /dev/null
umbel up --name b --hosts 2 --router h2 --prefix 0xfec0000000000002 > /dev/null
umbel router a b > /dev/null
export UMBEL_FABRIC=a
leads()
{
	[[ $(umbel show routers --json) == *'"prefix": "0xfec0000000000002"'* ]]
}
wait_until 'the router leads to b' leads
keep routers
umbel down --all --yes --force > /dev/null

# Properties that these fabrics do not have: peers on other machines, and windows of type 2.
expect 0 '*' python3 "${0%/*}/schema.py" "$schema" "$TMPDIR/shown" <<'END'
qps peer_gid
mrs qpn
END
