#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# udpong (rdmacm-utils), which talks by datagram rsockets: many sizes, echoed and not, blocking and
# not, both directions, IPv4 and IPv6, many clients of one server, a server that is killed and
# started again. An echo that is late by a millisecond is asked for again, and then all that come
# after are late: so the counts are small.

. "${0%/*}/lib.sh"
. "${0%/*}/udpong.bash"

umbel up --hosts 4 > /dev/null

counters()
{
	umbel show counters --json
}

# Servers that sleep while they wait: there are more of them here than processors. A client sends
# its first datagram until the server is there.
start server-h1 h1 udpong -b 10.0.0.1 -T b
start server-h2 h2 udpong -b 10.0.0.2 -T b
start server-ip6 h3 udpong -b fd75:6d62:656c::3 -T b
start server-port h3 udpong -b 10.0.0.3 -p 4711 -T b

for size in 16 64 192 1000 1536 2048; do
	client "echo-$size" h1 -s 10.0.0.2 -C 200 -S $size -T e
	wait_result "echo-$size"
	client "one-way-$size" h1 -s 10.0.0.2 -C 1000 -S $size
	wait_result "one-way-$size"
done

# both directions at once
client there h1 -s 10.0.0.2 -C 300 -S 100 -T e
client back h2 -s 10.0.0.1 -C 300 -S 100 -T e
wait_result there
wait_result back

sessions=(
	"-S 17 -C 200 -T e -T b"
	"-S 256 -C 1000 -T b"
	"-S 64 -C 1000 -B 4096"
	"-S 256 -C 200 -T e -T a"
)
for i in "${!sessions[@]}"; do
	# shellcheck disable=SC2086
	client "session-$i" h$((1 + i % 2)) -s 10.0.0.$((2 - i % 2)) ${sessions[i]}
	wait_result "session-$i"
done
client ip6 h1 -s fd75:6d62:656c::3 -C 200 -S 64 -T e
client port h1 -s 10.0.0.3 -p 4711 -C 200 -S 64 -T e
client same-host h2 -s 10.0.0.2 -C 200 -S 64 -T e
for name in ip6 port same-host; do
	wait_result $name
done

# ---- many clients, without echoes: those that udpong.bash tells of would keep the server from the others
for i in 1 2 3 4 5 6; do
	client "crowd-$i" h$((1 + i % 3)) -s 10.0.0.2 -C 300 -S 64
done
for i in 1 2 3 4 5 6; do
	wait_result "crowd-$i"
done
grep -h '^custom' "$TMPDIR"/crowd-*.out | awk '{ n += $3 } END { exit !n }' || complain 'nothing of the crowd arrives'

# ---- a server that never sleeps
start server-busy h4 udpong -b 10.0.0.4
client to-busy h1 -s 10.0.0.4 -C 200 -S 64 -T e
wait_result to-busy

# ---- a server that dies while it is asked, and another in its place
client patient h4 -s 10.0.0.2 -C 100000000 -S 64 -T e
wait_said server-h2 'client login from 10.0.0.4'
kill_hard server-h2
start server-again h2 udpong -b 10.0.0.2 -T b
client new h3 -s 10.0.0.2 -C 200 -S 64 -T e
wait_result new
expect_said server-again 'client login from 10.0.0.3'

# ---- its own port number is the server's alone
expect 255 '*rbind: Address already in use*' umbel exec h1 -- udpong -b 10.0.0.1
expect 255 '*rbind: Cannot assign requested address*' umbel exec h1 -- udpong -b 10.0.0.2
expect 255 '*rconnect: No route to host*' umbel exec h1 -- udpong -s 10.9.9.9

# ---- a fabric that ends is an error for all who wait, asleep or not, and for who is answering
umbel down > /dev/null
for name in server-h1 server-busy; do
	wait_ended $name 255
	expect_said $name 'rrecv: Input/output error'
done
wait_ended server-again 255 # the patient client still asks it
expect_said server-again 'r\(recv\|send\): Input/output error'
