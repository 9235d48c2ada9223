#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# OpenSM's own test of a subnet administrator, against ours: its inventory, all validations,
# service registration, event forwarding, multicast, and stress.

. "${0%/*}/lib.sh"

umbel up --hosts 4 > /dev/null
for flow in c a s e f m; do
	expect 0 '*PASS*' umbel exec h1 -- osmtest -f $flow -i "$TMPDIR/inventory"
done
