#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibv_ud_pingpong between Umbel and the kernel, both ways: IPv4, IPv6 and link-local GIDs,
# lengths of every pad count and the MTU, polling and waiting for events.

. "${0%/*}/sides.bash"

sides_up
both_ways ip4 ibv_ud_pingpong -g @gid4 -n 100 -s 1024 -e
both_ways ip6 ibv_ud_pingpong -g @gid6 -n 100 -s 1024
both_ways ip4-odd ibv_ud_pingpong -g @gid4 -n 20 -s 1
both_ways ip6-odd ibv_ud_pingpong -g @gid6 -n 20 -s 3
both_ways local ibv_ud_pingpong -g @gid_local -n 20 -s 102 -e
captured v11
expect_sound v11
