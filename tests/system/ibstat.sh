#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibstat and ibaddr of Debian's infiniband-diags describe the HCA of the host that they run on.

. "${0%/*}/lib.sh"

umbel up --hosts 3 > /dev/null
expect 0 $'CA \'umbel_h2_0\'
\tCA type: Umbel
\tNumber of ports: 1
\tFirmware version: *
\tHardware version: *
\tNode GUID: 0x02756d0000000200
\tSystem image GUID: 0x02756d0000000200
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 100
\t\tBase lid: 2
\t\tLMC: 0
\t\tSM lid: 1
\t\tCapability mask: 0x*
\t\tPort GUID: 0x02756d0000000201
\t\tLink layer: InfiniBand' umbel exec h2 -- ibstat
expect 0 umbel_h2_0 umbel exec h2 -- ibstat -l
expect 0 $'umbel_h1_0\numbel_h2_0\numbel_h3_0' umbel exec -- ibstat -l
expect 0 0x02756d0000000301 umbel exec h3 -- ibstat -p
expect 0 $'CA: \'umbel_h1_0\'\nPort 1:\nState: Active\n*' umbel exec h1 -- ibstat umbel_h1_0 1
expect 255 "*'umbel_h1_0'*" umbel exec h2 -- ibstat umbel_h1_0

# of the port itself, and of another by its LID, which is asked over the fabric
expect 0 'GID fe80::275:6d00:0:201 LID start 0x2 end 0x2' umbel exec h2 -- ibaddr
expect 0 'GID fe80::275:6d00:0:301 LID start 0x3 end 0x3' umbel exec h2 -- ibaddr 3

# the libraries are ours, the fabric is not there
expect 0 "umbel: fabric 'other' cannot be reached: *" umbel exec -- env UMBEL_FABRIC=other ibstat
