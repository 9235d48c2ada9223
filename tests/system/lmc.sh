#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Several LIDs a port (LMC): different paths through a fat tree, path records of each, and
# multicast as ever.

. "${0%/*}/mckey.bash"

umbel up --fat-tree 2 --radix 8 --set lmc=2 > /dev/null
lid=$(umbel exec h32 -- ibaddr -l | sed 's/^LID start 0x\([0-9a-f]*\).*/\1/')
lid=$((16#$lid))
[ $((lid % 4)) -eq 0 ] || complain "LID $lid of h32 is no multiple of 4"
expect 0 $'*\nLid: *\n*\nLMC: *2\n*' \
	sh -c "umbel exec h1 -- smpquery portinfo $lid | sed 's/:\.\.*/: /; s/^Lmc/LMC/'"

# four LIDs, four spines
for i in 0 1 2 3; do
	umbel exec h1 -- ibtracert 4 $((lid + i)) | grep -o '"spine[0-9]*"'
done | sort -u > "$TMPDIR/spines"
[ "$(wc -l < "$TMPDIR/spines")" -eq 4 ] ||
	complain "the four LIDs of h32 share paths:"$'\n'"$(cat "$TMPDIR/spines")"

# paths asked for by LID are one, by GUID those of all pairs of LIDs
expect 0 $'*dlid*'$((lid + 3))$'\n*slid*5\n*' umbel exec h1 -- saquery PR --slid 5 --dlid $((lid + 3))
sgid=$(umbel exec h1 -- ibaddr -g | awk '{ print $2 }')
dgid=$(umbel exec h32 -- ibaddr -g | awk '{ print $2 }')
[ "$(umbel exec h1 -- saquery -p --sgid "$sgid" --dgid "$dgid" | grep -c PathRecord)" -eq 16 ] ||
	complain "not 16 paths from h1 to h32"$'\n'"$(umbel exec h1 -- saquery -p --sgid "$sgid" --dgid "$dgid")"
expect 0 '*NodeDescription*h32 *' umbel exec h1 -- saquery NR $((lid + 2))

# any of its LIDs will do for whom an LFT leads there
expect 0 '*NodeDescription*' umbel exec h1 -- saquery -N
expect 0 'Node Description:*h32*' umbel exec h1 -- smpquery nodedesc $((lid + 1))

receive near h2 -m 239.3.2.1
receive far h32 -m 239.3.2.1
wait_joined near
wait_joined far
send sender h1 -m 239.3.2.1
wait_complete sender near far
umbel down > /dev/null

expect 1 '*with lmc=7 this fabric needs 51213 LIDs; there are 49151' umbel up --hosts 400 --set lmc=7
