#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# mckey reaches three hosts by an IPv4, an IPv6 and an unmapped group address, in the port spaces
# UDP and IPoIB, bound to an IPv4 address, an IPv6 address, a GID or nothing; and the address
# becomes the MGID that it should.

. "${0%/*}/mckey.bash"

umbel up --hosts 4 > /dev/null

# The MGID, and the options of mckey; % is the number of the host.
sessions=(
	"ff12:4001:ffff::f01:101 -m 239.1.1.1 -b 10.0.0.%"
	"ff12:4001:ffff::f01:102 -m 239.1.1.2"
	"ff12:4001:ffff::1 -m 224.0.0.1"
	"ff12:4001:ffff::fff:ffff -m 239.255.255.255"
	"ff12:401b:ffff::f01:103 -m 239.1.1.3 -b 10.0.0.% -p 0x2"
	"ff12:6001:ffff::77:1 -m ff05::77:1 -b fd75:6d62:656c::%"
	"ff12:6001:ffff::77:2 -m ff12::77:2 -b fe80::275:6d00:0:%01"
	"ff12:6001:ffff::77:3 -m ff0e::77:3"
	"ff12:601b:ffff::77:4 -m ff15::77:4 -b fd75:6d62:656c::% -p 0x2"
	"ff12:401b:ffff::f01:105 -M ff12:401b:ffff::f01:105 -b 10.0.0.% -p 0x2"
	"ff15:a01b:ffff::1234 -M ff15:a01b:ffff::1234 -b 10.0.0.%"
	"ff1e:a01b:ffff::1235 -m ff1e:a01b:ffff::1235"
	"ff12:5678::9 -M ff12:5678::9 -b fd75:6d62:656c::%"
	"ff1e:1::2 -M ff1e:1::2 -b 10.0.0.% -p 0x2"
)

for i in "${!sessions[@]}"; do
	for h in 1 2 3; do
		options=${sessions[i]#* }
		# shellcheck disable=SC2086
		receive "$i-h$h" h$h ${options//%/$h}
	done
done
for i in "${!sessions[@]}"; do
	for h in 1 2 3; do
		wait_joined "$i-h$h"
	done
	options=${sessions[i]#* }
	# shellcheck disable=SC2086
	send "$i-h4" h4 ${options//%/4}
done
for i in "${!sessions[@]}"; do
	for h in 4 1 2 3; do
		wait_complete "$i-h$h"
		[ "$(joined "$i-h$h")" = "${sessions[i]%% *}" ] ||
			complain "$i-h$h has joined $(joined "$i-h$h"), not ${sessions[i]}"
	done
done
