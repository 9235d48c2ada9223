#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs that look into /sys and /dev see the HCAs of their host, all that Linux shows of them,
# and what is true just then; and nothing else there is different.

. "${0%/*}/lib.sh"

class=/sys/class/infiniband
files=$class/umbel_h2_0/ports/1

# see TEXT PATH: the file has that text, on h2.
see()
{
	expect 0 "$1" umbel exec h2 -- cat "$2"
}

is()
{
	[[ $(umbel exec h2 -- cat "$2") == $1 ]]
}

umbel up --hosts 3 > /dev/null
expect 0 $'Infiniband device \'umbel_h2_0\' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:0275:6d00:0000:0201
\tbase lid:\t 0x2
\tsm lid:\t\t 0x1
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 100 Gb/sec (4X EDR)
\tlink_layer:\t InfiniBand' umbel exec h2 -- ibstatus

# per host: no others, and a host's only
expect 0 umbel_h2_0 umbel exec h2 -- ls $class
expect 0 $'umbel_h1_0\numbel_h2_0\numbel_h3_0' umbel exec -- ls $class
expect 1 '*No such file*' umbel exec h1 -- cat $files/state
expect 0 $'issm1\nrdma_cm\numad1\nuverbs1' umbel exec h2 -- ls /dev/infiniband
expect 1 '' umbel exec h2 -- test -e /dev/infiniband/uverbs0

# complete
expect 0 $'board_id\ndevice\nfw_ver\nhca_type\nhw_rev\nnode_desc\nnode_guid\nnode_type\nports\nsubsystem\nsys_image_guid\nuevent' \
	umbel exec h2 -- ls $class/umbel_h2_0
expect 0 $'cap_mask\ncounters\ngid_attrs\ngids\nhw_counters\nlid\nlid_mask_count\nlink_layer\nphys_state\npkeys\nrate\nsm_lid\nsm_sl\nstate' \
	umbel exec h2 -- ls $files
expect 0 '16 16 16 16 21 1' umbel exec h2 -- bash -c \
	"cd $files; for i in gids gid_attrs/types gid_attrs/ndevs pkeys counters hw_counters; do ls \$i | wc -l; done | xargs"
# a card without a netdev has no list of them: rdma-core's tests take the first entry of any that is there
expect 0 $'class\ndevice\ndriver\ninfiniband\nnuma_node\nresource\nsubsystem\nuevent\nvendor' umbel exec h2 -- ls "$class/umbel_h2_0/device"
expect 2 '*No such file*' umbel exec h2 -- ls "$class/umbel_h2_0/device/net"
# every file can be read, but for the types and netdevs of empty entries
expect 0 99 umbel exec h2 -- bash -c "find /sys/devices/pci756d:00 /sys/devices/virtual/infiniband_* -type f ! -path '*/gid_attrs/*' |
	xargs cat | grep -c ."
for what in 'infiniband_verbs/abi_version 6' 'infiniband_verbs/uverbs1/ibdev umbel_h2_0' \
	'infiniband_verbs/uverbs1/abi_version 1' 'infiniband_verbs/uverbs1/dev 231:193' \
	'infiniband_mad/abi_version 5' 'infiniband_mad/umad1/ibdev umbel_h2_0' 'infiniband_mad/umad1/port 1' \
	'infiniband_mad/issm1/dev 231:65' 'infiniband_cm/abi_version 5' 'misc/rdma_cm/abi_version 4'; do
	see "${what#* }" "/sys/class/${what% *}"
done

# what programs ask for elsewhere is the same there
expect 0 "Node Description:*$(umbel exec h2 -- cat $class/umbel_h2_0/node_desc)" \
	umbel exec h2 -- smpquery nodedesc 2
guid=$(umbel exec h2 -- cat $class/umbel_h2_0/node_guid)
expect 0 "*node_guid:*$guid*" umbel exec h2 -- ibv_devinfo
see IB/RoCE\ v1 $files/gid_attrs/types/0
see 0xffff $files/pkeys/0
# it asks first which ports are of InfiniBand, and then the SA for targets, of which there are none
expect 0 '' umbel exec h2 -- ibsrpdm

# current: counters, link, what a subnet manager says by a capability
counters=$files/counters
see 0 $counters/unicast_xmit_packets
new_port
start server h1 ibv_ud_pingpong -p "$port" -n 200 -r 200
wait_listening server "$port"
expect 0 '*' umbel exec h2 -- ibv_ud_pingpong -p "$port" -n 200 -r 200 127.0.0.1
wait_ended server 0
for what in unicast_xmit_packets port_xmit_packets unicast_rcv_packets port_rcv_packets; do
	see 200 $counters/$what
