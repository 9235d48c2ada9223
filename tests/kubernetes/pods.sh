#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# pods.sh PLUGIN: what the plugin gives a container is enough for Debian's programs in it, without `umbel exec`, and for
# its host's HCA only.

. "${0%/*}/lab.sh"

umbel up --hosts 3 > /dev/null
node_up node '' h1 h2 h3

expect 0 $'\tumbel_h1_0' in_pod node h1 sh -c 'ibv_devices | sed -n "s/^ *\(umbel[^ \t]*\).*/\t\1/p"'
expect 0 '*hca_id:*umbel_h2_0*PORT_ACTIVE*' in_pod node h2 ibv_devinfo
expect 0 '4: ACTIVE' in_pod node h3 cat /sys/class/infiniband/umbel_h3_0/ports/1/state
expect 0 '' in_pod node h3 test -c /dev/infiniband/uverbs2
expect 255 '*IB devices*' in_pod node - ibv_devinfo # none, or no list of them
# the libraries are the node's: containers cannot change them
# shellcheck disable=SC2016 # the shell in there replaces it
expect 1 '*Read-only file system*' in_pod node h1 sh -c 'unset LD_PRELOAD; rm "${LD_LIBRARY_PATH%%:*}/libibverbs.so.1"'

pair node h1 ib_write_bw -F -R -n 200 -- node h2 ib_write_bw -F -R -n 200 10.0.0.1
pair node h2 ib_send_lat -R -n 200 -- node h3 ib_send_lat -R -n 200 10.0.0.2

pod receiver node h1 mckey -m 239.1.1.1 -b 10.0.0.1
wait_said receiver 'mckey: joined'
expect 0 '*data transfers complete*' in_pod node h3 mckey -m 239.1.1.1 -b 10.0.0.3 -s
wait_ended receiver 0

# a pod that runs stays on the fabric, without the plugin, and if the plugin comes again
pod receiver node h2 mckey -m 239.1.1.2 -b 10.0.0.2
wait_said receiver 'mckey: joined'
node_down node
node_up node '' h1
expect 0 '*data transfers complete*' in_pod node h1 mckey -m 239.1.1.2 -b 10.0.0.1 -s
wait_ended receiver 0

# the fabric ends, and another one comes: a container, which has the devices of before, finds it
umbel down > /dev/null
expect 255 '*No IB devices found*' in_pod node h1 ibv_devinfo
umbel up --hosts 3 > /dev/null
expect 0 '*hca_id:*umbel_h1_0*PORT_ACTIVE*' in_pod node h1 ibv_devinfo
node_down node
umbel down > /dev/null
