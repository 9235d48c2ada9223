#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The lab of the RoCEv2 tests does what they rely on, shown with plain UDP multicast, no RDMA: of
# five hosts on the bridge three join; these get what is sent, no packet of it reaches the other
# two; the bridge's entries come with the joins and go with the leaves. IPv4 and IPv6.

. "${0%/*}/lab.sh"

# join NAME HOST SOCAT-ADDRESS: a receiver
join()
{
	launch_on "$1" "$2" socat -u "$3" STDOUT
}

lab_up 5
for host in h2 h3 h4 h5; do
	capture $host
done
for host in h2 h3 h5; do
	join ip4-$host $host UDP4-RECV:7000,ip-add-membership=239.1.2.3:eth0
	join ip6-$host $host UDP6-RECV:7000,ipv6-v6only,ipv6-join-group='[ff15::1:203]:eth0'
done
wait_members 239.1.2.3 "h2 h3 h5"
wait_members ff15::1:203 "h2 h3 h5"

on h1 bash -c 'echo to four > /dev/udp/239.1.2.3/7000; echo to six > /dev/udp/ff15::1:203/7000'
for host in h2 h3 h5; do
	wait_said ip4-$host 'to four$'
	wait_said ip6-$host 'to six$'
done
captured h2 h3 h4 h5
for host in h2 h3 h5; do
	expect_packets 2 $host 'udp.port == 7000'
done
expect_packets 0 h4 'udp.port == 7000'

# ---- members leave
kill "${pid[ip4-h3]}" "${pid[ip6-h2]}" "${pid[ip6-h5]}"
wait_members 239.1.2.3 "h2 h5"
wait_members ff15::1:203 "h3"
on h1 bash -c 'echo again > /dev/udp/239.1.2.3/7000; echo again > /dev/udp/ff15::1:203/7000'
wait_said ip4-h2 again
wait_said ip6-h3 again
captured h2 h3 h4
expect_packets 3 h2 'udp.port == 7000 && (ip.dst == 239.1.2.3 || ipv6.dst == ff15::1:203)'
expect_packets 3 h3 'udp.port == 7000 && (ip.dst == 239.1.2.3 || ipv6.dst == ff15::1:203)'
expect_packets 0 h4 'udp.port == 7000'

kill "${pid[ip4-h2]}" "${pid[ip4-h5]}" "${pid[ip6-h3]}"
wait_members 239.1.2.3 ""
wait_members ff15::1:203 ""
