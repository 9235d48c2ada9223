#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A server is killed, waited for, and started again at once, as scripts do it: its port is free, as it is with a kernel,
# though others keep the daemon busy.

. "${0%/*}/lib.sh"

umbel up --hosts 2 > /dev/null
for i in 1 2; do
	launch "busy-$i" sh -c 'while umbel show hosts; do :; done'
done

# listens NAME: that process, of which there may be one that was killed beside it
listens()
{
	umbel exec h1 -- rdma resource show cm_id 2> /dev/null | grep -q "state LISTEN .* pid ${pid[$1]} "
}

for ((i = 0; i < 20; i++)); do
	start rping h1 rping -s -a 10.0.0.1
	start udpong h1 udpong -b 10.0.0.1 -T b
	wait_until 'rping listens' listens rping || break
	wait_until 'udpong listens' listens udpong || break
	kill_hard rping
	kill_hard udpong
done
start rping h1 rping -s -a 10.0.0.1 -C 3
wait_until 'rping listens' listens rping
expect 0 '*' umbel exec h2 -- rping -c -a 10.0.0.1 -C 3
wait_ended rping 0
for i in 1 2; do
	kill_hard "busy-$i"
done
umbel down > /dev/null
