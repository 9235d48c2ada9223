#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A program that outlives its fabric, and uses the next ones: it keeps nothing of those that have ended.

. "${0%/*}/lib.sh"

umbel up --hosts 2 > /dev/null
expect 0 '*is it up?' umbel exec h1 -- /usr/bin/python3 "${0%/*}/fabrics_in_turn.py"
umbel down > /dev/null
