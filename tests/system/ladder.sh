#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel ladder`: the packets of a connection out of a capture: which got lost, the gap, the NAK and what
# is sent again; many packets in few lines; two connections in one file; files that are none.

. "${0%/*}/perftest.bash"

file=$TMPDIR/data.pcapng

# pingpong NAME OPTION...: on h1 and h2, until both have ended
pingpong()
{
	serve "$1" h1 ibv_rc_pingpong -m 1024 "${@:2}"
	client "$1" h2 ibv_rc_pingpong -m 1024 "${@:2}"
	wait_ended "client-$1" 0
	wait_ended "server-$1" 0
}

# qpn NAME: of its client, of its server
qpn()
{
	sed -nE 's/^ *(local|remote) address: .*QPN (0x[0-9a-f]*)[, ].*/\2/p' "$TMPDIR/client-$1.out"
}

# rows OPTION...: what is written on the ladder's lines, from top to bottom, with who sends; it is XML
rows()
{
	umbel ladder "$file" "$@" | python3 -c 'import sys
import xml.etree.ElementTree as ElementTree
SVG = "{http://www.w3.org/2000/svg}"
root = ElementTree.parse(sys.stdin).getroot()
sides, ends = [], {}
for e in root:
    if e.tag == SVG + "line":
        ends[e.get("y1")] = "<" if int(e.get("x1")) > int(e.get("x2")) else ">"
    elif e.get("class") == "side":
        print(e.text)
    elif e.get("class") == "packet":
        assert 0 <= int(e.get("y")) < int(root.get("height"))
        print(ends[str(int(e.get("y")) + 4)], e.text)
    elif e.get("class") == "comment":
        print("   ", e.text)'
}

# first_time COMMAND...: what it prints, but for what a busy machine has sent again
first_time()
{
	"$@" | grep -v ', again$' | awk '!seen[$0]++'
}

umbel up --hosts 2 > /dev/null
launch capture umbel capture --data --output "$file"
wait_until 'the capture runs' test -s "$file"

# ---- a connection of which nothing gets lost, while the capture goes on
pingpong whole -s 2000 -n 1
# written packet by packet
wait_until 'both acknowledgements are there' eval '[ "$(first_time rows 2> /dev/null | grep -c ACKNOWLEDGE)" -eq 2 ]'
expect 0 "umbel_h2_0:1, QP 0x*
umbel_h1_0:1, QP 0x*
> PSN * RC SEND FIRST
> PSN * RC SEND LAST
< PSN * RC ACKNOWLEDGE
< PSN * RC SEND FIRST
< PSN * RC SEND LAST
> PSN * RC ACKNOWLEDGE" first_time rows

# ---- the first packet of this kind from h2 gets lost
umbel fault add 'qp=h2:*' opcode=RC_SEND_MIDDLE nth=1 drop > /dev/null
pingpong lost -s 4000 -n 3
umbel fault clear > /dev/null
pingpong large -s 100000 -n 2
# and a response to a READ; it waits a second before it reads again
umbel fault add opcode=RC_READ_RESPONSE_MIDDLE nth=4 drop > /dev/null
serve read h1 ib_read_bw -F -m 1024 -s 10000 -n 5 -u 18
client read h2 ib_read_bw -F -m 1024 -s 10000 -n 5 -u 18
wait_ended client-read 0
wait_ended server-read 0
kill "${pid[capture]}"
wait_ended capture 0

expect 1 "umbel: '$file' has more than one connection; which two queue pairs? It has packets
umbel:   from umbel_h2_0:1 to QP 0x*: *
umbel:   from umbel_h1_0:1 to QP 0x*: *" umbel ladder "$file"
mapfile -t qps < <(qpn lost)
rows "${qps[@]}" > "$TMPDIR/rows"
[ "$(head -n 1 "$TMPDIR/rows")" = "umbel_h2_0:1, QP 0x$(printf %x "${qps[0]}")" ] ||
	complain "the queue pair of h2 is not ${qps[0]}"
