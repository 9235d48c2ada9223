#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Links that rules of `umbel fault` make bad: of less width or speed, with symbol errors, and such
# as flap. Tools find them, programs hear of them, and subnet managers, ours and OpenSM, follow.

. "${0%/*}/opensm.bash"
. "${0%/*}/mckey.bash"

# ends HOST: width and speed of a host's link, as iblinkinfo says it of both its ends
ends()
{
	umbel exec h1 -- iblinkinfo | awk -v host="$1" '
		/^[CS]/ { is_host = $2 == host }
		/==\(/ && (is_host || index($0, "\"" host " ")) {
			split(substr($0, index($0, "==(")), word); print word[2], word[3] }' | xargs
}

# errors: "NODE PORT COUNTER...", as ibqueryerrors finds them
errors()
{
	{ umbel exec h1 -- ibqueryerrors || [ $? -eq 1 ]; } | awk '
		/^Errors for/ { split($0, name, "\""); node = name[2] }
		/^   GUID/ && !/port ALL/ { sub(/.*port /, ""); sub(/:/, ""); print node, $0 }' | sort
}

# fired NUMBER: how often that rule has, and what fitted it.
fired()
{
	umbel fault show | awk -v n="$1" '$1 == n { print $2, $3 }'
}

has_fired()
{
	[ "$(fired "$1")" = "$2" ]
}

# ---- less width and speed: both ends say so, to whomever
umbel up --hosts 3 > /dev/null
start asked h2 ibv_asyncwatch
wait_said asked 'umbel_h2_0: async event FD [0-9]*$'
expect 0 1 umbel fault add link=sw1:2 width=1x
expect 0 '1X 25.78125 1X 25.78125' ends h2
expect 0 2 umbel fault add link=h2:1 speed=SDR
expect 0 '1X 2.5 1X 2.5' ends h2
expect 0 '4X 25.78125 4X 25.78125' ends h3
expect 0 '*sw1 * 2  active *  1x SDR*' umbel show topology
expect 0 '*(Could be 4X Could be 25.78125 Gbps)*' umbel exec h1 -- iblinkinfo
expect 0 '*LinkWidthEnabled:*1X or 4X*LinkWidthActive:*1X*LinkSpeedActive:*2.5 Gbps*' \
	umbel exec h1 -- ibportstate 2 1 query
expect 0 '*active_width:*1X (1)*active_speed:*2.5 Gbps (1)*' umbel exec h2 -- ibv_devinfo -v
expect 0 '2.5 Gb/sec (1X SDR)' \
	umbel exec h2 -- cat /sys/class/infiniband/umbel_h2_0/ports/1/rate
expect 0 '*dlid*2*rate*0x82*' umbel exec h1 -- saquery PR --src-to-dst 1:2
expect 0 '*dlid*3*rate*0x90*' umbel exec h1 -- saquery PR --src-to-dst 1:3
expect 0 $'h2 umbel_h2_0 1 \[LinkDownedCounter == 2]\nsw1 2 \[LinkDownedCounter == 2]' errors
expect 0 '1 1' fired 1
for n in 1 2; do # it went down and came up each time
	wait_said asked '  event_type IBV_EVENT_PORT_ERR (10), port 1$' $n
	wait_said asked '  event_type IBV_EVENT_PORT_ACTIVE (9), port 1$' $n
done
# whoever has it train again gets no more
expect 0 '*' umbel exec h1 -- ibportstate -G 0x02756d0000000400 2 reset
expect 0 '1X 2.5 1X 2.5' ends h2
umbel switch kill sw1
umbel switch revive sw1
expect 0 '1X 2.5 1X 2.5' ends h2
# each rule is taken back by itself
expect 0 '' umbel fault clear 1
expect 0 '4X 2.5 4X 2.5' ends h2
expect 0 3 umbel fault add link=sw1:2 speed=QDR # the slower one counts
expect 0 '4X 2.5 4X 2.5' ends h2
expect 0 '' umbel fault clear
expect 0 '4X 25.78125 4X 25.78125' ends h2
expect 0 '*active_width:*4X (2)*active_speed:*25.0 Gbps (32)*' umbel exec h2 -- ibv_devinfo -v
umbel exec h1 -- ibqueryerrors -k > /dev/null

# ---- symbol errors: at the port that the rule names, and they damage nothing
expect 0 4 umbel fault add link=sw1:2 errors=5
expect 0 5 umbel fault add link=h2:1 errors=3 every=2ms count=4
wait_until 'rule 5 has fired' has_fired 5 '4 4'
expect 0 $'h2 umbel_h2_0 1 \[SymbolErrorCounter == 12]\nsw1 2 \[SymbolErrorCounter == 5]' errors
expect 0 '*SymbolErrorCounter:*.12*LinkErrorRecoveryCounter:*.0*PortRcvErrors:*.0*' \
	umbel exec h1 -- perfquery 2 1
expect 0 12 umbel exec h2 -- cat /sys/class/infiniband/umbel_h2_0/ports/1/counters/symbol_error
umbel exec h1 -- ibqueryerrors -k > /dev/null
expect 0 '' errors
umbel link down h3:1
expect 0 6 umbel fault add link=h3:1 errors=1 # nothing comes by a link that is down
expect 0 '0 0' fired 6
umbel link up h3:1
umbel exec h1 -- ibqueryerrors -k > /dev/null

# ---- a link that flaps: down and up so often, at both ends; traps; events; the groups go on
receive member h3 -m 239.1.1.1
wait_joined member
start flaps h3 ibv_asyncwatch
wait_said flaps 'umbel_h3_0: async event FD [0-9]*$'
launch traps umbel capture --class smp --output "$TMPDIR/traps.pcapng" h1
wait_until 'the capture begins' test -s "$TMPDIR/traps.pcapng"
expect 0 7 umbel fault add link=h3:1 flap=20ms every=60ms count=5
wait_until 'rule 7 has fired' has_fired 7 '5 5'
wait_said flaps '  event_type IBV_EVENT_PORT_ERR (10), port 1$' 5
wait_said flaps '  event_type IBV_EVENT_PORT_ACTIVE (9), port 1$' 5
expect 0 $'h3 umbel_h3_0 1 \[LinkDownedCounter == 5]\nsw1 3 \[LinkDownedCounter == 5]' errors
wait_until 'all ports are active' all_ports active
kill -INT "${pid[traps]}"
wait_ended traps 0
n=$(tshark -r "$TMPDIR/traps.pcapng" -Y \
	'infiniband.mad.method == 5 && infiniband.notice.trapnumberdeviceid == 128' 2> /dev/null | wc -l)
[ "$n" -ge 5 ] || complain "$n traps 128 of 5 flaps"
wait_said member 'mckey: event: RDMA_CM_EVENT_MULTICAST_ERROR, status: -102$'

# while it is down, nobody else brings it up; and whoever takes the rule back does
expect 0 8 umbel fault add link=h3:1 flap=1000s
expect 0 '*umbel_h3_0 * 1  down *' umbel show topology
expect 1 "umbel: a fault keeps the link at h3:1 down: see 'umbel fault show'" umbel link up h3:1
expect 0 '*' umbel exec h1 -- ibportstate -G 0x02756d0000000400 3 enable
expect 0 '*umbel_h3_0 * 1  down *' umbel show topology
umbel link down sw1:3 # somebody pulls its cable, too
expect 0 '' umbel fault clear 8
expect 0 '*umbel_h3_0 * 1  down *' umbel show topology
expect 0 '' umbel link up sw1:3
wait_until 'all ports are active' all_ports active
# two of one link: it is up when both are over
expect 0 9 umbel fault add link=h3:1 flap=1000s
expect 0 10 umbel fault add link=sw1:3 flap=1ms
expect 0 '0 0' fired 10
expect 0 '' umbel fault clear

# ---- a link that trains again without going down: both ends count that, and nobody else notices
umbel exec h1 -- ibqueryerrors -k > /dev/null
start recovers h2 ibv_asyncwatch
wait_said recovers 'umbel_h2_0: async event FD [0-9]*$'
n=$(umbel fault add link=h2:1 recoveries=2 every=2ms count=3)
wait_until "rule $n has fired" has_fired "$n" '3 3'
expect 0 $'h2 umbel_h2_0 1 \[LinkErrorRecoveryCounter == 6]\nsw1 2 \[LinkErrorRecoveryCounter == 6]' errors
expect 0 '*LinkErrorRecoveryCounter:*.6*LinkDownedCounter:*.0*' umbel exec h1 -- perfquery 2 1
expect 0 6 umbel exec h2 -- cat /sys/class/infiniband/umbel_h2_0/ports/1/counters/link_error_recovery
expect 0 $((n + 1)) umbel fault add link=h2:1 recoveries=1000 # more than the counter has room for
expect 0 '*LinkErrorRecoveryCounter:*.255*' umbel exec h1 -- perfquery 2 1
! says recovers event_type || complain 'h2 has had an event'
umbel exec h1 -- ibqueryerrors -k > /dev/null
expect 0 '' errors
umbel fault clear

# ---- what makes no sense
expect 2 'umbel: which link? write link=NODE:PORT' umbel fault add width=1x
expect 2 'umbel: nothing is plugged in at that port' umbel fault add link=sw1:9 flap=1ms
expect 2 "umbel: 'link=sw1:99': there is no such port" umbel fault add link=sw1:99 flap=1ms
for width in 3x x 1 1xx -1x 4294967297x ''; do
	expect 2 "umbel: 'width=$width': *" umbel fault add link=sw1:1 "width=$width"
done
expect 2 "umbel: 'speed=edr': not a speed: SDR, DDR, *" umbel fault add link=sw1:1 speed=edr
for fault in width=4x width=12x speed=EDR speed=NDR; do
	expect 2 'umbel: the link has no more than that' umbel fault add link=sw1:1 "$fault"
done
expect 2 "umbel: 'errors=0': at least 1" umbel fault add link=sw1:1 errors=0
expect 2 "umbel: 'recoveries=0': at least 1" umbel fault add link=sw1:1 recoveries=0
expect 2 'umbel: several times, but when*' umbel fault add link=sw1:1 recoveries=1 count=2
expect 2 "umbel: 'every=1us': that is too often*" umbel fault add link=sw1:1 errors=1 every=1us
expect 2 'umbel: the link must come up*' umbel fault add link=sw1:1 flap=2ms every=2ms
expect 2 'umbel: several times, but when?*' umbel fault add link=sw1:1 flap=2ms count=2
expect 2 'umbel: a width or a speed lasts*' umbel fault add link=sw1:1 width=1x count=2
expect 2 'umbel: the rule ends before*' umbel fault add link=sw1:1 width=1x after=2s until=1s
expect 2 'umbel: every= is of errors=, recoveries= and flap=*' umbel fault add link=sw1:1 drop every=1s
for word in qp=h1:1 to=h1:* nth=2 psn=0 opcode=CNP group=ff12::1; do
	expect 2 'umbel: of what happens to a link*' umbel fault add link=sw1:1 flap=1ms "$word"
done
expect 2 '*a rule says one thing*' umbel fault add link=sw1:1 width=1x speed=SDR

# ---- rules of links send no packet by the daemon
expect 0 '*' umbel fault add link=h2:1 flap=5ms every=10ms
expect 0 '*"fired": *' umbel fault show --json
for ((n = 0; n < 255; n++)); do
	umbel fault add link=h2:1 errors=1 after=1000s > /dev/null
done
expect 1 'umbel: there are too many rules already' umbel fault add link=h2:1 errors=1
expect 0 '' umbel fault clear
wait_until 'all ports are active' all_ports active
umbel down > /dev/null

# ---- a script of faults by time; the flap comes while the program runs, or the test fails
rules=$TMPDIR/rules
printf '%s\n' 'link=h2:1 width=1x until=1000s' 'link=h2:1 after=200ms flap=20ms' > "$rules"
# shellcheck disable=SC2016
expect 0 '1x EDR' umbel run --hosts 2 --faults "$rules" -- bash -c '
	# which may be asked while the link is down
	until umbel exec h1 -- perfquery 2 1 2> /dev/null | grep -q "LinkDownedCounter:.*\.2$"; do sleep 0.02; done
	umbel show topology | awk "\$1 == \"umbel_h2_0\" { print \$9, \$10 }"'
echo 'link=h2:1 after=1000s errors=1' >> "$rules"
expect 125 "*the fault 'link=h2:1 after=1000s errors=1' has not fired*" \
	umbel run --hosts 2 --faults "$rules" -- sleep 0.3

# ---- OpenSM hears of it by traps, and brings the link up again each time
umbel up --hosts 3 --sm none > /dev/null
opensm master h1 -s 0
wait_until 'all ports are active' all_ports active
expect 0 1 umbel fault add link=h2:1 width=1x
wait_until 'all ports are active' all_ports active
expect 0 '1X 25.78125 1X 25.78125' ends h2
expect 0 2 umbel fault add link=h3:1 flap=20ms every=100ms count=3
wait_until 'rule 2 has fired' has_fired 2 '3 3'
wait_until 'all ports are active' all_ports active
# from h2 by its one lane of EDR, 25 Gb/s, to the switch
expect 0 '*dgid*:0:400*sgid*:0:201*rate*0x8F*' umbel exec h3 -- saquery PR --src-to-dst 3:2
kill -INT "${pid[master]}"
wait_ended master 0
umbel down > /dev/null

# ---- links of a large fabric that flap without a rest: everybody has a turn, and all ends well
umbel up --fat-tree 3 --radix 16 > /dev/null
for link in leaf1:9 leaf2:10 spine4:3 umbel_h7_0:1; do
	expect 0 '*' umbel fault add "link=$link" flap=3ms every=7ms count=40
done
umbel show hosts > /dev/null || complain 'nobody else is served'
expect 0 '' umbel link down leaf8:16
expect 0 '' umbel link up leaf8:16
for n in 1 2 3 4; do
	wait_until "rule $n has fired" eval '[[ $(fired $n) == "40 "* ]]'
done
wait_until 'all ports are active' all_ports active
expect 0 '*' umbel check
