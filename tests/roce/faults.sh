#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Rules of faults on connections with another machine: what queue pairs of this fabric send meets the rules
# before it leaves. Requests, responses and acknowledgements get lost, and come again; so do those that
# one process sends in the name of another one's queue pair.

. "${0%/*}/lab.sh"
. "${0%/*}/pairs.bash"

# fault HOST WORD...
fault()
{
	umbel_on "$1" fault add "${@:2}" > /dev/null || complain "no rule: $*"
}

# shown HOST COLUMN: FIRED or FITTED of its first rule
shown()
{
	umbel_on "$1" fault show | awk -v column="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) n = i }
		NR == 2 { print $n }'
}

no_faults()
{
	umbel_on h1 fault clear
	umbel_on h2 fault clear
}

# lossy NAME HOST RULE COMMAND...: both end well though the rule fires on that host
lossy()
{
	local name=$1 host=$2 rule=$3

	# shellcheck disable=SC2086
	fault "$host" $rule
	whole_pair "$name" "${@:4}"
	[ "$(shown "$host" FIRED)" -gt 0 ] || complain "$name: it has not fired: $rule"
	no_faults
}

lab_up 2
roce_up h1 h2
capture h2
# each fabric has one host, which is h1 there. Of pairs, h1 is the server, and h2 the client

lossy write h2 'qp=h1:#1 psn=+5 drop' ib_write_bw -F -n 5 -s 20000 -m 1024 -t 1
lossy write-last h2 'qp=h1:#1 psn=+19 drop' ib_write_bw -F -n 5 -s 20000 -m 1024 -t 1
lossy send h2 'opcode=RC_SEND_MIDDLE chance=5% seed=1 drop' ib_send_bw -F -n 100 -s 20000 -m 1024
lossy damaged h2 'opcode=RC_WRITE_MIDDLE chance=5% seed=1 corrupt' ib_write_bw -F -n 100 -s 20000 -m 1024
lossy mixed-up h2 'qp=h1:* chance=5% seed=1 reorder' ib_write_bw -F -n 100 -s 20000 -m 1024
lossy late h2 'qp=h1:* delay=2ms' ib_write_lat -n 20
lossy request h2 'opcode=RC_READ_REQUEST nth=2 drop' ib_read_bw -F -n 5 -s 20000 -m 1024
lossy atomic h2 'opcode=RC_FETCH_ADD nth=3 drop' ib_atomic_bw -F -n 10
# what the responder sends
lossy acknowledgement h1 'opcode=RC_ACKNOWLEDGE nth=1 count=2 drop' ib_write_bw -F -n 10 -s 20000
lossy response h1 'opcode=RC_READ_RESPONSE_MIDDLE chance=5% seed=1 drop' ib_read_bw -F -n 20 -s 20000 -m 1024
lossy atomic-response h1 'opcode=RC_ATOMIC_ACKNOWLEDGE nth=3 drop' ib_atomic_bw -F -n 10
lossy uc h2 'opcode=UC_WRITE_MIDDLE nth=3 drop' ib_write_bw -F -c UC -n 10 -s 20000 -m 1024
lossy link h2 'link=h1:1 loss=2% seed=4' ib_write_bw -F -b -n 100 -s 20000 -m 1024

# ---- on the network the packet is there once, behind a NAK: it has not left when it was dropped
fault h2 'qp=h1:#1' psn=+5 drop
whole_pair gap ib_write_bw -F -n 5 -s 20000 -m 1024 -t 1
no_faults
captured h2
expect_sound h2
qpn=$(sed -nE 's/^ *remote address: .*QPN (0x[0-9a-f]*) PSN .*/\1/p' "$TMPDIR/client-gap.out")
first=$(sed -nE 's/^ *local address: .*QPN 0x[0-9a-f]* PSN (0x[0-9a-f]*) .*/\1/p' "$TMPDIR/client-gap.out")
lost=$(((first + 5) & 0xFFFFFF))
sent=$(decode h2 "infiniband.bth.destqp == $qpn && infiniband.bth.psn == $lost" | wc -l)
naks=$(decode h2 "infiniband.aeth.syndrome == 0x60 && infiniband.bth.psn == $lost" | wc -l)
[ "$sent" -ge 1 ] && [ "$naks" -eq 1 ] || complain "PSN $lost was sent $sent times, after $naks NAKs"

