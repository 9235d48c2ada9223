#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Addresses come and go on the network device: the GID table follows, the other entries stay
# where they are, the next address takes the place of one that went, programs are told; a queue
# pair receives what is sent to an address that it did not know when it was made.

. "${0%/*}/lab.sh"
. "${0%/*}/receivers.bash"

receivers_up
wait_shown 'GID\[  1\]:.*::ffff:192.0.2.2, RoCE v2'
wait_shown 'GID\[  2\]:.*2001:db8::2, RoCE v2'

ip -n h2 address add 198.51.100.2/24 dev eth0
expect_event GID_CHANGE 1
wait_shown 'GID\[  3\]:.*::ffff:198.51.100.2, RoCE v2'
ip -n h1 route add 198.51.100.0/24 dev eth0
send_alone 198.51.100.2

ip -n h2 address add 2001:db8::72/64 dev eth0
expect_event GID_CHANGE 2
wait_shown 'GID\[  4\]:.*2001:db8::72, RoCE v2'
send_alone 2001:db8::72

ip -n h2 address delete 192.0.2.2/24 dev eth0
expect_event GID_CHANGE 3
wait_until "the GID is gone" not shown 192.0.2.2
wait_shown 'GID\[  2\]:.*2001:db8::2, RoCE v2'
wait_shown 'GID\[  3\]:.*::ffff:198.51.100.2, RoCE v2'
send_alone 198.51.100.2

ip -n h2 address add 203.0.113.2/24 dev eth0
expect_event GID_CHANGE 4
wait_shown 'GID\[  1\]:.*::ffff:203.0.113.2, RoCE v2'
ip -n h1 route add 203.0.113.0/24 dev eth0
send_alone 203.0.113.2
