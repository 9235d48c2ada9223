#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# UCX as Debian ships it sees the device, which it looks for in /dev, and sends by UD: ucx_info and
# ucx_perftest between two hosts.

. "${0%/*}/ucx.bash"

export UCX_TLS=ud_verbs,self

umbel up --hosts 2 > /dev/null
expect 0 '*Transport: ud_verbs*Device: umbel_h1_0:1*' umbel exec h1 -- ucx_info -d
expect 0 '*Device: umbel_h1_0:1*Device: umbel_h2_0:1*' umbel exec -- ucx_info -d
exchange tag_lat 1000
exchange tag_bw 200 -s 65536
exchange ucp_am_lat 1000
exchange stream_lat 1000
