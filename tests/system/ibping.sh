#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibping's server answers its clients on other hosts, MADs of a vendor class; without it nobody
# does.

. "${0%/*}/lib.sh"

umbel up --hosts 3 > /dev/null
expect 0 '*1 packets transmitted, 0 received, 100% packet loss*' \
	umbel exec h2 -- ibping -t 50 -c 1 1

start server h1 ibping -S
answered()
{
	umbel exec h2 -- ibping -t 1000 -c 1 1 2>&1 | grep -q ' 1 received'
}
wait_until "the server answers" answered
expect 0 $'Pong from *[(]Lid 1): time *2 packets transmitted, 2 received, 0% packet loss*' \
	umbel exec h3 -- ibping -c 2 1

# a class has one server a port
expect 255 "*can't serve class*" umbel exec h1 -- ibping -S
kill -9 "${pid[server]}"
wait_ended server 137
expect 0 '*100% packet loss*' umbel exec h2 -- ibping -t 50 -c 1 1

# and the fabric's end is the server's
start server h1 ibping -S
wait_until "the server answers" answered
umbel down > /dev/null
wait_ended server 0
