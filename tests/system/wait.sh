#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel wait`: until a group has members and queue pairs, or for so long.

. "${0%/*}/lib.sh"

umbel up --hosts 4 > /dev/null
group=ff12:4001:ffff::f01:101	# 239.1.1.1

expect 1 "umbel: group $group has 0 of 0 members and 0 of 1 queue pairs after 1 s" \
	umbel wait --group $group --timeout 1
expect 0 '' umbel wait --group $group --attached 0

# ---- it goes on when they are there, not before
launch waits umbel wait --group FF12:4001:FFFF:0:0:0:0F01:0101 --members 3 --attached 3
for host in 2 3; do
	start "member$host" "h$host" mckey -m 239.1.1.1 -b "10.0.0.$host" -c 1
	wait_said "member$host" 'mckey: joined dgid'
done
expect 0 '' umbel wait --group $group --members 2 --attached 2
expect 1 '*has 2 of 3 members and 2 of 3 queue pairs after 1 s' \
	umbel wait --group $group --members 3 --attached 3 --timeout 1
gone "${pid[waits]}" && complain 'it does not wait for the third one'
start member4 h4 mckey -m 239.1.1.1 -b 10.0.0.4 -c 1
wait_ended waits 0

# by an address it is one of Ethernet, of which there is none here
expect 1 'umbel: group 239.1.1.1 has 0 of 0 members and 0 of 1 queue pairs after 1 s' \
	umbel wait --group 239.1.1.1 --timeout 1

# ---- a daemon that goes down
launch waits umbel wait --group $group --attached 100 --timeout 0
wait_until 'it waits' not gone "${pid[waits]}"
umbel down > /dev/null
wait_ended waits 1

# ---- what is wrong
expect 2 'umbel: wait: for which group? --group MGID; *' umbel wait
expect 2 "umbel: wait: '10.0.0.1' is no multicast GID or IPv4 address; *" umbel wait --group 10.0.0.1
expect 2 "umbel: wait: 'fe80::1' is no multicast GID or IPv4 address; *" umbel wait --group fe80::1
expect 2 "umbel: wait: it takes no 'x'; *" umbel wait --group $group x
expect 1 '*' umbel wait --group $group
