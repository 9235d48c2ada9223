#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# mckey says what is wrong with a message too large, an address that is no multicast address or
# not of its host, a port space without datagrams, an IPv6 group on an IPv4 address.

. "${0%/*}/mckey.bash"

umbel up --hosts 2 --set mtu=2048 > /dev/null

# refused STATUS TEXT OPTION...
refused()
{
	local status=$1 text=$2
	shift 2
	expect "$status" "$text" umbel exec h1 -- mckey "$@"
}

refused 255 '*mckey: message_size 2049 is larger than active mtu 2048*' -m 239.1.1.1 -S 2049
refused 255 '*mckey: addr bind failure: Cannot assign requested address*' \
	-m 239.1.1.1 -b 10.0.0.2
refused 255 '*mckey: addr bind failure: Cannot assign requested address*' \
	-m 239.1.1.1 -b 192.168.7.7
refused 255 '*mckey: resolve addr failure: Invalid argument*' -m ff05::1 -b 10.0.0.1
refused 255 '*mckey: unable to create QP: Invalid argument*' -m 239.1.1.1 -p 0x106
refused 0 '*mckey: event: RDMA_CM_EVENT_MULTICAST_ERROR, error: -22*' -M fe80::1 -b 10.0.0.1
# such the subnet administrator alone makes up
refused 0 '*mckey: event: RDMA_CM_EVENT_MULTICAST_ERROR, error: -22*' -M ff12:a01b::1 -b 10.0.0.1
# a group of IPoIB has the Q_Key of the broadcast group, which identifiers of RDMA_PS_UDP have not
refused 0 '*mckey: event: RDMA_CM_EVENT_MULTICAST_ERROR, error: -22*' -M ff12:401b:ffff::f01:106 -b 10.0.0.1
refused 1 'unmapped multicast address requires binding*' -M ff12::1
[ -z "$(groups)" ] || complain "a group is there: $(groups)"
