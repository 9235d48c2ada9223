#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdma-core's Python test suite on RoCEv2: see run.py.

. "${0%/*}/../roce/lab.sh"

lab_up 1
expect 0 '*' timeout 280 ip netns exec h1 umbel run --roce eth0 -- "${0%/*}/run.py" \
	"$UMBEL_TEST_SUITE" "${0%/*}/expected" roce umbel_eth0=192.0.2.1
