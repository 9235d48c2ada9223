#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# More groups than the switches have room for: refused, or several share an MLID, and each queue
# pair still gets what is for its own group.

. "${0%/*}/mckey.bash"

# two MLIDs; one is the IPoIB broadcast group's
umbel up --hosts 4 --set mft_capacity=2 > /dev/null
receive first h1 -m 239.1.1.1
wait_joined first
expect 0 '*mckey: event: RDMA_CM_EVENT_MULTICAST_ERROR, error: -22*' \
	umbel exec h2 -- mckey -m 239.1.1.2 -b 10.0.0.2

umbel set mlid_sharing=1
receive second h2 -m 239.1.1.2
wait_joined second
receive third h3 -m 239.1.1.3
wait_joined third
receive fourth h3 -m 239.1.1.4
wait_joined fourth
for name in first second third fourth; do
	joined_mlid $name
done | sort | uniq -c | awk '{ print $2, $1 }' > "$TMPDIR/mlids"
[ "$(wc -l < "$TMPDIR/mlids")" -eq 2 ] ||
	complain "not two MLIDs among four groups:"$'\n'"$(cat "$TMPDIR/mlids")"
expect 0 '*Mlid*0xC000*Mlid*0xC000*Mlid*0xC000*Mlid*0xC001*Mlid*0xC001' \
	sh -c "umbel exec h1 -- saquery -g | grep Mlid | sort"

# the messages of one group complete no other
send one h4 -m 239.1.1.1
wait_complete one first
for name in second third fourth; do
	! says $name 'data transfers complete' || complain "$name has got what is the first's"
done
# the first has left; the others are as they were
send two h4 -m 239.1.1.2
send three h4 -m 239.1.1.3
wait_complete two second
wait_complete three third
send four h1 -m 239.1.1.4
wait_complete four fourth
[ -z "$(groups)" ] || complain "groups are left: $(groups)"
