#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rkey.sh PROGRAM: `umbel explain --rkey` says before each request of PROGRAM (rkey.c) with which status
# it will complete, and why; and whose a key is.

. "${0%/*}/why.bash"

# The line that says why a request is refused; what is carried out has none.
declare -A why=(
	[beyond]='FAILS  range *4096 bytes at * go beyond its end, *, by 1: *'
	[far_beyond]='FAILS  range *8 bytes at * go beyond its end, *, by 8200: *'
	[before]='FAILS  range *is 1 bytes before its first byte, *'
	[no_write]='FAILS  access *a WRITE needs IBV_ACCESS_REMOTE_WRITE, which the key does not give: *'
	[no_read]='FAILS  access *a READ needs IBV_ACCESS_REMOTE_READ, *'
	[no_atomic]='FAILS  access *an atomic operation needs IBV_ACCESS_REMOTE_ATOMIC, *'
	[no_access]='FAILS  access *a READ needs *: ibv_reg_mr() with it*'
	[qp_no_write]='FAILS  operation *does not let WRITEs in: qp_access_flags lack IBV_ACCESS_REMOTE_WRITE*'
	[qp_no_read]='FAILS  operation *does not let READs in: qp_access_flags lack IBV_ACCESS_REMOTE_READ*'
	[qp_no_reads]='FAILS  operation *has max_dest_rd_atomic 0: *'
	[unaligned]='FAILS  address *is no multiple of 8: *'
	[other_pd]='FAILS  pd *the key is in PD *, h3 QP * in PD *'
	[deregistered]='FAILS  key *had a key there, which was deregistered*'
	[again]='FAILS  key *has 0x* in the place of 0x*: have the peer tell its rkey again*'
	[nonsense]='FAILS  key *has no key 0x00abcd05: *'
	[not_ready]='FAILS  state *h3 QP * is in INIT, and answers nothing now: *'
	[window_1_before]='FAILS  range *is 2048 bytes before its first byte, *'
	[window_1_no_read]='FAILS  access *a READ needs *: bind the window with it in mw_access_flags*'
	[window_2_other]='FAILS  window *the window is bound to QP *, and h3 QP * may not use it: *'
	[window_2_invalidated]='FAILS  key *had a window there, bound to QP *, which was invalidated or freed*'
	[uc_no_write]='FAILS  access *a WRITE needs IBV_ACCESS_REMOTE_WRITE, *'
)
declare -A holds=(
	[write]='*ok *key *h3 process *: memory region, * (4096 bytes), PD *, local_write remote_write remote_read remote_atomic*pd *range *from byte 0 on*'
	[nothing]='*for 0 bytes the key is not looked at*'
	[window_1]='*: memory window, 0x* (2048 bytes)*'
	[window_2]='*: memory window bound to QP 0x*'
)

umbel up --hosts 3 > /dev/null

mkfifo "$TMPDIR/go"
umbel exec -- "$program" < "$TMPDIR/go" > "$TMPDIR/said" 2>&1 &
requester=$!
exec 4> "$TMPDIR/go"
tried=0
line=0
said()
{
	[ "$(wc -l < "$TMPDIR/said")" -ge "$line" ] || gone $requester
}
next()
{
	line=$((line + 1))
	wait_until "the program says line $line" said || return
	text=$(sed -n "${line}p" "$TMPDIR/said")
	[ -n "$text" ]
}
while next; do
	read -r name qp key op address length <<< "$text"
	asked=(--rkey "$key" --qp "$qp" --op "$op" --address "$address" --length "$length")
	found=$(umbel explain "${asked[@]}")
	status=$(umbel explain "${asked[@]}" --json | sed -n 's/^  "status": "\(.*\)",*/\1/p')
	[ "$name" != other_pd ] || # without a queue pair nobody can tell
		expect 0 '*range *' umbel explain --rkey "$key" --op "$op" --address "$address"
	[ "$name" != not_ready ] || # of an address alone
		expect 1 'ok *key *FAILS  range *' umbel explain --rkey "$key" --address "$address" --length 5000
	[ "$name" != write ] || {
		expect 0 '*"key"*' umbel explain --rkey "$key" --host h3 --json
		expect 1 'FAILS  key  no process of h1 has key *' umbel explain --rkey "$key" --host h1
		expect 0 '*completion *IBV_WC_SUCCESS*' umbel explain --rkey "$key" --from h1 --to h3 --op write
		expect 1 'FAILS  qp  no queue pair of h2 is connected to one of h1*' \
			umbel explain --rkey "$key" --from h1 --to h2
		expect 1 '*FAILS  pd *' umbel explain --rkey "$key" --from h3 --to h1
		expect 0 '*"access": \[*"remote_write"*"max_dest_rd_atomic": 1*' umbel show qps --json
	}
	[ "$name" != window_1 ] ||
		expect 0 '*,window*' umbel show mrs
	echo >&4
	next || break
	[ "$text" = "${status:-IBV_WC_SUCCESS}" ] || complain "$name: $text, not ${status:-IBV_WC_SUCCESS}: $found"
	if [ "${why[$name]-}" ]; then
		# shellcheck disable=SC2053
		[[ $found == *${why[$name]}* ]] || complain "$name: not '${why[$name]}': $found"
		[ "$(grep -c ^FAILS <<< "$found")" -eq 2 ] || complain "$name: more than the first reason: $found"
	else
		[[ $found != *FAILS* ]] || complain "$name: $found"
		# shellcheck disable=SC2053
		[[ $found == ${holds[$name]-*} ]] || complain "$name: not '${holds[$name]}': $found"
	fi
	tried=$((tried + 1))
