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

# lanes; and a link that comes up step by step, as a subnet manager does it
set_port vls 2
expect 0 '*OperVLs:*VL0-1'$'\n*' umbel exec h1 -- smpquery portinfo "$switch" 2
set_port vls 4
expect 0 '*OperVLs:*VL0-7'$'\n*' umbel exec h1 -- smpquery portinfo "$switch" 2
expect 255 '*failed*' umbel exec h1 -- ibportstate "$switch" 2 vls 5
umbel down > /dev/null
umbel up --hosts 2 --sm none > /dev/null
step()
{
	expect 0 "*After PortInfo set:*LinkState:*$2*" umbel exec h1 -- ibportstate -D 0,1 2 "$1"
}
expect 255 '*failed*' umbel exec h1 -- ibportstate -D 0,1 2 active # it is not armed
step arm Armed
step active Active
expect 255 '*failed*' umbel exec h1 -- ibportstate -D 0,1 2 arm # it is active already
umbel down > /dev/null

# FDR10, by an attribute that devices of its vendor have
cat > "$TMPDIR/fdr10" << 'END'
vendid=0x2c9
devid=0xc738
switchguid=0x100
Switch 8 "S-0000000000000100" # "sw" base port 0 lid 1 lmc 0
[1] "H-0000000000000200"[1](201) # "one mlx4_0" lid 2 4xFDR10
[2] "H-0000000000000300"[1](301) # "two mlx4_0" lid 3 4xFDR10

vendid=0x2c9
devid=0x1003
caguid=0x200
Ca 1 "H-0000000000000200" # "one mlx4_0"
[1](201) "S-0000000000000100"[1] # lid 2 lmc 0 "sw" lid 1 4xFDR10

vendid=0x2c9
devid=0x1003
caguid=0x300
Ca 1 "H-0000000000000300" # "two mlx4_0"
[1](301) "S-0000000000000100"[2] # lid 3 lmc 0 "sw" lid 1 4xFDR10
END
umbel up --topology "$TMPDIR/fdr10" > /dev/null
switch=$(umbel exec one -- ibswitches | sed 's/.* lid \([0-9]*\) .*/\1/')
expect 0 '*After PortInfo set:*' umbel exec one -- ibportstate "$switch" 2 fdr10 0
expect 0 '*After PortInfo set:*' umbel exec one -- ibportstate "$switch" 2 reset
expect 0 '*4X*10.0 Gbps*' umbel exec one -- iblinkinfo -S 0x100
umbel down > /dev/null
umbel up --hosts 3 > /dev/null
switch=$(umbel exec h1 -- ibswitches | sed 's/.* lid \([0-9]*\) .*/\1/')

# nothing that the port has not
expect 255 '*failed*' umbel exec h1 -- ibportstate "$switch" 2 width 8
expect 255 '*failed*' umbel exec h1 -- ibportstate "$switch" 99 query
