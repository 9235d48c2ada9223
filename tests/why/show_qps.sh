#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# show_qps.sh PROGRAM: `umbel show qps` has what PROGRAM (why.c) makes: states, receives, what has
# arrived, peers, requests that wait, PSNs; and thousands of them.

. "${0%/*}/why.bash"

# row QPN: of the table, blanks as one
row()
{
	umbel show qps | awk -v qpn="$1" '$3 == qpn { $1 = $1; print; exit }'
}

# rows_fit: whether both rows are as wanted; the process's number is a P.
rows_fit()
{
	local row

	row=$(row "$from" | sed 's/ [0-9]* 0xffff/ P 0xffff/')
	# shellcheck disable=SC2053
	[[ $row == "h1 1 $from "$1 ]] || return
	row=$(row "$to" | sed 's/ [0-9]* 0xffff/ P 0xffff/')
	# shellcheck disable=SC2053
	[[ $row == "h3 1 $to "$2 ]]
}

# shows CAUSE FROM TO: the ends of the rows of both, patterns of [[ ]]
shows()
{
	hold "$1" || return
	wait_until "$1 is shown as '$2' and '$3'" rows_fit "${2//PEER/$to}" "${3//PEER/$from}"
	kill_hard "$1"
}

umbel up --hosts 3 > /dev/null
expect 0 'no queue pairs' umbel show qps
expect 0 '\[]' umbel show qps --json
shows ud "UD RTS P 0xffff 0x00001234 0 0 - -" "UD RTS P 0xffff 0x00001234 3 1 - -"
shows ud_no_receive "UD RTS P 0xffff 0x00001234 0 0 - -" "UD RTS P 0xffff 0x00001234 0 0 - -"
shows ud_unpolled "UD RTS P 0xffff 0x00001234 0 0 - -" "UD RTS P 0xffff 0x00001234 0 2 - -"
shows rc "RC RTS P 0xffff - 4 0 h3 PEER 0" "RC RTS P 0xffff - 3 1 h1 PEER 0"
shows rc_no_receive "RC RTS P 0xffff - 0 0 h3 PEER 2" "RC RTS P 0xffff - 0 0 h1 PEER 0"
shows rc_error "RC RTS P 0xffff - 4 0 h3 PEER 1" "RC ERR P 0xffff - * h1 PEER 0"
hold rc_dead
[[ $(row "$from") == *" RTS "*" - 0 0 0x"??????" 1" ]] || complain "rc_dead: $(row "$from")"
[[ $(row "$to") == "h3 0 $to RC RESET "*" - - 0 0 - 0" ]] || complain "rc_dead: $(row "$to")"
kill_hard rc_dead

# ---- as packets
umbel fault add opcode=RC_ACKNOWLEDGE drop > /dev/null
hold rc_packets
retried()
{
	[ "$(umbel show qps --json | sed -n 's/^ *"retries": \([0-9]*\),*$/\1/p' | sort -n | tail -n 1)" -ge 1 ]
}
wait_until 'a retry is used up' retried
[[ $(umbel show qps) == *'NEXT PSN'*'SENT AGAIN'* ]] || complain "no PSNs: $(umbel show qps)"
umbel show qps --json | python3 -c '
import json, sys
a, b = sorted(json.load(sys.stdin), key=lambda q: q["host"])
assert a["next_psn"] == 1 and a["acked_psn"] == 0 and b["expected_psn"] == 1, (a, b)
assert a["retry_cnt"] == 7 and a["path_mtu"] == 4096 and a["peer"] == b["qpn"], a
assert a["retries"] >= 1 and a["waiting"] == 1, a' || complain "$(umbel show qps --json)"
kill_hard rc_packets
umbel fault clear

# ---- thousands
hold many 3000
[ "$(umbel show qps --json | grep -c '"qpn"')" -eq 3000 ] || complain 'not all of 3000 are shown'
kill_hard many
no_queue_pairs()
{
	[ "$(umbel show qps)" = 'no queue pairs' ]
}
wait_until 'they are gone' no_queue_pairs
umbel down > /dev/null
