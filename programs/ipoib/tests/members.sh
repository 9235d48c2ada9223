#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Sockets, programs of rdma_cm and programs that send MADs share the membership of their host's port
# (members.c), with ours as the master and with OpenSM. An interface that is killed is no member any more,
# and takes nobody else's membership with it.

. "$UMBEL_TESTS/system/opensm.bash"
. "${0%/*}/lab.sh"

ip4=ff12:401b:ffff::f01:203

lab_up 3 --hosts 3 --set sm_poll_ms=200
interfaces 2

for seed in 1 2 3; do
	expect 0 '*' on h2 umbel exec -- "$programs_dir/ipoib.members" $seed 200
done
wait_members $ip4 ''

opensm one h3 -p 5
wait_said one 'Entering MASTER state'
wait_until 'OpenSM has let h2 in' on h1 ping -n -q -c 1 -W 1 192.0.2.2
expect 0 '*' on h2 umbel exec -- "$programs_dir/ipoib.members" 4 200
kill_hard one
wait_until 'ours takes over' embedded master

# ---- a killed interface
launch_on hears h2 socat -u UDP4-RECV:7000,ip-add-membership=239.1.2.3:ib0 STDOUT
wait_members ff12:401b:ffff::ffff:ffff 'h1 full, h2 full'
wait_members $ip4 'h2 full'
start mckey h2 mckey -p 0x0002 -b 10.0.0.2 -m 239.1.2.3
wait_said mckey 'mckey: joined dgid: '
kill_hard ib0-h2
wait_members ff12:401b:ffff::ffff:ffff 'h1 full'
wait_members $ip4 'h2 full' # mckey's
kill_hard mckey
wait_members $ip4 ''
