#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibv_devices and ibv_devinfo list the HCAs of all hosts, or of the host that they run on; and none
# where no fabric is up.

. "${0%/*}/lib.sh"

head=$'    device          \t   node GUID\n    ------          \t----------------'

# device HOST-NUMBER: its line of ibv_devices.
device()
{
	printf '    umbel_h%d_0      \t02756d0000000%d00' "$1" "$1"
}

umbel up --hosts 3 --set mtu=2048 > /dev/null
expect 0 "$head"$'\n'"$(device 1)"$'\n'"$(device 2)"$'\n'"$(device 3)" umbel exec -- ibv_devices
expect 0 "$head"$'\n'"$(device 2)" umbel exec h2 -- ibv_devices
expect 0 $'3 HCAs found:\n\tumbel_h1_0\n\tumbel_h2_0\n\tumbel_h3_0' umbel exec -- ibv_devinfo -l
expect 0 $'1 HCA found:\n\tumbel_h2_0' umbel exec h2 -- ibv_devinfo -l

expect 0 $'hca_id:\tumbel_h2_0
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t*
\tnode_guid:\t\t\t0275:6d00:0000:0200
\tsys_image_guid:\t\t\t0275:6d00:0000:0200
\tvendor_id:\t\t\t0x*
\tvendor_part_id:\t\t\t*
\thw_ver:\t\t\t\t0x*
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t2048 (4)
\t\t\tsm_lid:\t\t\t1
\t\t\tport_lid:\t\t2
\t\t\tport_lmc:\t\t0x00
\t\t\tlink_layer:\t\tInfiniBand' umbel exec h2 -- ibv_devinfo

# -v: all attributes, and no GID but that of the port
expect 0 $'*\tmax_mcast_grp:\t\t\t8192\n*\tmax_mcast_qp_attach:\t\t1024\n*
\t\t\tactive_width:\t\t4X (2)\n*\n\t\t\tphys_state:\t\tLINK_UP (5)
\t\t\tGID[[]  0]:\t\tfe80:0000:0000:0000:0275:6d00:0000:0201' umbel exec h2 -- ibv_devinfo -v
for h in 1 2 3; do
	expect 0 $'*\thca_id:\tumbel_h'$h$'_0\n*\t\tport_lid:\t\t'$h$'\n*' \
		umbel exec -- sh -c 'echo; ibv_devinfo -v | sed "s/^hca_id/\t&/"'
	expect 0 $'hca_id:\tumbel_h'$h$'_0\n*' umbel exec -- ibv_devinfo -d umbel_h${h}_0 -i 1 -v
done
expect 255 "IB device 'umbel_h1_0' wasn't found" umbel exec h2 -- ibv_devinfo -d umbel_h1_0
expect 255 "IB device 'mlx5_0' wasn't found" umbel exec -- ibv_devinfo -d mlx5_0
expect 4 'Invalid port requested for device' umbel exec h2 -- ibv_devinfo -i 2

# the libraries are ours, the fabric is not there
reason="umbel: fabric 'other' cannot be reached: *"
expect 0 "$reason"$'\n'"$head" umbel exec -- env UMBEL_FABRIC=other ibv_devices
expect 255 "$reason"$'\nNo IB devices found' umbel exec -- env UMBEL_FABRIC=other ibv_devinfo
umbel down > /dev/null
expect 1 "umbel: no fabric 'default' is up in *" umbel exec h2 -- ibv_devices
