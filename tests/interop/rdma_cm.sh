#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs of rdma_cm between Umbel and the kernel: udaddy resolves a service over IPv4 and IPv6,
# both ways; mckey sends to a group, both ways, and the bridge sees the members come and go.

. "${0%/*}/sides.bash"

sides_up

# ---- udaddy

# udaddy NAME CLIENT SERVER-ADDRESS CLIENT-ADDRESS OPTION...
udaddy()
{
	local name=$1 client=$2 server=$3 address=$4
	shift 4
	start_at "server-$name" "$(other "$client")" udaddy -b "$server" "$@"
	wait_until "the server of $name listens" cm_listens "$(other "$client")"
	start_at "client-$name" "$client" udaddy -s "$server" -b "$address" "$@"
	wait_ended "client-$name" 0
	wait_ended "server-$name" 0
	expect_said "client-$name" 'data transfers complete' 'return status 0'
	expect_said "server-$name" 'data transfers complete' 'return status 0'
	[ $failed -eq 0 ] || exit 1
}

# cm_listens SIDE: whether a server does there; it does not say so itself.
cm_listens()
{
	case $1 in
	h*) [ "$(field listeners "$1")" -eq 1 ] ;;
	v*) machine_cm_listens "$1" ;;
	esac
}

for client in h1 v11; do
	server=$(other $client)
	udaddy ip4-$client $client "${ip4[$server]}" "${ip4[$client]}" -C 10 -S 64
	udaddy ip6-$client $client "${ip6[$server]}" "${ip6[$client]}" -C 10 -S 65
	udaddy several-$client $client "${ip4[$server]}" "${ip4[$client]}" -c 3 -C 2 -S 1024
done

# ---- mckey

# send_once NAME SENDER OPTION...
send_once()
{
	start_at "sender-$1" "$2" mckey -m 239.1.1.1 -b "${ip4[$2]}" -C 20 -s "${@:3}"
	wait_ended "sender-$1" 0
}

# has_all NAME SENDER OPTION...: whether the receiver has as many as it wants; if not, sends again.
has_all()
{
	gone "${pid[receiver-$1]}" || { send_once "$@"; false; }
}

# group NAME SENDER OPTION...: the options are the sender's; the other side receives.
group()
{
	local name=$1 sender=$2 receiver
	shift 2
	receiver=$(other "$sender")
	start_at "receiver-$name" "$receiver" mckey -m 239.1.1.1 -b "${ip4[$receiver]}" -C 20 \
		-S 1024
	wait_said "receiver-$name" 'receiving data transfers'
	wait_members 239.1.1.1 "$receiver"
	send_once "$name" "$sender" "$@"
	# on a busy machine rdma_rxe loses some of a burst before they are on the network
	[ "$sender" = h1 ] || wait_until "receiver-$name has all messages" has_all "$name" "$sender" "$@"
	wait_ended "receiver-$name" 0
	expect_said "receiver-$name" 'data transfers complete' 'return status 0'
	wait_members 239.1.1.1 ""
	[ $failed -eq 0 ] || exit 1
}

group to-kernel h1
group from-kernel v11
group send-only-to-kernel h1 -o
group large-from-kernel v11 -S 1024

captured v11
expect_sound v11
