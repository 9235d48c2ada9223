#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdma-core's Python test suite on InfiniBand: see run.py.

. "${0%/*}/../system/lib.sh"

expect 0 '*' timeout 280 umbel run --hosts 2 -- "${0%/*}/run.py" "$UMBEL_TEST_SUITE" \
	"${0%/*}/expected" ib umbel_h1_0=10.0.0.1
# as Debian ships it, with what it finds in sysfs by itself: some tests that open a device
classes=(-k CQTest -k MRTest)
! left_out tests.test_cq.CQTest.test_resize_cq || classes=(-k MRTest)
expect 0 '*Ran [1-9]* test*OK*' timeout 60 umbel run --hosts 2 -- \
	/usr/bin/python3 "$UMBEL_TEST_SUITE/tests/run_tests.py" "${classes[@]}"
