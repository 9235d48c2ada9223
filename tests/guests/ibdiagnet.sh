#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibutils' ibdiagnet looks at the whole fabric by MADs: it finds every node, and no error; then those that there are: a link that
# is slower than the others, and two ports less.

. "${0%/*}/lib.sh"

# Prints its report; there are files of it, too.
diagnose()
{
	umbel exec h1 -- ibdiagnet -o "$TMPDIR/report" -ls 10
}

umbel up --fat-tree 2 --radix 4 --hosts 4 > /dev/null
nodes=$(umbel show topology | awk 'NR > 1 { print $1 }' | sort -u | wc -l)
expect 0 '*Bad GUIDs/LIDs Check *0 *0 *Link State Active Check *0 *0 *Performance Counters Report *0 *0 *Partitions Check *0 *0 *' diagnose
expect 0 "$nodes" sh -c "grep -o 'NodeGUID:[0-9a-f]*' '$TMPDIR/report/ibdiagnet.lst' | sort -u | wc -l"
expect 0 1 umbel fault add link=h3:1 speed=SDR
diagnose > /dev/null
expect 0 '*SPD=2.5*' grep h3 "$TMPDIR/report/ibdiagnet.lst"
expect 0 '' umbel link down h4:1
diagnose > /dev/null
expect 1 '' grep umbel_h4_0 "$TMPDIR/report/ibdiagnet.lst"
