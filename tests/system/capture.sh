#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel capture`, read by tshark: a connection by rdma_cm, a join, a MAD that gets lost; options; readers
# that stop, die or are too many.

. "${0%/*}/rdmacm.bash"

umbel up --hosts 3 > /dev/null

# capture NAME OPTION...: into $TMPDIR/NAME.pcapng, from now on
capture()
{
	local file="$TMPDIR/$1.pcapng"
	rm -f "$file"
	launch "capture-$1" umbel capture --output "$file" "${@:2}"
	wait_until "capture-$1 begins" begun_or_gone "$1" "$file"
}

begun_or_gone()
{
	[ -s "$2" ] || gone "${pid[capture-$1]}"
}

# captured NAME: ends it. $n and $lost become what it says.
captured()
{
	kill -INT "${pid[capture-$1]}"
	wait_ended "capture-$1" 0
	read_counts "$1"
}

read_counts()
{
	n=$(sed -n 's/^umbel: \([0-9]*\) packets captured, [0-9]* lost$/\1/p' "$TMPDIR/capture-$1.out")
	lost=$(sed -n 's/^umbel: [0-9]* packets captured, \([0-9]*\) lost$/\1/p' "$TMPDIR/capture-$1.out")
	[ "$n" ] && [ "$lost" ] || complain "capture-$1 does not say how many"
}

# decode NAME [OPTION...]
decode()
{
	tshark -n -r "$TMPDIR/$1.pcapng" "${@:2}" 2> "$TMPDIR/tshark.err" ||
		complain "tshark: $(cat "$TMPDIR/tshark.err")"
}

# fields NAME FILTER FIELD...: of the packets that fit. tshark 4.4 escapes the blanks in them.
fields()
{
	local name=$1 filter=$2
	shift 2
	decode "$name" -Y "$filter" -T fields -E separator=' ' "${@/#/-e}" | sed 's/\\ / /g'
}

# sound NAME: tshark has nothing to complain of, and knows every packet.
sound()
{
	expect 0 '' fields "$1" '_ws.malformed || _ws.expert || !infiniband || !infiniband.mad' frame.number
}

# ---- a connection

capture rping --class cm
run_pair plain rping -s -a 10.0.0.1 -p 4711 -C 3 -- rping -c -a 10.0.0.1 -p 4711 -C 3
captured rping
expect 0 0 echo "$lost"
sound rping
messages=$(fields rping infiniband infiniband.lrh.slid infiniband.lrh.dlid frame.interface_name infiniband.mad.attributeid)
# who disconnects first is a matter of time
expect 0 '2 1 umbel_h2_0:1 0x0010
1 2 umbel_h1_0:1 0x0013
2 1 umbel_h2_0:1 0x0014
* 0x0015
* 0x0016*' echo "$messages"
req=infiniband.cm.req
# the service ID: port space TCP, port 4711; IP addresses; what an RC queue pair over one switch has
expect 0 '0x06 0x1267 0x04 10.0.0.2 10.0.0.1' fields rping $req $req.serviceid.protocol \
	$req.serviceid.dport $req.ip_cm.ipv $req.ip_cm.sip4 $req.ip_cm.dip4
expect 0 '0xffff 0x05 0x00 0x07 0x07 0x0f 0x14 0x14 2 1' fields rping $req $req.pkey $req.pppmtu \
	$req.transpsvctype $req.retrcount $req.rnrretrcount $req.maxcmretr $req.localresptout \
	$req.remoteresptout $req.prim_locallid $req.prim_remotelid
expect 0 'fe80::275:6d00:0:201 fe80::275:6d00:0:101' fields rping $req $req.prim_localgid $req.prim_remotegid
client=$(fields rping $req $req.localqpn) server=$(fields rping infiniband.cm.rep infiniband.cm.rep.localqpn)
[ "$((client))" -gt 1 ] && [ "$((server))" -gt 1 ] && [ "$client" != "$server" ] ||
	complain "queue pairs $client and $server"
dreq=$(fields rping infiniband.cm.dreq.localcommid infiniband.mad.attributeid $req.remoteqpneecn | sort -u)
[[ $dreq == *"$client"* || $dreq == *"$server"* ]] || complain "DREQ names $dreq, not $client or $server"
expect 0 '0x000001 0x0000000080010000 0x00000001 65535' fields rping $req infiniband.bth.destqp \
	infiniband.deth.q_key infiniband.deth.srcqp infiniband.bth.p_key

# ---- a rejected one, and one within a host

capture rejected --class cm h2
expect 255 '*REJECTED, error 8*' umbel exec h2 -- rping -c -a 10.0.0.1
expect 255 '*REJECTED, error 8*' umbel exec h3 -- rping -c -a 10.0.0.1
captured rejected
expect 0 '2 0x0008' echo "$n" "$(fields rejected infiniband.cm.rej.reason infiniband.cm.rej.reason)"
sound rejected

# ---- a join; the options; standard output

capture sa --class sa h3:1
start member h3 mckey -m 239.1.1.1
wait_said member 'mckey: joined dgid'
kill "${pid[member]}"
wait_ended member 143
has_left()
{
	[[ $(umbel show groups) != *ff12:4001:ffff::f01:101* ]]
}
wait_until 'the member has left' has_left
expect 0 '*' umbel exec h2 -- saquery
captured sa
sound sa
join=infiniband.mcmemberrecord
expect 0 'ff12:4001:ffff::f01:101 0xc* 0x*1' fields sa "$join.mgid && infiniband.mad.method == 0x02" \
	$join.mgid $join.mlid $join.joinstate
