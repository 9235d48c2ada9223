#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs for transports that we lack (RC, UC, XRC, SRQ, rsockets) end at once, with a message.

. "${0%/*}/perftest.bash"

umbel up --hosts 2 > /dev/null

# ---- verbs
for program in ibv_rc_pingpong ibv_uc_pingpong; do
	expect 1 "Couldn't create QP" umbel exec h1 -- $program
done
expect 1 "Couldn't create SRQ" umbel exec h1 -- ibv_srq_pingpong
expect 1 "Couldn't Open the XRC Domain 95" umbel exec h1 -- ibv_xsrq_pingpong

# ---- rdma_cm
expect 255 'rdma_listen: Operation not supported' umbel exec h1 -- rping -s -a 10.0.0.1
expect 255 $'rdma_create_qp: Operation not supported\nsetup_qp failed: -1*' \
	umbel exec h1 -- rping -c -a 10.0.0.2
expect 255 '*cmatose: failure trying to listen: Operation not supported*' umbel exec h1 -- ucmatose
expect 255 '*rdma_listen: Operation not supported*' umbel exec h1 -- rdma_server
expect 255 '*rdma_listen: Operation not supported*' umbel exec h1 -- rdma_xserver
expect 255 '*rdma_create_ep: Operation not supported*' umbel exec h1 -- rdma_client -s 10.0.0.2

# ---- rsockets
for program in rstream riostream udpong; do
	expect 255 'rsocket failed: Operation not supported' umbel exec h1 -- $program -b 10.0.0.1
done
expect 255 'rsocket failed: Operation not supported' umbel exec h1 -- rcopy "$0" 10.0.0.2:copy

# ---- perftest: both sides
programs_and_messages=(
	"Unable to create QP|ib_send_bw"
	"Unable to create QP|ib_send_lat -c UC"
	"Unable to create QP|ib_write_bw"
	"Unable to create QP|ib_read_lat"
	"Unable to create QP|ib_atomic_bw"
	"Error opening XRC domain|ib_send_bw -c XRC"
)
for i in "${!programs_and_messages[@]}"; do
	# shellcheck disable=SC2086
	serve "$i" h1 ${programs_and_messages[i]#*|}
done
for i in "${!programs_and_messages[@]}"; do
	# shellcheck disable=SC2086
	client "$i" h2 ${programs_and_messages[i]#*|}
done
for i in "${!programs_and_messages[@]}"; do
	for side in client server; do
		wait_ended "$side-$i" 1
		expect_said "$side-$i" "${programs_and_messages[i]%%|*}"
	done
done
