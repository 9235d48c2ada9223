#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibportstate shows a port, disables, enables and resets it, and sets the widths and speeds that
# it may have; the fabric follows.

. "${0%/*}/lib.sh"

# port FIELD...: of the switch's port to h2, as ibportstate queries it: "FIELD=VALUE ".
port()
{
	local field out

	out=$(umbel exec h1 -- ibportstate "$switch" 2 query 2>&1)
	for field in "$@"; do
		sed -n "/^Peer/q; s/^\($field\):\.*/\1=/p" <<< "$out" | tr '\n' ' '
	done
}

# set_port OPERATION [VALUE]
set_port()
{
	expect 0 '*After PortInfo set:*' umbel exec h1 -- ibportstate "$switch" 2 "$@"
}

# shown STATE RATE: whether `umbel show topology` has both ends so.
shown()
{
	[ "$(umbel show topology | awk '$1 == "umbel_h2_0" || $7 == "umbel_h2_0/1" {
		print $5, $9, $10 }' | uniq)" = "$1 $2" ]
}

umbel up --hosts 3 > /dev/null
switch=$(umbel exec h1 -- ibswitches | sed 's/.* lid \([0-9]*\) .*/\1/')
up='LinkState=Active PhysLinkState=LinkUp '
rate='LinkWidthActive=4X LinkSpeedActive=10.0 Gbps LinkSpeedExtActive=25.78125 Gbps '
expect 0 "$up$rate" port LinkState PhysLinkState LinkWidthActive LinkSpeedActive \
	LinkSpeedExtActive
# the far end as well, and a port of a host
expect 0 $'*\nPeer PortInfo:\n# Port info: Lid '"$switch"$' DR path *\n*\nLid:*2\n*' \
	umbel exec h1 -- ibportstate "$switch" 2 query
expect 0 $'CA/RT PortInfo:\n*\nLid:*2\nSMLid:*1\n*' umbel exec h1 -- ibportstate 2 1 query
expect 0 $'*\nLinkState:*Down\nPhysLinkState:*Polling\n*' \
	umbel exec h1 -- ibportstate "$switch" 4 query

# disabled: until it is enabled
set_port disable
expect 0 'LinkState=Down PhysLinkState=Disabled ' port LinkState PhysLinkState
shown down '4x EDR' || complain "disabled: $(umbel show topology)"
expect 0 $'*\t\t\tstate:\t\t\tPORT_DOWN (1)\n*' umbel exec h2 -- ibv_devinfo
set_port enable
expect 0 "$up" port LinkState PhysLinkState
shown active '4x EDR' || complain "enabled: $(umbel show topology)"

# what is enabled takes effect when the link trains
set_port width 1
expect 0 'LinkWidthEnabled=1X LinkWidthActive=4X ' port LinkWidthEnabled LinkWidthActive
set_port reset
expect 0 "${up}LinkWidthActive=1X " port LinkState PhysLinkState LinkWidthActive
shown active '1x EDR' || complain "1X: $(umbel show topology)"
set_port espeed 30
set_port speed 3
set_port width 3
set_port reset
expect 0 'LinkWidthActive=4X LinkSpeedActive=5.0 Gbps ' port LinkWidthActive LinkSpeedActive
shown active '4x DDR' || complain "DDR: $(umbel show topology)"
expect 0 $'*\n\t\tRate: 20\n*' umbel exec h2 -- ibstat
set_port espeed 31
set_port speed 15
set_port down
expect 0 "$up$rate" port LinkState PhysLinkState LinkWidthActive LinkSpeedActive \
	LinkSpeedExtActive
shown active '4x EDR' || complain "EDR: $(umbel show topology)"

# nothing that the port has not
expect 255 '*failed*' umbel exec h1 -- ibportstate "$switch" 2 width 8
expect 255 '*failed*' umbel exec h1 -- ibportstate "$switch" 99 query
