#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs of Debian's on links that lose packets by rules of `umbel fault`: perftest over RC, rping and
# ucmatose bring everything; mckey waits for what it misses. `umbel run --faults` has rules from a
# file, and fails if one has not fired.

. "${0%/*}/rdmacm.bash"

# fired NUMBER: how often that rule has.
fired()
{
	umbel fault show | awk -v n="$1" '$1 == n { print $2 }'
}

# bring_all: on the fabric that is up.
bring_all()
{
	local rule program n=0

	expect 0 1 umbel fault add "link=h2:1 loss=1% seed=1"
	expect 0 2 umbel fault add link=h2:1 chance=0.5% seed=2 duplicate
	expect 0 3 umbel fault add link=h2:1 chance=0.5% seed=3 reorder
	run_pair pings rping -s -a 10.0.0.1 -v -C 200 -S 20000 -- rping -c -a 10.0.0.1 -V -v -C 200 -S 20000
	run_pair mates ucmatose -c 5 -C 100 -S 5000 -- ucmatose -s 10.0.0.1 -c 5 -C 100 -S 5000
	for rule in 1 2 3; do
		[ "$(fired $rule)" -gt 0 ] || complain "rule $rule has not fired"
	done
	expect 0 '' umbel fault clear 2
	expect 1 "*no rule 2" umbel fault clear 2
	expect 0 '*"number": 3,*' umbel fault show --json
	expect 0 '' umbel fault clear
	expect 0 'RULE  FIRED  FITTED  TEXT' umbel fault show
}

umbel up --hosts 3 > /dev/null
bring_all

# ---- the third message to a group is lost for h3 alone
group=ff12:4001:ffff::f01:101
umbel fault add group=$group nth=3 link=h3:1 drop > /dev/null
start whole h2 mckey -m 239.1.1.1 -b 10.0.0.2 -C 10
start less h3 mckey -m 239.1.1.1 -b 10.0.0.3 -C 9
for name in whole less; do
	wait_said $name 'mckey: joined dgid: '
done
start sender h1 mckey -s -m 239.1.1.1 -b 10.0.0.1 -C 10
for name in whole less sender; do
	wait_ended "$name" 0
done
[ "$(umbel fault show | awk 'NR == 2 { print $2, $3 }')" = "1 10" ] ||
	complain "the rule has fired: $(umbel fault show)"
umbel down

# ---- a cable that damages packets: ibqueryerrors finds it
umbel up --hosts 2 > /dev/null
umbel fault add link=h2:1 chance=10% seed=1 corrupt > /dev/null
run_pair damaged rping -s -a 10.0.0.1 -C 200 -S 20000 -- rping -c -a 10.0.0.1 -C 200 -S 20000
expect 1 '*[[]SymbolErrorCounter == *[[]PortRcvErrors == *' umbel exec h1 -- ibqueryerrors
expect 0 '*PortRcvErrors:...................[1-9]*' umbel exec h1 -- perfquery 2 1
umbel down

# ---- rules from a file
rules=$TMPDIR/rules
cat > "$TMPDIR/ping" << 'END'
umbel exec h1 -- rping -s -a 10.0.0.1 -C 3 &
until umbel exec h2 -- rping -c -a 10.0.0.1 -C 3 > /dev/null 2>&1; do # it listens
	sleep 0.1
done
wait
END

printf '# acknowledgements\n\n  to=h2:* opcode=RC_ACKNOWLEDGE nth=2 drop\n' > "$rules"
expect 0 '*' umbel run --hosts 2 --faults "$rules" -- sh "$TMPDIR/ping"
echo 'opcode=CNP drop' >> "$rules"
expect 125 "*the fault 'opcode=CNP drop' has not fired*" \
	umbel run --hosts 2 --faults "$rules" -- sh "$TMPDIR/ping"
expect 3 '' umbel run --hosts 2 --faults "$rules" -- sh -c 'exit 3'
echo 'link=h7:1 drop' >> "$rules"
expect 125 "*'link=h7:1': there is no such port*line 5, is no rule*" \
	umbel run --hosts 2 --faults "$rules" -- true
expect 125 "*cannot read*" umbel run --hosts 2 --faults "$rules.none" -- true

# ---- a completion that no request has asked for: the program notices, and the rule has fired
cat > "$TMPDIR/pong" << 'END'
umbel exec h1 -- ibv_rc_pingpong -p "$1" -n 100 > /dev/null 2>&1 &
server=$!
for _ in $(seq 300); do # until it listens
	umbel exec h2 -- ibv_rc_pingpong -p "$1" -n 100 localhost > "$0.log" 2>&1
	status=$?
	grep -q "Couldn't connect" "$0.log" || break
	sleep 0.1
done
kill -9 "$server"
umbel fault show
cat "$0.log"
exit "$status"
END

new_port
# one or two more may fit it before the program looks
echo 'qp=h2:* made=SUCCESS nth=7 wr_id=4711' > "$rules"
expect 1 "* 1 *[7-9] *qp=h2:[*] made=SUCCESS nth=7 wr_id=4711*Completion for unknown wr_id 4711*" \
	umbel run --hosts 2 --faults "$rules" -- sh "$TMPDIR/pong" "$port"
new_port
echo 'qp=h2:* made=SUCCESS nth=100000' > "$rules"
expect 125 "*the fault 'qp=h2:[*] made=SUCCESS nth=100000' has not fired*" \
	umbel run --hosts 2 --faults "$rules" -- sh "$TMPDIR/pong" "$port"

# ---- the fabric ends while packets are held
expect 0 '*' umbel run --hosts 2 -- sh -c "umbel fault add qp=*:* delay=10s; timeout 2 sh $TMPDIR/ping; true"
