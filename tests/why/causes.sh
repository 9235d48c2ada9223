#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# causes.sh PROGRAM: causes of IBV_WC_RETRY_EXC_ERR and IBV_WC_RNR_RETRY_EXC_ERR, each seeded alone: by PROGRAM (why.c),
# by links and partitions, or by rules of faults. Once the request has failed, the program still there,
# `umbel explain wc` names the cause first, and says of no other one that it is likely.

. "${0%/*}/why.bash"

named=0

# causes NAME STATUS CAUSE WHY: what the program NAME sends completes with the status; the one likely cause and its
# reason fit these patterns.
causes()
{
	local name=$1 status=$2 lines
	hold "$name" || return
	wait_said "$name" "completed $status\$" || return
	lines=$(umbel explain wc "$status" --qp "h1:$from")
	# shellcheck disable=SC2053
	[[ $(sed -n 2p <<< "$lines") == 'likely '*$3* && $(sed -n 3p <<< "$lines") == *$4* ]] ||
		complain "$name: not '$3', '$4': $lines"
	[ "$(grep -c '^likely' <<< "$lines")" -eq 1 ] || complain "$name: not one likely cause: $lines"
	kill_hard "$name"
	named=$((named + 1))
}

# link LINK: while it is down, and after it is up again
link()
{
	umbel link down "$1"
	causes exc_good 12 'no way leads there' "$2"
	umbel link up "$1"
}

# fault RULE STATUS CAUSE WHY
fault()
{
	umbel fault add "$1" > /dev/null || { complain "no rule $1"; return; }
	causes "${5-exc_good}" "$2" "$3" "$4"
	umbel fault clear
}

umbel up --hosts 3 > /dev/null
start good all "$program" exc_good
wait_said good 'completed 0$'
kill_hard good

# ---- the peer is not there, not ready, or another's
gone='has died, or has destroyed its queue pair' unready='is not in RTR or RTS, or is in ERR' other='do not match'
causes exc_killed 12 "$gone" 'h1 QP * is connected to QP *, which does not exist'
causes exc_no_such_qp 12 "$other" 'h1 QP * is connected to QP *, which no queue pair has or had'
causes exc_reset 12 "$unready" 'h3 QP * is in RESET'
causes exc_init 12 "$unready" 'h3 QP * is in INIT'
causes exc_error 12 "$unready" 'h3 QP * is in ERR'
causes exc_other_peer 12 "$other" 'h3 QP * is connected to QP *, not to *'
causes exc_other_type 12 "$other" 'h3 QP * is of type UD, not RC'

# ---- no way leads there
causes exc_no_such_lid 12 'no way leads there' 'h1 QP * sends to LID 119, port 1 of h3 has LID 3'
causes exc_lid_of_other_host 12 'no way leads there' 'h1 QP * sends to LID 2, port 1 of h3 has LID 3'
causes exc_psn 12 "$other" 'h1 QP * sends PSN 1000, the peer expects 0'
link h3:1 'h3: port 1 of * is down'
link h1:1 'h1: port 1 of * is down'

# ---- no receives
few='posts too few receives, or too late' unpolled='the peer does not poll'
causes rnr_no_receive 13 "$few" 'h3 QP * has 0 receives posted'
causes rnr_srq_empty 13 "$few" 'h3 QP * has 0 receives posted'
causes rnr_unpolled 13 "$unpolled" 'h3 QP * has used all its receives, and has not polled 1 messages'
causes rnr_late 13 'rnr_retry is less than 7' 'h3 QP * has 4 receives posted now'

# ---- packets
lossy='too short for a slow or lossy way'
fault opcode=RC_ACKNOWLEDGE\ drop 12 "$lossy" "fault 1, 'opcode=RC_ACKNOWLEDGE drop', has fired * timeout 1 * retry_cnt 7"
fault opcode=RC_SEND_ONLY\ drop 12 "$lossy" "fault 2, * has fired *"
fault opcode=RC_SEND_ONLY\ corrupt 12 "$lossy" "fault 3, * has fired *"
fault qp=h1:*\ delay=5s 12 "$lossy" "fault 4, * has fired *"
fault link=h3:1\ loss=100% 12 "$lossy" "fault 5, * has fired *"
fault qp=h2:*\ drop 12 "$other" 'h1 QP * sends PSN 1000, the peer expects 0' exc_psn
fault qp=h1:*\ wc=RETRY_EXC 12 'a rule of faults' "fault 7, * has fired 1 times"
fault qp=h1:*\ nak=rnr 13 'a rule of faults' "fault 8, * has fired *"

# ---- partitions: the other end chooses one that this one is not in
cat > "$TMPDIR/partitions" <<'END'
Default=0x7fff,ipoib:ALL=full;
other=0x1234:0x02756d0000000201=full,0x02756d0000000301=full;
END
umbel sm partitions "$TMPDIR/partitions"
has_two()
{
	umbel exec h3 -- cat /sys/class/infiniband/umbel_h3_0/ports/1/pkeys/1 2> /dev/null | grep -q 0x9234
}
wait_until 'h3 has two P_Keys' has_two
causes exc_pkey 12 'no way leads there' 'h1 QP * has P_Key 0xffff, h3 QP * has 0x9234'
umbel down > /dev/null

# ---- two switches: the cable between them, and the one behind it
cat > "$TMPDIR/topology" <<'END'
Switch	8 "S-0002c90000000010"	# "left"
[1]	"H-0002c90000000020"[1]	# 4xQDR
[2]	"H-0002c90000000030"[1]	# 4xQDR
[8]	"S-0002c90000000011"[8]	# 4xQDR
Switch	8 "S-0002c90000000011"	# "right"
[1]	"H-0002c90000000040"[1]	# 4xQDR
Ca	1 "H-0002c90000000020"	# "h1 HCA-1"
[1](2c90000000021)	"S-0002c90000000010"[1]
Ca	1 "H-0002c90000000030"	# "h2 HCA-1"
[1](2c90000000031)	"S-0002c90000000010"[2]
Ca	1 "H-0002c90000000040"	# "h3 HCA-1"
[1](2c90000000041)	"S-0002c90000000011"[1]
END
umbel up --topology "$TMPDIR/topology" > /dev/null
link left:8 'left has no route to LID 3 (h3)*'
umbel switch kill right
causes exc_good 12 'no way leads there' 'h3: port 1 of * is down'
umbel down > /dev/null

[ "$named" -eq 27 ] || complain "$named causes, not 27"
