#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel capture --data`: what queue pairs send, as packets that tshark decodes whole. Each packet of a
# WRITE whose fourth one gets lost by a rule is there, the NAK, and what is sent again; so are
# datagrams, messages to a group, READs and atomic operations.

. "${0%/*}/perftest.bash"

file=$TMPDIR/data.pcapng

# packets FILTER: how many in the file.
packets()
{
	plain_tshark -r "$file" -Y "$1" 2> /dev/null | wc -l
}

# some WHAT FILTER [LEAST]
some()
{
	[ "$(packets "$2")" -ge "${3:-1}" ] || complain "$1: $(packets "$2")"
}

umbel up --hosts 2 > /dev/null
launch capture umbel capture --data --output "$file"
wait_until 'the capture runs' test -s "$file"
umbel fault add opcode=RC_WRITE_MIDDLE nth=4 drop > /dev/null
run_pairs \
	"ib_write_bw -F -m 1024 -s 30001 -n 5" \
	"ib_read_bw -F -m 4096 -s 9000 -n 5" \
	"ib_atomic_bw -F -n 5" \
	"ib_send_bw -F -c UC -s 3 -n 5" \
	"ib_send_bw -F -c UD -s 5 -n 20 -g"
kill "${pid[capture]}"
wait_ended capture 0
expect_said capture 'umbel: [0-9]* packets captured, 0 lost'

[ "$(packets '_ws.malformed')" -eq 0 ] || complain 'there are malformed packets'
[ "$(packets 'frame.comment == "fault: dropped"')" -eq 1 ] || complain 'one packet is dropped'
some 'the first packets of five WRITEs' 'infiniband.bth.opcode == 6' 5
some 'their last ones, padded' 'infiniband.bth.opcode == 8 && infiniband.bth.padcnt == 3' 5
some 'a NAK of the sequence' 'infiniband.aeth.syndrome == 0x60'
some 'a READ request' 'infiniband.bth.opcode == 12' 5
some 'responses' 'infiniband.bth.opcode == 14' 5
some 'atomic operations' 'infiniband.bth.opcode == 19 || infiniband.bth.opcode == 20' 5
some 'acknowledgements of these' 'infiniband.bth.opcode == 18' 5
some 'packets of UC' 'infiniband.bth.opcode == 36' 5
some 'messages to a group' 'infiniband.bth.destqp == 0xffffff' 20
# what got lost was sent again: its PSN is there twice
lost=$(plain_tshark -r "$file" -Y 'frame.comment == "fault: dropped"' -T fields -e infiniband.bth.psn 2> /dev/null)
some "PSN $lost twice" "infiniband.bth.opcode == 7 && infiniband.bth.psn == $lost" 2
