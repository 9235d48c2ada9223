#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# OpenSM brings a fabric up where one in twenty of its requests, and of the responses, gets lost: by rules
# about management datagrams.

. "${0%/*}/opensm.bash"

umbel up --sm none --hosts 6 > /dev/null
expect 0 1 umbel fault add mad=SubnGet loss=5% seed=1
expect 0 2 umbel fault add mad=SubnGetResp loss=5% seed=2
expect 0 3 umbel fault add mad=SubnSet nth=2 count=2 drop
opensm master h1
wait_until 'all ports are active' all_ports active
umbel fault show | awk 'NR > 1 && !$2 { exit 1 }' || complain "not lost: $(umbel fault show)"
expect 0 '*' umbel check
