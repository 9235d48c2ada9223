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

# ---- by the address that programs were given, here and wherever else a group is named
expect 0 '' umbel wait --group 239.1.1.1 --members 2 --attached 2
expect 1 'umbel: group 239.1.1.2 has 0 of 0 members and 0 of 1 queue pairs after 1 s' umbel wait --group 239.1.1.2 --timeout 1
expect 0 "*ok *group *$group has MLID *" umbel explain --group 239.1.1.1 --from h2 --to h3
expect 1 '*there is no group ff0e::5: *' umbel explain --group ff0e::5 --from h2 --to h3
expect 0 "*group $group: *" umbel show group 239.1.1.1 --dot
umbel fault add group=239.1.1.1 drop > /dev/null
umbel fault add group=ff0e::5 drop > /dev/null
launch capture umbel capture --group 239.1.1.1 -c 1 -o "$TMPDIR/group.pcapng"
wait_until 'it captures' test -s "$TMPDIR/group.pcapng"
expect 0 '*' umbel exec h2 -- timeout 30 mckey -m 239.1.1.1 -b 10.0.0.2 -s -C 2
wait_ended capture 0
fired()
{
	[[ $(umbel show drops) == *"2  group=239.1.1.1 drop"* ]]
}
wait_until 'the rule has met both messages' fired
[[ $(umbel show drops) != *ff0e* ]] || complain "another group's rule has fired: $(umbel show drops)"
umbel fault clear

# ---- a daemon that goes down
launch waits umbel wait --group $group --attached 100 --timeout 0
wait_until 'it waits' not gone "${pid[waits]}"
umbel down > /dev/null
wait_ended waits 1

# ---- what is wrong
expect 2 'umbel: wait: for which group? --group GROUP; *' umbel wait
expect 2 "umbel: wait: '10.0.0.1' is no multicast GID, and no IPv4 or IPv6 address of a group; *" umbel wait --group 10.0.0.1
expect 2 "umbel: wait: 'fe80::1' is no multicast GID, and no IPv4 or IPv6 address of a group; *" umbel wait --group fe80::1
expect 2 "umbel: wait: it takes no 'x'; *" umbel wait --group $group x
expect 1 '*' umbel wait --group $group
