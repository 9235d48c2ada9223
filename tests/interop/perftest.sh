#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# perftest's UD tests between Umbel and the kernel, both ways, IPv4 and IPv6: latency, bandwidth,
# and multicast with bare attachments. For these Umbel joins on the network; the kernel does not,
# so another program has to at its side. With -F they do not mind that the clock of a machine in
# software is uneven.

. "${0%/*}/sides.bash"

group4=0:0:0:0:0:0:0:0:0:0:255:255:239:1:1:1
group6=255:21:0:0:0:0:0:0:0:0:0:0:0:1:0:1

sides_up
both_ways lat-ip4 ib_send_lat -F -c UD -x @gid4 -n 20 -s 77
both_ways lat-ip6 ib_send_lat -F -c UD -x @gid6 -n 20 -e
both_ways bw-ip4 ib_send_bw -F -c UD -x @gid4 -n 100 -s 1024 -r 512
both_ways bw-ip6 ib_send_bw -F -c UD -x @gid6 -n 100 -s 3 -r 512
# lists, which leave Umbel in one piece
both_ways list-ip4 ib_send_bw -F -c UD -x @gid4 -n 96 -s 500 -r 512 --post_list 16
both_ways list-ip6 ib_send_bw -F -c UD -x @gid6 -n 96 -s 500 -r 512 --post_list 16

# ---- multicast: the kernel sends, Umbel joins and receives
pair mcast-ip4 v11 ib_send_bw -F -c UD -x @gid4 -g -M $group4 -n 100 -r 512
pair mcast-ip6 v11 ib_send_bw -F -c UD -x @gid6 -g -M $group6 -n 100 -r 512
wait_members 239.1.1.1 ""
wait_members ff15::1:1 ""

# ---- Umbel sends, and what has joined at the kernel's side lets its queue pair receive
start_at join4 v11 socat -u UDP4-RECV:7000,ip-add-membership=239.1.1.1:eth0 STDOUT
start_at join6 v11 socat -u UDP6-RECV:7001,ipv6-v6only,ipv6-join-group='[ff15::1:1]:eth0' STDOUT
wait_members 239.1.1.1 v11
wait_members ff15::1:1 v11
pair mcast-ip4-to h1 ib_send_bw -F -c UD -x @gid4 -g -M $group4 -n 100 -r 512
pair mcast-ip6-to h1 ib_send_bw -F -c UD -x @gid6 -g -M $group6 -n 100 -r 512
both_ways mcast-lat-ip4 ib_send_lat -F -c UD -x @gid4 -g -M $group4 -n 20

captured v11
expect_sound v11
[ "$(decode v11 'ip.src == 192.0.2.1 && udp.dstport == 4791 && ip.id == 15')" ] ||
	complain "no list has left in one piece"
