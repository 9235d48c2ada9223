#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# UCX as Debian ships it sends by UD over RoCEv2: between two machines, and between two processes of
# one, with IPv4 and with IPv6. It takes a packet's type from wc.sl.

. "${0%/*}/lab.sh"

export UCX_TLS=ud_verbs,self

# as in tests/system/ucx.bash
alone=()
[[ $(ucx_perftest -h) != *' -P <0|1> '* ]] || alone=(-P 0)

# exchange SERVER_HOST: ucx_perftest on h1 and there.
exchange()
{
	local server=192.0.2.${1#h}
	new_port
	start_on server "$1" ucx_perftest "${alone[@]}" -p "$port"
	wait_until "the server listens" on_listening "$1" "$port" || return
	expect 0 '*Final: * 500 *' umbel_on h1 exec -- ucx_perftest "$server" "${alone[@]}" -p "$port" \
		-t tag_lat -n 500 -w 10
	wait_ended server 0
}

# on_listening HOST PORT
on_listening()
{
	gone "${pid[server]}" || on "$1" grep -q "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$2") [0-9A-F:]* 0A " /proc/net/tcp
}

lab_up 2
roce_up h1 h2
expect 0 '*Transport: ud_verbs*Device: umbel_eth0:1*' umbel_on h1 exec -- ucx_info -d
for UCX_IB_GID_INDEX in 1 2; do
	export UCX_IB_GID_INDEX
	exchange h2
	exchange h1
done
