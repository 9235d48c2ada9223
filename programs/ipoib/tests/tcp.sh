#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# TCP and UDP between two hosts: what arrives is what was sent, from one connection and from many, by
# either IP version and through a gateway; nothing is lost that the kernel's own checksums would
# find.

. "${0%/*}/lab.sh"

lab_up 3
interfaces 3

# ---- what arrives is what was sent
head -c 20000000 /dev/urandom > "$TMPDIR/sent"
for address in 192.0.2.2 2001:db8::2; do
	family=4
	[[ $address != *:* ]] || family=6
	launch_on "receiver-$family" h2 \
		socat -u "TCP$family-LISTEN:7000,reuseaddr" "OPEN:$TMPDIR/received-$family,creat"
	wait_until "it listens" on h2 grep -q ':1B58 0* *[0:]* 0A' /proc/net/tcp /proc/net/tcp6
	on h1 socat -u "OPEN:$TMPDIR/sent" "TCP$family:${address/2001:db8::2/[2001:db8::2]}:7000" ||
		complain "socat cannot send to $address"
	wait_ended "receiver-$family" 0
	cmp "$TMPDIR/sent" "$TMPDIR/received-$family" || complain "to $address it changed"
done

# ---- iperf3: many connections, both directions, UDP
measures=0
# measure OPTION...: it ends well, and moves what it was told to. A server each time: between two
# clients one does not listen for a moment.
measure()
{
	local server=iperf-$((++measures))

	launch_on $server h2 iperf3 --server --one-off --forceflush
	wait_said $server 'Server listening'
	on h1 iperf3 --json --client 192.0.2.2 "$@" > "$TMPDIR/iperf.json" ||
		complain "iperf3 $*: $(cat "$TMPDIR/iperf.json")"
	wait_until "$server ends" gone "${pid[$server]}"
}
# moved SIDE WHAT: what the sender or the receiver has counted. The receiver stops to count when it
# hears of the end, whatever it has not read yet.
moved()
{
	python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["end"][sys.argv[2]][sys.argv[3]])' "$TMPDIR/iperf.json" "$@"
}

measure -n 100M
[ "$(moved sum_sent bytes)" -ge 100000000 ] && [ "$(moved sum_received bytes)" -gt 0 ] ||
	complain "iperf3: $(cat "$TMPDIR/iperf.json")"
measure -n 100M -P 8
measure -n 100M --reverse
measure -n 20M --set-mss 1000
# as much as a socket keeps, however long its reader waits for a processor; Debian 13's looks at its counts once a second
measure -u -b 640K -n 80000 -l 4000
[ "$(moved sum_received lost_packets)" -eq 0 ] ||
	complain "iperf3 by UDP: $(cat "$TMPDIR/iperf.json")"

# ---- through h2, a gateway, to a network behind h3
on h2 sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
on h3 ip address add 198.51.100.3/32 dev lo
on h1 ip route add 198.51.100.0/24 via 192.0.2.2
on h2 ip route add 198.51.100.0/24 via 192.0.2.3
pings 1 h1 198.51.100.3
launch_on behind h3 iperf3 --server --forceflush
wait_said behind 'Server listening'
on h1 iperf3 --client 198.51.100.3 -n 50M > "$TMPDIR/gateway" 2>&1 ||
	complain "iperf3 through a gateway: $(cat "$TMPDIR/gateway")"

for host in h1 h2 h3; do
	on $host grep -A1 '^Tcp:' /proc/net/snmp | awk '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
		NR == 2 && ($at["InErrs"] || $at["InCsumErrors"]) { exit 1 }' ||
		complain "$host has seen bad segments: $(on $host cat /proc/net/snmp)"
done
