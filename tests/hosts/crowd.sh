#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Many hosts with an interface each: they come up in silence, and take little memory as long as they are
# idle. HOSTS=1000 makes it so many (at 5 descriptors each, `ulimit -n`), and judges what that takes.

. "${0%/*}/lab.sh"

hosts=${HOSTS:-24}
most_seconds=10		# of a thousand
most_mib=4096

available()
{
	awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo
}

# counter NAME [HOST]: the sum of all interfaces, or that of the host's
counter()
{
	umbel show hosts --json | awk -v name="\"$1\":" -v only="${2:+\"$2\",}" '
		/"host":/ { on = only == "" || $2 == only }
		on && $1 == name { sum += $2 } END { print sum + 0 }'
}

all_shown()
{
	[ "$(umbel show hosts | grep -c ' ib0 *up ')" -eq "$hosts" ]
}

before=$(available)
begin=$EPOCHREALTIME
umbel up --hosts "$hosts" --ipoib > /dev/null || exit 1
took=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
mib=$((before - $(available)))
echo "$hosts hosts: up in $took s, $mib MiB"
if [ "$hosts" -ge 1000 ]; then
	[ "${took%.*}" -lt $most_seconds ] || complain "$hosts hosts are up after $took s, not $most_seconds"
	[ $mib -le $most_mib ] || complain "$hosts hosts take $mib MiB, not $most_mib"
fi
wait_until 'all interfaces are shown' all_shown

# nobody was woken by those who came later
[ "$(counter mtu)" -gt 0 ] || complain "the counters are not read"
[ "$(counter received)" -eq 0 ] || complain "interfaces that came up sent $(counter received) packets to others"

# an idle interface backs little of what it could use
one=$(pgrep -P "$(keeper)" -x umbel-ipoib | tail -n 1)
if ! grep -q 'lib[at]san' "/proc/$one/maps" &&
	! grep -qs '\[always\]' /sys/kernel/mm/transparent_hugepage/enabled; then	# else a page is 2 MiB
	dirty=$(awk '/^Private_Dirty:/ { print $2 }' "/proc/$one/smaps_rollup")
	[ "$dirty" -le 2048 ] || complain "an idle interface takes $dirty kB of its own"
fi

# the first reaches the last
expect 0 '*' umbel exec h1 -- ping -4 -c 1 -w 200 "h$hosts"
expect 0 '*' umbel exec h1 -- ping -6 -c 1 -w 200 "h$hosts"

# one that comes back may be known by another queue pair: it says so
received=$(counter received h3)
kill -9 "$(umbel show hosts --json | awk '/"host": "h2",/ { getline; gsub(/[^0-9]/, ""); print }')"
told()
{
	[ "$(counter received h3)" -gt "$received" ]
}
wait_until 'h3 is told that h2 is back' told

# so does one that gets an address
received=$(counter received h3)
umbel exec h1 -- env PATH="$PATH" ip address add 10.0.200.1/16 dev ib0
wait_until 'h3 is told of the address of h1' told
expect 0 '*' umbel exec h3 -- ping -c 1 -w 200 10.0.200.1

umbel down > /dev/null
