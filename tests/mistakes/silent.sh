#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# silent.sh PROGRAM: mistakes that a card keeps quiet about, or has one error for, each have words of their own with
# UMBEL_LOG=warning, and nothing else is printed. PROGRAM is silent.c.

. "${0%/*}/../system/lib.sh"

program=$1

# make MISTAKE: what it prints is in the file of its name.
make()
{
	UMBEL_LOG=warning timeout 40 umbel exec -- "$program" "$1" > "$TMPDIR/$1.log" 2>&1
}

# told MISTAKE WORDS [LINES]: a line has the words, a pattern of [[ ]], and there are so many, 1 if none are named.
told()
{
	local log
	log=$(cat "$TMPDIR/$1.log")

	[[ $log == *" warning: "*$2* ]] || complain "$1: no line says '$2'"$'\n'"$log"
	[ "$(grep -c ' warning: ' "$TMPDIR/$1.log")" -eq "${3:-1}" ] ||
		complain "$1: not ${3:-1} line(s)"$'\n'"$log"
}

# says MISTAKE WORDS [LINES]: both.
says()
{
	make "$1" || complain "$1: status $?"$'\n'"$(cat "$TMPDIR/$1.log")"
	told "$@"
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

make ask_afterwards
[[ $(cat "$TMPDIR/ask_afterwards.log") == *'FAILS  state '*'h2 QP 0x'*' is in ERR, and answers nothing now: '*'has no key 0x12345600'*'FAILS  completion  once it is in RTR or RTS, the requester gets IBV_WC_REM_ACCESS_ERR'* ]] ||
	complain "explain --rkey of a queue pair in ERR: $(cat "$TMPDIR/ask_afterwards.log")"

# ---- datagrams, which complete with success

while IFS='|' read -r mistake words; do
	says "$mistake" "$words"
done <<- 'END'
	group_by_lid|lost at port 1 of umbel_h1_0 (mcast_by_lid): packets to a group's GID by the LID of a port: dlid * the MLID of the join
	group_by_lid_of_one|lost at port 1 of umbel_h1_0 (mcast_by_lid): packets to a group's GID by the LID of a port
	group_by_unicast|rdma_join_multicast() of 10.1.1.1, which is no multicast address: it makes a group all the same
	group_of_nobody|QP 0x??????: nobody gets what is sent to ff12:401b:ffff::9: no other queue pair is attached where MLID 0xc123 leads
	other_qkey|QP 0x??????: a message does not get to QP 0x??????: it has Q_Key 0x00001234, the message 0x00001235: wr.ud.remote_qkey
	no_receive|lost at port 1 of umbel_h2_0 (no_receive): packets lost as no receive was posted
	no_such_qp|lost at port 1 of umbel_h2_0 (no_qp): packets lost as there is no such queue pair
	lid_of_nobody|QP 0x??????: nobody gets what is sent to LID 99: no way leads to LID 99
END
says group_qpn 'lost at port 1 of umbel_h1_0 (not_mcast_qpn): packets to a group that were not sent to QP number 0xffffff' 2
[[ $(umbel show drops) == *umbel_h1_0*1*mcast_by_lid*2* ]] ||
	complain "show drops does not count the group's GID with a port's LID:"$'\n'"$(umbel show drops)"

# ---- calls that wait: for a second each, at once

declare -A of=()
waits='unsignaled other_queue unsignaled_full no_receive_for_ever both_queues not_armed cq_event_kept left_before_event
	cm_event_kept join_event_kept'
for mistake in $waits; do
	make "$mistake" &
	of[$mistake]=$!
done
for mistake in $waits; do
	wait "${of[$mistake]}" || complain "$mistake: status $?"$'\n'"$(cat "$TMPDIR/$mistake.log")"
done
[ ! -s "$TMPDIR/both_queues.log" ] || complain "a right program is told: $(cat "$TMPDIR/both_queues.log")"
while IFS='|' read -r mistake words; do
	told "$mistake" "$words"
done <<- 'END'
	unsignaled|completion queue * is polled in vain: 1 send of QP 0x?????? asked for no completion: set IBV_SEND_SIGNALED
	other_queue|completion queue * is polled in vain: no receive is posted * a send of QP 0x?????? has completed in its send_cq
	unsignaled_full|the send queue * is full: it has room for 8 requests (max_send_wr), and none of those there asked for a completion
	no_receive_for_ever|QP 0x??????: a request waits for a second, and on (rnr_retry is 7): QP 0x??????, the responder, has no receive
	not_armed|ibv_get_cq_event() waits, and no completion queue of the channel is armed: ibv_req_notify_cq() first
	cq_event_kept|ibv_destroy_cq() waits until 1 event is acknowledged: ibv_ack_cq_events()
	left_before_event|rdma_leave_multicast() of 239.1.2.3 before the event of its join: that event will not come
	cm_event_kept|rdma_destroy_id() waits until 1 event is acknowledged: rdma_ack_cm_event()
	join_event_kept|rdma_leave_multicast() waits until 1 event is acknowledged: rdma_ack_cm_event()
END

umbel down > /dev/null
