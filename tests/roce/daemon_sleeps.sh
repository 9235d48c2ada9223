#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# While a program polls, the daemon is not woken by what comes from the network: it does not wait for
# the sockets. When the program stops polling, or dies, it does again.

. "${0%/*}/lab.sh"

lab_up 2
roce_up h2
daemon=$(field pid h2)

# listens: whether the daemon waits for a socket that receives; its epoll says what for.
listens()
{
	local inode

	on h2 awk '$2 ~ /:12B7$/ { print $10 }' /proc/net/udp /proc/net/udp6 > "$TMPDIR/inodes"
	[ -s "$TMPDIR/inodes" ] || complain "nobody has UDP port 4791 open"
	while read -r inode; do
		! grep -hs '^tfd:' "/proc/$daemon/fdinfo/"* | grep -qw "ino:$(printf %x "$inode")" ||
			return 0
	done < "$TMPDIR/inodes"
	return 1
}

# left_alone: whether it does not, even when something comes.
left_alone()
{
	on h1 "$programs_dir/roce.forge" 192.0.2.1 192.0.2.2 qpn=1000
	! listens
}

listens || complain "it does not wait for the sockets when nobody polls"
start_on poller h2 "$programs_dir/roce.receiver" -p umbel_eth0
wait_said poller 'qpn ' || exit 1
wait_until "it leaves the sockets to who polls" left_alone
kill -STOP "${pid[poller]}"
wait_until "it waits for them when nobody polls any more" listens
kill -CONT "${pid[poller]}"
wait_until "it leaves them alone again" left_alone
kill -9 "${pid[poller]}"
wait_until "it waits for them when who polled is dead" listens
