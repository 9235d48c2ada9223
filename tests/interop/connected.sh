#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connected queue pairs between Umbel and the kernel's rdma_rxe, both ways: RC and UC, every operation,
# by addresses that the programs exchange, and by rdma_cm over IPv4 and IPv6.

. "${0%/*}/sides.bash"

sides_up

# ---- by themselves
both_ways rc-ip4 ibv_rc_pingpong -g @gid4 -n 50 -c
both_ways rc-ip6 ibv_rc_pingpong -g @gid6 -n 20 -s 3 -e
both_ways srq ibv_srq_pingpong -g @gid4 -n 20 -q 2
both_ways send-bw ib_send_bw -F -x @gid4 -n 100
both_ways send-lat ib_send_lat -F -x @gid6 -n 20 -s 5
both_ways write-bw ib_write_bw -F -x @gid4 -n 100
both_ways write-uc ib_write_bw -F -x @gid6 -n 20 -c UC -s 3000
both_ways write-lat ib_write_lat -F -x @gid4 -n 20
both_ways read-bw ib_read_bw -F -o 16 -x @gid4 -n 20
both_ways read-lat ib_read_lat -F -o 16 -x @gid6 -n 20
both_ways atomic-add ib_atomic_bw -F -o 16 -x @gid4 -n 50 -A FETCH_AND_ADD
both_ways atomic-swap ib_atomic_lat -F -o 16 -x @gid6 -n 20 -A CMP_AND_SWAP

# ---- by rdma_cm

# cm_listens SIDE: whether a server does there; it does not say so itself.
cm_listens()
{
	case $1 in
	h*) [ "$(field listeners "$1")" -eq 1 ] ;;
	v*) machine_cm_listens "$1" ;;
	esac
}

# connect NAME CLIENT SERVER-COMMAND -- CLIENT-COMMAND
connect()
{
	local name=$1 client=$2 server=()
	shift 2
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	start_at "server-$name" "$(other "$client")" "${server[@]}"
	wait_until "the server of $name listens" cm_listens "$(other "$client")"
	start_at "client-$name" "$client" "$@"
	wait_ended "client-$name" 0
	wait_ended "server-$name" 0
	[ $failed -eq 0 ] || exit 1
}

for client in h1 v11; do
	for at in "${ip4[$(other $client)]}" "${ip6[$(other $client)]}"; do
		connect "rping-$client-$at" $client rping -s -a "$at" -C 5 -v -- rping -c -a "$at" -C 5 -V
	done
	connect "ucmatose-$client" $client ucmatose -b "$at" -- ucmatose -s "$at"
	connect "rstream-$client" $client rstream -b "$at" -S 4000 -C 50 -- rstream -s "$at" -S 4000 -C 50
done

captured v11
expect_sound v11
