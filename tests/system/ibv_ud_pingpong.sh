#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibv_ud_pingpong, polling and waiting for events, with sizes from 1 to the MTU, with and without
# a GRH, short and long, few receives and many; all pairs at once. Those that poll are short: two
# processes that poll for each other's answer need a processor each.

. "${0%/*}/lib.sh"

umbel up --hosts 2 > /dev/null

# Bytes that both sides together exchange, and the options.
pairs=(
	"2048000 -n 1000"
	"2048000 -e"
	"12800 -s 64 -n 100"
	"128000 -s 64 -e"
	"200 -s 1 -n 100 -g 0"
	"3000000 -s 1500 -g 0 -e"
	"819200 -s 4096 -n 100"
	"81920000 -s 4096 -n 10000 -e"
	"8192000 -s 4096 -e -g 0"
	"2048 -n 1"
	"204800 -n 100 -r 1"
	"2048000 -r 1 -e"
	"8192000 -s 4096 -r 5000 -c -e"
	"2048000 -l 3 -e"
)
declare -A at

# serve NAME HOST OPTION...: starts the server of a pair.
serve()
{
	local name=$1 host=$2
	shift 2
	new_port
	at[$name]=$port
	start "server-$name" "$host" ibv_ud_pingpong -p "$port" "$@"
}

# ping NAME HOST OPTION...: starts its client.
ping()
{
	local name=$1 host=$2
	shift 2
	wait_listening "server-$name" "${at[$name]}" || return
	start "client-$name" "$host" ibv_ud_pingpong -p "${at[$name]}" "$@" localhost
}

# wait_pair NAME BYTES
wait_pair()
{
	local side

	for side in client server; do
		wait_ended "$side-$1" 0
		expect_said "$side-$1" '  local address:  LID 0x000[12], QPN 0x[0-9a-f]\{6\}, ' \
			'  remote address: LID 0x000[12], QPN 0x' "$2 bytes in " '[0-9]* iters in '
	done
}

for i in "${!pairs[@]}"; do
	# shellcheck disable=SC2086
	serve "$i" h1 ${pairs[i]#* }
done
serve same-host h2 -e
serve all-hosts all -d umbel_h2_0 -e
for i in "${!pairs[@]}"; do
	# shellcheck disable=SC2086
	ping "$i" h2 ${pairs[i]#* }
done
ping same-host h2 -e
ping all-hosts all -d umbel_h1_0 -e
for i in "${!pairs[@]}"; do
	wait_pair "$i" "${pairs[i]%% *}"
done
wait_pair same-host 2048000
wait_pair all-hosts 2048000

expect 1 'Requested size larger than port MTU (4096)*' umbel exec h1 -- ibv_ud_pingpong -s 4097
expect 1 'IB device umbel_h2_0 not found' umbel exec h1 -- ibv_ud_pingpong -d umbel_h2_0
