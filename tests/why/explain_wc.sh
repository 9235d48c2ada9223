#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# explain_wc.sh PROGRAM: `umbel explain wc STATUS --qp` names first what PROGRAM (why.c) does wrong.

. "${0%/*}/why.bash"

# first NAME STATUS CAUSE WHY: with what the program does, the first cause is that one, for that reason; each
# a pattern.
first()
{
	hold "$1" || return
	wait_until "$1: '$3'" is_first "${@:2}" || umbel explain wc "$2" --qp "h1:$from" >&2
	kill_hard "$1"
}

# is_first STATUS CAUSE WHY: it is, so the command fails.
is_first()
{
	local lines
	! lines=$(umbel explain wc "$1" --qp "h1:$from") || return
	# shellcheck disable=SC2053
	[[ $(sed -n 2p <<< "$lines") == 'likely '*$2* && $(sed -n 3p <<< "$lines") == *$3* ]]
}

# others WORD TIMES: so many causes are judged so.
others()
{
	[ "$(umbel explain wc "$status" --qp "h1:$from" | grep -c "^$1 ")" -eq "$2" ] || complain "$status: not $2 times $1"
}

umbel up --hosts 3 > /dev/null
first rc_dead RETRY_EXC "the peer's process has died" 'h1 QP * is connected to QP *, which does not exist'
first rc_init RETRY_EXC 'is not in RTR or RTS' 'h3 QP * is in INIT'
first rc_error RETRY_EXC 'is not in RTR or RTS' 'h3 QP * is in ERR'
first rc_other RETRY_EXC 'dest_qp_num' 'h3 QP * is connected to QP *, not to *'
first rc_no_receive RNR_RETRY_EXC 'the peer posts too few receives' 'h3 QP * has 0 receives posted, 0 messages are not polled'
first rc_unpolled RNR_RETRY_EXC 'the peer does not poll' 'h3 QP * has used all its receives, and has not polled 1 messages'

# ---- after it has failed
hold rc_gave_up
wait_until 'it has given up' is_first RETRY_EXC "the peer's process has died" 'which does not exist'
expect 1 '*likely *the peer has disconnected*which does not exist*possible *an earlier completion *' \
	umbel explain wc WR_FLUSH --qp "h1:$from"
kill_hard rc_gave_up
hold rc_error
expect 0 '*possible *an earlier completion *possible *the program has moved the queue pair to ERR itself*h3 QP * is in ERR*' \
	umbel explain wc WR_FLUSH --qp "h3:$to"
expect 1 '*likely *the peer has disconnected*the peer, h3 QP *, is in ERR*' umbel explain wc WR_FLUSH --qp "h1:$from"
kill_hard rc_error

# ---- nothing is wrong
hold rc
for status in {0..23}; do
	expect 0 "IBV_WC_*, $status: ?*" umbel explain wc "$status" --qp "h1:$from"
	others likely 0
done
status=12
others possible 1
others 'not now' 4
status=10
others possible 4
expect 0 '*umbel explain --rkey KEY --qp h3:0x* --op *' umbel explain --qp "h1:$from" wc REM_ACCESS
expect 0 '*possible *qp_access_flags of h3 QP * lack remote_write remote_read remote_atomic*max_dest_rd_atomic 0*' \
	umbel explain wc REM_INV_REQ --qp "h1:$from"
umbel explain wc RNR_RETRY_EXC --qp "h1:$from" --json | python3 -c 'import json, sys
v = json.load(sys.stdin)
assert v["name"] == "IBV_WC_RNR_RETRY_EXC_ERR" and len(v["causes"]) == 3 == len(v["judged"]), v
assert sorted(j["cause"] for j in v["judged"]) == sorted(v["causes"]), v
assert [j["verdict"] for j in v["judged"]] == ["possible", "not now", "not now"], v
assert "3 receives posted" in [j for j in v["judged"] if "too few" in j["cause"]][0]["text"], v' || complain 'its JSON'
umbel link down h3:1
wait_until 'the link is down' is_first 12 'no way leads there' 'h3: port 1 * is down'
umbel link up h3:1
kill_hard rc
umbel down > /dev/null

# ---- faults
umbel up --hosts 3 > /dev/null
umbel fault add opcode=RC_ACKNOWLEDGE drop > /dev/null
first rc_packets RETRY_EXC 'too short for a slow or lossy way' \
	"*retries are used up*fault 1, 'opcode=RC_ACKNOWLEDGE drop', has fired *has timeout 18 (1073.74 ms) and retry_cnt 7"
umbel fault clear
umbel fault add qp=h1:* wc=REM_OP nth=1 > /dev/null
first rc REM_OP 'a rule of faults has made it' "fault 2, 'qp=h1:\* wc=REM_OP nth=1', has fired 1 times"
umbel fault clear
umbel fault add qp=h1:* made=REM_OP nth=1 > /dev/null
first rc REM_OP 'a rule of faults has made it' "fault 3, 'qp=h1:\* made=REM_OP nth=1', has fired 1 times"
umbel fault clear

# ---- what is no question
expect 2 "umbel: explain: 'h1' is no HOST:QPN; *" umbel explain wc 12 --qp h1
expect 2 "umbel: explain: '24' is no status of completions, *" umbel explain wc 24 --qp h1:5
expect 2 "umbel: explain: 'wc STATUS' goes with --qp alone; *" umbel explain wc 12 --from h1 --to h2
expect 2 "umbel: explain: 'wc STATUS' goes with --qp alone; *" umbel explain wc 12 --rkey 5
expect 2 "umbel: explain: it takes no 'more' *" umbel explain wc 12 more
expect 2 "umbel: explain: it takes no 'cw' *" umbel explain cw 12
expect 1 "umbel: there is no queue pair 'h1:5': umbel show qps lists them" umbel explain wc 12 --qp h1:5
umbel down > /dev/null
expect 1 "umbel: no fabric *" umbel explain wc 12 --qp h1:5
