#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# OpenSM's SA serves what rdma_cm asks for: joins in both states, leaves, also those of the dead,
# and paths. mckey and udaddy run as they do with the embedded one.

. "${0%/*}/opensm.bash"
. "${0%/*}/mckey.bash"

umbel up --hosts 5 --sm none > /dev/null
mgid=ff12:4001:ffff::f01:101

# nobody has said what the broadcast group is like
expect 255 '*mckey: failure joining: Cannot assign requested address*' \
	umbel exec h2 -- mckey -m 239.1.1.1 -b 10.0.0.2

# members: the ports in the group and their join states, as the SA tells who knows its key
members()
{
	umbel exec h2 -- saquery --smkey 1 MCMR | awk -F '\\.\\.+' -v mgid=$mgid '
		$1 ~ /MGID/ { in_group = $2 == mgid }
		in_group && $1 ~ /PortGid/ { port = substr($2, length($2) - 2, 1) }
		in_group && $1 ~ /JoinState/ { print "h" port, $2 }' | sort
}

members_are()
{
	[ "$(members)" = "$1" ]
}

# its SA responds once its first sweep is done
joins()
{
	umbel exec h2 -- timeout 1 stdbuf -oL mckey -m 239.1.1.9 -b 10.0.0.2 \
		> "$TMPDIR/joins.out" 2>&1 || grep -q '^mckey: joined dgid: ' "$TMPDIR/joins.out"
}
opensm master h1
wait_until 'it lets members join' joins

for h in 3 4; do
	receive h$h h$h -m 239.1.1.1
	wait_joined h$h
done
# who joins to send alone, and does not send, is there for ever
receive h5 h5 -m 239.1.1.1 -o
wait_joined h5
start server h3 udaddy
expect 0 $'h3 0x1\nh4 0x1\nh5 0x8' members
kill_hard h5
send h5 h5 -m 239.1.1.1 -o
wait_complete h3 h4 h5
wait_until 'they have left' members_are ''

receive dead h4 -m 239.1.1.1
wait_joined dead
expect 0 'h4 0x1' members
kill_hard dead
wait_until 'who is dead has left' members_are ''

udaddy_is_served()
{
	umbel exec h4 -- udaddy -s 10.0.0.3 > "$TMPDIR/client.out"
}
wait_until 'udaddy is served' udaddy_is_served
wait_ended server 0
