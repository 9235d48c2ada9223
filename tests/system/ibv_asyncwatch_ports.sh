#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibv_asyncwatch tells what happens to the port of its HCA: the link fails and returns, the switch
# dies and is revived, the subnet manager gives another LID, moves, or wants it to register anew; a sweep
# takes a LID from it that another port has.

. "${0%/*}/lib.sh"

umbel up --hosts 3 > /dev/null
for h in 1 2; do
	start h$h h$h ibv_asyncwatch
	wait_said h$h "umbel_h${h}_0: async event FD [0-9]*\$"
done

umbel link down h2:1
wait_said h2 '  event_type IBV_EVENT_PORT_ERR (10), port 1$'
umbel link up sw1:2
wait_said h2 '  event_type IBV_EVENT_PORT_ACTIVE (9), port 1$'
umbel switch kill sw1
wait_said h2 '  event_type IBV_EVENT_PORT_ERR (10), port 1$' 2
umbel switch revive sw1
wait_said h2 '  event_type IBV_EVENT_PORT_ACTIVE (9), port 1$' 2
umbel sm event lid-change h2:1
wait_said h2 '  event_type IBV_EVENT_LID_CHANGE (11), port 1$'
umbel sm event client-reregister h2:1
wait_said h2 '  event_type IBV_EVENT_CLIENT_REREGISTER (17), port 1$'
# a program gives h2 the LID of h1, and the next sweep another one
lid=$(umbel exec h1 -- ibstat | sed -n 's/.*Base lid: //p')
umbel exec h2 -- ibportstate -D 0 1 lid "$lid" > /dev/null
wait_said h2 '  event_type IBV_EVENT_LID_CHANGE (11), port 1$' 2
umbel link down h3:1
wait_said h2 '  event_type IBV_EVENT_LID_CHANGE (11), port 1$' 3
umbel sm event sm-change
for h in 1 2; do
	wait_said h$h '  event_type IBV_EVENT_SM_CHANGE (13), port 1$'
done

# h1 has heard of the switch and of the subnet manager, and that is all
umbel down > /dev/null
wait_ended h1 1
expect 0 'umbel_h1_0: async event FD *
  event_type IBV_EVENT_PORT_ERR (10), port 1
  event_type IBV_EVENT_PORT_ACTIVE (9), port 1
  event_type IBV_EVENT_SM_CHANGE (13), port 1
  event_type IBV_EVENT_DEVICE_FATAL (8), port 0' cat "$TMPDIR/h1.out"
wait_ended h2 1
