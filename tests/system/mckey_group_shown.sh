#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# While mckey is joined, `umbel show groups` tells the group's members, MLID, queue pairs and
# tree. Then the group is gone, also from the switch, and its MLID is given to the next: where
# there is but one, two groups can have it in turn, not at once.

. "${0%/*}/mckey.bash"

# the IPoIB broadcast group has the other
umbel up --hosts 4 --set mft_capacity=2 > /dev/null
mgid=ff12:4001:ffff::f01:101

routes=$(umbel show routes)
# none of them sends, and leaves, before we have looked
for h in 3 1 4; do
	receive h$h h$h -m 239.1.1.1
	wait_joined h$h
done
mlid=$(joined_mlid h1)
expect 0 "$mgid
  MLID      $mlid  Q_Key 0x01234567  P_Key 0xffff  MTU 4096  rate *  SL 0
  members   h1 full, h3 full, h4 full
  attached  h1 QP 0x??????, h3 QP 0x??????, h4 QP 0x??????
  tree      sw1: ports 1 3 4" group $mgid
expect 0 "*sw1 * $mlid *1 3 4" umbel show routes
expect 0 '*mckey: event: RDMA_CM_EVENT_MULTICAST_ERROR, error: -22*' \
	umbel exec h2 -- mckey -m 239.1.1.9

send sender h2 -m 239.1.1.1
wait_complete sender h1 h3 h4
expect 0 '' groups
expect 0 "$routes" umbel show routes

receive next h2 -m 239.1.1.9
wait_joined next
[ "$(joined_mlid next)" = "$mlid" ] || complain "$(joined_mlid next), not $mlid again"
# who is killed leaves as well
kill -9 "${pid[next]}"
wait_ended next 137
no_groups()
{
	[ -z "$(groups)" ]
}
wait_until "the dead have left the group" no_groups
