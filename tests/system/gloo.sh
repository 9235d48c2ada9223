#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# gloo sums over three hosts by its ibverbs transport, as Debian packages it. It reads its completion channel without
# blocking, and takes an event without a completion queue for an error.

. "${0%/*}/lib.sh"

g++ -O1 -o "$TMPDIR/gloo" "${0%/*}/gloo.cc" -lgloo || exit 1
umbel up --hosts 3 > /dev/null
for round in 1 2 3; do
	mkdir "$TMPDIR/store-$round"
	for rank in 0 1 2; do
		start "$round-$rank" h$((rank + 1)) "$TMPDIR/gloo" $rank 3 "$TMPDIR/store-$round" \
			umbel_h$((rank + 1))_0
	done
	for rank in 0 1 2; do
		wait_ended "$round-$rank" 0
		expect_said "$round-$rank" "$rank of 3: 0 wrong"
	done
done
