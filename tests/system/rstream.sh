#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rstream, riostream and rcopy (rdmacm-utils) over stream rsockets: what is sent is compared at the
# other end (-T v), blocking, not blocking and by rpoll(), with options of sockets and queues, by
# IPv4 and IPv6, within a host, and across fabrics of several switches.

. "${0%/*}/rdmacm.bash"

umbel up --hosts 3 > /dev/null

# pair NAME PROGRAM OPTION...: the server on h1, the client on h2; each says its result.
pair()
{
	local name=$1 program=$2 side
	shift 2
	run_pair "$name" "$program" -b 10.0.0.1 "$@" -- "$program" -s 10.0.0.1 "$@"
	for side in server client; do
		expect_said "$side-$name" 'custom .* [0-9.]*s  *[0-9.]*  *[0-9.]*$'
	done
}

# ---- sizes and ways to wait; of less than 16 bytes rstream reads beyond its buffer
for size in 16 64 65 1000 4096 65536 1048576; do
	pair "size-$size" rstream -T b -T v -C 20 -S $size
done
pair async rstream -T a -T b -T v -C 20 -S 100000
pair nonblocking rstream -T n -T v -C 3 -S 20000
pair async-nonblocking rstream -T a -T n -T v -C 3 -S 20000
pair resolved rstream -T r -T b -T v -C 20 -S 5000

# ---- options
pair keepalive rstream -T b -k 1 -C 20
expect_said client-keepalive 'Keepalive: ON' ' *time: 1'
pair buffers rstream -T b -T v -B 4096 -C 20 -S 100000
pair inline rstream -T b -T v -i 16 -C 20 -S 64
pair port rstream -T b -T v -p 4711 -C 20

# ---- addresses
run_pair ip6 rstream -b fd75:6d62:656c::1 -T b -T v -C 20 -- \
	rstream -s fd75:6d62:656c::1 -T b -T v -C 20

# by_gid NAME PROGRAM OPTION...: as pair, by GIDs.
by_gid()
{
	local name=$1 program=$2
	shift 2
	run_pair "$name" "$program" -f gid -b fe80::275:6d00:0:101 "$@" -- \
		"$program" -f gid -s fe80::275:6d00:0:101 "$@"
	for side in server client; do
		expect_said "$side-$name" 'custom .* [0-9.]*s  *[0-9.]*  *[0-9.]*$'
	done
}

by_gid gid rstream -T b -T v -C 20 -S 5000
by_gid gid-async rstream -T a -T n -T v -C 3 -S 20000
by_gid gid-mapped riostream -T b -T v -C 5 -S 100000
run_pair any-gid rstream -f gid -T b -T v -C 20 -- \
	rstream -f gid -s fe80::275:6d00:0:101 -T b -T v -C 20
serve_cm self h1 rstream -b 10.0.0.1 -T b -C 20
start client-self h1 rstream -s 10.0.0.1 -T b -C 20
wait_ended client-self 0
wait_ended server-self 0

# ---- directly to the program's memory
for size in 64 1000 100000 1048576; do
	pair "mapped-$size" riostream -T b -T v -C 5 -S $size
done

# ---- files
head -c 3000000 /dev/urandom > "$TMPDIR/source"
serve_cm copy h1 rcopy
listeners=1
for n in 1 2; do
	start "copy-$n" h$((n + 1)) rcopy "$TMPDIR/source" "10.0.0.1:$TMPDIR/copy-$n"
	wait_ended "copy-$n" 0
	expect_said "copy-$n" '3000000 bytes in '
	cmp "$TMPDIR/source" "$TMPDIR/copy-$n" || complain "copy $n is another"
done

# ---- what cannot be
expect 255 '*rconnect: Connection refused*' umbel exec h2 -- rstream -T b -s 10.0.0.3
expect 255 '*rconnect: No route to host*' umbel exec h2 -- rstream -T b -s 10.9.9.9
# POLLERR; rstream does not ask for the error itself
expect 8 '*rpoll: *' umbel exec h2 -- rstream -T n -s 10.0.0.3
expect 255 '*rbind: Cannot assign requested address*' umbel exec h2 -- rstream -b 10.0.0.1
