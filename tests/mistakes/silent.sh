#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# silent.sh PROGRAM: mistakes that a card keeps quiet about, or has one error for, each have words of their own with
# UMBEL_LOG=warning, and nothing else is printed. PROGRAM is silent.c.

. "${0%/*}/../system/lib.sh"

program=$1
log=$TMPDIR/silent.log

# says MISTAKE WORDS [LINES]: a line has the words, a pattern of [[ ]], and there are so many, 1 if none are named.
says()
{
	UMBEL_LOG=warning timeout 20 umbel exec -- "$program" "$1" > "$log" 2>&1 ||
		complain "$1: status $?"$'\n'"$(cat "$log")"
	[[ $(cat "$log") == *" warning: "*$2* ]] || complain "$1: no line says '$2'"$'\n'"$(cat "$log")"
	[ "$(grep -c ' warning: ' "$log")" -eq "${3:-1}" ] ||
		complain "$1: not ${3:-1} line(s)"$'\n'"$(cat "$log")"
}

umbel up --hosts 2 > /dev/null

# ---- remote memory: what was asked for, and what the key has

while IFS='|' read -r mistake words; do
	says "$mistake" "$words"
done <<- 'END'
	key_unknown|RDMA read completes with IBV_WC_REM_ACCESS_ERR: QP 0x??????, the responder, refuses: its process has no rkey 0x12345600 (16 bytes at 0x*)
	key_turned|refuses: its process has no rkey 0x*, but 0x*: the same bytes in the other order (16 bytes at
	key_of_mine|refuses: rkey 0x* is of the requester's own process
	key_deregistered|refuses: rkey 0x* is not valid any more: its memory region was deregistered (16 bytes at
	window_freed|refuses: rkey 0x* is not valid any more: its memory window was invalidated or freed
	key_of_other_pd|refuses: rkey 0x* is of a memory region in another protection domain than the responder's (8 bytes at 0x*; it has 4096 at 0x*)
	access_missing|refuses: rkey 0x* is of a memory region without IBV_ACCESS_REMOTE_WRITE (100 bytes at 0x*; it has 4096 at 0x*)
	address_before|refuses: the address is outside of the memory region of rkey 0x* (100 bytes at 0x*ff8; it has 4096 at 0x*000)
	length_beyond|refuses: the memory region of rkey 0x* ends 70 bytes before (100 bytes at 0x*; it has 4096 at 0x*)
END
says uc_unknown 'QP 0x??????, the responder, drops a request of QP 0x??????: its process has no rkey 0x12345600' 2

# ---- datagrams, which complete with success

while IFS='|' read -r mistake words; do
	says "$mistake" "$words"
done <<- 'END'
	group_by_lid|lost at port 1 of umbel_h1_0 (mcast_by_lid): packets to a group's GID by the LID of a port: dlid * the MLID of the join
	group_by_lid_of_one|lost at port 1 of umbel_h1_0 (mcast_by_lid): packets to a group's GID by the LID of a port
	group_of_nobody|QP 0x??????: nobody gets what is sent to ff12:401b:ffff::9: no other queue pair is attached where MLID 0xc123 leads
	other_qkey|QP 0x??????: a message does not get to QP 0x??????: it has Q_Key 0x00001234, the message 0x00001235: wr.ud.remote_qkey
	no_receive|lost at port 1 of umbel_h2_0 (no_receive): packets lost as no receive was posted
	no_such_qp|lost at port 1 of umbel_h2_0 (no_qp): packets lost as there is no such queue pair
	lid_of_nobody|QP 0x??????: nobody gets what is sent to LID 99: no way leads to LID 99
END
says group_qpn 'lost at port 1 of umbel_h1_0 (not_mcast_qpn): packets to a group that were not sent to QP number 0xffffff' 2
[[ $(umbel show drops) == *umbel_h1_0*1*mcast_by_lid*2* ]] ||
	complain "show drops does not count the group's GID with a port's LID:"$'\n'"$(umbel show drops)"

umbel down > /dev/null
