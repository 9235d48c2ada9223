#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# engine.sh PROGRAM: the calls of Mooncake's transfer engine (engine.c) between two hosts with four HCAs each, on InfiniBand and RoCE.

. "${0%/*}/../system/lib.sh"

# transfers TARGET INITIATOR: all HCAs carry slices, 408 in all
transfers()
{
	start target "$1" "$program" "$TMPDIR/socket" target
	start initiator "$2" "$program" "$TMPDIR/socket" initiator
	wait_ended initiator 0
	wait_ended target 0
	expect 0 $'mlx5_0: * slices\nmlx5_1: * slices\nmlx5_2: * slices\nmlx5_3: * slices' cat "$TMPDIR/initiator.out"
	expect 0 408 awk '{ sum += $2 } END { print sum }' "$TMPDIR/initiator.out"
	rm "$TMPDIR/socket"
}

program=$1
umbel up --hosts 2 --hcas 4 --device-names 'mlx5_%d' > /dev/null
transfers h1 h2
umbel down > /dev/null
umbel up --roce-hosts 2 --hcas 4 --device-names 'mlx5_%d' > /dev/null
transfers r1 r2
