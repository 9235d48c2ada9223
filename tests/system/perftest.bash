# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts share that drive perftest: its servers and clients talk by TCP on localhost
# first. Debian's are linked with libmlx5 and libefa, which must find their symbols.

. "${BASH_SOURCE[0]%/*}/lib.sh"

declare -A at

# serve NAME HOST PROGRAM OPTION...
serve()
{
	local name=$1 host=$2
	shift 2
	new_port
	at[$name]=$port
	start "server-$name" "$host" "$@" -p "$port"
}

# client NAME HOST PROGRAM OPTION...: when its server listens.
client()
{
	local name=$1 host=$2
	shift 2
	wait_listening "server-$name" "${at[$name]}" || return
	start "client-$name" "$host" "$@" -p "${at[$name]}" localhost
}

# wait_pair NAME SIZE ITERATIONS: until both have ended and told their result.
wait_pair()
{
	local side

	for side in client server; do
		wait_ended "$side-$1" 0
		expect_said "$side-$1" ' Connection type : UD' ' local address: LID 0x' \
			' remote address: LID 0x' " $2  *$3  *$(figures "$side-$1")"
	done
}

# run_pairs PROGRAM_AND_OPTIONS...: runs each on h1 and h2.
run_pairs()
{
	local i=0 side program

	for program; do
		! left_out "$program" || continue
		i=$((i + 1))
		# shellcheck disable=SC2086
		serve "$i" h1 $program
		# shellcheck disable=SC2086
		client "$i" h2 $program
		for side in client server; do
			wait_ended "$side-$i" 0
			expect_said "$side-$i" ' local address: LID 0x' ' remote address: LID 0x'
		done
		expect_said "client-$i" " [0-9][0-9]*  *[0-9][0-9]*  *$(figures "client-$i")"
	done
}
