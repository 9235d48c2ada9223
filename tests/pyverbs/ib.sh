#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdma-core's Python test suite on InfiniBand: see run.py.

. "${0%/*}/../system/lib.sh"

expect 0 '*' timeout 280 umbel run --hosts 2 -- "${0%/*}/run.py" "$UMBEL_TEST_SUITE" \
	"${0%/*}/expected" ib umbel_h1_0=10.0.0.1
