#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two groups at once: no host gets the other group's messages, and on a host in both no queue
# pair does. A receiver posts as many receives as it waits for messages, so a message too many
# would be counted as one for which there was no receive.

. "${0%/*}/mckey.bash"

umbel up --hosts 5 > /dev/null

# counter HOST NAME: what its HCA has counted.
counter()
{
	umbel show counters | awk -v node="umbel_$1_0" -v name="$2" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i }
		$1 == node { print column ? $column : 0 }'
}

expect_counter()
{
	local got
	got=$(counter "$1" "$2")
	[ "$got" = "$3" ] || complain "$2 of $1 is $got, not $3"
}

receive a1 h1 -m 239.1.1.1 -C 10
receive a2 h2 -m 239.1.1.1 -C 10
receive b2 h2 -m 239.1.1.2 -C 7
receive b3 h3 -m 239.1.1.2 -C 7
for name in a1 a2 b2 b3; do
	wait_joined $name
done
send a4 h4 -m 239.1.1.1 -C 10
send b5 h5 -m 239.1.1.2 -C 7
wait_complete a4 b5 a1 a2 b2 b3

expect_counter h1 rcv_pkts 10
expect_counter h2 rcv_pkts 17
expect_counter h3 rcv_pkts 7
for host in h1 h2 h3; do
	expect_counter $host no_receive 0
done
