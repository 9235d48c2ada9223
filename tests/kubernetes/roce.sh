#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# roce.sh PLUGIN: two nodes of a cluster, namespaces on a bridge, each with a fabric on its network device and a plugin. Pods on one
# reach those on the other by RoCEv2; several on a node share its HCA.

. "${0%/*}/../roce/lab.sh"
. "${0%/*}/lab.sh"

lab_up 2
for node in h1 h2; do
	enter[$node]="ip netns exec $node env UMBEL_FABRIC=$node"
	fabric[$node]=$node
	umbel_on $node up --roce eth0 --device-names 'mlx5_%d' > /dev/null || exit 1
	node_up $node '--share 2' h1.0 h1.1
	expect 0 '*hca_id:*mlx5_0*PORT_ACTIVE*Ethernet*' in_pod $node h1.1 ibv_devinfo
done

# pods with networks of their own
pod receiver h1 h1.0 mckey -m 239.1.1.1 -b 192.0.2.1
pod beside h1 h1.1 mckey -m 239.1.1.1 -b 192.0.2.1
wait_said receiver 'mckey: joined'
wait_said beside 'mckey: joined'
expect 0 '*data transfers complete*' in_pod h2 h1.0 mckey -m 239.1.1.1 -b 192.0.2.2 -s
wait_ended receiver 0
wait_ended beside 0

pair h1 h1.0 ib_write_bw -F -d mlx5_0 -R -s 65536 -n 500 -- h2 h1.0 ib_write_bw -F -d mlx5_0 -R -s 65536 -n 500 192.0.2.1
bandwidth
pair h2 h1.1 rping -s -C 10 -V -- h1 h1.1 rping -c -a 192.0.2.2 -C 10 -V

for node in h1 h2; do
	node_down $node
	umbel_on $node down > /dev/null
done
