#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# silent.sh PROGRAM: mistakes that a card keeps quiet about, or has one error for, each have words of their own with
# UMBEL_LOG=warning, and nothing else is printed. PROGRAM is silent.c.

. "${0%/*}/../system/lib.sh"

program=$1
log=$TMPDIR/silent.log

# says MISTAKE WORDS: one line has the words, a pattern of [[ ]]; none comes beside it.
says()
{
	UMBEL_LOG=warning timeout 20 umbel exec -- "$program" "$1" > "$log" 2>&1 ||
		complain "$1: status $?"$'\n'"$(cat "$log")"
	[[ $(cat "$log") == *" warning: "*$2* ]] || complain "$1: no line says '$2'"$'\n'"$(cat "$log")"
	[ "$(grep -c ' warning: ' "$log")" -eq 1 ] || complain "$1: more than one line"$'\n'"$(cat "$log")"
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
	uc_unknown|QP 0x??????, the responder, drops a request of QP 0x??????: its process has no rkey 0x12345600
END

umbel down > /dev/null
