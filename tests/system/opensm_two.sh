#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two OpenSMs on a fabric without ours: one is the master, the other takes over when it is
# killed, and hands the subnet back to one that is higher.

. "${0%/*}/opensm.bash"

umbel up --hosts 4 --sm none > /dev/null
opensm first h1 -p 3
wait_said first 'Entering MASTER state'
wait_until 'all ports are active' all_ports active
opensm second h3 -p 1
wait_said second 'Entering STANDBY state'
wait_until 'the first is the master' master_is "$(guid 1)"

kill_hard first
wait_said second 'Entering MASTER state'
wait_until 'the second is the master' master_is "$(guid 3)"

opensm third h1 -p 3
wait_said third 'Entering MASTER state'
wait_said second 'Entering STANDBY state'
wait_until 'the third is the master' master_is "$(guid 1)"
all_ports active || complain 'a port is not active'
