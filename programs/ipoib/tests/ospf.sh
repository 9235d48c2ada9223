#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Routing by OSPF, with BIRD on each of four hosts over three switches: versions 2 and 3, which speak by
# multicast and raw sockets. Each host has one more address, on lo, to which the others learn a route.
# A host's link fails and comes back, and so do its neighbours and routes.

. "${0%/*}/lab.sh"

hosts=(h1 h2 h3 h4)

lab_up 4 --fat-tree 2 --radix 4 --hosts 4
interfaces 4

# start_bird HOST
start_bird()
{
	local host=$1 number=${1#h}

	ip -n "$host" address add "198.51.100.$number/32" dev lo
	ip -n "$host" address add "2001:db8:1::$number/128" dev lo
	cat > "$TMPDIR/$host.conf" <<-END
		log stderr all;
		router id 192.0.2.$number;
		protocol device { scan time 1; }
		protocol kernel { ipv4 { export where source ~ [RTS_OSPF]; }; }
		protocol kernel { ipv6 { export where source ~ [RTS_OSPF]; }; }
		$(ospf v2 ipv4 "198.51.100.$number/32")
		$(ospf v3 ipv6 "2001:db8:1::$number/128")
	END
	launch_on "bird-$host" "$host" bird -f -c "$TMPDIR/$host.conf" -s "$TMPDIR/$host.bird" \
		-P "$TMPDIR/$host.bird-pid"
}

# ospf VERSION FAMILY PREFIX: its part of the configuration
ospf()
{
	cat <<-END
		protocol ospf $1 by_$1 {
			$2 { import all; export none; };
			area 0 {
				interface "ib0" { type broadcast; hello 1; wait 3; dead 10; };
				stubnet $3;
			};
		}
	END
}

# full HOST VERSION COUNT: it has so many neighbours, all of them known, and has all that the designated ones know
full()
{
	birdc -s "$TMPDIR/$1.bird" show ospf neighbors "by_$2" | awk -v count="$3" '
		$1 ~ /^192[.]0[.]2[.]/ { n++; good += $3 ~ /^Full/ || $3 ~ /^2-Way\/Other/; full += $3 ~ /^Full/ }
		END { exit !(n == count && good == n && full) }'
}

# has_route HOST ADDRESS: by ib0
has_route()
{
	[[ $(ip -n "$1" route get "$2" 2>&1) == *" via "*" dev ib0 "* ]]
}

# wait_full HOST NEIGHBOURS
wait_full()
{
	local version

	for version in v2 v3; do
		wait_until "$1 has $2 neighbours by OSPF$version" full "$1" $version "$2" && continue
		complain "$(birdc -s "$TMPDIR/$1.bird" show ospf neighbors by_$version)"
		exit 1
	done
}

# wait_routes HOST NUMBER...: it learns those to these hosts, and reaches them by these
wait_routes()
{
	local host=$1 number address
	shift

	for number in "$@"; do
		for address in "198.51.100.$number" "2001:db8:1::$number"; do
			wait_until "$host has a route to $address" has_route "$host" "$address" || exit 1
			pings 1 "$host" "$address"
		done
	done
}

for host in "${hosts[@]}"; do
	start_bird $host
done
for host in "${hosts[@]}"; do
	wait_until "BIRD answers on $host" test -S "$TMPDIR/$host.bird"
	wait_full $host 3
done
wait_members ff12:401b:ffff::5 'h1 full, h2 full, h3 full, h4 full'
wait_members ff12:601b:ffff::5 'h1 full, h2 full, h3 full, h4 full'
wait_routes h1 2 3 4
wait_routes h2 1
wait_routes h4 1

# ---- a link between switches fails: the neighbours are reached by another way
spine=$(umbel show topology | grep -o 'spine[0-9]*' | sort -u | head -n 1)
umbel link down "$spine:1"
for version in v2 v3; do # h1 is to find its neighbours anew, by multicast
	birdc -s "$TMPDIR/h1.bird" restart by_$version > /dev/null
done
wait_full h1 3
wait_routes h1 2 3 4
umbel link up "$spine:1"

# ---- a host's link fails, and comes back
umbel link down h2:1
wait_full h1 2
for address in 198.51.100.2 2001:db8:1::2; do
	wait_until "h1 has no route to $address" not has_route h1 $address
done
umbel link up h2:1
wait_full h1 3
wait_full h2 3
wait_routes h1 2
wait_routes h2 1 3 4
