#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# udaddy: the client resolves the server's queue pair by its service ID, sends, and gets replies.
# Both directions, IPv4, IPv6 and GID addresses, several connections, counts, sizes, types of
# service, both port spaces; all pairs at once, each server on a host of its own.

. "${0%/*}/lib.sh"

# The options of server and client.
pairs=(
	""
	"-c 1 -C 1 -S 1"
	"-c 5"
	"-c 20 -C 50 -S 64"
	"-C 1000"
	"-S 4096"
	"-C 0 -c 3"
	"-S 0"
	"-C 1000 -S 1000"
	"-c 8"
	"-t 8"
	"-t 0xff -c 2"
	"-p 0x2"
	"-P ipoib -c 3"
	"-f ip"
	"-f gid"
)

umbel up --hosts 40 > /dev/null

# client NAME HOST SERVER-ADDRESS OPTION...
client()
{
	local name=$1 host=$2 address=$3
	shift 3
	start "client-$name" "$host" udaddy -s "$address" "$@"
}

# listen COUNT: whether so many servers do; they do not say it themselves.
listen()
{
	[ "$(field listeners default)" -eq "$1" ]
}

wait_pair()
{
	local side

	for side in server client; do
		wait_ended "$side-$1" 0
		expect_said "$side-$1" "${2-data transfers complete}" 'return status 0'
	done
}

# hosts 2i+1 (server) and 2i+2, the other way for each other pair
for i in "${!pairs[@]}"; do
	# shellcheck disable=SC2086
	start "server-$i" "h$((2 * i + 1 + i % 2))" udaddy ${pairs[i]}
done
start server-ipv6 h35 udaddy -b fd75:6d62:656c::23
start server-gid h36 udaddy -b fe80::275:6d00:0:2401
start server-bound h37 udaddy -b 10.0.0.37
start server-same-host h38 udaddy
start server-ipv6-bound h39 udaddy -b fd75:6d62:656c::27
start server-by-gid h40 udaddy -f gid -b fe80::275:6d00:0:2801
wait_until "all servers listen" listen $((${#pairs[@]} + 6))
for i in "${!pairs[@]}"; do
	server=$((2 * i + 1 + i % 2))
	address=10.0.0.$server
	[ "${pairs[i]}" != '-f gid' ] || address=fe80::275:6d00:0:$(printf %x01 "$server")
	# shellcheck disable=SC2086
	client "$i" "h$((2 * i + 2 - i % 2))" "$address" ${pairs[i]}
done
client ipv6 h36 fd75:6d62:656c::23
client gid h37 fe80::275:6d00:0:2401
client bound h35 10.0.0.37 -b 10.0.0.35
client same-host h38 10.0.0.38
client ipv6-bound h40 fd75:6d62:656c::27 -b fd75:6d62:656c::28
client by-gid h39 fe80::275:6d00:0:2801 -f gid -b fe80::275:6d00:0:2701
for i in "${!pairs[@]}"; do
	case ${pairs[i]} in
	*-C\ 0* | *-S\ 0) wait_pair "$i" 'test complete' ;;
	*) wait_pair "$i" ;;
	esac
done
for name in ipv6 gid bound same-host ipv6-bound by-gid; do
	wait_pair $name
done

# ---- what cannot be
expect 1 '*udaddy: event: RDMA_CM_EVENT_UNREACHABLE, error: 1*' \
	umbel exec h1 -- udaddy -s 10.0.0.2
expect 143 '*udaddy: event: RDMA_CM_EVENT_ADDR_ERROR, error: -113*' \
	umbel exec h1 -- udaddy -s 10.0.0.99
expect 234 '*udaddy: message_size 4097 is larger than active mtu 4096*' \
	umbel exec h1 -- udaddy -s 10.0.0.2 -S 4097
expect 255 '*udaddy: bind address failed: Cannot assign requested address*' \
	umbel exec h1 -- udaddy -b 10.0.0.2
