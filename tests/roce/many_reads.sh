#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# More READs at one time than the socket could hold to which all responses come (shm/readers.h): half a MB by each of 128
# queue pairs. With turns the socket drops nothing, or up to 12,000 packets on a machine that is very busy; without turns it drops
# 19,000 to 54,000, and with short timeouts queue pairs run out of retries. With this one, of a second, a busy machine is no
# reason to.

. "${0%/*}/lab.sh"
. "${0%/*}/pairs.bash"

count()
{
	umbel_on h2 show counters --json | sed -n "s/^ *\"$1\": \([0-9]*\),*\$/\1/p"
}

lab_up 2
roce_up h1 h2

whole_pair crowd ib_read_bw -F -q 128 -s 500000 -n 5 -u 18
expect_said client-crowd ' *500000 *640 .*'
dropped=$(count overflow)
((dropped < 16000)) || complain "$dropped packets were dropped, of 312,960 that had to come"
