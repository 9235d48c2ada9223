#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The cases of wire_cases.sh about FLUSHes, with a peer whose FLUSHes have the ICRC of Linux's rdma_rxe, and which drops
# all others: the setting roce_rxe_flush. Those of the specification are taken as well.

. "${0%/*}/lab.sh"

lab_up 2
umbel_on h2 up --roce eth0 --set roce_adp_retrans=0 --set roce_selective_repeat=0 --set roce_rxe_flush=1 > /dev/null || exit 1

as_h2=(env UMBEL_FABRIC=h2 ip netns exec h2 "${without_privileges[@]}" umbel)

# cases NAME CASE...: as the peer is by the environment.
cases()
{
	launch "$1" ip netns exec h1 python3 -uB "${0%/*}/wire_cases.py" 192.0.2.1 192.0.2.2 192.0.2.102 \
		"${as_h2[@]}" show counters --json , \
		"${as_h2[@]}" exec -- "$programs_dir/roce.puppet" 192.0.2.1 , "${@:2}"
	wait_ended "$1" 0
	expect_said "$1" '[1-9][0-9]* of [0-9]* cases are as they should be'
	tail -n 1 "$TMPDIR/$1.out"
}

RXE_FLUSH=1 cases as-rxe flush 'ed FLUSH' 'k FLUSH' 'e FLUSH' 'ready FLUSH' asks_ asked_ placed_
cases as-specified 'flushes' flush_