expect 0 '*SubnAdmGetResp(MCMemberRecord)*SubnAdmDelete(MCMemberRecord)*' decode sa
decode sa -T fields -e frame.interface_name > "$TMPDIR/interfaces"
not grep -q h2 "$TMPDIR/interfaces" || complain 'a capture of h3 has what h2 sends'

umbel capture --count 2 --class 0x04 > "$TMPDIR/count.pcapng" 2> "$TMPDIR/count.err" &
counting=$!
wait_until 'it begins' test -s "$TMPDIR/count.pcapng"
expect 0 '*' umbel exec h1 -- perfquery 3 1
wait "$counting" || complain "a capture of two ends with $?"
expect 0 'umbel: 2 packets captured, 0 lost' cat "$TMPDIR/count.err"
expect 0 '*PERF*PERF*' eval 'tshark -n -r - < "$TMPDIR/count.pcapng" 2> /dev/null'

# ---- a switch, and an HCA by its own name: what they are asked, and answer

for node in sw1 umbel_h2_0; do
	capture node $node
	expect 0 '*' umbel exec h1 -- smpquery -D nodedesc 0,1
	expect 0 '*' umbel exec h1 -- smpquery nodedesc 2
	captured node
	[ "${n:-0}" -ge 2 ] || complain "a capture of $node has ${n:-no} packets"
done

# ---- what gets lost says why

capture lost h1
expect 255 '*' umbel exec h1 -- smpquery -t 20 nodeinfo 77
expect 255 '*' umbel exec h2 -- smpquery -t 20 -D nodeinfo 0,1,1,1
umbel link down h1:1
expect 255 '*' umbel exec h2 -- perfquery -t 20 1
umbel link up h1:1
umbel fault add 'mad=SubnGet(NodeInfo)' nth=1 drop > /dev/null
umbel fault add 'mad=SubnGet(NodeDescription)' nth=1 delay=1ms > /dev/null
umbel exec h1 -- smpquery -t 20 nodeinfo 2 > /dev/null 2>&1 # it may ask again, or not
expect 0 '*' umbel exec h1 -- smpquery nodedesc 2
umbel fault clear
captured lost
expect 0 '1 2 fault: drop*1 2 fault: delay*' fields lost 'frame.comment matches "fault"' \
	infiniband.lrh.slid infiniband.lrh.dlid frame.comment
expect 0 '1 77 lost: no route*' fields lost 'infiniband.lrh.dlid == 77' infiniband.lrh.slid \
	infiniband.lrh.dlid frame.comment
expect 0 '2 1 lost: no route*' fields lost 'infiniband.lrh.slid == 2 && infiniband.lrh.dlid == 1' \
	infiniband.lrh.slid infiniband.lrh.dlid frame.comment

# ---- refusals

expect 1 "umbel: no node 'h9': there are h1 h2 h3 sw1" umbel capture -o /dev/null h9
expect 1 "umbel: 'h1' has no port 2: it has port 1" umbel capture -o /dev/null h1:2
expect 2 "umbel: capture: 'x' in 'h1:x' is no number of a port; *" umbel capture -o /dev/null h1:x
expect 2 "umbel: capture: 'ib' is no class: *" umbel capture -o /dev/null --class ib
expect 2 "umbel: capture: '0' is no number of packets; *" umbel capture -o /dev/null -c 0
expect 2 "umbel: capture: one node at a time, not 'h2' too; *" umbel capture -o /dev/null h1 h2
expect 1 "umbel: cannot write '/nowhere/x': *" umbel capture -o /nowhere/x
expect 1 '*umbel: cannot write the capture: No space left on device' umbel capture -o /dev/full

# ---- eight, and no more; those that are killed make room

for i in 1 2 3 4 5 6 7 8; do
	capture "$i"
done
expect 1 "umbel: too many captures of fabric 'default' run already" umbel capture -o /dev/null
for i in 1 2 3 4 5 6 7 8; do
	kill -9 "${pid[capture-$i]}"
	wait_ended "capture-$i" 137
done
capture again
umbel down > /dev/null
wait_ended capture-again 0
expect_said capture-again 'umbel: the fabric has ended'
sound again

# ---- a reader that has stopped loses packets, and holds up nobody

umbel up --fat-tree 2 > /dev/null
mkfifo "$TMPDIR/pipe"
launch stuck bash -c 'exec umbel capture > "$TMPDIR/pipe" 2> "$TMPDIR/stuck.err"'
exec 7< "$TMPDIR/pipe"	# which nobody reads, but for the first byte: it captures
IFS= read -r -n 1 -u 7
capture stopped
capture neighbour
kill -STOP "${pid[capture-stopped]}"
for i in 1 2; do
	expect 0 '*' umbel exec h1 -- ibnetdiscover
done
kill -CONT "${pid[capture-stopped]}"
captured neighbour
all=$((n + lost))
captured stopped
[ "$lost" -gt 0 ] || complain 'a capture that has stopped has lost nothing'
[ $((n + lost)) -eq $all ] || complain "$n and $lost are not $all: MADs are in no count"
sound stopped
expect 0 "$n" eval 'decode stopped -T fields -e frame.number | wc -l'
# a signal ends it though it waits for its own reader
kill -INT "${pid[stuck]}"
wait_ended stuck 1
expect 0 '*umbel: cannot write the capture: *' cat "$TMPDIR/stuck.err"
exec 7<&-
umbel down > /dev/null