done
[ "$(umbel exec h2 -- cat $counters/port_xmit_data)" = \
	"$(umbel exec h2 -- perfquery -x | sed -n 's/^PortXmitData:\.*//p')" ] || complain "port_xmit_data differs"
expect 0 '*' umbel exec h2 -- perfquery -x -R
see 0 $counters/unicast_xmit_packets
umbel link down h2:1 > /dev/null
wait_until "the port is down" is '1: DOWN' $files/state
see '2: Polling' $files/phys_state
see 1 $counters/link_downed
umbel link up h2:1 > /dev/null
wait_until "the port is active" is '4: ACTIVE' $files/state
has_bit()
{
	(($(umbel exec h2 -- cat $files/cap_mask) & $1))
}
not has_bit 2 || complain "h2 is a subnet manager"
start manager h2 sh -c 'exec 3< /dev/infiniband/issm1; exec sleep 60'
wait_until "who has issm1 open is a subnet manager" has_bit 2
# and at once; the bit is in the last digit
expect 0 '0x*[2367abef]' umbel exec h3 -- sh -c "exec 3< /dev/infiniband/issm2; exec cat ${files//h2/h3}/cap_mask"
expect 0 '0x*[014589cd]' umbel exec h3 -- sh -c \
	"exec 3< /dev/infiniband/issm2; cat ${files//h2/h3}/cap_mask > /dev/null; exec 3<&-; exec cat ${files//h2/h3}/cap_mask"
kill "${pid[manager]}"
wait_until "it is none any more" not has_bit 2
wait_ended manager 143

# and nothing else is different
same='id; grep -E "^(Cap|NoNewPrivs|Seccomp|Groups)" /proc/self/status; readlink /proc/self/ns/*
	cat /proc/self/mountinfo; umask; pwd; ls /sys/class /dev | grep -v infiniband; ls -l /proc/self/fd | wc -l'
[ "$(bash -c "$same")" = "$(umbel exec h2 -- bash -c "$same")" ] || {
	diff <(bash -c "$same") <(umbel exec h2 -- bash -c "$same") >&2
	complain "exec changes what a program sees"
}

# what cannot be reached is said
expect 1 '*sysfs info: *busybox*: it is a static program*' \
	env UMBEL_LOG=info umbel exec h2 -- busybox cat $files/state
expect 1 "cat: *: No such file or directory" umbel exec h2 -- busybox cat $files/state

# the fabric ends: its HCAs are gone, and what stood for directories with them
start inside h2 sh -c "cd $files && echo there && while [ -e state ]; do sleep 0.01; done"
wait_said inside there
umbel down > /dev/null
wait_ended inside 0
[ ! -e "$UMBEL_RUNTIME_DIR/default/sysfs" ] || complain "stand-ins are left"
umbel up --hosts 2 > /dev/null
expect 0 '4: ACTIVE' umbel exec h2 -- sh -c "cd $files && cat state"
kill -9 "$(cat "$UMBEL_RUNTIME_DIR/default/lock")"
expect 1 '*No such file or directory' umbel run --hosts 1 -- env UMBEL_FABRIC=default cat $files/state
umbel up --hosts 1 > /dev/null
[ ! -e "$UMBEL_RUNTIME_DIR/default/sysfs" ] || complain "a dead daemon's stand-ins are left"

# each HCA has a place of its own, however many there are
umbel up --name many --hosts 300 > /dev/null
expect 0 /sys/devices/pci756d:00/756e:2b:00.0 \
	umbel exec --name many h300 -- readlink -f $class/umbel_h300_0/device
for there in h300 ''; do
	# shellcheck disable=SC2086
	expect 0 umbel_h300_0 umbel exec --name many $there -- ls /sys/devices/pci756d:00/756e:2b:00.0/infiniband
done
expect 2 '*No such file*' umbel exec --name many h300 -- ls /sys/devices/pci756d:00/756e:2a:00.0
expect 2 '*No such file*' umbel exec --name many -- ls /sys/devices/pci756d:00/756e:2c:00.0
expect 2 '*No such file*' umbel exec --name many -- ls /sys/devices/pci756d:00/:2b:00.0
umbel down --name many > /dev/null
