#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rxe_guest.sh UMBEL WIRE: one round of rxe.sh, in its virtual machine. Prints lines: over what, nanoseconds of a
# message, and the test.

set -u
umbel=$1 wire=$2

# What a program is run by at either end.
server=() client=()

# ns BYTES: of a message, from what perftest has printed: MiB and million messages a second, or us. Nothing if its clock
# was not to be relied on.
ns()
{
	awk -v bytes="$1" '$1 != bytes { next }
		NF > 5 { if ($5 > 0 && $5 < 1e6) print $5 * 1000; next }
		$4 > 0 { print (bytes > 4096 ? bytes / $4 / 1.048576e-3 : 1000 / $5) }' /tmp/client
}

# measure OVER ADDRESS NAME BYTES COMMAND...
measure()
{
	local over=$1 address=$2 name=$3 bytes=$4 got=
	shift 4
	for _ in 1 2 3 4 5; do
		timeout 60 "${server[@]}" "$@" -F -x 1 -s "$bytes" > /tmp/server 2>&1 &
		sleep 3
		timeout 60 "${client[@]}" "$@" -F -x 1 -s "$bytes" "$address" > /tmp/client 2>&1 ||
			{ cat /tmp/client; exit 1; }
		wait $!
		got=$(ns "$bytes")
		[ ! "$got" ] || break
	done
	echo "$over $got $bytes,$name"
}

# all OVER ADDRESS
all()
{
	measure "$@" WRITE 65536 ib_write_bw -n 300
	measure "$@" SEND 65536 ib_send_bw -n 300
	measure "$@" READ 65536 ib_read_bw -n 300 -o 16
	measure "$@" WRITE 64 ib_write_bw -n 3000
	measure "$@" SEND,one-way 64 ib_send_lat -n 1000
}

if [ "${3:-}" = within ]; then # wire.sh, below
	server=(nsenter --net=/run/netns/b "$umbel" exec --name b --)
	client=(nsenter --net=/run/netns/a "$umbel" exec --name a --)
	all wire 192.0.2.2
	exit
fi

export UMBEL_RUNTIME_DIR=/tmp/umbel
mkdir -m 700 "$UMBEL_RUNTIME_DIR" 2> /dev/null # as the first round
all rxe 127.0.0.1
# not in our namespace, where rdma_rxe has the UDP port
if [ ! -e /run/netns/alone ]; then
	ip netns add alone
	ip -n alone link add eth0 type veth peer name other
	ip -n alone link set other up
	ip -n alone link set lo up
	ip -n alone link set eth0 up
	ip -n alone address add 192.0.2.1/24 dev eth0
fi
alone=(nsenter --net=/run/netns/alone "$umbel")
"${alone[@]}" up --name memory --roce eth0 > /dev/null || exit
server=("${alone[@]}" exec --name memory --) client=("${alone[@]}" exec --name memory --)
all memory 127.0.0.1
"${alone[@]}" down --name memory > /dev/null
"$wire" "$umbel" 1500 64 "$0" "$umbel" "$wire" within
