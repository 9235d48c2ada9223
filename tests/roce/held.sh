#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Addresses that go while somebody sends from them: held.c.

. "${0%/*}/../system/lib.sh"

LAB_HOSTS=r expect 0 '*PASSED*' \
	umbel run --roce-hosts 2 -- "${UMBEL%/bin/*}/tests/programs/roce.held"
