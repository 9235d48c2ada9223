#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# mckey -o joins as a send-only full member: it sends, no switch forwards to it, nothing is
# attached; it is not enough to keep receivers of the group alive, but creates it. Where the
# subnet administrator does not support it, mckey says so, and full members go on.

. "${0%/*}/mckey.bash"

umbel up --hosts 3 > /dev/null
mgid=ff12:4001:ffff::f01:101

# hold NAME: it has joined, and does not go on to send and leave, on a slow machine before we have looked.
hold()
{
	wait_joined "$1"
	kill -STOP "${pid[$1]}"
}

send only h3 -m 239.1.1.1 -o
hold only
[[ $(group $mgid) == *"members   h3 send-only"$'\n'*"attached  -"$'\n'*"tree      -"* ]] ||
	complain "a group of a sender alone:"$'\n'"$(group $mgid)"
receive h1 h1 -m 239.1.1.1
wait_joined h1
send late h3 -m 239.1.1.1 -o
hold late
[[ $(group $mgid) == *"members   h1 full, h3 send-only"$'\n'*"attached  h1 QP 0x"??????$'\n'*"tree      sw1: port 1" ]] ||
	complain "a group with a receiver:"$'\n'"$(group $mgid)"
kill -CONT "${pid[only]}" "${pid[late]}"

umbel set sa_send_only=0
for option in '' -s; do
	expect 255 '*mckey: failure joining: Operation not supported*' \
		umbel exec h2 -- mckey -m 239.1.1.1 -o $option
done
receive full h2 -m 239.1.1.2
wait_joined full
send full-sender h3 -m 239.1.1.2
wait_complete only late h1 full full-sender
[ -z "$(groups)" ] || complain "a group is left: $(groups)"
