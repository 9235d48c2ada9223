#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ucmatose, rdma_client with rdma_server and rdma_xclient with rdma_xserver (synchronous
# endpoints, XRC): many connections, sizes,
# types of service, event channels that identifiers migrate to, GIDs as addresses, port spaces.

. "${0%/*}/rdmacm.bash"

umbel up --hosts 2 > /dev/null

# matose NAME ADDRESS OPTION...
matose()
{
	local name=$1 address=$2
	shift 2
	run_pair "$name" ucmatose -b "$address" "$@" -- ucmatose -s "$address" "$@"
	for side in client server; do
		expect_said "$side-$name" "${said:-data transfers complete}" 'return status 0'
	done
}

matose plain 10.0.0.1
matose many 10.0.0.1 -c 100
matose messages 10.0.0.1 -C 500 -S 10000 -c 3
matose migrate 10.0.0.1 -m -c 5
matose tos 10.0.0.1 -t 8
matose ipv6 fd75:6d62:656c::1
matose gid fe80::275:6d00:0:101 -f gid -c 3
matose gid-ib fe80::275:6d00:0:101 -f gid -P ib -c 3 -C 100 -S 5000
matose gid-migrate fe80::275:6d00:0:101 -f gid -m -c 3
run_pair any-gid ucmatose -f gid -- ucmatose -f gid -s fe80::275:6d00:0:101 -b fe80::275:6d00:0:201
for side in client server; do
	expect_said "$side-any-gid" 'data transfers complete' 'return status 0'
done
said='test complete' matose nothing 10.0.0.1 -C 0 -c 20
expect 8 '*RDMA_CM_EVENT_REJECTED, error: 8*return status 8*' \
	umbel exec h1 -- ucmatose -s 10.0.0.2
expect 8 '*RDMA_CM_EVENT_REJECTED, error: 8*return status 8*' \
	umbel exec h1 -- ucmatose -f gid -s fe80::275:6d00:0:201
expect 234 '*RDMA_CM_EVENT_ROUTE_ERROR, error: -22*' \
	umbel exec h1 -- ucmatose -f gid -s fe80::275:6d00:0:6301
expect 255 '*cmatose: failure getting addr: No such device*' \
	umbel exec h1 -- ucmatose -f gid -s fd75::1
expect 255 '*cmatose: bind address failed: No such device*' \
	umbel exec h1 -- ucmatose -f gid -b fe80::275:6d00:0:201

run_pair ep rdma_server -- rdma_client -s 10.0.0.1
expect_said server-ep 'rdma_server: end 0'
expect_said client-ep 'rdma_client: end 0'
run_pair port rdma_server -p 4711 -- rdma_client -s 10.0.0.1 -p 4711
expect_said client-port 'rdma_client: end 0'
run_pair x rdma_xserver -- rdma_xclient -s 10.0.0.1
expect_said client-x 'rdma_xclient: end 0'
run_pair xrc rdma_xserver -c x -- rdma_xclient -s 10.0.0.1 -c x
expect_said client-xrc 'rdma_xclient: end 0'
expect_said server-xrc 'rdma_xserver: end 0'
expect 255 '*rdma_connect: Connection refused*' umbel exec h1 -- rdma_client -s 10.0.0.2
