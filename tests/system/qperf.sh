#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# qperf: all of its tests of RC, UC and UD, for a second each. They end by SIGALRM, which has to
# interrupt ibv_get_cq_event(): they sleep there, unless -cp 1 lets them poll. They exchange their
# parameters by TCP, or connect by rdma_cm (-cm 1; its server's address is that of TCP then, so both
# are on one host).

. "${0%/*}/lib.sh"

umbel up --hosts 2 > /dev/null

# try NAME TEST OPTION...: until it has ended. Nonzero: its server listens for rdma_cm too late, after it
# has told its port, and the client is refused.
try()
{
	local name=$1 test=$2
	shift 2
	start "$name" h1 qperf -lp "$port" -t 1 -to 60 "$@" 127.0.0.1 "$test"
	wait_until "$name ends" gone "${pid[$name]}"
	! says "$name" 'unexpected event from RDMA CM: Event rejected'
}

# measure NAME TEST OPTION...
measure()
{
	local name=$1 test=$2
	shift 2
	wait_until "$name is not refused" try "$name" "$test" "$@"
	wait_ended "$name" 0
	expect_said "$name" "$test:" ' *[a-z_]*  =  *[0-9.]* [a-zA-Z/]*'
	! says "$name" ' *[a-z_]*  =  *0 ' || complain "$name measures nothing"
}

# serve NAME HOST
serve()
{
	new_port
	start "$1" "$2" qperf -lp "$port"
	wait_listening "$1" "$port" || exit
}

serve server h2
unreliable=(ud_lat ud_bw ud_bi_bw uc_lat uc_bw uc_bi_bw uc_rdma_write_lat uc_rdma_write_bw
	uc_rdma_write_poll_lat)
reliable=(rc_lat rc_bw rc_bi_bw rc_rdma_write_lat rc_rdma_write_bw rc_rdma_write_poll_lat
	rc_rdma_read_lat rc_rdma_read_bw rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap
	ver_rc_fetch_add)
for test in "${unreliable[@]}" "${reliable[@]}"; do
	measure "$test" "$test"
done
for test in ud_lat ud_bw ud_bi_bw uc_lat rc_lat rc_bw rc_rdma_read_bw; do
	measure "$test-polls" $test -cp 1
done
serve server-1 h1
for test in "${reliable[@]}"; do
	measure "$test-cm" "$test" -cm 1
done
