#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# wire.sh UMBEL MTU PIECE COMMAND...: runs the command where two network namespaces, a and b, are
# joined by a veth pair with that MTU, which takes at most so many datagrams in one piece. Each has
# its end as eth0, with the address 192.0.2.1 or 192.0.2.2, and a RoCE fabric on it of the same name.
# The command sees both fabrics, and may enter the namespaces, which /run/netns lists.
#
# All this in namespaces of its own (mount, network, process IDs; user as well, unless root): when
# the first process ends, however it does, the kernel ends the others and removes devices and
# namespaces.

set -eu -o pipefail

if [ "${WIRE_PID:-}" != $$ ]; then
	namespaces=(--mount --net --pid)
	[ "$(id -u)" -eq 0 ] || namespaces+=(--user --map-root-user)
	exec unshare "${namespaces[@]}" --fork --kill-child --mount-proc \
		env WIRE_PID=1 "$0" "$@"
fi

umbel=$1 mtu=$2 piece=$3
shift 3
PATH+=:/usr/sbin:/sbin

# the end of the wire in namespace $1, with address $2, and the fabric
end()
{
	ip -n "$1" link set lo up
	ip -n "$1" link set eth0 mtu "$mtu" gso_max_segs "$piece" up
	ip -n "$1" address add "$2/24" dev eth0
	ip -n "$1" route add 224.0.0.0/4 dev eth0
	ip netns exec "$1" "$umbel" up --name "$1" --roce eth0 > /dev/null
}

mount -t tmpfs tmpfs /run
mkdir /run/netns
UMBEL_RUNTIME_DIR=$(mktemp -d "${UMBEL_RUNTIME_DIR:-/run}/wire.XXXXXX")
export UMBEL_RUNTIME_DIR
ip netns add a
ip netns add b
ip link add eth0 netns a type veth peer name eth0 netns b
end a 192.0.2.1
end b 192.0.2.2

# not exec: the first process of the namespace has to be one that waits for others
"$umbel" exec --name a -- "$@"
