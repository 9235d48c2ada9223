#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel monitor`: what mckey, ibv_ud_pingpong, rping, OpenSM and umbel's own commands do to a fabric, in
# its order; readers that stop, die or are too many.

. "${0%/*}/opensm.bash"
. "${0%/*}/rdmacm.bash"

umbel up --hosts 3 > /dev/null
group=ff12:4001:ffff::f01:101	# 239.1.1.1
events=$TMPDIR/events.out text=$TMPDIR/text.out

# has KIND KEY=VALUE...: whether there is such an event; $events is read.
has()
{
	python3 - "$events" "$@" << 'END'
import json, sys
want = dict(w.split("=", 1) for w in sys.argv[3:])
for line in open(sys.argv[1]):
    e = json.loads(line) if line.endswith("\n") else {}
    if e.get("event") == sys.argv[2] and all(str(e.get(k)) == v for k, v in want.items()):
        sys.exit(0)
sys.exit(1)
END
}

# in_order TEXT...: patterns of lines of $text, one behind the other. Who writes it may be later than who writes $events.
in_order()
{
	wait_until "it is told in order: $*" is_in_order "$@" || cat "$text" >&2
}

is_in_order()
{
	local from=1 at
	for pattern; do
		at=$(tail -n +$from "$text" | grep -n -m 1 -E "^ *[0-9]+[.][0-9]{6}  $pattern\$" | cut -d: -f1)
		[ "$at" ] || return
		from=$((from + at))
	done
}

launch text umbel monitor
launch events umbel monitor --json
# both listen: the setting is told to them
both_listen()
{
	umbel set sm_poll_ms=1000
	grep -q 'set ' "$text" && has set key=sm_poll_ms value=1000
}
wait_until 'both listen' both_listen

# ---- a story: a join, a link, a setting, a program that is killed
start member h2 mckey -m 239.1.1.1 -b 10.0.0.2
wait_said member 'mckey: joined dgid'
umbel link down h3:1
umbel link up h3:1
umbel set mft_delay_ms=1
kill -9 "${pid[member]}"
wait_until 'the member has left' has leave host=h2 mgid=$group join_state=full
wait_until 'the group has ended' has group what=ended mgid=$group
in_order "program  mckey connected, host h2, PID ${pid[member]}, verbs" 'qp +h2 0x[0-9a-f]{6} made' \
	"group    $group made, MLID 0xc00[0-9]" "join     umbel_h2_0:1 joins $group, full" \
	"qp       h2 0x[0-9a-f]{6} attached, $group" \
	'link     umbel_h3_0:1 - sw1:3 down' 'port     umbel_h3_0:1 down' 'sweep    done, minhop, [0-9]+ us' \
	'link     umbel_h3_0:1 - sw1:3 up' 'port     umbel_h3_0:1 init' 'port     umbel_h3_0:1 active' \
	'sweep    done, minhop, [0-9]+ us' 'set      mft_delay_ms=1' \
	"program  mckey gone, host h2, PID ${pid[member]}, verbs" 'qp +h2 0x[0-9a-f]{6} ended' \
	"leave    umbel_h2_0:1 leaves $group, full" "group    $group ended, MLID 0xc00[0-9]"
ended[member]=0

# ---- a port that goes down is taken out of its group
start member h2 mckey -m 239.1.1.1 -b 10.0.0.2
wait_said member 'mckey: joined dgid'
umbel link down h2:1
wait_until 'it is taken out' has leave host=h2 "what=its port is down"
umbel link up h2:1
kill "${pid[member]}"
wait_ended member 143

# ---- a fault that fires, often: few of the times are told
expect 0 1 umbel fault add qp=h1:* chance=100% seed=3 delay=1us
new_port
start server h3 ibv_ud_pingpong -p "$port" -n 100
wait_listening server "$port"
start client h1 ibv_ud_pingpong -p "$port" -n 100 localhost
wait_ended client 0
wait_ended server 0
wait_until 'it has fired 64 times' has fault what=fired number=1 fired=64
has fault what=added number=1 'rule=qp=h1:* chance=100% seed=3 delay=1us' || complain 'no rule was added'
for n in 1 2 3 4 8 16 32; do
	has fault what=fired number=1 fired=$n || complain "firing $n is not told"
done
not has fault what=fired fired=5 || complain 'firing 5 is told'
umbel fault clear 1
wait_until 'it is cleared' has fault what=cleared number=1
umbel fault clear
wait_until 'all are cleared' has fault 'what=all cleared'

# ---- queue pairs that are disconnected
run_pair pings rping -s -a 10.0.0.1 -C 3 -- rping -c -a 10.0.0.1 -C 3
wait_until 'the server is gone' has program what=gone program=rping host=h1
wait_until 'the client is gone' has program what=gone program=rping host=h2
in_order 'program  rping connected, host h1, PID [0-9]+, verbs' 'qp       h1 0x[0-9a-f]{6} made' \
	'qp       h1 0x[0-9a-f]{6} error' 'qp       h1 0x[0-9a-f]{6} ended'