done
exec 4>&-
[ $tried -eq 28 ] || complain "$tried requests were tried: $text"

# ---- processes that have the same number
umbel down > /dev/null
umbel up --hosts 3 > /dev/null
expect 1 'FAILS  key  no process has key 0x00000100: *' umbel explain --rkey 0x100
start server h1 rping -s -P -a 10.0.0.1
has_listener()
{
	[[ $(umbel show connections) == *LISTEN* ]]
}
wait_until 'it listens' has_listener
start client h2 rping -c -a 10.0.0.1 -C 100000000
keys()
{
	umbel show mrs --json | python3 -c 'import collections, json, sys
of = collections.defaultdict(set)
for m in json.load(sys.stdin):
    of[m["key"]].add(m["client"])
print(*(k for k in of if len(of[k]) == 2))'
}
both_have()
{
	[ "$(keys)" ]
}
wait_until 'two processes have a key' both_have
read -r key _ <<< "$(keys)"
expect 0 '*key *h[12] process * (rping): *key *h[12] process * (rping): *' umbel explain --rkey "$key"
expect 0 'ok * h2 process * (rping): *' umbel explain --rkey "$((key))" --host h2
own=$(umbel show mrs --json | python3 -c 'import collections, json, sys
of = collections.defaultdict(set)
for m in json.load(sys.stdin):
    of[m["key"]].add(m["client"])
print(*(k for k in of if len(of[k]) == 1))')
qpn=$(umbel show qps | awk '$1 == "h1" && $4 == "RC" { print $3 }')
expect 1 '*FAILS  key *h1 QP * has no key *; that of its peer, h2 QP *, has it: rkey has to be of the responder*' \
	umbel explain --rkey "${own%% *}" --qp "h1:$qpn"
kill_hard client
kill_hard server

# ---- what is no question
expect 2 "umbel: explain: 'x' is no key, *" umbel explain --rkey x
expect 2 "umbel: explain: '0x100000000' is no key, *" umbel explain --rkey 0x100000000
expect 2 "umbel: explain: '-1' is no key, *" umbel explain --rkey -1
expect 2 "umbel: explain: '' is no key, *" umbel explain --rkey ''
expect 2 "umbel: explain: no operation 'send': *" umbel explain --rkey 1 --op send
expect 2 "umbel: explain: '0y' is no address; *" umbel explain --rkey 1 --address 0y
expect 2 'umbel: explain: --length needs --address; *' umbel explain --rkey 1 --length 8
expect 2 "umbel: explain: '4294967296' is no length *" umbel explain --rkey 1 --address 0 --length 4294967296
expect 2 'umbel: explain: atomic operations are on 8 bytes; *' umbel explain --rkey 1 --op atomic --address 0 --length 4
expect 2 'umbel: explain: whose key? *' umbel explain --rkey 1 --host h1 --qp h1:5
expect 2 'umbel: explain: whose key? *' umbel explain --rkey 1 --host h1 --from h1 --to h2
expect 2 'umbel: explain: --from and --to go together *' umbel explain --rkey 1 --from h1
expect 2 'umbel: explain: groups have no keys; *' umbel explain --rkey 1 --group ff12::1
expect 2 'umbel: explain: --host, --op, * go with --rkey; *' umbel explain --qp h1:5 --op read
expect 2 "umbel: explain: 'h1' is no HOST:QPN; *" umbel explain --rkey 1 --qp h1
expect 1 "FAILS  host  there is no host 'h9': *" umbel explain --rkey 1 --host h9
expect 1 "FAILS  qp  there is no queue pair 'h1:5': *" umbel explain --rkey 1 --qp h1:5
umbel down > /dev/null
