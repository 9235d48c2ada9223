#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# smpquery asks nodes by LID and by directed route; sminfo asks the subnet manager who it is.

. "${0%/*}/lib.sh"

# query HOST ARGUMENT...: what smpquery prints, without its dots.
query()
{
	umbel exec "$1" -- smpquery "${@:2}" | sed 's/:\.\.*/: /'
}

umbel up --hosts 3 > /dev/null
expect 0 $'# Node info: Lid 3\n*\nNodeType: Channel Adapter\nNumPorts: 1\n*
Guid: 0x02756d0000000300\nPortGuid: 0x02756d0000000301\n*' query h1 nodeinfo 3
expect 0 $'# Node info: DR path *; 0,1\n*\nNodeType: Switch\n*\nLocalPort: 2\n*' \
	query h2 -D nodeinfo 0,1
expect 0 $'*\nGuid: 0x02756d0000000100\n*' query h2 -D nodeinfo 0,1,1
expect 0 $'*\nGuid: 0x02756d0000000200\n*' query h2 -D nodeinfo 0
expect 0 'Node Description:*h3*' query h1 nodedesc 3
expect 0 $'*\nLid: 3\nSMLid: 1\n*\nLinkState: Active\nPhysLinkState: LinkUp\n*' query h1 portinfo 3
expect 0 $'*\nLinkState: Active\n*' query h1 -D portinfo 0,1 3
expect 0 $'*\nLinkState: Down\n*' query h1 -D portinfo 0,1 4
expect 0 $'# Switch info: DR path *' query h2 -D switchinfo 0,1
expect 0 $'   0: 0xffff 0x0000 *' query h1 pkeys 2
expect 0 $'   0: 0x02756d0000000201 *' query h1 guidinfo 2
expect 0 'sminfo: sm lid 1 sm guid 0x2756d0000000101, activity count * state 3 SMINFO_MASTER*' \
	umbel exec h2 -- sminfo

# nobody there: after the timeouts, a failure
expect 255 '*failed*' umbel exec h1 -- smpquery -t 20 nodeinfo 999
expect 255 '*failed*' umbel exec h1 -- smpquery -t 20 -D nodeinfo 0,1,36
