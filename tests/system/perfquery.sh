#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# perfquery reads what a host's port and the switch's have counted, and clears it.

. "${0%/*}/lib.sh"

# packets ARGUMENT...: what perfquery on h2 prints of them, in a line.
packets()
{
	umbel exec h2 -- perfquery -x "$@" | sed -n -E 's/^Port(Xmit|Rcv|Unicast.*)Pkts:\.+/\1 /p' | xargs
}

umbel up --hosts 2 > /dev/null
expect 0 '# Port extended counters: Lid 2 port 1*' umbel exec h2 -- perfquery -x
expect 0 'Xmit 0 Rcv 0 UnicastXmit 0 UnicastRcv 0' packets

# 200 messages each way, and their addresses by TCP
new_port
start server h1 ibv_ud_pingpong -p "$port" -n 200 -r 200
wait_listening server "$port"
expect 0 '*' umbel exec h2 -- ibv_ud_pingpong -p "$port" -n 200 -r 200 127.0.0.1
wait_ended server 0
switch=$(umbel exec h1 -- ibswitches | sed 's/.* lid \([0-9]*\) .*/\1/')
expect 0 'Xmit 200 Rcv 200 UnicastXmit 200 UnicastRcv 200' packets
expect 0 'Xmit 200 Rcv 200 UnicastXmit 200 UnicastRcv 200' packets 1 1
expect 0 'Xmit 200 Rcv 200 UnicastXmit 200 UnicastRcv 200' packets "$switch" 2

# with a service level: counted by it, and by the lane that it has
new_port
start server3 h1 ibv_ud_pingpong -p "$port" -n 50 -r 50 -l 3
wait_listening server3 "$port"
expect 0 '*' umbel exec h2 -- ibv_ud_pingpong -p "$port" -n 50 -r 50 -l 3 127.0.0.1
wait_ended server3 0
# 1024 bytes of payload, and 32 of headers, are 264 words
expect 0 $'*\nXmtDataSL0:*.52800\n*\nXmtDataSL3:*.13200\n*' umbel exec h2 -- perfquery --xmtsl
expect 0 $'*\nRcvDataSL0:*.52800\n*\nRcvDataSL3:*.13200\n*' \
	umbel exec h2 -- perfquery --rcvsl "$switch" 2
expect 0 $'*\nPortVLOpPackets0:*.200\n*\nPortVLOpPackets3:*.50\n*' \
	umbel exec h2 -- perfquery --vloppackets
expect 0 $'*\nPortVLOpData3:*.13200\n*' umbel exec h2 -- perfquery --vlopdata "$switch" 2
expect 0 $'*\nPortOpRcvPkts:*.250\nPortOpRcvData:*.66000' \
	umbel exec h2 -- perfquery --oprcvcounters
for counters in xmtdisc rcverr flowctlcounters vlxmitflowctlerrors vlxmitcounters swportvlcong \
	rcvcc slrcvfecn slrcvbecn xmitcc vlxmittimecc; do
	expect 0 "# *counters: Lid $switch port 2"$'\n*' \
		umbel exec h1 -- perfquery "--$counters" "$switch" 2
done
expect 0 $'# PortSamplesControl: *\nTick:*.0xf9\nCounterWidth:*.4\n*' umbel exec h2 -- perfquery --smplctl
expect 0 $'# Port info Extended: *\nFECModeActive:*' umbel exec h2 -- smpquery PortInfoExtended "$switch" 2
expect 0 '' umbel exec h2 -- perfquery --vloppackets -R 2 1
expect 0 $'*\nPortVLOpPackets0:*.0\n*\nPortVLOpPackets3:*.0\n*' \
	umbel exec h2 -- perfquery --vloppackets
expect 0 $'*\nPortOpRcvPkts:*.250\n*' umbel exec h2 -- perfquery --oprcvcounters

# -R: clears, and only that port
expect 0 '' umbel exec h2 -- perfquery -x -R 1 1
expect 0 'Xmit 0 Rcv 0 UnicastXmit 0 UnicastRcv 0' packets 1 1
expect 0 'Xmit 250 Rcv 250 UnicastXmit 250 UnicastRcv 250' packets 2 1