# ---- marked: the other machine tells of it
fault h2 opcode=RC_WRITE_MIDDLE nth=3 ecn
whole_pair marked ib_write_bw -F -n 5 -s 20000 -m 1024
no_faults
captured h2
[ "$(decode h2 'infiniband.bth.opcode == 0x81' | wc -l)" -gt 0 ] || complain 'no CNP'
[ "$(decode h2 'ip.dsfield.ecn == 3 || ipv6.tclass.ecn == 3' | wc -l)" -eq 1 ] || complain 'not one packet is marked'

# ---- several programs, any of which receives for the others
fault h1 loss=2% seed=1
fault h2 loss=2% seed=2
for name in a b c; do
	begin_pair $name ib_write_bw -F -b -n 200 -s 20000 -m 1024 -q 2
done
for name in a b c; do
	end_pair $name
done
for host in h1 h2; do
	[ "$(shown $host FIRED)" -gt 0 ] || complain "$host: nothing has got lost"
done
no_faults

# ---- all gets lost: it gives up
fault h2 'qp=h1:*' drop
begin_pair dead ibv_rc_pingpong -g 1 -n 5
wait_ended client-dead 1
expect_said client-dead 'Failed status transport retry counter exceeded (12) for wr_id 2'
kill_hard server-dead
no_faults

# ---- the responder is another machine's: nobody here can refuse in its name
fault h2 opcode=RC_WRITE_ONLY nak=access
whole_pair refused ib_write_bw -F -n 5 -s 64
[ "$(shown h2 FITTED)" -eq 0 ] || complain 'a rule about NAKs fits what leaves'
no_faults

# ---- messages of the connection manager: one that leaves, and its answer, come again
fault h2 mad=REQ nth=1 drop
fault h1 mad=REP to=h1:* drop # to this fabric's h1; the one that is meant is the other one
fault h1 mad=REP nth=2 count=1 duplicate
start_on server-asked h1 rping -s -a 192.0.2.1 -C 3
wait_until 'rping listens' eval '[ "$(field listeners h1)" -eq 1 ]'
start_on client-asked h2 rping -c -a 192.0.2.1 -C 3
end_pair asked
[ "$(shown h2 FIRED)" -eq 1 ] || complain 'no REQ has got lost'
[ "$(shown h1 FIRED)" -eq 0 ] || complain 'what leaves the fabric is sent to one of its hosts'
no_faults

# ---- who was connected before is not concerned, and who is goes on when the rules are gone
start_on server-before h1 rping -s -a 192.0.2.1
wait_until 'rping listens' eval '[ "$(field listeners h1)" -eq 1 ]'
start_on client-before h2 rping -c -a 192.0.2.1 -v
wait_said client-before 'ping data' 3
fault h2 'qp=h1:*' drop
before=$(grep -c '^ping data' "$TMPDIR/client-before.out")
wait_said client-before 'ping data' $((before + 100))
[ "$(shown h2 FITTED)" -eq 0 ] || complain 'a rule fits who was connected before'
kill_hard client-before
no_faults
wait_until 'the server has ended' gone "${pid[server-before]}"
fault h2 opcode=RC_SEND_ONLY loss=5% seed=1
start_on server-after h1 rping -s -a 192.0.2.1
wait_until 'rping listens' eval '[ "$(field listeners h1)" -eq 1 ]'
start_on client-after h2 rping -c -a 192.0.2.1 -v
wait_said client-after 'ping data' 100
[ "$(shown h2 FIRED)" -gt 0 ] || complain 'nothing of rping has got lost'
no_faults
before=$(grep -c '^ping data' "$TMPDIR/client-after.out")
wait_said client-after 'ping data' $((before + 100))
kill_hard client-after
expect_sound h2

# ---- programs and the fabric end while packets are held
# retries for 34 s: the client is not to give up before that, though each look at a rule may take a second on a
# busy machine. The server is the first to go: it ends by itself when it hears of the client's end
fault h2 'qp=h1:*' delay=10s
begin_pair held ib_write_bw -F -n 5 -u 20
wait_until 'a packet is held' eval '[ "$(shown h2 FIRED)" -gt 0 ]'
kill_hard server-held
kill_hard client-held
before=$(shown h2 FIRED)
begin_pair ended ib_write_bw -F -n 5 -u 20
wait_until 'one more is held' eval '[ "$(shown h2 FIRED)" -gt "$before" ]'
kill_hard server-ended
not gone "${pid[client-ended]}" || complain 'the program has given up before the fabric ends'
umbel_on h2 down > /dev/null || complain 'the fabric does not end'
wait_until 'its program has ended' gone "${pid[client-ended]}"
exit $failed
