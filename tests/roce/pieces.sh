#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Lists of messages that leave in one piece are the same datagrams on the network as ever, with right
# ICRCs, and all arrive: cut by the kernel, joined all the way, sent one by one because that is set,
# or because the kernel refuses pieces.

. "${0%/*}/lab.sh"

# Lists and messages of one. A buffer without privileges has room for no more at once.
LISTS=4 LENGTH=32

# taken HOW [LIBRARY]: h2 gets all that h1 sends in lists, with that library loaded first.
taken()
{
	local how=$1 library=${2:-} qpn

	rm -f "$TMPDIR/go"
	mkfifo "$TMPDIR/go"
	start_on taker h2 "$programs_dir/roce.lists" take 192.0.2.2 $((LISTS * LENGTH)) "$TMPDIR/go"
	wait_said taker 'qpn ' || return
	qpn=$(sed -n 's/^qpn //p' "$TMPDIR/taker.out")
	echo > "$TMPDIR/go"
	UMBEL_FABRIC=h1 on h1 "${without_privileges[@]}" umbel exec -- \
		bash -c 'LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$0" exec "$@"' "$library" \
		"$programs_dir/roce.lists" send 192.0.2.1 192.0.2.2 "$qpn" $LISTS $LENGTH 500 ||
		complain "$how: cannot send"
	wait_said taker 'got all' || complain "$how: not all arrive"
	wait_ended taker 0
}

# expect_identified COUNT ID: so many of the datagrams so far have this identification.
expect_identified()
{
	captured h1
	expect_packets "$1" h1 "udp.dstport == 4791 && ip.id == $2"
}

lab_up 2
roce_up h1 h2
# so that none waits for the address to be resolved
ip -n h1 neighbour replace 192.0.2.2 dev eth0 nud permanent \
	lladdr "$(on h2 cat /sys/class/net/eth0/address)"
capture h1
taken "cut by the kernel"
expect_identified $LISTS 0
expect_identified $LISTS $((LENGTH - 1))
taken "refused by the kernel" "$programs_dir/roce.refuse_pieces.so"
expect_identified $((LISTS + LISTS * LENGTH)) 0
umbel_on h1 down > /dev/null
umbel_on h1 up --roce eth0 --set roce_segments=0 > /dev/null
taken "turned off"
expect_identified $((LISTS + 2 * LISTS * LENGTH)) 0
expect_identified $LISTS $((LENGTH - 1))
expect_sound h1
umbel_on h1 down > /dev/null
umbel_on h1 up --roce eth0 > /dev/null
ip -n h1 link set eth0 gso_max_segs 65535
taken "joined all the way"
[ "$(on h2 awk '/^Udp: [0-9]/ { print $2 }' /proc/net/snmp)" -lt $((4 * LISTS * LENGTH)) ] ||
	complain "none came joined"
