#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# OpenSM by ibsim's client library: it brings a fabric up that has no other subnet manager, and
# programs of Umbel's are served by it; a second one stands by, takes over when the first is killed,
# and hands the subnet back to one that is higher.

. "${0%/*}/ibsim.bash"
. "$UMBEL_TESTS/system/opensm.bash"
. "$UMBEL_TESTS/system/perftest.bash"

umbel up --hosts 4 --sm none > /dev/null
ibsim_for server default || exit

# osm NAME HOST OPTION...: opensm() for clients of ibsim
osm()
{
	local name=$1 dir=$TMPDIR/opensm-$1 host=$2
	shift 2
	mkdir -p "$dir"
	printf '%s\n' 'sminfo_polling_timeout 200' 'polling_retry_number 2' 'sweep_interval 1' \
		> "$dir/conf"
	OSM_CACHE_DIR=$dir OSM_TMP_DIR=$dir SIM_HOST=$host launch "$name" \
		ibsim-run stdbuf -oL opensm -F "$dir/conf" -f "$dir/log" "$@"
}

osm first h1 -p 3
wait_said first 'Entering MASTER state'
wait_until 'all ports are active' all_ports active
wait_until 'h2 knows it as its master' master_is "$(guid 1)"

# groups of programs are OpenSM's, and messages to them go by its tables
joins()
{
	umbel exec h2 -- timeout 1 stdbuf -oL mckey -m 239.1.1.9 -b 10.0.0.2 \
		> "$TMPDIR/joins.out" 2>&1 || grep -q '^mckey: joined dgid: ' "$TMPDIR/joins.out"
}
wait_until 'it lets members join' joins
serve pair h4 ib_send_lat -c UD -n 100
client pair h2 ib_send_lat -c UD -n 100
wait_pair pair 2 100

# a second one at the same port is refused what only one can be
SIM_SET_ISSM=1 expect 255 '*connect failed*' at h1 ibnodes

osm second h3 -p 1
wait_said second 'Entering STANDBY state'
kill_hard first
wait_said second 'Entering MASTER state'
wait_until 'the second is the master' master_is "$(guid 3)"

osm third h1 -p 3
wait_said third 'Entering MASTER state'
wait_said second 'Entering STANDBY state'
wait_until 'the third is the master' master_is "$(guid 1)"
all_ports active || complain 'a port is not active'

# it ends, and the port has no subnet manager any more
is_sm()
{
	umbel exec h2 -- smpquery portinfo "$1" 1 | grep -q 'IsSM'
}
lid=$(umbel show hosts | awk '$1 == "h1" { print $6 }')
is_sm "$lid" || complain 'h1 is not said to have a subnet manager'
kill_hard third
wait_until 'nobody is the subnet manager at h1' not is_sm "$lid"