lost=$(grep -B 1 '^    fault: dropped$' "$TMPDIR/rows" | sed -nE 's/^> PSN ([0-9]*) RC SEND MIDDLE$/\1/p')
for row in "> PSN $((lost + 1))( RC SEND MIDDLE|-[0-9]*, [0-9]* x RC SEND), a gap: $lost is missing" \
	"< PSN $lost NAK: PSN out of sequence" "> PSN ($lost|$((lost - 1)))(-[0-9]*, . x)? RC SEND.*, again"; do
	grep -qxE "$row" "$TMPDIR/rows" || complain "not there: $row"$'\n'"$(cat "$TMPDIR/rows")"
done
[ "$(grep -c 'fault: ' "$TMPDIR/rows")" -eq 1 ] || complain 'more than one packet got lost'

mapfile -t qps < <(qpn read)
rows "${qps[@]}" > "$TMPDIR/rows"
lost=$(grep -B 1 '^    fault: dropped$' "$TMPDIR/rows" | sed -nE 's/^< PSN ([0-9]*) RC READ RESPONSE MIDDLE$/\1/p')
for row in "< PSN $((lost - 4))-$((lost - 1)), 4 x RC READ RESPONSE" "> PSN $lost RC READ REQUEST, again"; do
	grep -qxF "$row" "$TMPDIR/rows" || complain "not there: $row"$'\n'"$(cat "$TMPDIR/rows")"
done

# ---- 98 packets there and back, twice
mapfile -t qps < <(qpn large)
rows "${qps[@]}" > "$TMPDIR/rows"
[ "$(wc -l < "$TMPDIR/rows")" -lt 150 ] || complain "a ladder of many lines:"$'\n'"$(cat "$TMPDIR/rows")"
expect 0 '*> PSN *-*, * x RC SEND*< PSN * RC ACKNOWLEDGE*' cat "$TMPDIR/rows"
umbel ladder "$file" "${qps[@]}" -o "$TMPDIR/ladder.svg"
umbel ladder "$file" "${qps[@]}" | cmp - "$TMPDIR/ladder.svg" || complain 'a pipe gets another ladder than a file'

# ---- what is refused
expect 2 'umbel: ladder: which file?; *' umbel ladder
expect 2 'umbel: ladder: FILE, or FILE and two queue pairs; *' umbel ladder "$file" 3
expect 2 "umbel: ladder: 'h1' is no queue pair's number; *" umbel ladder "$file" 3 h1
expect 1 "umbel: '$file' has no such connection; which two queue pairs? *" umbel ladder "$file" 0xfffff 0xffffe
expect 1 "umbel: cannot read '/none': No such file or directory" umbel ladder /none
expect 1 "umbel: '$0' is no capture that umbel wrote" umbel ladder "$0"
expect 1 "umbel: '/dev/null' is no capture that umbel wrote" umbel ladder /dev/null
expect 1 "umbel: cannot write '/dev/full': No space left on device" \
	umbel ladder "$file" "${qps[@]}" -o /dev/full
expect 2 'umbel: a picture is no text: write it to a file by --output, or to a pipe*' \
	script -qec "umbel ladder '$file' ${qps[*]}" /dev/null
umbel capture --class 200 -c 1 -o "$TMPDIR/empty.pcapng" 2> /dev/null &
wait_until 'a capture has begun' test -s "$TMPDIR/empty.pcapng"
umbel down > /dev/null
wait $!
expect 1 "umbel: '*/empty.pcapng' has no packets of connected queue pairs; *" umbel ladder "$TMPDIR/empty.pcapng"

# ---- files that are damaged, cut anywhere, or lie: they are read or refused, and nothing else
python3 - "$file" "$TMPDIR/bad.pcapng" <<'END' || complain 'a damaged file'
import random
import subprocess
import sys

good = open(sys.argv[1], "rb").read()
random.seed(5)
for turn in range(150):
    bad = bytearray(good[:random.randrange(len(good))] if turn % 3 == 0 else good[:4000])
    for _ in range(turn % 7):
        bad[random.randrange(12, max(13, min(len(bad), 2000)))] = random.choice([0, 1, 127, 255, random.randrange(256)])
    open(sys.argv[2], "wb").write(bad)
    run = subprocess.run(["umbel", "ladder", sys.argv[2], "1", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if run.returncode not in (0, 1) or (run.returncode == 1) != (run.stderr[:7] == b"umbel: "):
        sys.exit("%d: %s" % (run.returncode, run.stderr.decode()))
END
exit $failed
