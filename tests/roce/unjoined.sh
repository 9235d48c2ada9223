#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Queue pairs that are attached without a join: the network is asked for the group all the same, and
# explain and the daemon's log say that a card would hear nothing. Not for a program that has joined
# to send only.

. "${0%/*}/../system/lib.sh"

programs_dir=${UMBEL%/bin/*}/tests/programs
log=$UMBEL_RUNTIME_DIR/default/log

# receive NAME OPTION... GROUP: on r2, attached.
receive()
{
	local name=$1
	shift
	start "$name" r2 "$programs_dir/roce.receiver" "$@"
	wait_said "$name" 'qpn ' || exit 1
}

# joined ADDRESS COUNT: whether so many hear the group in r2's network, as /proc/net/igmp writes it.
joined()
{
	[ "$(umbel exec r2 -- grep -c "$1" /proc/net/igmp)" = "$2" ]
}

# explained STATUS TEXT GROUP
explained()
{
	expect "$1" "*joined *$2*" umbel explain --group "$3" --from r1 --to r2
}

has_attached()
{
	umbel show groups --json | grep -q '"qpn"'
}

umbel up --roce-hosts 2 > /dev/null || exit 1
receive attached umbel_r2_0 ::ffff:239.1.2.3
joined 030201EF 1 || complain 'attaching has not joined'
explained 0 'r2 has attached without a join: here that joins (roce_attach_joins), but a card *' \
	::ffff:239.1.2.3
expect 0 '*is attached to ::ffff:239.1.2.3 without a join: a card *; here attaching joins *' cat "$log"

receive sender -s 172.16.0.2 umbel_r2_0 ::ffff:239.1.2.4
joined 040201EF 0 || complain 'one who has joined to send hears the network'
explained 1 'r2 has attached without a join: what others send into the network does not reach it*' \
	::ffff:239.1.2.4
expect 0 '*::ffff:239.1.2.4 without a join but that of a send-only member: a card *' cat "$log"

# another program beside it hears the group; it leaves when nobody is attached
receive beside umbel_r2_0 ::ffff:239.1.2.4
joined 040201EF 1 || complain 'attaching beside a sender has not joined'
for name in beside sender attached; do
	kill "${pid[$name]}"
	wait_ended "$name" 143
done
wait_until 'the groups are left' joined 0201EF 0

start member r2 mckey -m 239.1.2.5 -b 172.16.0.2
wait_said member 'receiving data transfers'
wait_until 'it is attached' has_attached
explained 0 'r2 has joined the group' ::ffff:239.1.2.5
not grep -q 239.1.2.5 "$log" || complain 'the log complains of one who has joined'
umbel down > /dev/null
