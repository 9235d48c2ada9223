#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel capture --group` and `--qp`: the file has what was asked for, and nothing else; what nobody wants
# does not go by the daemon.

. "${0%/*}/mckey.bash"

one=ff12:4001:ffff::f01:101 two=ff12:4001:ffff::f01:102	# of 239.1.1.1 and .2

# capture NAME OPTION...: into $TMPDIR/NAME.pcapng, from now on
capture()
{
	launch "capture-$1" umbel capture --output "$TMPDIR/$1.pcapng" "${@:2}"
	wait_until "capture-$1 begins" test -s "$TMPDIR/$1.pcapng"
}

captured()
{
	local name
	for name; do
		kill "${pid[capture-$name]}"
		wait_ended "capture-$name" 0
	done
}

# has NAME FILTER: how many packets
has()
{
	plain_tshark -r "$TMPDIR/$1.pcapng" -Y "$2" 2> "$TMPDIR/tshark.err" | wc -l
}

# qpn NAME: the number of pingpong's queue pair
qpn()
{
	sed -n 's/^  local address: *LID [^ ]*, QPN \(0x[0-9a-f]*\),.*/\1/p' "$TMPDIR/$1.out"
}

# pingpong NAME PROGRAM OPTION...: a server on h1, which has its queue pair, and its port
declare -A at
pingpong()
{
	new_port
	at[$1]=$port
	start "$1" h1 "${@:2}" -p "$port"
	wait_listening "$1" "$port"
}

# attributes QPN KEY: in the JSON of that queue pair
attribute()
{
	umbel show qps --json | /usr/bin/python3 -c '
import json, sys
print(*[q.get(sys.argv[2]) for q in json.load(sys.stdin) if int(q["qpn"], 16) == int(sys.argv[1], 16)])' "$1" "$2"
}

is_connected()
{
	[ "$(attribute "$1" peer_host)" = h2 ] && [ "$(attribute "$1" state)" = RTS ]
}

umbel up --hosts 4 > /dev/null

# ---- groups: h2 and h3 receive by one each; what h1 sends to them, and what h4 does

