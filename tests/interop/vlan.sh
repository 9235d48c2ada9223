#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# RoCEv2 on a VLAN device, Umbel and the kernel's rdma_rxe, both ways. Both are in one virtual
# machine, Umbel in a network namespace of its own, for not every host's kernel knows VLANs.

. "${0%/*}/../roce/lab.sh"
. "${0%/*}/../machine/lib.sh"

lab_up 1
machine_up v11
machine v11 bash -c '
	ip netns add umbel &&
	ip link add k0 type veth peer name u0 netns umbel &&
	ip link set k0 up &&
	ip link add link k0 name k0.5 type vlan id 5 &&
	ip link set k0.5 up &&
	ip address add 198.51.100.1/24 dev k0.5 &&
	rdma link add rxe5 type rxe netdev k0 &&
	ip -n umbel link set lo up &&
	ip -n umbel link set u0 up &&
	ip -n umbel link add link u0 name u0.5 type vlan id 5 &&
	ip -n umbel link set u0.5 up &&
	ip -n umbel address add 198.51.100.2/24 dev u0.5' || complain "no VLAN"
machine v11 mkdir -m 700 /tmp/umbel
umbel=(ip netns exec umbel env UMBEL_RUNTIME_DIR=/tmp/umbel "$UMBEL")
machine v11 "${umbel[@]}" up --roce u0.5 > "$TMPDIR/up" || complain "$(cat "$TMPDIR/up")"
on_umbel=("${umbel[@]}" exec -- ibv_ud_pingpong -g 1)
on_kernel=(ibv_ud_pingpong -d rxe5 -g 1)

# what is on the network between them, into the folder of the machine's commands
machine_launch capture v11 dumpcap -q -p -P -i k0 -w /mnt/wire.pcap
wait_said capture 'File: '

# wait_listening NETNS-COMMAND...
wait_listening()
{
	machine v11 timeout 100 "$@" bash -c \
		"until grep -qs ':4853 00000000:0000 0A' /proc/net/tcp; do sleep 0.05; done" ||
		complain "the server does not listen"
}

machine_launch server-umbel v11 "${on_umbel[@]}" -n 20 -s 101
wait_listening ip netns exec umbel
machine_launch client-kernel v11 "${on_kernel[@]}" -n 20 -s 101 198.51.100.2
wait_ended client-kernel 0
wait_ended server-umbel 0

machine_launch server-kernel v11 "${on_kernel[@]}" -n 20 -s 102
wait_listening env
machine_launch client-umbel v11 "${on_umbel[@]}" -n 20 -s 102 198.51.100.1
wait_ended client-umbel 0
wait_ended server-kernel 0

machine_end capture v11
wait_until "the capture ends" gone "${pid[capture]}"
expect_packets 0 v11/wire 'udp.dstport == 4791 && !(vlan.id == 5)'
expect_sound v11/wire
