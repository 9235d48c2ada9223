#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The network device is taken down and up again, loses its carrier, is removed and made anew: the
# port's state is the device's, programs are told, and receivers that were there before, in a
# group or not, receive again without doing anything.

. "${0%/*}/lab.sh"
. "${0%/*}/receivers.bash"

receivers_up
send_alone 192.0.2.2
send_group

ip -n h2 link set eth0 down
expect_event PORT_ERR 1
wait_shown 'state:.*PORT_DOWN'
ip -n h2 link set eth0 up
ip -n h2 route add 224.0.0.0/4 dev eth0
expect_event PORT_ACTIVE 1
wait_shown 'state:.*PORT_ACTIVE'
send_alone 192.0.2.2
send_group

ip link set h2 down
expect_event PORT_ERR 2
ip link set h2 up
expect_event PORT_ACTIVE 2
send_alone 192.0.2.2
send_group

# below 1280 bytes the device has no IPv6
ip -n h2 link set eth0 mtu 1000
wait_shown 'active_mtu:.*512'
ip -n h2 link set eth0 mtu 1500
ip -n h2 address add 2001:db8::2/64 dev eth0
wait_shown 'GID.*2001:db8::2, RoCE v2'
send_alone 192.0.2.2
send_alone 2001:db8::2
send_group

ip link delete h2
expect_event PORT_ERR 3
wait_shown 'state:.*PORT_DOWN'
lab_device 2
expect_event PORT_ACTIVE 3
wait_shown 'GID.*::ffff:192.0.2.2, RoCE v2'
send_alone 192.0.2.2
send_group
