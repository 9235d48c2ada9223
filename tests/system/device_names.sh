#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel up --device-names`, and names in a topology file: programs of each host find the HCAs by the
# names that they expect, and umbel's commands can still tell them apart.

. "${0%/*}/ucx.bash"
. "${0%/*}/mckey.bash"

# names [HOST]: the devices that verbs, libibumad and sysfs have there.
names()
{
	umbel exec "$@" -- sh -c 'ibv_devices | awk "NR > 2 { print \$1 }"; ibstat -l; ls /sys/class/infiniband' | xargs
}

umbel up --hosts 3 --device-names 'mlx5_%d' > /dev/null
expect 0 'mlx5_0 mlx5_0 mlx5_0' names h2
expect 0 'h1.mlx5_0 h2.mlx5_0 h3.mlx5_0 h1.mlx5_0 h2.mlx5_0 h3.mlx5_0 h1.mlx5_0 h2.mlx5_0 h3.mlx5_0' names
expect 0 $'hca_id:\tmlx5_0\n*node_guid:\t\t\t0275:6d00:0000:0200\n*' umbel exec h2 -- ibv_devinfo -d mlx5_0
expect 0 'Node Description:*h2 mlx5_0' umbel exec h2 -- smpquery -C mlx5_0 nodedesc 2
expect 255 '*' umbel exec h2 -- ibv_devinfo -d umbel_h2_0
expect 0 mlx5_0 umbel exec h2 -- cat /sys/class/infiniband_verbs/uverbs1/ibdev

# rdma_cm finds the device of its address by that name, where it sees one host's and all
for view in h2 all; do
	receive receiver $view -b 10.0.0.2 -m 239.1.1.1 -c 1 -C 3
	wait_joined receiver
	expect 0 '*' umbel exec h1 -- mckey -b 10.0.0.1 -m 239.1.1.1 -c 1 -C 3 -s
	wait_ended receiver 0
done

# Open MPI chooses UCX by itself for devices of that driver (Debian's settings leave UCX out)
mpicc.openmpi -o "$TMPDIR/collectives" "${0%/*}/../mpi/collectives.c" || complain 'mpicc fails'
expect 0 mlx5_core umbel exec h2 -- sh -c 'basename $(readlink /sys/class/infiniband/mlx5_0/device/driver)'
expect 0 '*selected ucx best priority*2 ranks, 0 wrong*' umbel exec h1 -- env OMPI_ALLOW_RUN_AS_ROOT=1 \
	OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
	timeout 60 mpirun.openmpi --oversubscribe --bind-to none -n 2 --mca pml ^cm --mca pml_base_verbose 10 \
	"$TMPDIR/collectives"

# commands say which host's
expect 0 '*h1.mlx5_0 *1 *sw1/1 *h3.mlx5_0 *' umbel show topology
expect 0 '' umbel link down h3.mlx5_0:1
expect 0 '*PORT_DOWN*' umbel exec h3 -- ibv_devinfo -d mlx5_0
expect 0 '' umbel link up h3:1
umbel down > /dev/null

# several of a host are numbered
umbel up --hosts 2 --hcas 3 --device-names 'mlx5_%d' > /dev/null
expect 0 'mlx5_0 mlx5_1 mlx5_2 mlx5_0 mlx5_1 mlx5_2 mlx5_0 mlx5_1 mlx5_2' names h2
expect 0 $'*h2.mlx5_2 *' umbel show hosts
umbel down > /dev/null
expect 2 '*--hcas does not go with --topology*' umbel up --hcas 2 --topology /dev/null
expect 2 '*--hcas goes with --roce only if that says a host*' umbel up --hcas 2 --roce lo

# on an only host there is nothing to tell apart
expect 0 $'mlx5_0\nmlx5_0\nmlx5_0' umbel run --hosts 1 --device-names 'mlx5_%d' -- sh -c \
	'ibv_devices | awk "NR > 2 { print \$1 }"; ibstat -l; ls /sys/class/infiniband'
