#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two fabrics of InfiniBand, joined: a host of each has a device on the same network, and a gateway there
# forwards a group. What is asked in one fabric is answered in the other, in sequence.

. "${0%/*}/lab.sh"

group=239.1.2.3
lab_up 2
for host in h1 h2; do	# as large as InfiniBand's
	ip link set $host mtu 4200
	on $host ip link set eth0 mtu 4200
done

# inside NAME FABRIC HOST ARGUMENT...: the program, in the background, on that host of a fabric
inside()
{
	local name=$1 fabric=$2 host=$3
	shift 3
	launch "$name" env UMBEL_FABRIC="$fabric" ip netns exec "$fabric" "${without_privileges[@]}" \
		umbel exec "$host" -- "$programs_dir/roce.gateway" "$@"
	wait_said "$name" ready
}

for fabric in h1 h2; do
	umbel_on $fabric up --hosts 2 --roce eth0@h1 > /dev/null || exit 1
	inside gateway-$fabric $fabric h1 forward $group 10.0.0.1 192.0.2.${fabric#h}
done
wait_members $group 'h1 h2'
inside answer h2 h2 answer $group 10.0.0.2 2000
inside ask h1 h2 ask $group 10.0.0.2 2000
for end in ask answer; do
	wait_ended $end 0
	expect_said $end 'all in sequence'
done
for fabric in h1 h2; do
	kill "${pid[gateway-$fabric]}"
	wait_ended gateway-$fabric 143
	umbel_on $fabric down > /dev/null
done
