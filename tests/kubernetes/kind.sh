#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# kind.sh PLUGIN: nodes of kind, containers of one machine, are the hosts of one fabric (packaging/kubernetes/kind.net). Each has a
# plugin of its own, as in kind-nodes.yaml, and its pods share the node's HCA.

. "${0%/*}/lab.sh"

umbel up --topology "$here/../../packaging/kubernetes/kind.net" --device-names 'mlx5_%d' > /dev/null
node='unshare --mount --net'
[ "$(id -u)" -eq 0 ] || node+=' --user --map-root-user'
for name in kind-worker kind-worker2; do
	enter[$name]=$node
	node_up $name "--host $name --share 16" $name.0 $name.15
	expect 0 $'mlx5_0' in_pod $name $name.15 ls /sys/class/infiniband
	expect 0 '*hca_id:*mlx5_0*PORT_ACTIVE*' in_pod $name $name.15 ibv_devinfo -d mlx5_0
done
expect 0 '*"kind-worker"*"kind-worker2"*' in_pod kind-worker2 kind-worker2.0 iblinkinfo
pair kind-worker kind-worker.0 ib_write_bw -F -R -n 200 -- kind-worker2 kind-worker2.0 ib_write_bw -F -R -n 200 10.0.0.1
pair kind-worker2 kind-worker2.0 rping -s -C 10 -- kind-worker2 kind-worker2.15 rping -c -a 10.0.0.2 -C 10
for name in kind-worker kind-worker2; do
	node_down $name
done
umbel down > /dev/null