# but scripts for any number of hosts may name both
umbel up --hosts 1 --hcas 2 --device-names 'mlx5_%d' > /dev/null
expect 0 '' umbel link down h1.mlx5_1:1
expect 1 '*down already*' umbel link down mlx5_1:1
expect 0 '' umbel link up h1.mlx5_1:1
for wrong in h2.mlx5_1 h1.mlx5_2 h1.sw1 .mlx5_1 1.mlx5_1; do
	expect 1 "*no node '$wrong': there are h1 sw1*" umbel link down $wrong:1
done
expect 1 "*'h1.mlx5_1' has no port 2: it has port 1*" umbel link down h1.mlx5_1:2
umbel down > /dev/null
for wrong in mlx5 %d mlx5_%d_%d mlx5/%d mlx5.%d a_name_of_19_byte%d; do
	expect 2 "*'$wrong': write names as 'mlx5_%d'*" umbel up --device-names "$wrong"
done

# as it was discovered, so it comes up again
umbel up --hosts 2 --device-names 'mlx5_%d' > /dev/null
umbel exec h1 -- ibnetdiscover > "$TMPDIR/net" || complain 'ibnetdiscover fails'
umbel down > /dev/null
umbel up --topology "$TMPDIR/net" > /dev/null
expect 0 'mlx5_0 mlx5_0 mlx5_0' names h2
expect 0 '*h2.mlx5_0 *' umbel show hosts
umbel down > /dev/null

# what they are, as the file says: to verbs, libibumad, sysfs and the SMA
cat > "$TMPDIR/net" <<-'END'
	vendid=0x2c9
	devid=0x1017
	fwver=16.35.2000
	boardid=MT_0000000012
	Ca 1 "H-0000000000000020" # "node1 mlx5_0"
	[1] "S-0000000000000010"[1]
	Ca 1 "H-0000000000000030" # "node2 mlx5_0"
	[1] "S-0000000000000010"[2]
	Switch 4 "S-0000000000000010" # "sw1"
END
umbel up --topology "$TMPDIR/net" > /dev/null
expect 0 $'*fw_ver:\t\t\t\t16.35.2000\n*vendor_id:\t\t\t0x02c9\n*vendor_part_id:\t\t\t4119\n*' \
	umbel exec node1 -- ibv_devinfo -d mlx5_0
expect 0 $'*CA type: MT4119\n*Firmware version: 16.35.2000\n*' umbel exec node1 -- ibstat mlx5_0
expect 0 $'MT_0000000012\n0x15b3\n0x1017' umbel exec node1 -- sh -c \
	'cd /sys/class/infiniband/mlx5_0; cat board_id device/vendor device/device'
expect 0 '*vendid=0x2c9*devid=0x1017*' umbel exec node2 -- ibnetdiscover
expect 0 $'*vendor_id:\t\t\t0x2756d\n*' umbel exec node2 -- ibv_devinfo -d mlx5_0

# programs that know that vendor's devices use them by plain verbs
new_port
start server node1 env UCX_NET_DEVICES=mlx5_0:1 UCX_TLS=rc,self ucx_perftest "${alone[@]}" -p "$port"
wait_listening server "$port"
expect 0 '*Final:*' umbel exec node2 -- env UCX_NET_DEVICES=mlx5_0:1 UCX_TLS=rc,self \
	ucx_perftest "${alone[@]}" -p "$port" 127.0.0.1 -t tag_lat -n 1000
wait_ended server 0
new_port
# but for perftest of Debian 13, which asks them by mlx5dv; it uses those that have the name alone
start server node2 ib_write_bw -F -d mlx5_0 -n 100 -p "$port"
wait_listening server "$port"
expect 0 '*65536 *100 *' umbel exec node2 -- ib_write_bw -F -d mlx5_0 -n 100 -p "$port" 127.0.0.1
wait_ended server 0
expect 0 'mlx5_0 4119' umbel exec node1 -- /usr/bin/python3 -c '
import pyverbs.device as d
print(*[x.name.decode() for x in d.get_device_list()], d.Context(name="mlx5_0").query_device().vendor_part_id)'
