#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Debian's diagnostic programs by ibsim's own client library, unmodified: they see the fabric that they
# see by `umbel exec`, from the host that SIM_HOST names in each of the ways in which ibsim's users
# name one; two fabrics at a time; what is refused, and when it ends.

. "${0%/*}/ibsim.bash"

umbel up --topology /usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca > /dev/null
ibsim_for server default || exit

# same HOST COMMAND...: it prints the same both ways, dates aside.
same()
{
	local host=$1 one other
	shift
	one=$(umbel exec "$host" -- "$@" 2>&1) || complain "by umbel exec: $*"$'\n'"$one"
	other=$(at "$host" "$@" 2>&1) || complain "by ibsim-run: $*"$'\n'"$other"
	[ "$(sed '/generated on/d; s/activity count [0-9]*//' <<< "$one")" = "$(sed '/generated on/d; s/activity count [0-9]*//' <<< "$other")" ] ||
		complain "$*"$'\n'"by umbel exec:"$'\n'"$one"$'\n'"by ibsim-run:"$'\n'"$other"
}

for command in ibnetdiscover 'smpquery nodedesc 2' 'smpquery portinfo -D 0,1' 'smpquery pkeys 1' \
	'ibroute -D 0,1' 'ibtracert 1 4' 'perfquery 2 1' 'saquery PR --src-to-dst 1:4' 'saquery NR 3'; do
	# shellcheck disable=SC2086 # words
	same Hca1 $command
done
same Hca4 ibnetdiscover
same Hca4 iblinkinfo -l
same Hca2 sminfo

# GUIDs of ports are the fabric's, though libumad2sim makes them itself
same Hca3 smpquery -G nodeinfo "$(at Hca3 ibstat -p)"

# ways to name a host; nobody says which: the first
expect 0 '*Hca1*Port GUID: 0x02756d0000000301*' at '' sh -c 'smpquery nodedesc -D 0; ibstat'
for name in umbel_Hca3_0 H-02756d0000000500; do
	expect 0 'Node Description:*Hca3' at "$name" smpquery nodedesc -D 0
done
umbel up --name other --topology /dev/stdin > /dev/null << 'END'
Switch 8 "S-0002c90000000001" # "core one"
[1] "H-0002c90000000010"[1]
[2] "H-0002c90000000020"[2]
Ca 1 "H-0002c90000000010" # "node1 mlx5_0"
[1](2c90000000011) "S-0002c90000000001"[1]
Ca 2 "H-0002c90000000020" # "node1 mlx5_1"
[2](2c90000000020) "S-0002c90000000001"[2]
END
ibsim_for second other --socket "$IBSIM_SOCKNAME-2" || exit
launch twice umbel ibsim --name other --socket "$IBSIM_SOCKNAME-2"
wait_ended twice 1
expect_said twice "umbel: the sockets '$IBSIM_SOCKNAME-2' are another server's"

# the other fabric, by its other sockets; an HCA by its description, at its port with a cable, whose
# GUID is the file's
other()
{
	IBSIM_SOCKNAME=$IBSIM_SOCKNAME-2 at "$@"
}
expect 0 '*node1 mlx5_0' other 'node1 mlx5_0' smpquery nodedesc -D 0
expect 0 '*node1 mlx5_1' other 'node1 mlx5_1' smpquery nodedesc -D 0
expect 0 '*Port 2:*State: Active*Port GUID: 0x0002c90000000020*' other 'node1 mlx5_1' ibstat
expect 0 '*Hca1*' at Hca1 ibnodes
# by the only host's name, and by that of one of several, of which each has an mlx5_0
expect 0 '*node1 mlx5_0' other node1 smpquery nodedesc -D 0
expect 255 '*connect failed*' other node smpquery nodedesc -D 0
umbel up --name named --hosts 3 --hcas 2 --device-names 'mlx5_%d' > /dev/null
ibsim_for third named --socket "$IBSIM_SOCKNAME-3" || exit
for at in h2 h2.mlx5_0 'h2 mlx5_0' H-02756d0000000300; do
	expect 0 '*h2 mlx5_0' env "IBSIM_SOCKNAME=$IBSIM_SOCKNAME-3" "SIM_HOST=$at" timeout 60 ibsim-run smpquery nodedesc -D 0
done
expect 0 '*h2 mlx5_1' env "IBSIM_SOCKNAME=$IBSIM_SOCKNAME-3" 'SIM_HOST=h2 mlx5_1' timeout 60 ibsim-run smpquery nodedesc -D 0
expect 255 '*connect failed*' env "IBSIM_SOCKNAME=$IBSIM_SOCKNAME-3" SIM_HOST=mlx5_0 timeout 60 ibsim-run smpquery nodedesc -D 0
umbel down --name named > /dev/null
wait_ended third 1

# refused as ibsim refuses: there is no such node, or it is a switch
expect 255 '*ctl error*connect failed*' at Hca9 ibnodes
expect 255 '*ctl error*connect failed*' at Switch1 ibnodes
expect_said server '.*ibsim warning: process [0-9]* is no client at .Hca9.: no host has that name'
expect 2 '*sockets need a name*' umbel ibsim --socket ''

# ends with its fabric, or by a signal
umbel down --name other > /dev/null
wait_ended second 1
expect_said second 'umbel: the fabric has ended'
kill "${pid[server]}"
wait_ended server 0
expect 1 "umbel: no fabric 'other' is up*" umbel ibsim --name other
