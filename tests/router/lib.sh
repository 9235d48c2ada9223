# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts in tests/router share: subnets a, b, ... with routers, and tests/router/peer.c
# on their hosts.

# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"

peer=$1

# subnet NAME NUMBER HOSTS ROUTER[,...] [OPTION]...: a fabric whose prefix ends in that number.
subnet()
{
	local name=$1 number=$2 hosts=$3 routers=$4
	shift 4
	umbel up --name "$name" --hosts "$hosts" --router "$routers" --prefix "0xfec000000000000$number" "$@" > /dev/null ||
		exit 1
}

# peer NAME FABRIC HOST ARGUMENT...: that program, in the background.
peer()
{
	local name=$1 fabric=$2 host=$3
	shift 3
	launch "$name" umbel exec --name "$fabric" "$host" -- "$peer" "$@"
}

# of FABRIC KEY [ROUTER]: what `umbel show routers` says of a router, the first one if none is said.
of()
{
	umbel show --name "$1" routers --json | python3 -c '
import json, sys
for router in json.load(sys.stdin):
    if sys.argv[2] in ("", router["host"]):
        print(router.get(sys.argv[1]))
        break
' "$2" "${3-}"
}

# is FABRIC KEY VALUE [ROUTER]
is()
{
	[ "$(of "$1" "$2" "${4-}")" = "$3" ]
}

# reaches FABRIC ROUTER PREFIX-NUMBER HOPS
reaches()
{
	of "$1" routes "$2" | grep -q "'0xfec000000000000$3', 'hops': $4}"
}

# ended NAME: waits for its end; its status.
ended()
{
	wait_until "$1 has ended" gone "${pid[$1]}"
	wait "${pid[$1]}"
	ended[$1]=$?
	[ "${ended[$1]}" -eq 0 ]
}
