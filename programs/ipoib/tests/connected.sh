#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connected mode (RFC 4755), beside a host in datagram mode: h1, h2 and h4 reach each other by
# connections, with packets of up to 65520 bytes, and h3 by datagrams, of which their kernels
# hear. Then a peer's program dies or stops, or a link fails.

. "${0%/*}/lab.sh"

lab_up 4
mode=connected
held_interface h1
held_interface h2
held_interface h4
mode=datagram
held_interface h3

# mode_of HOST ADDRESS: how it sends there
mode_of()
{
	status "$1" "*[n['mode'] for n in s['neighbours'] if n['ip'] == '$2']"
}
mode_is()
{
	[ "$(mode_of "$1" "$2")" = "$3" ]
}

# ---- large packets
expect 0 '*mtu 65520 *' on h1 ip link show ib0
for to in 192.0.2.2 2001:db8::2; do
	header=28
	[[ $to != *:* ]] || header=48
	for bytes in 0 4000 60000 $((65520 - header)); do
		pings 3 h1 -i 0.01 -M 'do' -s $bytes $to
	done
	# in Debian 13 ping does not say which MTU
	expect 1 '*@(message too long, mtu*65520|sendmsg: Message too long)*' on h1 ping -n -c 1 -M 'do' -s $((65521 - header)) $to
	expect 0 connected mode_of h1 $to
	expect 0 connected mode_of h2 "${to/%2/1}"
done
# one for each direction
expect 0 '1 1' status h1 "s['n_outgoing'], s['n_incoming']"

# ---- a neighbour that has datagrams only: the kernel hears of it, and cuts
for to in 192.0.2.3 2001:db8::3; do
	expect 1 '*mtu*4092*' on h1 ping -n -c 2 -i 0.1 -M 'do' -s 60000 $to
	for bytes in 0 4044 20000; do
		pings 3 h1 -i 0.01 -s $bytes $to
		pings 3 h3 -i 0.01 -s $bytes "${to/%3/1}"
	done
	expect 0 datagram mode_of h1 $to
	expect 0 datagram mode_of h3 "${to/%3/1}"
done
expect 0 '1 1' status h1 "s['n_outgoing'], s['n_incoming']"

# ---- what arrives is what was sent
head -c 20000000 /dev/urandom > "$TMPDIR/sent"
transfer()
{
	local from=$1 to=$2 name=$1-$2

	launch_on "$name" $to socat -u TCP4-LISTEN:7000,reuseaddr "OPEN:$TMPDIR/$name.got,creat"
	wait_until "it listens" on $to grep -q ':1B58 0* *[0:]* 0A' /proc/net/tcp
	on $from socat -u "OPEN:$TMPDIR/sent" "TCP4:192.0.2.${to#h}:7000" || complain "socat: $name"
	wait_ended "$name" 0
	cmp "$TMPDIR/sent" "$TMPDIR/$name.got" || complain "$name: it changed"
}
transfer h1 h2
transfer h1 h3
transfer h3 h1
head -c 60000 "$TMPDIR/sent" > "$TMPDIR/datagram"
for to in 2 3; do
	launch_on udp-$to h$to socat -u -b 65000 UDP4-RECV:7001 "OPEN:$TMPDIR/udp-$to.got,creat"
	wait_until "it receives" on h$to grep -q ':1B59 ' /proc/net/udp
	on h1 socat -u -b 65000 "OPEN:$TMPDIR/datagram" UDP4-SENDTO:192.0.2.$to:7001
	wait_until "h$to has got the datagram" cmp -s "$TMPDIR/datagram" "$TMPDIR/udp-$to.got"
done

# ---- a link fails, and comes back
large()
{
	on "$1" ping -n -q -c 1 -W 1 -M 'do' -s 60000 "$2" > /dev/null
}
# has_failed: a connection to h2 has failed since there were $before of them, or none is tried any more,
# as h1 has forgotten its neighbour, whom nobody answers for
failures()
{
	status h1 "s['counters']['connections_failed']"
}
has_failed()
{
	not reaches h1 192.0.2.2 && { [ "$(failures)" -gt "$before" ] || unknown; }
}
unknown()
{
	[ -z "$(status h1 "*[n['state'] for n in s['neighbours'] if n['ip'] == '192.0.2.2' and 'mode' in n]")" ]
}
# connects: a connection that ends late, by what was sent before, is made again for the next packet only
connects()
{
	large h1 192.0.2.2 && mode_is h1 192.0.2.2 connected
}
# large_or_refused: one arrives, or the kernel hears that it is too large
large_or_refused()
{
	said=$(on h1 ping -n -c 1 -W 1 -M 'do' -s 60000 192.0.2.2) || [[ $said == *mtu* ]]
}
# as often as failures in a row have large packets refused: these are not in a row
for round in 1 2 3; do
	before=$(failures)
	umbel link down h2:1
	wait_until "h1 does not reach h2" has_failed
	pings 3 h1 -i 0.01 -M 'do' -s 60000 192.0.2.4
	umbel link up h2:1
	wait_until "h1 reaches h2 again, round $round" large_or_refused
	[[ $said != *mtu* ]] || complain "round $round: $said"
	wait_until "h2 reaches h1 again" large h2 192.0.2.1
	wait_until "it is connected" connects
done

# ---- a peer dies; others do not hear of it; another takes its place
stop_h2()
{
	kill "-$1" "$(pgrep -f '^umbel-ipoib --interface ib0 --address 192[.]0[.]2[.]2/24')"
}
stop_h2 KILL
wait_until "h1 does not reach h2" not reaches h1 192.0.2.2
pings 3 h1 -i 0.01 -M 'do' -s 60000 192.0.2.4
kill_hard ib0-h2 2> /dev/null # who held it
ended[ib0-h2]=
rm "$TMPDIR/h2.control"
mode=connected
held_interface h2
wait_until "h1 reaches the new one" large h1 192.0.2.2
wait_until "the new one reaches h1" large h2 192.0.2.1

# ---- a peer that is stopped keeps nobody else waiting
stop_h2 STOP
launch_on flood h1 ping -n -q -f -c 5000 -w 5 -M 'do' -s 60000 192.0.2.2
pings 20 h1 -i 0.01 -M 'do' -s 60000 192.0.2.4
pings 20 h1 -i 0.01 192.0.2.3
stop_h2 CONT
wait_until "h1 reaches h2 again" large h1 192.0.2.2
wait_until "it is connected" connects
