#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Partitions by a partitions.conf: P_Key tables and groups as infiniband-diags see them, other
# partitions while the fabric is up, and what is said of a file that does not parse.

. "${0%/*}/lib.sh"

cd "$TMPDIR" || exit 1
cat > conf <<-'END'
	Default=0x7fff,ipoib:ALL=full;
	Red=0x10,ipoib,Q_Key=0x80000b1b,sl=1:	# h1 and h2
		0x02756d0000000101=full, 0x02756d0000000201=limited;
	Blue=0x20 : mgid=ff12::b10e,Q_Key=0xb10e,rate=2,mtu=2
		0x02756d0000000301=both, ALL_SWITCHES;
END

# pkeys LID [PORT]: the table but for its empty entries
pkeys()
{
	umbel exec h1 -- smpquery pkeys "$@" | sed -n 's/^ *[0-9]*: \(0x.*[0-9a-f]\) *$/\1/p' |
		tr ' ' '\n' | grep -v 0x0000 | xargs
}

umbel up --partitions conf > /dev/null
expect 0 '0xffff 0x8010' pkeys 1
expect 0 '0xffff 0x0010' pkeys 2
expect 0 '0xffff 0x8020 0x0020' pkeys 3
expect 0 '0xffff' pkeys 4
expect 0 '0xffff 0x0020' pkeys 5
expect 0 '0xffff 0x0010' pkeys 5 2
expect 0 $'*PartEnforceInb:*1\nPartEnforceOutb:*1*' umbel exec h1 -- smpquery portinfo 5 2
expect 0 $'PKeyTableRecord dump:\n*0x8020*' umbel exec h1 -- saquery --smkey 1 PKTR 3

# who is not in a partition does not hear of its groups
groups()
{
	umbel exec "$1" -- saquery -g | sed -n 's/^\t*MGID\.*//p' | sort | xargs
}
expect 0 'ff12:401b:8010::ffff:ffff ff12:401b:ffff::ffff:ffff' groups h1
expect 0 'ff12:401b:ffff::ffff:ffff ff12::b10e' groups h3
expect 0 'ff12:401b:ffff::ffff:ffff' groups h4
expect 0 '*MGID*ff12::b10e*Mtu*0x82*pkey*0x8020*Rate*0x82*' umbel exec h3 -- saquery -g

# others, while it is up
start watch h2 ibv_asyncwatch
wait_said watch 'umbel_h2_0: async event FD [0-9]*$'
printf 'Default,ipoib:ALL=full;\nGreen=0x30,ipoib:ALL=full;\n' > other
expect 0 '' umbel sm partitions other
wait_said watch '  event_type IBV_EVENT_PKEY_CHANGE (12), port 1$'
for lid in 1 2 3 4; do
	expect 0 '0xffff 0x8030' pkeys $lid
done
expect 0 'ff12:401b:8030::ffff:ffff ff12:401b:ffff::ffff:ffff' groups h4
expect 0 '*"pkey": "0x8030",*' umbel show groups --json

# what cannot be changes nothing
printf 'Default:ALL=full;\nRed=0x10:h1;\n' > bad
expect 1 "umbel: bad:2: expected a port's GUID, ALL, ALL_CAS, *, found 'h1'" \
	umbel sm partitions bad
expect 0 '0xffff 0x8030' pkeys 2
expect 1 "umbel: cannot read 'none': No such file or directory" umbel sm partitions none
for i in $(seq 16); do echo "$i:ALL=full;"; done > many
expect 1 "umbel: port 1 of 'umbel_h1_0' would have 17 P_Keys; its table has room for 16" \
	umbel sm partitions many
umbel down > /dev/null

expect 1 "umbel: bad:2: expected a port's GUID, *" umbel up --partitions bad
expect 125 "umbel: bad:2: expected a port's GUID, *" umbel run --partitions bad -- true
expect 1 "umbel: port 1 of 'umbel_h1_0' would have 17 P_Keys; *" umbel up --partitions many
expect 0 '*0x8010*' umbel run --partitions conf -- smpquery pkeys 1
