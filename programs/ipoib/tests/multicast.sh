#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Sockets' multicast groups are groups of the fabric: who joins is a full member, who only sends is a
# send-only member, and hosts that have not joined receive nothing. IPv4 broadcasts reach all.

. "${0%/*}/lab.sh"

ip4=ff12:401b:ffff::f01:203 ip6=ff12:601b:ffff::1:203
all4=ff12:401b:ffff::1 all6=ff12:601b:ffff::1
everybody='h1 full, h2 full, h3 full, h4 full'

# join NAME HOST SOCAT-ADDRESS: a receiver
join()
{
	launch_on "$1" "$2" socat -b 65536 -u "$3" STDOUT
}

# received HOST: how many UDP datagrams its sockets have got, or it had no socket for
received()
{
	on "$1" awk '/^Udp6?(InDatagrams|NoPorts)/ { n += $2 } /^Udp:/ { n += $2 + $3 } END { print n + 0 }' \
		/proc/net/snmp6 /proc/net/snmp
}

lab_up 4 --fat-tree 2 --radix 4 --hosts 4
interfaces 4
wait_members ff12:401b:ffff::ffff:ffff "$everybody"
wait_members $all4 "$everybody"
wait_members $all6 "$everybody"
# where neighbours ask for h2's addresses
wait_members ff12:601b:ffff::1:ff00:2 'h2 full'

for host in h2 h3; do
	join ip4-$host $host UDP4-RECV:7000,ip-add-membership=239.1.2.3:ib0
	join ip6-$host $host UDP6-RECV:7000,ipv6-v6only,ipv6-join-group='[ff15::1:203]:ib0'
done
wait_members $ip4 'h2 full, h3 full'
wait_members $ip6 'h2 full, h3 full'

# Members are attached a moment after the subnet administrator knows them.
before=$(received h4)
all_hear()
{
	on h1 bash -c 'echo to four > /dev/udp/239.1.2.3/7000
		echo to six > /dev/udp/ff15::1:203/7000'
	says ip4-h2 'to four$' && says ip6-h2 'to six$' &&
		says ip4-h3 'to four$' && says ip6-h3 'to six$'
}
wait_until 'all members hear' all_hear
wait_members $ip4 'h1 send-only-non, h2 full, h3 full'
wait_members $ip6 'h1 send-only-non, h2 full, h3 full'

# ---- large datagrams, in fragments
{ head -c 30000 /dev/zero | tr '\0' y; echo; } > "$TMPDIR/large"
on h1 socat -u -b 40000 "OPEN:$TMPDIR/large" UDP4-DATAGRAM:239.1.2.3:7000
on h1 socat -u -b 40000 "OPEN:$TMPDIR/large" 'UDP6-DATAGRAM:[ff15::1:203]:7000'
long()
{
	[ "$(tr -cd y < "$TMPDIR/$1.out" | wc -c)" -eq 30000 ]
}
for host in h2 h3; do
	wait_until "$host has got all of it" long ip4-$host
	wait_until "$host has got all of it by IPv6" long ip6-$host
done

# ---- a member that sends, too, does not hear itself by the fabric
join ip4-h1 h1 UDP4-RECV:7000,ip-add-membership=239.1.2.3:ib0,ip-multicast-loop=0
wait_members $ip4 'h1 full, h2 full, h3 full'
on h1 socat -u - UDP4-DATAGRAM:239.1.2.3:7000,ip-multicast-loop=0 <<< 'to the others'
wait_said ip4-h2 'to the others$'
wait_said ip4-h3 'to the others$'

# ---- broadcast
join broadcast h4 UDP4-RECV:7001
wait_until "h4 listens" on h4 grep -q ':1B59 ' /proc/net/udp
on h1 socat -u - UDP4-DATAGRAM:192.0.2.255:7001,broadcast <<< 'to the subnet'
wait_said broadcast 'to the subnet$'
on h1 socat -u - UDP4-DATAGRAM:255.255.255.255:7001,broadcast,so-bindtodevice=ib0 <<< 'to all'
wait_said broadcast 'to all$'
[ "$(received h4)" -eq $((before + 2)) ] ||
	complain "h4 has received $(received h4) datagrams, $before before it joined the broadcast"
! says ip4-h1 'to the others' || complain "h1 has heard itself"

# ---- members leave; a group without members is gone
kill "${pid[ip4-h3]}" "${pid[ip6-h2]}"
wait_members $ip4 'h1 full, h2 full'
wait_members $ip6 'h1 send-only-non, h3 full'
on h1 bash -c 'echo again > /dev/udp/239.1.2.3/7000; echo again > /dev/udp/ff15::1:203/7000'
wait_said ip4-h2 again
wait_said ip6-h3 again
kill "${pid[ip4-h1]}" "${pid[ip4-h2]}" "${pid[ip6-h3]}"
wait_members $ip4 ''

# ---- who ends leaves
kill "${pid[ib0-h4]}"
wait_members $all4 'h1 full, h2 full, h3 full'
