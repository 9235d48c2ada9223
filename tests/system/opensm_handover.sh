#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# OpenSM beside ours: the one with the higher priority becomes the master, whoever was there
# first, and the other takes over when it is killed.

. "${0%/*}/opensm.bash"

umbel up --hosts 4 --set sm_poll_ms=200 > /dev/null
embedded master || complain 'ours is not the master'

# higher than ours: it is handed the subnet
opensm higher h3 -p 5
wait_said higher 'Entering MASTER state'
wait_until 'ours stands by' embedded standby
wait_until 'the ports know the new master' master_is "$(guid 3)"
expect 1 'umbel: the embedded subnet manager is not the master' umbel sm event lid-change h2:1

kill_hard higher
wait_until 'ours takes over' embedded master
wait_until 'the ports know it' master_is "$(guid 1)"
expect 0 '*h4*' umbel exec h2 -- saquery NR
all_ports active || complain 'a port is not active'

# lower than ours: it stands by, and takes over when ours is killed
opensm lower h3 -p 0
wait_said lower 'Entering STANDBY state'
embedded master || complain 'ours is not the master beside a lower one'
both_known()
{
	[[ $(umbel exec h2 -- saquery SMIR) == *Priority*1*SMState*3*Priority*0*SMState*2* ]]
}
wait_until 'the SA tells of both' both_known
umbel sm stop
expect 1 'umbel: the embedded subnet manager does not run' umbel sm stop
wait_said lower 'Entering MASTER state'
wait_until 'the ports know the new master' master_is "$(guid 3)"

# ours returns, finds it, and is handed the subnet
umbel sm start
expect 1 'umbel: the embedded subnet manager runs already' umbel sm start
wait_until 'ours is the master again' embedded master
wait_said lower 'Entering STANDBY state' 2
wait_until 'the ports know it' master_is "$(guid 1)"

# a program's subnet manager at our port: ours moves to another
opensm home h1 -p 0
wait_said home 'Entering STANDBY state'
embedded master || complain 'ours is not the master any more'
wait_until 'ours has moved' master_is "$(guid 2)"
