#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# prometheus-node-exporter, in Go, which sees no preloaded library: by `umbel sysfs` it serves the ports' states, rates and
# counters, as they are now.

. "${0%/*}/lib.sh"

# metric NAME HOST: its value at the host's port
metric()
{
	curl -s --noproxy '*' "http://127.0.0.1:$metrics/metrics" |
		awk -v name="node_infiniband_$1{device=\"umbel_$2_0\",port=\"1\"}" '$1 == name { print $2 + 0 }'
}

# is VALUE NAME HOST
is()
{
	[ "$(metric "$2" "$3")" = "$1" ]
}

# A message is a packet at least, and each goes both ways.
has_sent()
{
	[ "$(metric port_packets_transmitted_total h1)" -ge $((before + 500)) ]
}

umbel up --hosts 2 > /dev/null
launch files umbel sysfs --every 1 "$TMPDIR/sys"
wait_until 'the files are there' test -e "$TMPDIR/sys/class/infiniband/umbel_h2_0/ports/1/state"
new_port
metrics=$port
launch exporter prometheus-node-exporter --path.sysfs="$TMPDIR/sys" --collector.disable-defaults --collector.infiniband \
	--web.listen-address="127.0.0.1:$metrics"
wait_until 'the exporter tells of h1' is 4 state_id h1
is 1.25e+10 rate_bytes_per_second h1 || complain "the rate is $(metric rate_bytes_per_second h1)"
before=$(metric port_packets_transmitted_total h1)
new_port
start server h2 ibv_rc_pingpong -p "$port" -n 500
wait_listening server "$port"
expect 0 '*500 iters*' umbel exec h1 -- ibv_rc_pingpong -p "$port" -n 500 localhost
wait_ended server 0
wait_until 'the exporter tells what h1 has sent' has_sent
expect 0 '' umbel link down h2:1
wait_until 'the exporter tells that the port of h2 is down' is 1 state_id h2
kill_hard exporter
kill_hard files
