#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# OpenSM instead of ours: without a subnet manager ports stay in INIT and carry nothing; OpenSM
# on a host brings the fabric up and serves it, and sweeps when a link fails and returns.

. "${0%/*}/opensm.bash"
. "${0%/*}/perftest.bash"

umbel up --fat-tree 2 --radix 4 --hosts 8 --sm none > /dev/null
all_ports init || complain 'a port is not in INIT'
expect 0 $'*\nports with a cable: 32 init\n*' umbel status --name default
embedded 'not active' || complain 'there is a subnet manager'
expect 255 '*No SM/SA found*' umbel exec h2 -- saquery NR
expect 1 'umbel: the embedded subnet manager is not the master' umbel sm event sm-change

opensm master h1
wait_until 'all ports are active' all_ports active
wait_until 'h2 knows it as its master' master_is "$(guid 1)"
responds()
{
	umbel exec h2 -- saquery -t 500 NR > /dev/null 2>&1
}
wait_until 'its SA responds' responds
for host in 1 2 3 4 5 6 7 8; do
	expect 0 "*node_guid*0x02756d0000000${host}00*" umbel exec h2 -- saquery NR
done

# the tables are OpenSM's: messages of a program go from host to host by them
serve pair h8 ib_send_lat -c UD -n 100
client pair h2 ib_send_lat -c UD -n 100
wait_pair pair 2 100

umbel link down h5:1
expect 0 '*umbel_h5_0 * 1  down *' umbel show topology
expect 0 $'*\nports with a cable: 30 active, 2 down\n*' umbel status --name default
umbel link up h5:1
wait_until 'the port is active again' all_ports active
