#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel capture --data` of UCX over RC and of mckey, for UMBEL_CAPTURE_SECONDS (10; by hand 60): tshark decodes each packet,
# none is malformed, and both programs' packets are there.

. "${0%/*}/ucx.bash"

seconds=${UMBEL_CAPTURE_SECONDS:-10}
file=$TMPDIR/data.pcapng

# packets FILTER: how many in the file.
packets()
{
	plain_tshark -r "$file" -Y "$1" 2> /dev/null | wc -l
}

umbel up --hosts 4 > /dev/null
launch capture umbel capture --data --output "$file"
wait_until 'the capture runs' test -s "$file"
new_port
end=$((SECONDS + seconds))
while [ $failed -eq 0 ] && [ $SECONDS -lt $end ]; do
	start receiver h3 mckey -m 239.1.1.1 -b 10.0.0.3
	wait_said receiver 'mckey: joined'
	start server h1 env UCX_TLS=rc,self ucx_perftest "${alone[@]}" -p "$port"
	wait_listening server "$port"
	start client h2 env UCX_TLS=rc,self ucx_perftest "${alone[@]}" -p "$port" -t tag_lat -s 9000 -n 200 -w 20 127.0.0.1
	expect 0 '*data transfers complete*' umbel exec h4 -- mckey -m 239.1.1.1 -b 10.0.0.4 -s
	for name in receiver client server; do
		wait_ended $name 0
	done
done
kill "${pid[capture]}"
wait_ended capture 0
expect_said capture 'umbel: [0-9]* packets captured, 0 lost'

[ "$(packets '_ws.malformed')" -eq 0 ] || complain 'there are malformed packets'
rc=$(packets 'infiniband.bth.opcode < 32') group=$(packets 'infiniband.bth.destqp == 0xffffff')
echo "$rc packets of RC, $group to the group"
[ "$rc" -ge 400 ] || complain "few packets of RC: $rc"
[ "$group" -ge 10 ] || complain "few packets to the group: $group"