receive first h2 -m 239.1.1.1 -b 10.0.0.2 -C 3
receive second h3 -m 239.1.1.2 -b 10.0.0.3 -C 3
wait_joined first
wait_joined second
member=$(umbel show qps --json | /usr/bin/python3 -c '
import json, sys
print(*[q["qpn"] for q in json.load(sys.stdin) if q["host"] == "h2"])')
[[ $member == 0x* ]] || complain "the queue pairs of h2: $member"
capture group --group $one
capture joins --group $one --class sa
capture attached --qp "h2:$member"
capture neither --group $two --qp "h2:$member"
capture both --group $two --group $one --qp "h2:$member"
capture node --group $one h4
export UMBEL_LOG=packet=trace
send to-first h1 -m 239.1.1.1 -b 10.0.0.1 -C 3
send to-second h4 -m 239.1.1.2 -b 10.0.0.4 -C 3
unset UMBEL_LOG
wait_complete to-first first
wait_joined to-second
captured node neither both
wait_complete to-second second
captured group joins attached
to_one="infiniband.grh.dgid == $one" to_two="infiniband.grh.dgid == $two"
for name in group joins attached both; do
	[ "$(has $name "$to_one")" -eq 3 ] || complain "$name has not three messages: $(has $name "$to_one")"
	[ "$(has $name "$to_two || _ws.malformed")" -eq 0 ] || complain "$name has those of the other group"
done
[ "$(has group infiniband)" -eq 3 ] || complain 'a capture of a group has MADs'
[ "$(has joins infiniband.mcmemberrecord.mgid)" -gt 0 ] || complain 'no join, though its class was asked for'
for name in neither node; do
	[ "$(has $name infiniband)" -eq 0 ] || complain "$name has packets"
done
[ "$(grep -c "sends .*, by the daemon" "$TMPDIR/to-first.out")" -ge 3 ] || complain 'wanted, and does not go by the daemon'
grep -q 'sends ' "$TMPDIR/to-second.out" || complain 'no trace of what is sent'

# ---- a group whose capture has ended goes its own way again; and what another node does never goes by the daemon

capture other --group $one
capture far --data h3
export UMBEL_LOG=packet=trace
receive third h2 -m 239.1.1.2 -b 10.0.0.2 -C 3
wait_joined third
send to-third h1 -m 239.1.1.2 -b 10.0.0.1 -C 3
unset UMBEL_LOG
wait_complete to-third third
captured other far
grep -q 'sends ' "$TMPDIR/to-third.out" || complain 'no trace of what is sent'
not grep 'sends .*, by the daemon' "$TMPDIR/to-third.out" || complain 'nobody wants it'
[ "$(has far "$to_two")" -eq 0 ] || complain 'h3 sends and gets nothing'

# ---- connections and datagrams by queue pair: one that is wanted, one that is not

pingpong wanted ibv_rc_pingpong -n 10
pingpong datagrams ibv_ud_pingpong -n 10
pingpong unwanted ibv_rc_pingpong -n 100000000
a=$(qpn wanted) d=$(qpn datagrams) b=$(qpn unwanted)
capture a --qp "h1:$a"
capture two --qp "h1:$((a))" --qp "h1:$d"
start unwanted-client h2 ibv_rc_pingpong -n 100000000 -p "${at[unwanted]}" localhost
wait_until "$b is connected" is_connected "$b"
expect 0 None attribute "$b" next_psn
start wanted-client h2 ibv_rc_pingpong -n 10 -p "${at[wanted]}" localhost
start datagrams-client h2 ibv_ud_pingpong -n 10 -p "${at[datagrams]}" localhost
for name in wanted datagrams; do
	wait_ended $name 0
	wait_ended $name-client 0
done
captured a two
for name in unwanted unwanted-client; do
	kill "${pid[$name]}"
	wait_ended $name 143
done
peer=$(qpn wanted-client)
of_a="infiniband.bth.destqp == $a || infiniband.bth.destqp == $peer"
[ "$(has a "$of_a")" -ge 40 ] || complain "messages and acknowledgements of $a: $(has a "$of_a")"
[ "$(has a "infiniband.bth.destqp == $peer && infiniband.bth.opcode == 2")" -ge 10 ] || complain "what $a sends"
[ "$(has a "!($of_a) || _ws.malformed")" -eq 0 ] || complain "a capture of $a has more"
of_d="infiniband.bth.destqp == $d || infiniband.deth.srcqp == $d"
[ "$(has two "$of_a")" -eq "$(has a "$of_a")" ] || complain "two captures of $a differ"
[ "$(has two "$of_d")" -eq 20 ] || complain "datagrams of $d: $(has two "$of_d")"
[ "$(has two "!($of_a) && !($of_d)")" -eq 0 ] || complain "a capture of $a and $d has more"

# ---- refusals

expect 1 "umbel: no host 'h9' in fabric 'default': it has h1 h2 h3 h4" umbel capture -o /dev/null --qp h1:1 --qp h9:1
for word in h1 :1 h1: h1:0 h1:0x1000000 h1:x; do
	expect 2 "umbel: capture: '$word' is no queue pair: write HOST:QPN, as in h1:0x105; *" \
		umbel capture -o /dev/null --qp $word
done
expect 2 "umbel: capture: 'fe80::1' is no multicast GID, and no IPv4 or IPv6 address of a group; *" umbel capture -o /dev/null --group fe80::1
nine=(--qp h1:1 --qp h1:2 --qp h1:3 --qp h1:4 --qp h1:5 --qp h1:6 --qp h1:7 --qp h1:8 --qp h1:9)
expect 2 'umbel: capture: at most 8 queue pairs; *' umbel capture -o /dev/null "${nine[@]}"
nine=("${nine[@]/h1:?/$one}")
expect 2 'umbel: capture: at most 8 groups; *' umbel capture -o /dev/null "${nine[@]/--qp/--group}"
