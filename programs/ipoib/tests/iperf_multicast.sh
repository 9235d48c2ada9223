#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# IP multicast by iperf, version 2, over three switches: three receivers get all the datagrams of a
# stream, by IPv4 and IPv6, and a host that has not joined gets none.

. "${0%/*}/lab.sh"

count=40 # as many as a socket keeps, however long its reader waits for a processor

lab_up 5 --fat-tree 2 --radix 6 --hosts 5
interfaces 5

# received HOST: UDP datagrams that its sockets have got, or it had no socket for
received()
{
	on "$1" awk '/^Udp6(InDatagrams|NoPorts)/ { n += $2 } /^Udp:/ { n += $2 + $3 } END { print n + 0 }' \
		/proc/net/snmp6 /proc/net/snmp
}

# whole NAME: how many streams it has got all of, by its reports: "0/41 (0%)"; the last one says that it is the end
whole()
{
	grep -cE " 0/ *($count|$((count + 1))) \(0%\)" "$TMPDIR/$1.out"
}

# all_get FAMILY CLIENT-OPTION...: of one more stream all receivers get all. Members are attached a moment
# after the subnet administrator knows them, so it may not be the first.
all_get()
{
	local family=$1 host
	shift

	on h1 iperf -u -T 4 -b 2M -l 1000 -n $((count * 1000)) "$@" > "$TMPDIR/client.out" 2>&1 || return
	for host in h2 h3 h4; do
		[ "$(whole "$family-$host")" -ge 1 ] || return
	done
}

before=$(received h5)
for host in h2 h3 h4; do
	launch_on ip4-$host $host iperf -s -u -B 239.1.2.3%ib0
	launch_on ip6-$host $host iperf -s -u -V -B ff15::1:203%ib0
done
wait_members ff12:401b:ffff::f01:203 'h2 full, h3 full, h4 full'
wait_members ff12:601b:ffff::1:203 'h2 full, h3 full, h4 full'
wait_until 'all get all of a stream' all_get ip4 -c 239.1.2.3
wait_until 'all get all of a stream by IPv6' all_get ip6 -V -c ff15::1:203%ib0
[ "$(received h5)" -eq "$before" ] || complain "h5 has got $(($(received h5) - before)) datagrams"
