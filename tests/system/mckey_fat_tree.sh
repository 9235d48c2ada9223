#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Multicast across a fat tree of three levels: to a host on the sender's switch, in its pod and
# in others, each by a tree of switches that leads there and to nobody else.

. "${0%/*}/mckey.bash"

# 16 hosts: h1 and h2 on leaf1, h3 and h4 on leaf2, these in the first pod of four
expect 0 "fabric 'default' is up: 16 hosts, *" umbel up --fat-tree 3 --radix 4
expect 0 '*"switches": 20,*' umbel status --json

for host in h2 h3 h7 h16; do
	receive "$host" "$host" -m 239.3.2.1
done
for host in h2 h3 h7 h16; do
	wait_joined "$host"
done
tree=$(group "$(joined h2)" | sed -n '/^  tree/,$p')
for switch in leaf1 leaf2 leaf4 leaf8; do
	[[ $tree == *" $switch: ports "* ]] || complain "$switch is not in the tree:"$'\n'"$tree"
done
for switch in leaf3 leaf5 leaf6 leaf7; do
	[[ $tree != *" $switch: "* ]] || complain "$switch is in the tree:"$'\n'"$tree"
done
send sender h1 -m 239.3.2.1
wait_complete sender h2 h3 h7 h16
[ -z "$(umbel show counters | awk '$1 ~ /_h(4|5|6|8|9|1[0-5])_/ && $4 > 0')" ] ||
	complain "somebody else was sent something"$'\n'"$(umbel show counters)"
umbel down > /dev/null

expect 0 "fabric 'default' is up: 72 hosts, *" umbel up --fat-tree 2 --hosts 72
expect 0 '*"switches": 22,*' umbel status --json
receive far h72 -m 239.3.2.1
wait_joined far
send sender h1 -m 239.3.2.1
wait_complete sender far
