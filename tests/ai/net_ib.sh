#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# net_ib.sh PROGRAM [ib | roce]: the calls of NCCL's net_ib (net_ib.c) between two hosts with two HCAs each: all goes well, then with a
# link that fails in the middle.

. "${0%/*}/../system/lib.sh"

program=$1
case $2 in
ib) a=h1 b=h2 down='umbel link down h1.mlx5_0:1' options=(--hosts 2 --hcas 2) ;;
roce) a=r1 b=r2 down='ip link set eth0 down' options=(--roce-hosts 2 --hcas 2) ;;
esac

# transfer NAME [COMMAND]: prints what the sender says
transfer()
{
	local name=$1
	shift
	start "$name" $b "$program" "$TMPDIR/$name" receive
	start "$name.sender" $a "$program" "$TMPDIR/$name" send "$@"
	wait_ended "$name.sender" 0
	wait_ended "$name" 0
	expect 0 '60 messages are whole' cat "$TMPDIR/$name.out"
	cat "$TMPDIR/$name.sender.out"
}

umbel up "${options[@]}" --device-names 'mlx5_%d' > /dev/null
expect 0 '60 messages, [0-9]* and [0-9]* bytes by mlx5_0 and mlx5_1' transfer whole
# what the first one carries afterwards, the second one carries besides
expect 0 '60 messages, [0-9]* and [0-9]* bytes by mlx5_0 and mlx5_1, of which the first failed, port error' transfer broken "$down"
