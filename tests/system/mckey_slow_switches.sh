#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Where the switches take their time after a join (setting mft_delay_ms), the group has members
# before it has a tree, and mckey, which pauses for that reason, loses nothing.

. "${0%/*}/mckey.bash"

umbel up --hosts 3 > /dev/null
mgid=ff12:4001:ffff::f01:101

has_tree()
{
	group $mgid | grep -q '^  tree      sw1: ports 1 2 3$'
}

umbel set mft_delay_ms=60000
receive never h1 -m 239.1.1.9
wait_joined never
[[ $(group ff12:4001:ffff::f01:109) == *"members   h1 full"*"tree      -" ]] ||
	complain "no delay:"$'\n'"$(group ff12:4001:ffff::f01:109)"

umbel set mft_delay_ms=1000
receive h1 h1 -m 239.1.1.1
receive h2 h2 -m 239.1.1.1
wait_joined h1
wait_joined h2
send h3 h3 -m 239.1.1.1
wait_joined h3
wait_until "the group has its tree" has_tree
wait_complete h3 h1 h2