# ---- switches, and the subnet manager; OpenSM
umbel switch kill sw1
umbel switch revive sw1
umbel sm event lid-change h2:1
umbel sm stop
opensm other h1
wait_until 'opensm is there' has program what=connected host=h1 program=opensm uses=umad
wait_until 'opensm is the master' master_is "$(guid 1)"
umbel link down h2:1
umbel link up h2:1
wait_until 'opensm brings the port up' has port host=h2 state=armed
wait_until 'all ports are up' all_ports active
kill "${pid[other]}"
wait_ended other 0
umbel sm start
wait_until 'ours is the master again' has sm what=start
in_order 'switch   sw1 killed' 'port +umbel_h1_0:1 down' 'switch   sw1 revived' 'port +umbel_h1_0:1 active' \
	'sm       lid-change umbel_h2_0:1' 'sm       resigned' 'sm       stop' \
	'program  opensm connected, host h1, PID [0-9]+, umad' 'link     umbel_h2_0:1 - sw1:2 down' \
	'port     umbel_h2_0:1 armed' 'port     umbel_h2_0:1 active' \
	'program  opensm gone, host h1, PID [0-9]+, umad' 'sm       master' 'sm       start'

# ---- a signal ends it
kill -TERM "${pid[text]}"
wait_ended text 0

# ---- a reader that stops keeps nobody waiting, and is told what it has lost
launch slow umbel monitor --json
slow_listens()
{
	umbel set sm_poll_ms=1000
	[ -s "$TMPDIR/slow.out" ]
}
wait_until 'slow listens' slow_listens
kill -STOP "${pid[slow]}"
daemon=$(field pid default)
rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$daemon/status")
# a part is less than what waits for a reader: the other one may have no turn until all of it is there
for part in {1..20}; do
	mapfile -t settings < <(seq -f 'mft_delay_ms=%.0f' $((part * 1000 - 999)) $((part * 1000)))
	expect 0 '' umbel set "${settings[@]}"
	wait_until "the other reader has part $part" has set key=mft_delay_ms value=$((part * 1000))
done
grown=$(($(awk '/^VmRSS/ { print $2 }' "/proc/$daemon/status") - rss))
[ $grown -lt 2048 ] || complain "the daemon has grown by $grown KiB"
not grep -q '"lost"' "$events" || complain 'a reader that reads has lost something'
kill -CONT "${pid[slow]}"
told_of_loss()
{
	grep -q '"event":"lost"' "$TMPDIR/slow.out"
}
wait_until 'it is told' told_of_loss
umbel set mft_delay_ms=0
wait_until 'it goes on' grep -q '"mft_delay_ms","value":"0"' "$TMPDIR/slow.out"
got=$(grep -c '"key":"mft_delay_ms"' "$TMPDIR/slow.out")
lost=$(sed -n 's/.*"event":"lost","count":\([0-9]*\)}$/\1/p' "$TMPDIR/slow.out" | awk '{ n += $1 } END { print n }')
[ $((got + lost)) -eq 20001 ] || complain "it got $got and lost $lost of 20001"

# ---- readers that are too many; those that die make room
for n in 3 4 5 6 7 8; do
	launch "more$n" umbel monitor
done
eight_read()
{
	umbel set mft_delay_ms=0
	for n in 3 4 5 6 7 8; do
		[ -s "$TMPDIR/more$n.out" ] || return
	done
}
wait_until 'eight read' eight_read
expect 1 "umbel: too many programs read the events of fabric 'default' already" umbel monitor
kill -9 "${pid[more3]}" "${pid[slow]}"
ended[more3]=0 ended[slow]=0
launch again umbel monitor
again_listens()
{
	# the daemon may not have noticed that there is room
	! gone "${pid[again]}" || launch again umbel monitor
	umbel set mft_delay_ms=0
	grep -q ' set ' "$TMPDIR/again.out"
}
wait_until 'another one may read' again_listens

# ---- the end of the fabric is theirs, not that of a terminal
kill_hard more4
kill_hard more5
launch stays nohup umbel monitor
launch capture nohup umbel capture --output "$TMPDIR/stays.pcapng"
stays_listens()
{
	umbel set mft_delay_ms=0
	[ -s "$TMPDIR/stays.out" ] && says capture 'umbel: capturing'
}
wait_until 'the one that stays reads' stays_listens
kill -HUP "${pid[stays]}" "${pid[capture]}"
before=$(wc -l < "$TMPDIR/again.out")
again_reads()
{
	umbel set mft_delay_ms=0
	[ "$(wc -l < "$TMPDIR/again.out")" -gt "$before" ]
}
wait_until 'another one reads' again_reads
gone "${pid[stays]}" && complain "'nohup umbel monitor' ends by SIGHUP"
gone "${pid[capture]}" && complain "'nohup umbel capture' ends by SIGHUP"
umbel down
wait_ended again 0
wait_ended stays 0
wait_ended capture 0
wait_ended events 0
expect 1 '*no fabric*' umbel monitor
expect 2 "umbel: monitor: it takes no 'x'; *" umbel monitor x
