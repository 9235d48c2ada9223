#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A group is as fast as the host that creates it: a host with a slower link is refused, as by
# the specification, and a group that the slow one creates takes all.

. "${0%/*}/mckey.bash"

cat > "$TMPDIR/net" <<-'END'
	Switch	4 "S-1"	# "sw1" base port 0 lid 1 lmc 0
	[1]	"H-1"[1](1)	# "h1 HCA-1" lid 2 4xEDR
	[2]	"H-2"[1](2)	# "h2 HCA-1" lid 3 4xQDR
	[3]	"H-3"[1](3)	# "h3 HCA-1" lid 4 4xHDR
	Ca	1 "H-1"	# "h1 HCA-1"
	[1](1)	"S-1"[1]	# lid 2 lmc 0 "sw1" lid 1 4xEDR
	Ca	1 "H-2"	# "h2 HCA-1"
	[1](2)	"S-1"[2]	# lid 3 lmc 0 "sw1" lid 1 4xQDR
	Ca	1 "H-3"	# "h3 HCA-1"
	[1](3)	"S-1"[3]	# lid 4 lmc 0 "sw1" lid 1 4xHDR
END
umbel up --topology "$TMPDIR/net" > /dev/null

# rate MGID: as the SA encodes it, in hex
rate()
{
	umbel exec h1 -- saquery -g | awk -v mgid="$1" '
		/MGID/ { here = index($0, mgid) } /Rate/ && here { sub(/.*\./, ""); print }'
}

# the broadcast group: all hosts can join it, 40 Gb/s
[ "$(rate ff12:401b:ffff::ffff:ffff)" = 0x87 ] ||
	complain "the broadcast group's rate is $(rate ff12:401b:ffff::ffff:ffff)"

receive fast h1 -m 239.5.5.1
wait_joined fast
[ "$(rate "$(joined fast)")" = 0x90 ] || complain "not 100 Gb/s: $(rate "$(joined fast)")"
expect 0 '*mckey: event: RDMA_CM_EVENT_MULTICAST_ERROR, error: -22*' \
	umbel exec h2 -- mckey -m 239.5.5.1 -b 10.0.0.2
receive slow h2 -m 239.5.5.2
wait_joined slow
receive faster h3 -m 239.5.5.2
wait_joined faster
send one h1 -m 239.5.5.1
send other h1 -m 239.5.5.2
wait_complete one fast
wait_complete other slow faster
