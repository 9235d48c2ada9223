#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two subnets, each with an OpenSM of its own and the same LIDs as the other, joined by a host that has a port
# in each: a gateway there forwards a group. Requests of one subnet are answered in the other, in sequence.

. "${0%/*}/opensm.bash"

gateway=${UMBEL%/bin/*}/tests/programs/roce.gateway
count=2000 joining=()

cat > "$TMPDIR/two.net" <<'END'
Hca	2 "both"
[1]	"left"[1]
[2]	"right"[1]

Switch	4 "left"
[1]	"both"[1]
[2]	"h2"[1]
[3]	"h3"[1]

Switch	4 "right"
[1]	"both"[2]
[2]	"h4"[1]
[3]	"h5"[1]

Hca	1 "h2"
[1]	"left"[2]

Hca	1 "h3"
[1]	"left"[3]

Hca	1 "h4"
[1]	"right"[2]

Hca	1 "h5"
[1]	"right"[3]
END
umbel up --topology "$TMPDIR/two.net" --sm none > /dev/null || exit 1

# managed HOST SM: that one manages its subnet, and has LID 1
managed()
{
	local guid

	guid=$(umbel exec "$2" -- ibstat -p)
	[[ $(umbel exec "$1" -- sminfo 2> /dev/null) == *"sm lid 1 sm guid ${guid/#0x0/0x},"* ]]
}

# joins HOST ADDRESS: its SA takes requests for groups, once its first sweep is done
joins()
{
	umbel exec "$1" -- timeout 1 stdbuf -oL mckey -m 239.1.1.9 -b "$2" > "$TMPDIR/joins-$2.out" 2>&1 ||
		grep -q '^mckey: joined dgid: ' "$TMPDIR/joins-$2.out"
}

for host in h3 h5; do
	opensm "sm-$host" $host
done
for port in both,10.0.0.1 both,10.1.0.1 h2,10.0.0.2 h4,10.0.0.4; do
	wait_until "$port can join" joins "${port%,*}" "${port#*,}" &
	joining+=($!)
done
wait "${joining[@]}"
managed h2 h3 || complain 'h2 is not in the subnet of h3'
managed h4 h5 || complain 'h4 is not in the subnet of h5'

start forward both "$gateway" forward 239.1.2.3 10.0.0.1 10.1.0.1
wait_said forward ready
start answer h4 "$gateway" answer 239.1.2.3 10.0.0.4 $count
wait_said answer ready
start ask h2 "$gateway" ask 239.1.2.3 10.0.0.2 $count
for end in ask answer; do
	wait_ended $end 0
	expect_said $end 'all in sequence'
done

kill "${pid[forward]}"
wait_ended forward 143
